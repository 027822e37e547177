"""Cluster launch control: one role claims clusters not yet launched, all roles run their tiles.

PTX ISA, clusterlaunchcontrol. The first CTA of a cluster asks; the answer is multicast to all of
its CTAs, whose full barriers count its 16 bytes. Every reader of an answer tells the first CTA,
which asks again into the same slot only when all have.
"""

from __future__ import annotations

from collections.abc import Callable

from ...dialects.mlir import arith, ir, llvm, nvvm, scf
from ...dialects.pipe import ClaimOp, ForEachClaimOp
from . import build as b
from .frame import ALL_LANES, Frame
from .plan import CLAIM_BYTES
from .tiles import set_tile, tiles_per_axis

QUERY = nvvm.ClusterLaunchControlQueryType


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
        set_tile(frame, op, before.arguments[0])
        emit_body()
        claimed, response = _read(frame, op.ring, alone)
        scf.ConditionOp(claimed, [response])
    after = loop.regions[1].blocks.append(answer)
    with ir.InsertionPoint(after):
        scf.YieldOp([_claimed_turn(frame, after.arguments[0], tiles)])


def _own_turn(frame: Frame, tiles: tuple[int, int]) -> ir.Value:
    """The number of the cluster that this CTA was launched in."""
    x = nvvm.read_ptx_sreg_ctaid_x(results=[b.i32()])
    y = nvvm.read_ptx_sreg_ctaid_y(results=[b.i32()])
    return _turn(frame, x, y, tiles)


def _turn(frame: Frame, x: ir.Value, y: ir.Value, tiles: tuple[int, int]) -> ir.Value:
    """The number of the cluster that holds CTA (x, y) of the grid."""
    along_m, along_n = b.div(x, frame.cluster.m), b.div(y, frame.cluster.n)
    return b.add(along_m, b.mul(along_n, tiles[0]))


def _claimed_turn(frame: Frame, answer: ir.Value, tiles: tuple[int, int]) -> ir.Value:
    """The number of the cluster that an answer claims."""
    x, y = (
        nvvm.clusterlaunchcontrol_query_cancel(kind, answer, results=[b.i32()])
        for kind in (QUERY.GET_FIRST_CTA_ID_X, QUERY.GET_FIRST_CTA_ID_Y)
    )
    return _turn(frame, x, y, tiles)


def _read(frame: Frame, ring: ir.Value, alone: bool) -> tuple[ir.Value, ir.Value]:
    """(whether it claims a cluster, the answer); its slot is handed back."""
    consumer, plan = frame.rings[ring].consumer, frame.plan.rings[ring]
    index = consumer.index()
    frame.wait(frame.barrier_at(plan.full, index), consumer.phase())
    i128 = ir.IntegerType.get_signless(128)
    answer = llvm.load(i128, _slot(frame, ring, index), alignment=CLAIM_BYTES)
    claimed = nvvm.clusterlaunchcontrol_query_cancel(QUERY.IS_CANCELED, answer, results=[b.i1()])
    space = nvvm.SharedSpace.shared_cta
    nvvm.fence_proxy(nvvm.ProxyKind.async_shared, space=space)
    _hand_back(frame, frame.barrier_at(plan.empty, index), alone)
    consumer.advance()
    return claimed, answer


def _slot(frame: Frame, ring: ir.Value, index: ir.Value | int) -> ir.Value:
    (first,) = frame.plan.rings[ring].tiles
    if isinstance(index, int):
        return frame.shared_at(first + index * CLAIM_BYTES)
    return frame.shared_at(b.add(b.mul(index, CLAIM_BYTES), first))


def _hand_back(frame: Frame, empty: ir.Value, alone: bool) -> None:
    """One arrival of this thread, or of each warp of the team, in the cluster's first CTA."""
    if not alone:
        nvvm.bar_warp_sync(b.constant(ALL_LANES))
    with b.when(None if alone else nvvm.elect_sync(results=[b.i1()])):
        if frame.cluster.size == 1:
            nvvm.mbarrier_arrive(empty)
        else:
            remote = nvvm.mapa(b.pointer(b.CLUSTER), empty, b.constant(0))
            nvvm.mbarrier_arrive(remote, scope=nvvm.MemScopeKind.CLUSTER)
    if not alone:
        nvvm.bar_warp_sync(b.constant(ALL_LANES))


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
        nvvm.mbarrier_arrive_expect_tx(full, b.constant(CLAIM_BYTES))
        with b.when(first):
            multicast = frame.cluster.size > 1 or None
            slot = _slot(frame, op.ring, index)
            nvvm.clusterlaunchcontrol_try_cancel(slot, full, multicast=multicast)
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
