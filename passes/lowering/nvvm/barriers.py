"""Barriers, fences and special registers, from `sm` to nvvm: one pattern per op."""

from __future__ import annotations

import math
from typing import Any

from ....dialects import llvm, nvvm, sm
from ....dialects.fallback import arrivals_in_fallback
from ....dialects.mlir import arith, ir, scf
from ....dialects.target import WARPGROUP_THREADS
from ....dialects.tile_types import integers_of
from ... import build

ALL_LANES = -1
DEVICE = "device"  # LLVM's name of the scope .gpu
ANY_BARRIER = "llvm.nvvm.barrier.cta.red.or.aligned.count"
LOOKED, CLAIMED = 2**10, 2**21  # one more of those in the word of `sm.claim_parts`
Meeting = sm.NamedBarrierOp | sm.PartBarrierOp | sm.AnyBarrierOp | sm.AnyPartBarrierOp
FENCES = {"tcgen05_before": "before", "tcgen05_after": "after"}
OF_CLUSTERS = ("clusterid", "cluster_ctaid")
# Bit 24 of a shared address is bit 0 of the CTA's rank in its cluster.
EVEN_CTA_MASK = 0xFEFFFFFF - 2**32


def barrier_init(op: sm.BarrierInitOp) -> None:
    """The count is that of the cluster that the CTA runs in."""
    count, in_fallback = build.constant(op.count.value), arrivals_in_fallback(op)
    if in_fallback is not None:
        ctas = math.prod(integers_of(_kernel_around(op).cluster))
        preferred = build.equal(nvvm.special_register("cluster_nctarank"), ctas)
        count = arith.select(preferred, count, build.constant(in_fallback))
    nvvm.mbarrier_init(op.barrier, count)


def wait_barrier(op: sm.WaitBarrierOp) -> None:
    """A loop around try_wait, which gives up after a while."""
    spin = scf.WhileOp([], [])
    before, after = spin.regions[0].blocks.append(), spin.regions[1].blocks.append()
    with ir.InsertionPoint(before):
        done = nvvm.mbarrier_try_wait(op.barrier, op.parity, _scope(op.scope.value))
        scf.ConditionOp(done ^ build.true(), [])
    with ir.InsertionPoint(after):
        scf.YieldOp([])


def _scope(scope: str) -> str | None:
    """The scope of an mbarrier op; the CTA's is what PTX assumes."""
    return scope if scope == "cluster" else None


def expect_tx(op: sm.ExpectTxOp) -> None:
    nvvm.mbarrier_expect_tx(op.barrier, _bytes(op))


def arrive_expect_tx(op: sm.ArriveExpectTxOp) -> None:
    nvvm.mbarrier_arrive_expect_tx(op.barrier, _bytes(op))


def _bytes(op: sm.ExpectTxOp | sm.ArriveExpectTxOp) -> ir.Value:
    known = build.constant(op.bytes.value)
    more = isinstance(op, sm.ExpectMoreOp | sm.ArriveExpectMoreOp)
    return arith.addi(op.more, known) if more else known


def arrive(op: sm.ArriveOp) -> None:
    nvvm.mbarrier_arrive(op.barrier, _scope(op.scope.value))


def fence(op: sm.FenceOp) -> None:
    kind = op.kind.value
    if kind == "mbarrier_init":
        nvvm.fence_mbarrier_init()
    elif kind == "async_shared":
        nvvm.fence_proxy_async_shared()
    else:
        nvvm.tcgen05_fence(FENCES[kind])


def converge(_: sm.ConvergeOp) -> None:
    nvvm.bar_warp_sync(build.constant(ALL_LANES))


def await_turn(op: sm.AwaitTurnOp) -> None:
    """Wait for the turn; one warpgroup waits and the other gives."""
    number = build.as_value(op.turn + op.id.value)
    nvvm.barrier(number, build.constant(2 * WARPGROUP_THREADS))


def give_turn(op: sm.GiveTurnOp) -> None:
    number = build.as_value(op.turn + op.id.value)
    nvvm.barrier_arrive(number, build.constant(2 * WARPGROUP_THREADS))


