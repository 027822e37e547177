"""The pieces of a staged store: buffers in shared memory that threads write.

TMA stores a piece, or threads read words of its rows and store them.
"""

from __future__ import annotations

import math
from functools import partial

from ....dialects import llvm, sm
from ....dialects.fragments import ROWS
from ....dialects.layout import TileLayout
from ....dialects.mlir import ir
from ....dialects.ragged_maps import plain_box
from ....dialects.target import WARPGROUP_THREADS
from ....dialects.tile import ElementOp
from ....dialects.tile.ahead import HeldElementOp, ReadOperandOp, StagedElementOp
from ....dialects.tile.pieces import (
    PAIR,
    ApplyEpilogueOp,
    LoadMatricesOp,
    WriteMatricesOp,
    WritePairsOp,
    WriteUnitOp,
)
from ....dialects.tile.stores import PartPlaceOp, TmaStoreOp, WriteWordsOp, bytes_of_words
from ....dialects.tile_types import SmemType, element_bytes, integers_of, stored_element
from ... import build
from ...batches import row_pitch
from ...copy_width import UNIT_BYTES
from ...places import COLUMNS, behind, column_in, matrix_column, matrix_row, row_in
from ...team import Team
from ...whole import extents_of_store, is_whole
from ..copies.boxes import map_at
from ..copies.copies import part_offset
from ..operands.units import Line, line_of, unit_of, unit_offset
from ..registers.elements import (
    concatenated,
    held_elements,
    joined,
    read_elements,
    read_operand,
    slices_of,
    widened,
)
from ..scope.scope import Scope, element_pointer, lowered, lowered_as, taken
from ..tiles.groups import columns_in, row_of_whole, rows_in
from .scalar_ops import apply_epilogue

MATRICES_STORED = 4
"""Matrices that one stmatrix stores."""


def _unit_behind(index: int) -> tuple[int, int]:
    """Like `behind`, with columns in units: a row of an 8x8 matrix of 16-bit elements is one."""
    row, column = behind(index)
    return row, column // ROWS


MATRICES = tuple(_unit_behind(PAIR * word) for word in range(MATRICES_STORED))
"""Where they begin."""


def lower_apply_epilogue(scope: Scope, op: ApplyEpilogueOp) -> ir.Value:
    """The ops of the region on a vector of neighbours."""
    (width,) = ir.VectorType(op.outputs.type).shape
    values = slices_of(op, op.values, op.first.value, width)
    made = apply_epilogue(op, values, width, partial(_read, scope, op, width))
    return made if made.type == op.outputs.type else lowered_as(made, op.outputs.type)


def _read(scope: Scope, op: ApplyEpilogueOp, width: int, element: ElementOp) -> ir.Value:
    """What another operand has there."""
    if isinstance(element, StagedElementOp):
        return _read_piece(op, width, element)
    if isinstance(element, HeldElementOp):
        return held_elements(element, width)
    (m, n), (rows, behind_column) = integers_of(op.extents), integers_of(op.behind)
    height, columns = extents_of_store(op, op.to.type)
    at_row = build.as_i32(op.i) * m + (op.row + rows)
    at_column = build.as_i32(op.j) * n + (op.start + (op.column + behind_column))
    inside = None if is_whole(op, "i") else build.less(at_row, rows_in(scope, op.to, height))
    if element.axes.value in ("", "m") and columns % width:
        return read_elements(at_row, at_column, width, inside, element)
    end = columns_in(scope, op.to, columns)
    # a row of C by itself is whole units, a column ends anywhere, and so do rows of a group
    each = math.gcd(width, columns) if end == columns else 1
    read = []
    for at in range(0, width, each):
        column, there = at_column + at if at else at_column, inside
        if not is_whole(op, "j"):
            there = build.both(inside, build.less(column, end))
        read.append(read_elements(at_row, column, each, there, element))
    return read[0] if len(read) == 1 else joined(read)


