"""`tile.write_piece` of sums that warps hold by themselves: each writes its own columns."""

from __future__ import annotations

from ...dialects.mlir import ir
from ...dialects.target import WARP_THREADS
from ...dialects.tile_stores import WritePieceOp
from .. import build
from ..base import refused
from ..clone import constant_of
from .elements import joined
from .pieces import Piece, piece_of
from .register_accumulator import parts
from .register_stores import WRITES
from .scope import Scope
from .warp_accumulator import ATOM_M, ATOM_N, WarpSums


def write_fragments(scope: Scope, op: WritePieceOp) -> None:
    """By the columns of warps that have some of the piece, whose start is a constant."""
    piece, start, held = piece_of(scope, op), constant_of(op.start), WarpSums.of(scope, op.sums)
    if start is None:
        raise refused(op, "a piece of sums in registers must start at a constant; unroll the loop")
    warp, sums = scope.team.thread // WARP_THREADS, held.load()
    end, (_, along_n) = start + op.buffer.type.layout.k, held.tile.grid
    for number in range(along_n):
        first = number * held.tile.n
        columns = range(max(start, first), min(end, first + held.tile.n), ATOM_N)
        if not columns:
            continue
        has = None if along_n == 1 else build.equal(warp % along_n, number)
        with build.when(has):
            atoms = slice((columns.start - first) // ATOM_N, (columns.stop - first) // ATOM_N)
            own = [row[atoms] for row in sums]
            _write(piece, own, held.first_row(warp), columns.start - start)


def _write(piece: Piece, sums: list[list[ir.Value]], first: ir.Value, column: int) -> None:
    for number, row in enumerate(sums):
        values = joined([value for atom in row for value in parts(atom)])
        WRITES[piece.op.write.value](piece, values, first + number * ATOM_M, column)