def named_barrier(op: sm.NamedBarrierOp) -> None:
    meet(op, build.constant(op.id.value))


def part_barrier(op: sm.PartBarrierOp) -> None:
    meet(op, build.as_value(op.part + op.id.value))


def any_part_barrier(op: sm.AnyPartBarrierOp) -> ir.Value | None:
    return meet(op, build.as_value(op.part + op.id.value))


def any_barrier(op: sm.AnyBarrierOp) -> ir.Value | None:
    return meet(op, build.constant(op.id.value))


def meet(op: Meeting, number: ir.Value) -> ir.Value | None:
    """At the barrier of that number: barrier.sync, or bar.red.or.pred and what it gives."""
    threads = build.constant(op.threads.value)
    if isinstance(op, sm.AnyBarrierOp | sm.AnyPartBarrierOp):
        return llvm.call_intrinsic(build.i1(), ANY_BARRIER, [number, threads, op.flag])
    nvvm.barrier(number, threads)
    return None


def count_arrival(op: sm.CountArrivalOp) -> ir.Value:
    """atom.inc, which goes back to 0 by itself, between two fences."""
    branch = scf.IfOp(op.counts, [build.i1()], has_else=True)
    last, other = op.parts.value - 1, branch.else_block
    assert other is not None
    with ir.InsertionPoint(branch.then_block):
        llvm.fence(llvm.ACQUIRE_RELEASE, DEVICE)
        most = build.constant(last)
        before = llvm.atomicrmw(llvm.UINC_WRAP, op.word, most, llvm.MONOTONIC, DEVICE)
        llvm.fence(llvm.ACQUIRE_RELEASE, DEVICE)
        scf.YieldOp([build.equal(before, last)])
    with ir.InsertionPoint(other):
        scf.YieldOp([build.constant(0, build.i1())])
    return branch.results[0]


