"""`tile.write_piece`: tensor memory → registers → epilogue → swizzled shared memory → TMA."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.mlir import ir, llvm
from ...dialects.tile_stores import AwaitSumsOp, WritePieceOp
from .. import build
from .accumulator import (
    MATRIX_LANES,
    Place,
    TmemRead,
    read_fragment,
    read_matrices,
)
from .elements import slice_of
from .operands import UNIT_BYTES
from .pieces import Piece, piece_of
from .scope import Scope, sums_at


def await_sums(_: Scope, op: AwaitSumsOp) -> ir.Value:
    """The sums stay where they are."""
    return op.acc


def write_piece(scope: Scope, op: WritePieceOp) -> None:
    """Every MMA's part of the piece."""
    layout, (m, n) = op.buffer.type.layout, op.sums.type.shape
    atom_m = scope.mma_rows(m)
    fragment = TmemRead.of(atom_m, layout.k, scope.cluster.pair)
    place, piece = Place.of(scope, fragment, n), piece_of(scope, op)
    base, first = sums_at(op.sums)
    for row in range(0, m, atom_m):
        column = piece.start + (first + row // atom_m * n)
        part = Part(piece, fragment, place, row, base, column)
        WRITES[op.write.value](part)


@dataclass(frozen=True)
class Part:
    """One MMA's part of a piece: `fragment.atom_m` rows from `row` on.

    They are in tensor memory from `column` on of what was allocated at `base`.
    """

    piece: Piece
    fragment: TmemRead
    place: Place
    row: int
    base: ir.Value
    column: ir.Value


def _write_rows(part: Part) -> None:
    """Every thread has a row and writes it in 16-byte units."""
    fragment, place, piece = part.fragment, part.place, part.piece
    width = UNIT_BYTES // piece.layout.element_bytes
    row = place.row + part.row
    for chunk in range(0, piece.layout.k, fragment.columns):
        address = part.base + (place.lanes + part.column + chunk)
        values = read_fragment(fragment, piece.element, address)
        first = build.constant(chunk) if place.column is None else place.column + chunk
        for start in range(0, fragment.registers, width):
            column = first + start
            result = piece.apply(slice_of(values, start, width), row, column, width)
            pointer = piece.pointer(row, column // width)
            llvm.store(result, pointer, alignment=UNIT_BYTES)


def _write_matrices(part: Part) -> None:
    """Every warp has 8x8 matrices and writes four at a time with stmatrix.

    tcgen05.ld.16x256b gives a thread what stmatrix takes (PTX ISA, tcgen05 matrix fragments).
    """
    piece = part.piece
    warp = piece.scope.team.thread // 32
    warp_rows = part.fragment.atom_m // 4
    for half in range(0, warp_rows, MATRIX_LANES):
        lanes = part.place.lanes + (half << 16)
        address = part.base + (lanes + part.column)
        values = read_matrices(piece.layout.k, piece.element, address)
        piece.write_matrices(values, warp * warp_rows + (part.row + half))


WRITES = {"rows": _write_rows, "matrices": _write_matrices}