def _read_piece(op: ApplyEpilogueOp, width: int, element: StagedElementOp) -> ir.Value:
    """Neighbours of a row of a piece in shared memory, as many at a time as a unit holds; one at a
    time where columns lie in line."""
    layout, (rows, columns) = element.piece.type.layout, integers_of(op.behind)
    row, column = op.row + rows, op.column + columns
    if element.axes.value == "n":  # the columns of the whole tile
        row, column = build.constant(0), op.start + column
    if layout.major == "mn":
        single = [_load_line(element, row, column + at) for at in range(width)]
        return joined(single) if width > 1 else single[0]
    each = min(width, UNIT_BYTES // layout.element_bytes)
    parts = [_load_part(element, row, column + at, each) for at in range(0, width, each)]
    return parts[0] if len(parts) == 1 else concatenated(parts)


def _load_part(element: StagedElementOp, row: ir.Value, column: ir.Value, width: int) -> ir.Value:
    """Elements of one unit, that begin at a multiple of their number."""
    piece = element.piece
    item = piece.type.layout.element_bytes
    per_unit = UNIT_BYTES // item
    place = _unit_at(piece, row, column // per_unit)
    if width < per_unit:
        place = build.offset_pointer(place, column % per_unit * item)
    return llvm.load(widened(element.value.type, width), place, alignment=width * item)


def _load_line(element: StagedElementOp, row: ir.Value, column: ir.Value) -> ir.Value:
    """The element of a row in the line of a column."""
    piece = element.piece
    item = piece.type.layout.element_bytes
    per_unit = UNIT_BYTES // item
    place = build.offset_pointer(_unit_at(piece, column, row // per_unit), row % per_unit * item)
    return llvm.load(element.value.type, place, alignment=item)


def lower_write_unit(_: Scope, op: WriteUnitOp) -> None:
    """One store."""
    width = UNIT_BYTES // op.buffer.type.layout.element_bytes
    place = _unit_at(op.buffer, op.row, op.column // width)
    llvm.store(taken(op.outputs), place, alignment=UNIT_BYTES)


def lower_write_matrices(scope: Scope, op: WriteMatricesOp) -> None:
    """One stmatrix: a lane names a row of a matrix, and has a pair of each (PTX ISA, stmatrix)."""
    words = [llvm.bitcast(build.i32(), taken(pair)) for pair in op.outputs]
    transposed = op.buffer.type.layout.major == "mn"
    store = sm.StmatrixTransposedOp if transposed else sm.StmatrixOp
    store.of(_matrix_at(scope, op.buffer, op), words)


def lower_load_matrices(scope: Scope, op: LoadMatricesOp) -> ir.Value:
    """One ldmatrix; lanes name rows of the matrices as for stmatrix."""
    (count,) = op.values.type.shape
    transposed = op.piece.type.layout.major == "mn"
    words = sm.LdmatrixOp.of(
        _matrix_at(scope, op.piece, op),
        offset=0,
        transposed=int(transposed),
        words=ir.VectorType.get([count // PAIR], build.i32()),
    ).words
    return llvm.bitcast(op.values.type, words)


def _matrix_at(
    scope: Scope, tile: ir.Value[SmemType], op: WriteMatricesOp | LoadMatricesOp
) -> ir.Value:
    """Where the row of a matrix is that this lane names; of columns in line, the column."""
    lane, layout = Team.of(op).lane, tile.type.layout
    if layout.major == "mn":  # a column of the tile is a row in memory
        number = lane // ROWS
        column = matrix_column(MATRICES, number) * ROWS + lane % ROWS + op.column.value
        unit = (op.row + matrix_row(MATRICES, number)) // ROWS
        return _unit_at(tile, column, unit)
    named = partial(_named_row, layout, op.row, lane)
    line, unit = scope.once(("matrices", layout, op.row, lane), named)
    offset = unit_of(layout, line, unit + op.column.value // ROWS)
    return build.shared_at(offset + lowered(tile))


def _named_row(layout: TileLayout, row: ir.Value, lane: ir.Value) -> tuple[Line, ir.Value]:
    """The row of 16 that this lane names of a matrix, and the unit in which the matrix begins."""
    number = lane // ROWS
    line = line_of(layout, row + lane % ROWS + matrix_row(MATRICES, number))
    return line, matrix_column(MATRICES, number)


def lower_write_pairs(scope: Scope, op: WritePairsOp) -> None:
    """A store for each pair, in the thread's part of a unit."""
    item, lane = op.buffer.type.layout.element_bytes, Team.of(op).lane
    width = UNIT_BYTES // item
    row, column = op.row + row_in(COLUMNS, lane=lane), column_in(COLUMNS, lane=lane)
    for number, pair in enumerate(op.outputs):
        rows, columns = behind(PAIR * number)
        at_column = column + (op.column.value + columns)
        unit = _unit_at(op.buffer, row + rows, at_column // width)
        place = build.offset_pointer(unit, at_column % width * item)
        llvm.store(taken(pair), place, alignment=PAIR * item)


def _unit_at(buffer: ir.Value[SmemType], row: ir.Value, unit: ir.Value) -> ir.Value:
    """Where a 16-byte unit of a row of the piece goes."""
    return build.shared_at(unit_offset(buffer.type.layout, row, unit) + lowered(buffer))


def lower_tma_store(scope: Scope, op: TmaStoreOp) -> None:
    """One box of the view, or one for each chunk of a buffer of columns; of a warpgroup's rows."""
    (m, n), layout = integers_of(op.extents), op.buffer.type.layout
    column = build.as_i32(op.j) * n + op.start
    if layout.major == "mn":
        for chunk in range(layout.chunks):
            at = [build.as_i32(op.i) * m + chunk * layout.span, column]
            map_, coordinates = map_at(op.map, at)
            buffer = build.shared_at(lowered(op.buffer) + chunk * layout.chunk_bytes)
            sm.TmaStoreOp.of(map_, buffer, coordinates)
        return
    rows, buffer, row = plain_box(op.map.type)[1], lowered(op.buffer), build.as_i32(op.i) * m
    if rows < layout.rows:
        first = Team.of(op).thread // WARPGROUP_THREADS * rows
        row, buffer = row + first, buffer + first * layout.span_bytes
    map_, coordinates = map_at(op.map, [column, row])
    sm.TmaStoreOp.of(map_, build.shared_at(buffer), coordinates)


def lower_part_place(_: Scope, op: PartPlaceOp) -> ir.Value:
    """After the first byte of the buffer."""
    offset = part_offset(op.buffer.type.layout, op.row, op.part, op.bytes.value)
    return offset + lowered(op.buffer)


def lower_write_words(_: Scope, op: WriteWordsOp) -> None:
    """One store."""
    row = row_of_whole(op.view, op.row)
    offset = build.widen(row) * row_pitch(op.view) + build.widen(op.column)
    size = bytes_of_words(op.words.type)
    llvm.store(op.words, element_pointer(op.view, offset), alignment=size)


def alignment_bytes(op: ApplyEpilogueOp, view: ir.Value) -> int:
    """Bytes that the address of `view`, read by the epilogue, must be a multiple of."""
    by_threads = isinstance(op.to.type, ir.MemRefType)
    width = PAIR if by_threads else UNIT_BYTES // element_bytes(stored_element(op.to.type))
    return width * element_bytes(ir.MemRefType(view.type).element_type)


PIECES = {
    ApplyEpilogueOp: lower_apply_epilogue,
    ReadOperandOp: read_operand,
    WriteUnitOp: lower_write_unit,
    WriteMatricesOp: lower_write_matrices,
    LoadMatricesOp: lower_load_matrices,
    WritePairsOp: lower_write_pairs,
    TmaStoreOp: lower_tma_store,
    PartPlaceOp: lower_part_place,
    WriteWordsOp: lower_write_words,
}
