"""Operand tiles copied into shared memory by threads, in units of 16 bytes.

Into a slot of a pipe with cp.async where rows allow 4 bytes at a time, so that the copies of
several slots are under way. Elsewhere threads load aligned units and shift them in registers
(`shifted_copies`), or, where a tile is too small for that, a thread loads several units in parts
before it stores the first, so that their latencies overlap.
"""

from __future__ import annotations

from ....dialects import llvm
from ....dialects.layout import BLOCKED, LINEAR, TileLayout
from ....dialects.mlir import ir
from ....dialects.sm.memory import TileMemoryOp
from ....dialects.tile import CopyOp
from ....dialects.tile_types import is_padded
from ... import build
from ...base import defining_op
from ...copy_width import UNIT_BYTES, is_asynchronous
from ...parts import PARTS_MAX, Part, for_parts
from ...team import Team
from ..operands.units import unit_offset
from ..scope.scope import Scope, place_of
from ..tiles.groups import is_gathered
from .scale_copies import copy_atoms, copy_padded, copy_words
from .source import Source


def lower_copy(scope: Scope, op: CopyOp) -> None:
    """The team's threads copy the tile into the acquired slot, or into a place of its own."""
    if op.tile.type.layout.is_of_scales:
        by_atoms = op.tile.type.layout.swizzle == BLOCKED
        copy_atoms(scope, op) if by_atoms else copy_words(scope, op)
        return
    if is_padded(op.tile.type.element):
        copy_padded(op)
        return
    in_ring = not isinstance(defining_op(op.tile), TileMemoryOp)
    if in_ring and is_asynchronous(op):
        _start_copies(scope, op)
    elif op.tile.type.layout.swizzle == LINEAR:
        _copy_parts(scope, op)
    else:
        _copy_tile(scope, op)


def _copy_parts(scope: Scope, op: CopyOp) -> None:
    """Threads copy what one load takes at a time; elements outside the view are zero."""
    layout, start = op.tile.type.layout, place_of(op.tile)
    source = Source.of(scope, op)
    size = source.width * layout.element_bytes

    def emit(parts: list[Part]) -> None:
        values = [source.read_part(row, part * source.width) for row, part in parts]
        for (row, part), value in zip(parts, values, strict=True):
            to = build.shared_at(row * layout.span_bytes + part * size + start)
            llvm.store(value, to, alignment=size)

    for_parts(Team.of(op), layout, size, PARTS_MAX, emit)


def _start_copies(scope: Scope, op: CopyOp) -> None:
    """Threads start copies, which are done when waited for; numbers of rows are read ahead."""
    layout, start = op.tile.type.layout, place_of(op.tile)
    source = Source.of(scope, op)
    size = source.width * layout.element_bytes

    def emit(parts: list[Part]) -> None:
        ahead = [source.row(row) for row, _ in parts] if is_gathered(op.view) else None
        for number, (row, part) in enumerate(parts):
            to = part_offset(layout, row, part, size) + start
            found = None if ahead is None else ahead[number]
            source.start_copy(row, part * source.width, build.shared_at(to), found)

    for_parts(Team.of(op), layout, size, PARTS_MAX, emit)


def part_offset(layout: TileLayout, row: ir.Value, part: ir.Value, size: int) -> ir.Value:
    """Byte offset of the part-th `size` bytes of a row in the tile."""
    if layout.swizzle == LINEAR:
        return row * layout.span_bytes + part * size
    in_unit = UNIT_BYTES // size
    if in_unit == 1:
        return unit_offset(layout, row, part)
    unit = unit_offset(layout, row, part // in_unit)
    return unit + part % in_unit * size


def _copy_tile(scope: Scope, op: CopyOp) -> None:
    """Threads copy units; elements outside the view are zero."""
    layout, start = op.tile.type.layout, place_of(op.tile)
    source = Source.of(scope, op)

    def emit(units: list[Part]) -> None:
        values = [source.read_unit(row, column) for row, column in units]
        for (row, column), value in zip(units, values, strict=True):
            address = build.shared_at(unit_offset(layout, row, column) + start)
            llvm.store(value, address, alignment=UNIT_BYTES)

    for_parts(Team.of(op), layout, UNIT_BYTES, source.units_under_way, emit)
