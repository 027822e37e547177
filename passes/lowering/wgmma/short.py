"""`tile.short_mma` as wgmma: fewer instructions in the last K step.

    if last { fence, wgmma of `depth` elements of K …, commit } else { fence, all …, commit }

A branch holds a whole group with its fence and its commit: ptxas then finds no jump between the
first and the last of a group, for which it would wait. What waits for groups counts one either way.
"""

from __future__ import annotations

from ....dialects.mlir import ir, scf
from ....dialects.tile.short import ShortDualMmaOp, ShortMmaOp
from ..scope.scope import Scope
from .mma import multiply_sums


def lower_short_wgmma(scope: Scope, op: ShortMmaOp | ShortDualMmaOp) -> None:
    """Multiply into the sums, as far as there are elements of K."""
    branch = scf.IfOp(op.last, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        multiply_sums(scope, op, op.depth.value)
        scf.YieldOp([])
    assert branch.else_block is not None
    with ir.InsertionPoint(branch.else_block):
        multiply_sums(scope, op)
        scf.YieldOp([])
