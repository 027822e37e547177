"""Stores of accumulators that threads hold: registers → epilogue → global or shared memory.

Each thread has, of every MMA, two neighbouring columns in every 8 of two rows, 8 apart
(`RegisterAccumulator`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...dialects.mlir import ir, llvm, vector
from ...dialects.target import WARPGROUP_THREADS
from ...dialects.tile import StoreOp
from ...dialects.tile_stores import AwaitSumsOp, WritePieceOp
from ..base import refused
from ..clone import constant_of
from ..whole import is_whole
from . import build as b
from .elements import slice_of
from .frame import Frame
from .operands import UNIT_BYTES
from .pieces import Piece, piece_of
from .register_accumulator import ATOM_M, PAIR, RegisterAccumulator, parts, pinned
from .store import write_row

ROWS_APART = 8
WARP_ROWS = 16


def store_registers(frame: Frame, op: StoreOp) -> None:
    """Write every thread's pairs of columns."""
    m, n = op.acc.type.shape
    held = frame.registers[op.acc]
    first_row = b.add(first_row_of(frame, held), b.div(frame.lane, 4))
    first_row = b.add(b.mul(frame.index(op.i), m), first_row)
    first_column = b.add(b.mul(frame.index(op.j), n), b.mul(b.rem(frame.lane, 4), PAIR))
    for atom in range(len(held.atoms)):
        values = parts(pinned(held.load(atom)))
        for half in range(2):
            row = b.add(first_row, atom * ATOM_M + half * ROWS_APART)
            _store_row(frame, op, pairs_of(values, half), row, first_column)


def _store_row(
    frame: Frame,
    op: StoreOp,
    pairs: Iterator[tuple[int, ir.Value]],
    row: ir.Value,
    first_column: ir.Value,
) -> None:
    """One row's pairs, where the row is inside the view."""
    with b.when(None if is_whole(op, "i") else b.less(row, op.view.type.shape[0])):
        for start, pair in pairs:
            write_row(frame, op, pair, row, b.add(first_column, start))


def pairs_of(values: list[ir.Value], half: int) -> Iterator[tuple[int, ir.Value]]:
    """(first column, its two values) of the pairs that a thread has of one of its two rows."""
    for index in range(PAIR * half, len(values), 2 * PAIR):
        yield 8 * (index // (2 * PAIR)), _vector(values[index : index + PAIR])


def first_row_of(frame: Frame, held: RegisterAccumulator) -> ir.Value:
    """The first of the tile's rows that this thread's warp has, in its first MMA."""
    thread = frame.team.thread
    row = b.mul(b.rem(b.div(thread, 32), 4), WARP_ROWS)
    if held.warpgroups == 1:
        return row
    return b.add(row, b.mul(b.div(thread, WARPGROUP_THREADS), held.rows))


def await_registers(frame: Frame, op: AwaitSumsOp) -> None:
    """From here on the registers may be read: the MMAs are done."""
    held = frame.registers[op.acc]
    frame.settled[op.sums] = [parts(pinned(held.load(atom))) for atom in range(len(held.atoms))]
    frame.registers[op.sums] = held


def write_registers(frame: Frame, op: WritePieceOp) -> None:
    """What this thread has of the piece, whose start is a constant."""
    piece, held, width = piece_of(frame, op), frame.registers[op.sums], op.buffer.type.layout.k
    start = constant_of(op.start)
    if start is None:
        raise refused(op, "a piece of sums in registers must start at a constant; unroll the loop")
    for atom, values in enumerate(frame.settled[op.sums]):
        row = b.add(first_row_of(frame, held), atom * ATOM_M)
        WRITES[op.write.value](piece, _vector(values[start // 2 : (start + width) // 2]), row)


def _write_pairs(piece: Piece, values: ir.Value, first: ir.Value) -> None:
    """Every thread writes its pairs: a part of a 16-byte unit each."""
    lane, width = piece.frame.lane, UNIT_BYTES // piece.layout.element_bytes
    row, column = b.add(first, b.div(lane, 4)), b.mul(b.rem(lane, 4), PAIR)
    for index in range(0, ir.VectorType(values.type).shape[0], PAIR):
        block, half = divmod(index // PAIR, 2)
        at_row, at_column = b.add(row, ROWS_APART * half), b.add(column, 8 * block)
        pair = slice_of(values, index, PAIR)
        result = piece.apply(pair, at_row, at_column, PAIR)
        unit = piece.pointer(at_row, b.div(at_column, width))
        within = b.mul(b.rem(at_column, width), piece.layout.element_bytes)
        pair_bytes = PAIR * piece.layout.element_bytes
        llvm.store(result, b.offset_pointer(unit, within), alignment=pair_bytes)


def _write_matrices(piece: Piece, values: ir.Value, first: ir.Value) -> None:
    piece.write_matrices(values, first)


WRITES = {"rows": _write_pairs, "matrices": _write_matrices}


def _vector(values: list[ir.Value]) -> ir.Value:
    type_ = ir.VectorType.get([len(values)], values[0].type)
    return vector.FromElementsOp(type_, values).result
