"""Sums that MMAs only add to: zero before the loop over K, and no question in it.

for k = 0 .. steps                           tile.clear_sums %acc
  tile.mma %acc, %a, %b, accumulate = k != 0   →   for k = 0 .. steps
                                                 tile.mma %acc, %a, %b, accumulate = true

For MMAs that have no predicate of that kind: mma.sync, and those of threads.
"""

from __future__ import annotations

from typing import Any

from ..dialects.mlir import arith, ir, scf
from ..dialects.target import ISSUED, Target
from ..dialects.tile import KernelOp, MmaOp
from ..dialects.tile_sums import ClearSumsOp, ViewMmaOp
from .base import walk
from .build import true
from .clone import constant_of, erase_unused, iterations_of

NOT_EQUAL = arith.CmpIPredicate.ne


def expand_sums(kernel: KernelOp, target: Target) -> None:
    """Clear sums once where an MMA's `accumulate` is false in its loop's first step alone.

    Another flag stays; sums are then cleared where it is false.
    """
    if target.mma.completion != ISSUED:
        return
    for mma in walk(kernel, MmaOp | ViewMmaOp):
        loop = mma.operation.parent.opview
        first = _false_at(mma.accumulate)
        steps = iterations_of(loop) if isinstance(loop, scf.ForOp) else None
        if first is None or not steps or first[0] != loop.induction_variable:
            continue
        if first[1] == steps[0]:
            with ir.InsertionPoint(loop), mma.location:
                ClearSumsOp(acc=mma.acc)
        elif first[1] in steps:
            continue
        with ir.InsertionPoint(mma), mma.location:
            mma.operation.operands[list(mma.operation.operands).index(mma.accumulate)] = true()
        erase_unused(loop.body)


def _false_at(flag: ir.Value) -> tuple[Any, int] | None:
    """(counter, number) where the flag says that the counter differs from a constant."""
    if isinstance(flag.owner, ir.Block) or flag.owner.name != "arith.cmpi":
        return None
    left, right = flag.owner.operands
    predicate, number = ir.IntegerAttr(flag.owner.attributes["predicate"]).value, constant_of(right)
    return (left, number) if predicate == NOT_EQUAL and number is not None else None
