"""Checks of what the lane of an `sm.early` does with barriers before its CTA synchronises.

owner    it is of the first warp of a role, which then goes on where that lane has come to
begins   it has initialised all barriers, fenced that and waited for earlier grids, and its CTA is
         alone
waits    it waits for empty slots, in one loop of as many steps as the ring has slots or fewer:
         those waits end at once, while nobody who would give a slot back has begun
"""

from __future__ import annotations

from typing import Any

from ....dialects import sm
from ....dialects.mlir import ir, scf
from ....dialects.sm.threads import EarlyOp, PrologueOp, WarpsOp
from ....dialects.tile import KernelOp
from ...base import defining_op, refused, walk
from ...clone import iterations_of
from ...plan import cluster_of
from .barrier_sources import is_empty

SIGNALS = (sm.WaitBarrierOp, sm.ArriveOp, sm.ExpectTxOp, sm.ArriveExpectTxOp, sm.CommitOp)


def early_of(kernel: KernelOp, role: WarpsOp) -> EarlyOp | None:
    """What a lane of a role does with barriers before all threads meet."""
    for early in walk(kernel, EarlyOp):
        if early.warp.value == role.first.value and walk(early, SIGNALS):
            return early
    return None


def check_early(kernel: KernelOp) -> None:
    """Refuse, at the op, what breaks a rule."""
    for early in walk(kernel, EarlyOp):
        if walk(early, SIGNALS):
            _check_owner(kernel, early)
            _check_begins(kernel, early)
            for wait in walk(early, sm.WaitBarrierOp):
                _check_wait(early, wait)


def _check_owner(kernel: KernelOp, early: EarlyOp) -> None:
    firsts = [role.first.value for role in walk(kernel, WarpsOp)]
    if early.warp.value not in firsts:
        raise refused(
            early,
            f"early: who loads must be of the first warp of a role, {firsts}, got "
            f"{early.warp.value}; take one of them",
        )


def _check_begins(kernel: KernelOp, early: EarlyOp) -> None:
    """A barrier that another thread initialises may not be there yet."""
    size = cluster_of(kernel).size
    if size > 1:
        raise refused(
            early, f"early: CTAs of a cluster must meet before they load, got {size}; load after"
        )
    first, *_ = walk(early, SIGNALS)
    at = _place_in(early, first)
    before = list(early.body.blocks[0].operations)[:at]
    inits = [op for op in before if isinstance(op, sm.BarrierInitOp)]
    if len(inits) != len(walk(kernel, sm.BarrierInitOp)) or walk(kernel, PrologueOp):
        raise refused(
            first,
            "early: the lane that loads must have initialised all barriers itself, got others of "
            "another; initialise them here",
        )
    if not any(isinstance(op, sm.FenceOp) for op in before[before.index(inits[-1]) :]):
        raise refused(
            first, "early: what was initialised must have been fenced before, got none; fence it"
        )
    if not any(isinstance(op, sm.AwaitGridsOp) for op in before):
        raise refused(
            first, "early: earlier grids must have been awaited before, got none; await them"
        )


def _check_wait(early: EarlyOp, wait: sm.WaitBarrierOp) -> None:
    barriers = defining_op(wait.barrier).barriers
    loop = wait.operation.parent.opview
    known = isinstance(loop, scf.ForOp) and loop.operation.parent == early.operation
    steps = iterations_of(loop) if known else None
    count, slots = -1 if steps is None else len(steps), barriers.type.slots
    alone = walk(early, scf.ForOp) == [loop]
    if not is_empty(barriers) or not alone or not 0 <= count <= slots:
        got = f"{count} steps" if count >= 0 else "another wait"
        raise refused(
            wait,
            f"early: {slots} empty slots at most may be waited for before all threads meet, in one "
            f"loop, got {got}; wait after the meeting",
        )


def _place_in(early: EarlyOp, op: Any) -> int:
    """Which op of the body an op is, or stands in."""
    inner: ir.Operation = op.operation
    while inner.parent != early.operation:
        inner = inner.parent
    return [each.operation for each in early.body.blocks[0].operations].index(inner)
