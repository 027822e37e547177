"""Pipes as mbarriers: who waits, who arrives, and what an arrival waits for.

ring of          full when                                       empty when
operand tiles    TMA's bytes and the producer's arrival are in;  tcgen05.commit arrives, or
                 each warp's, where threads copy                 each consumer warp (wgmma)
accumulator      tcgen05.commit arrives                          each consumer warp arrives
turns            each producer warp arrives                      each consumer warp arrives

With wgmma, a slot may be waited for before the one ahead of it is released, so that waiting and
releasing have a position each. Threads that copy with cp.async arrive on a slot when they have
started to fill later ones, and at the end of the loop on the rest.
"""

from __future__ import annotations

from ...dialects import sm
from ...dialects.mlir import arith, ir, scf
from ...dialects.pipe import AcquireOp, CommitOp, DrainOp, ReleaseOp, SkipOp, TileOp, WaitOp
from ..plan import has_copies, transaction_bytes
from . import build as b
from . import shifted_copies
from .frame import Frame, Slot


def lower_acquire(frame: Frame, op: AcquireOp) -> None:
    """Wait until the slot is empty; announce the bytes that its full barrier waits for."""
    producer, plan = frame.rings[op.ring].producer, frame.plan.rings[op.ring]
    index = producer.index()
    frame.wait(frame.barrier_at(plan.empty, index), b.xor(producer.phase(), 1))
    frame.slots[op.slot] = Slot(op.ring, index)
    if plan.kind == "accumulator":
        frame.fence_after()
    elif plan.kind == "operands":
        _announce(frame, op, frame.barrier_at(plan.full, index))


def _announce(frame: Frame, op: AcquireOp, full: ir.Value) -> None:
    transaction = transaction_bytes(op)
    if frame.cluster.pair:
        with b.when(frame.issues):
            sm.ArriveExpectTxOp.of(full, bytes=2 * transaction)
    elif not has_copies(op.ring):
        sm.ArriveExpectTxOp.of(full, bytes=transaction)
    elif transaction:
        with frame.team.once():
            sm.ExpectTxOp.of(full, bytes=transaction)


def lower_commit(frame: Frame, op: CommitOp) -> None:
    """The slot is full when TMA's bytes, the threads' copies or the MMAs are in."""
    producer, plan = frame.rings[op.ring].producer, frame.plan.rings[op.ring]
    full = frame.barrier_at(plan.full, producer.index())
    if plan.kind == "accumulator":
        frame.commit(full, frame.pair_mask())
    elif plan.kind == "turns":
        _hand_over(frame, full)
    elif has_copies(op.ring):
        _commit_copies(frame, op.ring)
    producer.advance()


def _commit_copies(frame: Frame, ring: ir.Value) -> None:
    """Each warp arrives on the slot whose copies have been under way the longest."""
    state, under_way = frame.rings[ring], frame.plan.rings[ring].under_way
    shifted_copies.finish(frame)
    sm.CpAsyncCommitOp.of()
    if state.pending is None:
        _publish_copies(frame, 0)
        _arrive_when_copied(frame, ring)
        return
    pending = state.pending.value()
    behind = b.equal(pending, under_way)
    with b.when(behind):
        _publish_copies(frame, under_way)
        _arrive_when_copied(frame, ring)
        state.arriving.advance()
    state.pending.set(arith.select(behind, pending, b.add(pending, 1)))


def finish_copies(frame: Frame, loop: scf.ForOp) -> None:
    """After a loop that fills slots: each warp arrives on those that are still under way."""
    for op in list(loop.body.operations):
        if isinstance(op, CommitOp):
            _arrive_on_the_rest(frame, op.ring)


def _arrive_on_the_rest(frame: Frame, ring: ir.Value) -> None:
    state = frame.rings[ring]
    if state.pending is None:
        return
    pending = state.pending.value()
    _publish_copies(frame, 0)
    for before in range(frame.plan.rings[ring].under_way):
        with b.when(b.xor(b.less(pending, before + 1), b.true())):
            _arrive_when_copied(frame, ring)
            state.arriving.advance()
    state.pending.set(b.constant(0))


def _publish_copies(frame: Frame, newest: int) -> None:
    """All but the `newest` groups of this thread's copies are done, and the async proxy sees it."""
    sm.CpAsyncWaitOp.of(pending=newest)
    frame.fence_async_proxy()
    frame.team.converge()


