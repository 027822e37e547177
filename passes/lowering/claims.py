"""Cluster launch control: one role claims clusters not yet launched, all roles run their tiles.

PTX ISA, clusterlaunchcontrol. The first CTA of a cluster asks; the answer is multicast to all of
its CTAs, whose full barriers count its 16 bytes. Every reader of an answer tells the first CTA,
which asks again into the same slot only when all have.
"""

from __future__ import annotations

from collections.abc import Callable

from ...dialects import sm
from ...dialects.mlir import arith, ir, llvm, scf
from ...dialects.pipe import ClaimOp, ForEachClaimOp
from ...dialects.sm_memory import CLAIM_BYTES
from . import build as b
from .frame import Frame
from .tiles import place_at, tiles_per_axis


def lower_for_each_claim(
    frame: Frame, op: ForEachClaimOp, alone: bool, emit_body: Callable[[], None]
) -> None:
    """The body for this CTA's own tile, then for each claim until one fails.

    `alone` is true where a single thread of the team runs the loop.
    """
    tiles = tiles_per_axis(frame.cluster, op)
    number, answer = b.i32(), ir.IntegerType.get_signless(128)
    loop = scf.WhileOp([answer], [_own_turn(frame, tiles)])
    before = loop.regions[0].blocks.append(number)
    with ir.InsertionPoint(before):
        places = place_at(frame, op, before.arguments[0])
        frame.values.update(zip(op.body.blocks[0].arguments, places, strict=True))
        emit_body()
        claimed, response = _read(frame, op.ring, alone)
        scf.ConditionOp(claimed, [response])
    after = loop.regions[1].blocks.append(answer)
    with ir.InsertionPoint(after):
        scf.YieldOp([_claimed_turn(frame, after.arguments[0], tiles)])


def _own_turn(frame: Frame, tiles: tuple[int, int]) -> ir.Value:
    """The number of the cluster that this CTA was launched in."""
    return _turn(frame, b.special("ctaid.x"), b.special("ctaid.y"), tiles)


def _turn(frame: Frame, x: ir.Value, y: ir.Value, tiles: tuple[int, int]) -> ir.Value:
    """The number of the cluster that holds CTA (x, y) of the grid."""
    along_m, along_n = b.div(x, frame.cluster.m), b.div(y, frame.cluster.n)
    return b.add(along_m, b.mul(along_n, tiles[0]))


def _claimed_turn(frame: Frame, answer: ir.Value, tiles: tuple[int, int]) -> ir.Value:
    """The number of the cluster that an answer claims."""
    x, y = (sm.QueryCancelOp.of(answer, field=axis, value=b.i32()).value for axis in "xy")
    return _turn(frame, x, y, tiles)


def _read(frame: Frame, ring: ir.Value, alone: bool) -> tuple[ir.Value, ir.Value]:
    """(whether it claims a cluster, the answer); its slot is handed back."""
    consumer, plan = frame.rings[ring].consumer, frame.plan.rings[ring]
    index = consumer.index()
    frame.wait(frame.barrier_at(plan.full, index), consumer.phase())
    i128 = ir.IntegerType.get_signless(128)
    answer = llvm.load(i128, _slot(frame, ring, index), alignment=CLAIM_BYTES)
    claimed = sm.QueryCancelOp.of(answer, field="claimed", value=b.i1()).value
    b.fence("async_shared")
    _hand_back(frame, frame.barrier_at(plan.empty, index), alone)
    consumer.advance()
    return claimed, answer


def _slot(frame: Frame, ring: ir.Value, index: ir.Value | int) -> ir.Value:
    (first,) = frame.plan.rings[ring].tiles
    if isinstance(index, int):
        return b.shared_at(first + index * CLAIM_BYTES)
    return b.shared_at(b.add(b.mul(index, CLAIM_BYTES), first))


def _hand_back(frame: Frame, empty: ir.Value, alone: bool) -> None:
    """One arrival of this thread, or of each warp of the team, in the cluster's first CTA."""
    if not alone:
        b.warp_barrier()
    with b.when(None if alone else b.elect()):
        if frame.cluster.size == 1:
            b.arrive(empty)
        else:
            b.arrive(b.in_cta(empty, b.constant(0)), in_cluster=True)
    if not alone:
        b.warp_barrier()


def lower_claim(frame: Frame, op: ClaimOp) -> None:
    """Ask, announce and read answers until one claims nothing."""
    producer, plan = frame.rings[op.ring].producer, frame.plan.rings[op.ring]
    first = _is_first(frame)
    loop = scf.WhileOp([], [])
    before, after = loop.regions[0].blocks.append(), loop.regions[1].blocks.append()
    with ir.InsertionPoint(before):
        index = producer.index()
        full = frame.barrier_at(plan.full, index)
        with b.when(first):
            empty = frame.barrier_at(plan.empty, index)
            frame.wait(empty, b.xor(producer.phase(), 1))
        sm.ArriveExpectTxOp.of(full, bytes=CLAIM_BYTES)
        with b.when(first):
            slot = _slot(frame, op.ring, index)
            sm.TryCancelOp.of(slot, full, multicast=frame.cluster.size > 1)
        producer.advance()
        claimed, _ = _read(frame, op.ring, alone=True)
        scf.ConditionOp(claimed, [])
    with ir.InsertionPoint(after):
        scf.YieldOp([])


def _is_first(frame: Frame) -> ir.Value | None:
    """Whether this is the cluster's first CTA; None where it is the only one."""
    if frame.cluster.size == 1:
        return None
    x, y = frame.place
    here = [b.equal(value, 0) for value in (x, y) if not isinstance(value, int)]
    return here[0] if len(here) == 1 else arith.andi(*here)
