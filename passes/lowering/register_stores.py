"""`tile.write_piece` of accumulators that threads hold: registers → epilogue → shared memory.

Each thread has, of every MMA, two neighbouring columns in every 8 of two rows, 8 apart
(`register_accumulator`).
"""

from __future__ import annotations

from ...dialects.mlir import ir, llvm
from ...dialects.tile_stores import AwaitSumsOp, WritePieceOp
from .. import build
from ..base import refused
from ..clone import constant_of
from ..places import ATOM_M, COLUMNS, PAIR, column_in, row_in
from .elements import joined, slice_of
from .operands import UNIT_BYTES
from .pieces import Piece, piece_of
from .register_accumulator import behind, parts, pinned, struct_of_type
from .rows import first_row_of
from .scope import Scope, lowered_as, lowered_parts


def await_registers(scope: Scope, op: AwaitSumsOp) -> ir.Value:
    """From here on the registers may be read: the MMAs are done."""
    struct = struct_of_type(op.acc.type)
    atoms = [pinned(llvm.load(struct, slot)) for slot in lowered_parts(op.acc)]
    return lowered_as([part for atom in atoms for part in parts(atom)], op.sums.type)


def write_registers(scope: Scope, op: WritePieceOp) -> None:
    """What this thread has of the piece, whose start is a constant."""
    piece, width = piece_of(scope, op), op.buffer.type.layout.k
    start = constant_of(op.start)
    if start is None:
        raise refused(op, "a piece of sums in registers must start at a constant; unroll the loop")
    held, count = lowered_parts(op.sums), op.sums.type.shape[1] // 2
    for atom, first in enumerate(range(start // 2, len(held), count)):
        row = first_row_of(scope, op.sums.type) + atom * ATOM_M
        WRITES[op.write.value](piece, joined(held[first : first + width // 2]), row)


def _write_pairs(piece: Piece, values: ir.Value, first: ir.Value, start: int = 0) -> None:
    """Every thread writes its pairs, from a column of the piece on: part of a 16-byte unit each."""
    lane, width = piece.scope.lane, UNIT_BYTES // piece.layout.element_bytes
    row, column = first + row_in(COLUMNS, lane=lane), column_in(COLUMNS, lane=lane)
    for index in range(0, ir.VectorType(values.type).shape[0], PAIR):
        rows, columns = behind(index)
        at_row, at_column = row + rows, column + (start + columns)
        pair = slice_of(values, index, PAIR)
        result = piece.apply(pair, at_row, at_column, PAIR)
        unit = piece.pointer(at_row, at_column // width)
        within = at_column % width * piece.layout.element_bytes
        pair_bytes = PAIR * piece.layout.element_bytes
        llvm.store(result, build.offset_pointer(unit, within), alignment=pair_bytes)


def _write_matrices(piece: Piece, values: ir.Value, first: ir.Value, start: int = 0) -> None:
    piece.write_matrices(values, first, start)


WRITES = {"rows": _write_pairs, "matrices": _write_matrices}
