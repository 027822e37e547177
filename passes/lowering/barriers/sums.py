"""Accumulators outside pipes: who waits for their MMAs, and how operands reach them.

Tensor memory in no ring has the barrier `mma.done`. Who reads the sums commits the MMAs to it and
waits for it.

Where threads copied an operand to a place of its own, the MMA is of the whole team: all publish
what they copied and meet, one lane multiplies and commits, and all wait before they copy again.
Warps that load fragments by themselves meet before and after.
"""

from __future__ import annotations

from typing import Any

from ....dialects import sm
from ....dialects.mlir import ir
from ....dialects.mma_units import ISSUED, WAIT_GROUP
from ....dialects.sm.memory import ColumnsOp
from ....dialects.sm.tensor_core import PENDING_MAX
from ....dialects.sm.threads import ISSUER, LANE
from ....dialects.tile import AwaitMmaOp, MmaOp, PairMmaOp
from ....dialects.tile.scales import SCALED_MMAS, of_scales
from ....dialects.tile.stores import AwaitSumsOp
from ... import build
from ...base import defining_op, kernel_around
from ...mma_uses import is_synchronous, mma_before
from ...team import Team
from ...weights import groups_of_mmas
from .rings import Rings, advance, barrier_of, before, converge, read, run


def surround_mma(rings: Rings, op: MmaOp | PairMmaOp) -> None:
    """Where threads copied an operand: publish it before, and wait for the MMAs after."""
    if isinstance(op, SCALED_MMAS) and rings.scales is not None:
        _take_place(rings, op)
        return
    if not is_synchronous(op):
        return
    team = Team.of(op)
    if rings.target.mma.completion == ISSUED:
        team.meet()
        with ir.InsertionPoint.after(op):
            team.meet()
        return
    build.fence("async_shared")
    team.meet()
    if rings.target.awaits_mmas:
        with ir.InsertionPoint.after(op):
            sm.WgmmaWaitOp.of(pending=0)
            team.meet()
        return
    if rings.target.adds_from_tensor_memory or rings.target.mma.splits is not None:
        return  # its threads wait for the product
    index, parity = read(rings.done_at)
    with run(LANE):
        build.fence("tcgen05_after")
        done = barrier_of(rings.done, index)
        rings.commit(done)
    converge()
    _wait_until_done(rings, index, parity)
    op.operation.move_before(defining_op(done))  # at last: ops are made in front of it


def _take_place(rings: Rings, op: Any) -> None:
    """The step's scales go to the next place, once the MMAs that read it before are done."""
    index, parity = read(rings.scales_at)
    empty = barrier_of(rings.scales, index)
    build.barrier_wait(empty, before(parity))
    build.fence("tcgen05_after")
    type(op)(acc=op.acc, a=op.a, b=op.b, accumulate=op.accumulate, **of_scales(op), place=index)
    rings.commit(empty)
    advance(rings.scales_at)
    op.operation.erase()


def await_sums(rings: Rings, op: AwaitSumsOp) -> None:
    """Wait for the MMAs of sums that came through no pipe and were not waited for."""
    if rings.target.awaits_mmas:
        sm.WgmmaWaitOp.of(pending=0)
        return
    completion = rings.target.mma.completion
    if completion in (ISSUED, WAIT_GROUP) or rings.target.adds_from_tensor_memory:
        return
    mma = mma_before(op)
    if mma is None or not _is_alone(op.acc) or is_synchronous(mma):
        return
    index, parity = read(rings.done_at)
    with run(LANE):
        if rings.cluster.pair:
            with run(ISSUER):
                rings.commit(barrier_of(rings.done, index), rings.pair_mask())
        else:
            rings.commit(barrier_of(rings.done, index))
    converge()
    _wait_until_done(rings, index, parity)


def lower_await_mma(rings: Rings, op: AwaitMmaOp) -> None:
    """Each warp waits for its own, where they are not complete when issued; for more than it must
    where an instruction cannot count as far."""
    if rings.target.awaits_mmas:
        pending = op.pending.value * groups_of_mmas(kernel_around(op))
        sm.WgmmaWaitOp.of(pending=min(pending, PENDING_MAX))


def _wait_until_done(rings: Rings, index: ir.Value, parity: ir.Value) -> None:
    rings.wait(barrier_of(rings.done, index), parity)
    advance(rings.done_at)
    build.fence("tcgen05_after")


def _is_alone(acc: ir.Value) -> bool:
    """Whether the sums are in no ring."""
    return isinstance(defining_op(acc), ColumnsOp)
