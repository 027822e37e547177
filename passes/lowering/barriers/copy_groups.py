"""Rings filled by the threads that read them: copy groups, and one barrier per slot.

pipe.wait       sm.cp_async_wait: this thread's copies to the slot are done
                sm.cta_barrier: so are all threads', and all have read the slot before
pipe.acquire    nothing, where a meeting since its last reader is known; else sm.cta_barrier
pipe.commit     sm.cp_async_commit
pipe.release    nothing; where no more is filled an empty group, so that counts go on
"""

from __future__ import annotations

from ....dialects import sm
from ....dialects.pipe import AcquireOp, CommitOp, ReleaseOp, WaitOp
from .copy_moves import Moves
from .rings import Ring, advance, read


def acquire(ring: Ring, op: AcquireOp) -> None:
    """The slot, once no thread reads it."""
    if _moves(ring).meets[op.operation]:
        sm.CtaBarrierOp.of()
    op.slot.replace_all_uses_with(ring.slot(read(ring.fill)[0]))


def commit(ring: Ring, _: CommitOp) -> None:
    """Close the group of the slot's copies."""
    sm.CpAsyncCommitOp.of()
    advance(ring.fill)


def wait(ring: Ring, op: WaitOp) -> None:
    """The slot, once all threads have copied to it."""
    sm.CpAsyncWaitOp.of(pending=_moves(ring).pending[op.operation])
    sm.CtaBarrierOp.of()
    op.slot.replace_all_uses_with(ring.slot(read(ring.read)[0]))


def release(ring: Ring, op: ReleaseOp) -> None:
    """Go on; who fills it meets this thread first."""
    if _moves(ring).empty[op.operation]:
        sm.CpAsyncCommitOp.of()
    advance(ring.read)


def _moves(ring: Ring) -> Moves:
    assert ring.moves is not None
    return ring.moves
