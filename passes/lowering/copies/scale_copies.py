"""Atoms of scales, and packed elements that get gaps, copied into shared memory by threads."""

from __future__ import annotations

import math

from ....dialects import llvm
from ....dialects.layout import (
    ATOM_BYTES,
    HALVED,
    HALVES,
    SCALE_ATOM_BLOCKS,
    SCALE_ATOM_ROWS,
    SCALE_COLUMN_ROWS,
    UNIT_BYTES,
)
from ....dialects.mlir import arith, ir, vector
from ....dialects.tile import CopyOp
from ....dialects.tile.scales import SCALED_MMAS
from ....dialects.tile_types import bits_of
from ... import build
from ...base import walk
from ...shared_scales import NOT_SHARED, said_shared
from ...team import Team
from ..operands.units import first_atom, unit_offset
from ..scope.scope import Scope, lowered_parts, place_of
from ..tiles.groups import atom_of_whole, is_of_group, row_of_whole

WORD_BYTES = 4
ATOM_UNITS = ATOM_BYTES // UNIT_BYTES
REPEATED = 0x01010101  # times a byte: four of it


def copy_atoms(scope: Scope, op: CopyOp) -> None:
    """The team's threads copy a tile's atoms by units; atoms outside the view are zero, and so are
    the scales past the last block of K, which an MMA may read."""
    layout, start, view = op.tile.type.layout, place_of(op.tile), op.view.type
    if view.rank == 2:
        _make_atoms(op)
        return
    along_mn, along_k = layout.atoms
    rows, blocks = view.shape[:2]
    row, block = first_atom(layout, op.i), build.as_i32(op.j) * along_k
    units, team = along_mn * along_k * ATOM_UNITS, Team.of(op)
    with build.loop(team.thread, units, team.threads) as unit:
        atom = unit // ATOM_UNITS
        at_block = block + atom % along_k
        at_row = atom_of_whole(op.view, row + atom // along_k)
        inside = arith.andi(build.less(at_row, rows), build.less(at_block, blocks))
        number = build.widen(at_row) * blocks + build.widen(at_block)
        offset = number * ATOM_BYTES + build.widen(unit % ATOM_UNITS * UNIT_BYTES)
        value = _read(lowered_parts(op.view)[0], offset, inside)
        value = _without_padding(scope, value, at_block)
        llvm.store(value, build.shared_at(unit * UNIT_BYTES + start), alignment=UNIT_BYTES)


def _make_atoms(op: CopyOp) -> None:
    """The same of linear scales: a unit of an atom is four blocks of four rows, 32 rows apart.

    What the operand does not have is zero.
    """
    layout, start = op.tile.type.layout, place_of(op.tile)
    along_mn, along_k = layout.atoms
    first_row = first_atom(layout, op.i) * SCALE_ATOM_ROWS
    first_block = build.as_i32(op.j) * (along_k * SCALE_ATOM_BLOCKS)
    units, team = along_mn * along_k * ATOM_UNITS, Team.of(op)
    with build.loop(team.thread, units, team.threads) as unit:
        atom, line = unit // ATOM_UNITS, unit % ATOM_UNITS
        row = first_row + atom // along_k * SCALE_ATOM_ROWS + line
        block = first_block + atom % along_k * SCALE_ATOM_BLOCKS
        words = [_scales_of_row(op, row + 32 * part, block) for part in range(4)]
        type_ = ir.VectorType.get([len(words)], build.i32())
        value = vector.FromElementsOp(type_, words).result
        llvm.store(value, build.shared_at(unit * UNIT_BYTES + start), alignment=UNIT_BYTES)


def _scales_of_row(op: CopyOp, row: ir.Value, block: ir.Value) -> ir.Value:
    """Four neighbouring scales of a row as a word; a load has as many bytes as rows are aligned.

    One that is for all four, or for as many of several rows, is repeated.
    """
    blocks, rows = op.view.type.shape[1], _rows_in(op.view)
    shared = said_shared(op)
    if shared != NOT_SHARED:
        found = _scale(op, row // shared[0], block // shared[1])
        return found * REPEATED
    size = math.gcd(blocks, WORD_BYTES)
    type_ = ir.IntegerType.get_signless(8 * size)
    word = build.constant(0)
    for first in range(0, WORD_BYTES, size):
        at = block + first
        inside = arith.andi(build.less(row, rows), build.less(at, blocks))
        offset = build.widen(row_of_whole(op.view, row)) * blocks + build.widen(at)
        offset = arith.select(inside, offset, build.constant(0, build.i64()))
        byte = ir.IntegerType.get_signless(8)
        loaded = llvm.load(
            type_, build.element_pointer(lowered_parts(op.view)[0], byte, offset), alignment=size
        )
        wide = loaded if size == WORD_BYTES else arith.extui(build.i32(), loaded)
        part = arith.select(inside, wide, build.constant(0))
        word = part if size == WORD_BYTES else word + part * (1 << 8 * first)
    return word


def _scale(op: CopyOp, row: ir.Value, block: ir.Value) -> ir.Value:
    """One scale, in the low byte of a word; 0 outside of the view."""
    blocks, rows = op.view.type.shape[1], _rows_in(op.view)
    byte = ir.IntegerType.get_signless(8)
    inside = arith.andi(build.less(row, rows), build.less(block, blocks))
    offset = build.widen(row_of_whole(op.view, row)) * blocks + build.widen(block)
    offset = arith.select(inside, offset, build.constant(0, build.i64()))
    pointer = build.element_pointer(lowered_parts(op.view)[0], byte, offset)
    loaded = llvm.load(byte, pointer, alignment=1)
    return arith.select(inside, arith.extui(build.i32(), loaded), build.constant(0))


def copy_words(scope: Scope, op: CopyOp) -> None:
    """The same of atoms that begin with the tile, or with a half of it: word by word, since what
    lies in a line of 16 bytes here lies in two there."""
    layout, start, team = op.tile.type.layout, place_of(op.tile), Team.of(op)
    halves = HALVES if layout.swizzle == HALVED else 1
    along_k, each = layout.atoms[1], layout.mn // halves
    first, block = build.as_i32(op.i) * layout.mn, build.as_i32(op.j) * along_k
    with build.loop(team.thread, layout.mn * along_k, team.threads) as word:
        row, part = word % each, word // each
        at_row, at_block = first + (part % halves * each + row), block + part // halves
        value = _word(scope, op, at_row, at_block)
        to = part * ATOM_BYTES + _in_atom(row) + start
        llvm.store(value, build.shared_at(to), alignment=WORD_BYTES)


def _word(scope: Scope, op: CopyOp, row: ir.Value, block: ir.Value) -> ir.Value:
    """The scales of a row in an atom, the `block`-th along K; those that it does not have are 0."""
    view = op.view.type
    if view.rank == 2:
        return _scales_of_row(op, row, block * SCALE_ATOM_BLOCKS)
    rows, blocks = view.shape[:2]
    atom = atom_of_whole(op.view, row // SCALE_ATOM_ROWS)
    inside = arith.andi(build.less(atom, rows), build.less(block, blocks))
    number = build.widen(atom) * blocks + build.widen(block)
    offset = number * ATOM_BYTES + build.widen(_in_atom(row % SCALE_ATOM_ROWS))
    value = _read(lowered_parts(op.view)[0], offset, inside, WORD_BYTES)
    return _without_padding(scope, value, block)


def _in_atom(row: ir.Value) -> ir.Value:
    """Byte of an atom where the word of a row begins."""
    return row % SCALE_COLUMN_ROWS * UNIT_BYTES + row // SCALE_COLUMN_ROWS * WORD_BYTES


def _without_padding(scope: Scope, words: ir.Value, block: ir.Value) -> ir.Value:
    """Four rows' scales of an atom; of the last atom along K only those that K has."""
    mma = walk(scope.kernel, SCALED_MMAS)[0]
    last, rest = divmod(mma.extent.value // mma.block.value, SCALE_ATOM_BLOCKS)
    if not rest:
        return words
    mask = arith.select(
        build.equal(block, last), build.constant((1 << 8 * rest) - 1), build.constant(-1)
    )
    return arith.andi(words, vector.BroadcastOp(words.type, mask).result)


def copy_padded(op: CopyOp) -> None:
    """The team's threads spread a tile's packed elements: 16 of them take a unit, with a gap."""
    layout, start, view = op.tile.type.layout, place_of(op.tile), op.view.type
    size = UNIT_BYTES * bits_of(view.element_type) // 8
    rows, k = _rows_in(op.view), view.shape[1]
    pitch, in_row = k // UNIT_BYTES * size, layout.k // UNIT_BYTES
    first_row = build.as_i32(op.i) * layout.mn
    first_unit, team = build.as_i32(op.j) * in_row, Team.of(op)
    with build.loop(team.thread, layout.mn * in_row, team.threads) as part:
        row, unit = part // in_row, part % in_row
        at_row, at_unit = first_row + row, first_unit + unit
        inside = arith.andi(build.less(at_row, rows), build.less(at_unit, k // UNIT_BYTES))
        offset = build.widen(row_of_whole(op.view, at_row)) * pitch + build.widen(at_unit * size)
        value = _with_gap(_read(lowered_parts(op.view)[0], offset, inside, size))
        to = build.shared_at(unit_offset(layout, row, unit) + start)
        llvm.store(value, to, alignment=UNIT_BYTES)


def _rows_in(view: ir.Value[ir.MemRefType]) -> ir.Value | int:
    """How many rows a view of known extents has: of a group its own."""
    return lowered_parts(view)[-1] if is_of_group(view) else view.type.shape[0]


def _with_gap(words: ir.Value) -> ir.Value:
    """A unit whose last words, which no MMA looks at, are zero."""
    (count,) = ir.VectorType(words.type).shape
    most = UNIT_BYTES // WORD_BYTES
    parts = [vector.ExtractOp(words, [], [index]).result for index in range(count)]
    type_ = ir.VectorType.get([most], build.i32())
    return vector.FromElementsOp(type_, parts + [build.constant(0)] * (most - count)).result


def _read(view: ir.Value, offset: ir.Value, inside: ir.Value, size: int = UNIT_BYTES) -> ir.Value:
    """Load `size` bytes, or zeros: lanes outside load the first ones and drop them."""
    type_ = ir.VectorType.get([size // WORD_BYTES], build.i32())
    offset = arith.select(inside, offset, build.constant(0, build.i64()))
    byte = ir.IntegerType.get_signless(8)
    alignment = size & -size
    loaded = llvm.load(type_, build.element_pointer(view, byte, offset), alignment=alignment)
    zero = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(build.i32(), 0))
    return arith.select(inside, loaded, arith.ConstantOp(type_, zero).result)
