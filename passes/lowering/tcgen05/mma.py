"""`tile.mma` as tcgen05.mma: one thread issues the atoms that cover the tile."""

from __future__ import annotations

from typing import Any

from ....dialects import sm
from ....dialects.mlir import ir
from ....dialects.tile import MmaOp, PairMmaOp
from ... import build
from ..operands.mma_operands import mma_dtypes, mma_fields, operand_descriptor, parts_of_b
from ..scope.scope import Scope, sums_at


def lower_mma(scope: Scope, op: MmaOp | PairMmaOp) -> None:
    """Every atom of the tile, K innermost; the first K step honours `accumulate`.

    A pair's MMA gives M and N of both CTAs together.
    """
    multiply_into(scope, op, *sums_at(op.acc), op.accumulate)


def lower_short_mma(scope: Scope, op: Any) -> None:
    """The same, and in the last step only what has elements along K."""
    depth, k = op.depth.value, op.a.type.layout.k
    multiply_into(scope, op, *sums_at(op.acc), op.accumulate, range(depth))
    with build.when(op.last ^ build.true()):
        multiply_into(scope, op, *sums_at(op.acc), op.accumulate, range(depth, k))


def multiply_into(
    scope: Scope,
    op: MmaOp | PairMmaOp,
    base: ir.Value,
    first: ir.Value | int,
    adds: ir.Value,
    along: range | None = None,
) -> None:
    """The atoms, in tensor memory from column `first` after `base` on; those that begin in a range
    `along` K, by default all."""
    a = op.a.type.layout
    along = range(a.k) if along is None else along
    atom_m, n = scope.mma_rows(a.mn), op.acc.type.shape[1]
    fields = {"kind": mma_dtypes(op)[0].operand_kind, "cta_group": scope.cta_group}
    fields |= mma_fields(op, scope.cta_group * atom_m)
    a_tile = operand_descriptor(scope, op, op.a)
    parts = [(part, operand_descriptor(scope, op, part.tile)) for part in parts_of_b(op)]
    for atom in range(a.mn // atom_m):
        column = first + atom * scope.atom_columns(atom_m, n)
        for part, b_tile in parts:
            sums, b = base + (column + part.column), part.layout
            for k in filter(along.__contains__, range(0, a.k, fields["k"])):
                offsets = {"a_offset": a.offset(atom * atom_m, k), "b_offset": b.offset(0, k)}
                accumulate = adds if k == 0 else build.true()
                of_part = {"n": part.n, "b_major": b.major}
                sm.MmaOp.of(sums, a_tile, b_tile, accumulate, **fields | of_part, **offsets)