def _arrive_when_copied(frame: Frame, ring: ir.Value) -> None:
    index = frame.rings[ring].arriving.index()
    _arrive_once(frame.barrier_at(frame.plan.rings[ring].full, index))
    frame.team.converge()


def _arrive_once(barrier: ir.Value) -> None:
    """One arrival of the warp."""
    with b.when(b.elect()):
        b.arrive(barrier)


def lower_wait(frame: Frame, op: WaitOp) -> None:
    """Wait until the slot is full."""
    reader, plan = frame.rings[op.ring].reader, frame.plan.rings[op.ring]
    index = reader.index()
    frame.wait(frame.barrier_at(plan.full, index), reader.phase())
    frame.fence_after()
    frame.slots[op.slot] = Slot(op.ring, index)
    if frame.target.awaits_mmas:
        reader.advance()


def lower_release(frame: Frame, op: ReleaseOp) -> None:
    """The slot is empty once the MMAs that read it are done, or every warp has read it."""
    consumer, plan = frame.rings[op.ring].consumer, frame.plan.rings[op.ring]
    empty = frame.barrier_at(plan.empty, consumer.index())
    if plan.kind == "accumulator":
        frame.fence_before()
        b.warp_barrier()
        with b.when(b.elect()):
            _arrive_at_issuer(frame, empty)
        b.warp_barrier()
    elif plan.kind == "turns":
        _hand_over(frame, empty)
    elif frame.target.releases_by_warp:
        _arrive_by_warp(frame, empty)
    else:
        frame.commit(empty, frame.release_mask())
    consumer.advance()


def lower_skip(frame: Frame, op: SkipOp) -> None:
    """Where the consumer waits and releases moves past the slots."""
    state = frame.rings[op.ring]
    for position in (state.consumer, state.reader):
        position.skip(op.slots.value)


def _hand_over(frame: Frame, barrier: ir.Value) -> None:
    """One arrival of each warp, in this CTA: turns go to agents of the same one."""
    _arrive_once(barrier)
    frame.team.converge()


def _arrive_by_warp(frame: Frame, barrier: ir.Value) -> None:
    """One arrival of each warp, in every CTA that writes into the slot: lane r's in that of rank r.

    `tile.await_mma` has waited for the warp's MMAs on the slot. They are all that has to be ordered
    before the arrival, so the CTA is scope enough: the cluster's costs a memory barrier a step.
    """
    mask = frame.release_mask()
    if mask is None:
        _arrive_once(barrier)
    else:
        rank = b.rem(frame.lane, frame.cluster.size)  # LLVM may map for lanes beyond, too
        with b.when(_has_rank(frame, mask)):
            b.arrive(b.in_cta(barrier, rank))
    b.warp_barrier()


def _has_rank(frame: Frame, mask: ir.Value) -> ir.Value:
    """Whether the lane's number is a rank in `mask`."""
    ranks = arith.extui(b.i32(), mask)
    return b.equal(b.rem(arith.shrui(ranks, frame.lane), 2), 1)


def _arrive_at_issuer(frame: Frame, barrier: ir.Value) -> None:
    """Arrive where the MMAs that want the accumulator are issued: the pair's first CTA."""
    if not frame.cluster.pair:
        b.arrive(barrier)
        return
    rank = b.add_any(frame.pair_start(), b.mul_any(frame.place[1], frame.cluster.m))
    b.arrive(b.in_cta(barrier, rank), in_cluster=True)


def lower_drain(frame: Frame, op: DrainOp) -> None:
    """Wait until every slot is empty: no other CTA's commit is then on its way to this one."""
    producer, plan = frame.rings[op.ring].producer, frame.plan.rings[op.ring]
    for _ in range(plan.stages):
        empty = frame.barrier_at(plan.empty, producer.index())
        frame.wait(empty, b.xor(producer.phase(), 1))
        producer.advance()


def lower_tile(frame: Frame, op: TileOp) -> None:
    """Where the tile lies, from the slot's index."""
    slot = frame.slots[op.slot]
    if frame.plan.rings[slot.ring].kind == "accumulator":
        frame.columns[op.tile] = frame.columns_in(slot)
    else:
        frame.tiles[op.tile] = frame.tile_in(slot, op.index.value)