def claim_parts(op: sm.ClaimPartsOp) -> list[ir.Value]:
    """Three counts in one word: 10 bits of those that are there, 11 of those that have looked, and
    the rest of those that have a share."""
    branch = scf.IfOp(op.counts, [build.i32(), build.i32()], has_else=True)
    other = branch.else_block
    assert other is not None
    with ir.InsertionPoint(branch.then_block):
        all_there = _await_all(op)
        claim = arith.select(all_there, build.constant(LOOKED + CLAIMED), build.constant(LOOKED))
        before = _add_to(op.word, claim)
        llvm.fence(llvm.ACQUIRE_RELEASE, DEVICE)
        claimed = arith.divui(before, build.constant(CLAIMED))
        looked = arith.remui(
            arith.divui(before, build.constant(LOOKED)), build.constant(CLAIMED // LOOKED)
        )
        is_last = build.equal(looked, op.parts.value - 1)
        own = claimed + arith.select(all_there, build.constant(1), build.constant(0))
        with build.when(is_last):
            llvm.store(build.constant(0), op.word, alignment=4)
        all_parts = build.constant(op.parts.value)
        scf.YieldOp([claimed, arith.select(is_last, all_parts, own)])
    with ir.InsertionPoint(other):
        scf.YieldOp([build.constant(0), build.constant(0)])
    return list(branch.results)


def _await_all(op: sm.ClaimPartsOp) -> ir.Value:
    """Whether all are there, as far as a thread sees that looks so many times."""
    parts = op.parts.value
    own = arith.remui(_add_to(op.word, build.constant(1)), build.constant(LOOKED))
    looks = scf.ForOp(
        build.constant(0),
        build.constant(op.polls.value),
        build.constant(1),
        iter_args=[build.equal(own, parts - 1)],
    )
    with ir.InsertionPoint(looks.body):
        (seen,) = looks.inner_iter_args
        look = scf.IfOp(seen, [build.i1()], has_else=True)
        again = look.else_block
        assert again is not None
        with ir.InsertionPoint(look.then_block):
            scf.YieldOp([build.true()])
        with ir.InsertionPoint(again):
            found = llvm.atomicrmw(llvm.ADD, op.word, build.constant(0), llvm.MONOTONIC, DEVICE)
            found = arith.remui(found, build.constant(LOOKED))
            scf.YieldOp([build.equal(found, parts)])
        scf.YieldOp([look.results[0]])
    return looks.results[0]


def _add_to(word: ir.Value, value: ir.Value) -> ir.Value:
    """The word before; what came before is released, and what was looked at acquired."""
    llvm.fence(llvm.ACQUIRE_RELEASE, DEVICE)
    return llvm.atomicrmw(llvm.ADD, word, value, llvm.MONOTONIC, DEVICE)


def cta_barrier(_: sm.CtaBarrierOp) -> None:
    nvvm.barrier()


def cluster_barrier(op: sm.ClusterBarrierOp) -> None:
    """Arriving may release, waiting acquires."""
    nvvm.cluster_arrive(bool(op.releases.value))
    nvvm.cluster_wait()


def stated(_: sm.ResidentOp) -> None:
    """The function says it."""


def await_grids(_: sm.AwaitGridsOp) -> None:
    nvvm.griddepcontrol("wait")


def launch_dependents(_: sm.LaunchDependentsOp) -> None:
    nvvm.griddepcontrol("launch_dependents")


def special_register(op: sm.SpecialRegisterOp) -> ir.Value:
    """What a CTA knows of its cluster follows from its number in the grid and the cluster's known
    size: ptxas reads that from memory, and divides by it."""
    register, _, axis = op.register.value.partition(".")
    if register not in OF_CLUSTERS:
        return nvvm.special_register(op.register.value)
    ctaid = nvvm.special_register(f"ctaid.{axis}")
    size = build.constant(integers_of(_kernel_around(op).cluster)["xyz".index(axis)])
    return (arith.divui if register == "clusterid" else arith.remui)(ctaid, size)


def _kernel_around(op: Any) -> sm.KernelOp:
    around = op.operation.parent
    while not isinstance(around.opview, sm.KernelOp):
        around = around.parent
    return around.opview


def elect(_: sm.ElectOp) -> ir.Value:
    return nvvm.elect_sync()


def set_registers(op: sm.SetRegistersOp) -> None:
    nvvm.setmaxregister(op.count.value, op.action.value)


def mapa(op: sm.MapaOp) -> ir.Value:
    return nvvm.mapa(op.remote.type, op.address, op.rank)


def leader_barrier(op: sm.LeaderBarrierOp) -> ir.Value:
    address = llvm.ptrtoint(build.i32(), op.barrier)
    return llvm.inttoptr(op.leader.type, arith.andi(address, build.constant(EVEN_CTA_MASK)))


PATTERNS = {
    sm.ResidentOp: stated,
    sm.BarrierInitOp: barrier_init,
    sm.WaitBarrierOp: wait_barrier,
    sm.ExpectTxOp: expect_tx,
    sm.ArriveExpectTxOp: arrive_expect_tx,
    sm.ExpectMoreOp: expect_tx,
    sm.ArriveExpectMoreOp: arrive_expect_tx,
    sm.ArriveOp: arrive,
    sm.FenceOp: fence,
    sm.AwaitTurnOp: await_turn,
    sm.GiveTurnOp: give_turn,
    sm.ConvergeOp: converge,
    sm.NamedBarrierOp: named_barrier,
    sm.PartBarrierOp: part_barrier,
    sm.AnyBarrierOp: any_barrier,
    sm.AnyPartBarrierOp: any_part_barrier,
    sm.ClaimPartsOp: claim_parts,
    sm.CountArrivalOp: count_arrival,
    sm.CtaBarrierOp: cta_barrier,
    sm.ClusterBarrierOp: cluster_barrier,
    sm.AwaitGridsOp: await_grids,
    sm.LaunchDependentsOp: launch_dependents,
    sm.SpecialRegisterOp: special_register,
    sm.ElectOp: elect,
    sm.SetRegistersOp: set_registers,
    sm.MapaOp: mapa,
    sm.LeaderBarrierOp: leader_barrier,
}
