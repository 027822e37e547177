"""The pieces of a staged store: buffers in shared memory that threads write.

TMA stores a piece, or all threads do: neighbours take neighbouring units of a row, so that a warp
stores whole rows of the piece.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from functools import partial

from ...dialects import sm
from ...dialects.fragments import ROWS, tensor_memory
from ...dialects.layout import TileLayout
from ...dialects.mlir import ir, llvm
from ...dialects.tile import ElementOp
from ...dialects.tile_stores import StorePieceOp, TmaStoreOp, WritePieceOp
from ...dialects.tile_types import element_bytes, integers_of, stored_element, stored_extents
from .. import build
from ..batches import step_bytes
from ..places import PAIR, column_in, matrix_column, matrix_row, row_in
from ..whole import is_whole
from .copies import COPIES_MAX, part_offset, parts_of
from .elements import element_pointer, read_elements, slice_of
from .operands import UNIT_BYTES, map_at, unit_offset
from .scalar_ops import apply_epilogue
from .scope import Scope, lowered

MATRICES = tensor_memory("16x256b", 1)
"""Two 8x8 matrices, one below the other."""
STORED = 4
"""Matrices that one stmatrix stores."""


@dataclass(frozen=True)
class Piece:
    """A piece at hand: `start` is its first column in the tile, `buffer` its place (bytes)."""

    scope: Scope
    op: WritePieceOp
    start: ir.Value
    buffer: ir.Value

    @property
    def layout(self) -> TileLayout:
        return self.op.buffer.type.layout

    @property
    def element(self) -> ir.Type:
        """The type of the sums."""
        return self.op.sums.type.element

    def apply(self, values: ir.Value, row: ir.Value, column: ir.Value, width: int) -> ir.Value:
        """The epilogue of `width` elements from (row of the tile, column of the piece) on."""
        return apply_epilogue(self.op, values, width, partial(self._read, row, column, width))

    def _read(self, row: ir.Value, column: ir.Value, width: int, element: ElementOp) -> ir.Value:
        """What another operand has there."""
        op, (m, n) = self.op, self.op.sums.type.shape
        height, columns = stored_extents(op.to.type)
        at_row = build.as_i32(op.i) * m + row
        at_column = build.as_i32(op.j) * n + (self.start + column)
        inside = None if is_whole(op, "i") else build.less(at_row, height)
        if not is_whole(op, "j"):
            inside = build.both(inside, build.less(at_column, columns))
        return read_elements(at_row, at_column, width, inside, element)

    def pointer(self, row: ir.Value, unit: ir.Value) -> ir.Value:
        """Where a 16-byte unit of a row of the tile goes."""
        offset = unit_offset(self.layout, row, unit) + self.buffer
        return build.shared_at(offset)

    def write_matrices(self, values: ir.Value, first: ir.Value, start: int = 0) -> None:
        """Write 16 rows from `first` on, and columns from `start` on, with stmatrix.

        `values` are what a thread of the warp has of them, `MATRICES` for every 8 columns (PTX
        ISA, stmatrix).
        """
        lane = self.scope.lane
        row, column = first + row_in(MATRICES, lane=lane), column_in(MATRICES, lane=lane)
        words = self._packed(values, row, column + start)
        origins = tuple(_unit_behind(PAIR * word) for word in range(STORED))
        number, row = lane // ROWS, lane % ROWS
        row = first + row + matrix_row(origins, number)
        for index in range(0, len(words), STORED):
            units = _unit_behind(PAIR * index)[1] + start // ROWS
            unit = matrix_column(origins, number) + units
            sm.StmatrixOp.of(self.pointer(row, unit), words[index : index + STORED])

    def _packed(self, values: ir.Value, row: ir.Value, column: ir.Value) -> list[ir.Value]:
        """The thread's pairs of results as 32-bit words, in the order of its registers."""
        words = []
        for index in range(0, ir.VectorType(values.type).shape[0], PAIR):
            rows, columns = _behind(index)
            at_row, at_column = row + rows, column + columns
            result = self.apply(slice_of(values, index, PAIR), at_row, at_column, PAIR)
            words.append(llvm.bitcast(build.i32(), result))
        return words


@functools.cache
def _behind(index: int) -> tuple[int, int]:
    """(rows, columns) of a thread's value behind its first one."""
    block, value = divmod(index, MATRICES.values)
    row, column = MATRICES.element(0, value)
    return row, MATRICES.shape[1] * block + column


def _unit_behind(index: int) -> tuple[int, int]:
    """The same with columns in units: a row of an 8x8 matrix of 16-bit elements is one."""
    row, column = _behind(index)
    return row, column // ROWS


def piece_of(scope: Scope, op: WritePieceOp) -> Piece:
    """The piece that an op writes."""
    return Piece(scope, op, op.start, lowered(op.buffer))


def lower_tma_store(scope: Scope, op: TmaStoreOp) -> None:
    """One box of the view."""
    m, n = integers_of(op.extents)
    column = build.as_i32(op.j) * n + op.start
    map_, coordinates = map_at(op.map, [column, build.as_i32(op.i) * m])
    sm.TmaStoreOp.of(map_, build.shared_at(lowered(op.buffer)), coordinates)


def lower_store_piece(scope: Scope, op: StorePieceOp) -> None:
    """Loads of several parts of the buffer, then their stores; a part lies wholly in a row."""
    layout, size = op.buffer.type.layout, stored_bytes(op)
    width, (height, columns) = size // layout.element_bytes, stored_extents(op.to.type)
    tile_m, tile_n = integers_of(op.extents)
    first_row = build.as_i32(op.i) * tile_m
    first_column = build.as_i32(op.j) * tile_n + op.start
    part_type = ir.VectorType.get(
        [size // min(size, 4)], ir.IntegerType.get_signless(8 * min(size, 4))
    )
    with parts_of(scope, layout, size, COPIES_MAX) as parts:
        offsets = [part_offset(layout, row, part, size) for row, part in parts]
        places = [build.shared_at(offset + lowered(op.buffer)) for offset in offsets]
        values = [llvm.load(part_type, place, alignment=size) for place in places]
        for (row, part), value in zip(parts, values, strict=True):
            at_row, at_column = first_row + row, first_column + part * width
            inside = None if is_whole(op, "i") else build.less(at_row, height)
            if not is_whole(op, "j"):
                inside = build.both(inside, build.less(at_column, columns))
            with build.when(inside):
                offset = build.widen(at_row) * columns + build.widen(at_column)
                llvm.store(value, element_pointer(op.to, offset), alignment=size)


def stored_bytes(op: StorePieceOp) -> int:
    """Bytes of one store: up to 16, of which a row of C and of the piece are whole numbers."""
    item = op.buffer.type.layout.element_bytes
    lengths = (stored_extents(op.to.type)[1] * item, op.buffer.type.layout.k * item)
    return math.gcd(UNIT_BYTES, *lengths, step_bytes(op.to))


def alignment_bytes(op: WritePieceOp, view: ir.Value) -> int:
    """Bytes that the address of `view`, read by the epilogue, must be a multiple of."""
    by_threads = isinstance(op.to.type, ir.MemRefType)
    width = PAIR if by_threads else UNIT_BYTES // element_bytes(stored_element(op.to.type))
    return width * element_bytes(ir.MemRefType(view.type).element_type)
