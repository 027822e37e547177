"""Accumulators that MMAs only add to: cleared before the K loop, without a condition in it.

for k = 0 .. steps                           tile.clear_sums %acc
  tile.mma %acc, %a, %b, accumulate = k != 0   →   for k = 0 .. steps
                                                 tile.mma %acc, %a, %b, accumulate = true

                                               tile.finish_sums %acc

For MMAs that have no predicate of that kind: mma.sync, and those of threads. `tile.finish_sums` is
for mma.sync alone: after the meeting with which a step begins, warps then issue the last MMAs of
the step before while the first fragments of this one are on their way. That takes registers for
fragments that are held, so only sums of up to `HELD_BACK_SUMS` registers a thread have it: an H200
was 4 to 6 % faster for it (docs/appendix/mma-sync.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dialects.mlir import arith, ir, scf
from ...dialects.mma_units import ISSUED, WARP
from ...dialects.target import WARP_THREADS, Target
from ...dialects.tile import MMAS, AccumulatorOp, KernelOp, MmaOp
from ...dialects.tile.sums import ClearSumsOp, FinishSumsOp, ViewMmaOp
from ...dialects.tile.weights import WeightMmaOp
from ..base import walk
from ..build import true
from ..clone import constant_of, erase_unused, iterations_of
from ..warp_grids import warp_tile

HELD_BACK_SUMS = 64
NOT_EQUAL = arith.CmpIPredicate.ne


def expand_sums(kernel: KernelOp, target: Target) -> None:
    """Clear sums once where an MMA's `accumulate` is false in its loop's first step alone.

    Another flag stays, and that of weights with scales; sums are then cleared where it is false.
    """
    if target.adds_from_tensor_memory or target.mma.splits is not None:
        for accumulator in walk(kernel, AccumulatorOp):
            _finish_behind(accumulator.acc)
    if target.mma.completion != ISSUED:
        return
    for mma in walk(kernel, MmaOp | ViewMmaOp):
        loop = mma.operation.parent.opview
        if isinstance(mma, WeightMmaOp) and mma.scales is not None:
            continue  # a tile's first step asks for its own scales
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
    if target.mma.issuer == WARP:
        for cleared in walk(kernel, ClearSumsOp):
            _finish(kernel, cleared, target)


def _finish(kernel: KernelOp, cleared: ClearSumsOp, target: Target) -> None:
    """Put the end of sums after the last op of the block that has an MMA into them."""
    tile = warp_tile(kernel, cleared.acc.type, target)
    mmas = [use.owner.opview for use in cleared.acc.uses if isinstance(use.owner.opview, MmaOp)]
    plain = all(type(mma) is MmaOp and constant_of(mma.accumulate) for mma in mmas)
    if not plain or tile.m * tile.n // WARP_THREADS > HELD_BACK_SUMS:
        return
    _finish_in(cleared.operation.block, cleared.acc, mmas)


def _finish_behind(acc: ir.Value) -> None:
    """The same where the sums are first read, or stored."""
    users = [use.owner.opview for use in acc.uses]
    mmas = [user for user in users if isinstance(user, MMAS)]
    readers = [user for user in users if user not in mmas]
    _finish_in(readers[0].operation.block, acc, mmas)


def _finish_in(block: ir.Block, acc: ir.Value, mmas: Sequence[ir.OpView]) -> None:
    ops = [op.operation for op in block.operations]
    last = max(ops.index(_in_block(mma.operation, ops)) for mma in mmas)
    with ir.InsertionPoint.after(ops[last]), mmas[0].location:
        FinishSumsOp(acc=acc)


def _in_block(op: ir.Operation, block: list[ir.Operation]) -> ir.Operation:
    """The op of a block that another stands in, or is."""
    while op not in block:
        op = op.parent.operation
    return op


def _false_at(flag: ir.Value) -> tuple[Any, int] | None:
    """(counter, number) where the flag says that the counter differs from a constant."""
    if isinstance(flag.owner, ir.Block) or flag.owner.name != "arith.cmpi":
        return None
    left, right = flag.owner.operands
    predicate, number = ir.IntegerAttr(flag.owner.attributes["predicate"]).value, constant_of(right)
    return (left, number) if predicate == NOT_EQUAL and number is not None else None
