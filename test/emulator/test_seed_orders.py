"""Asynchronous operations complete in an order that the seed picks, and seeds really differ."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import launch

SEEDS = range(20)
WARPS = 8
COPIES = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{
  .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .pred %p<4>;
  .shared .align 16 .b8 tile[1024];
  .shared .align 8 .b8 bar[64];
  .shared .align 4 .b32 turn;
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [in];
  mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; mov.u32 %r2, %laneid;
  mov.u32 %r3, bar; shl.b32 %r4, %r1, 3; add.u32 %r4, %r3, %r4;
  setp.eq.u32 %p0, %r2, 0; setp.eq.u32 %p1, %r0, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
  @%p1 st.shared.u32 [turn], 0;
  bar.sync 0;
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;
  mov.u32 %r5, tile; shl.b32 %r6, %r1, 7; add.u32 %r5, %r5, %r6;
  bar.sync 0;
  mov.u32 %r7, tile; mov.u32 %r8, 0; mov.b64 %rd2, %rd1;
ISSUE:
  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r7], [%rd2], 128, [%r3];
  add.u32 %r7, %r7, 128; add.s64 %rd2, %rd2, 128; add.u32 %r3, %r3, 8; add.u32 %r8, %r8, 1;
  setp.lt.u32 %p2, %r8, 8;
  @%p2 bra ISSUE;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], 0;
  @!%p3 bra WAIT;
  @%p0 atom.shared.add.u32 %r9, [turn], 1;
  mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd0, %rd3;
  @%p0 st.global.u32 [%rd3], %r9;
  ret;
}
"""
STARTS = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 turn)
{
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<2>;
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [turn];
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r0, 0;
  @%p0 atom.global.add.u32 %r2, [%rd1], 1;
  mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd0, %rd2;
  @%p0 st.global.u32 [%rd2], %r2;
  ret;
}
"""


def arrivals(seed: int) -> tuple[tuple[int, ...], int]:
    """(turn at which each warp saw its copy complete, warp instructions)."""
    out = np.full(WARPS, 99, np.uint32)
    data = np.arange(1024, dtype=np.uint8)
    report = launch(COPIES, "k", grid=1, block=32 * WARPS, params=[out, data], seed=seed)
    return tuple(out.tolist()), report.steps


def starts(seed: int, cluster: int) -> tuple[int, ...]:
    """The turn at which each CTA came."""
    out, turn = np.full(8, 99, np.uint32), np.zeros(1, np.uint32)
    launch(STARTS, "k", grid=8, block=32, cluster=cluster, params=[out, turn], seed=seed)
    return tuple(out.tolist())


def test_independent_copies_complete_in_many_orders():
    orders = {arrivals(seed)[0] for seed in SEEDS}
    assert all(sorted(order) == list(range(WARPS)) for order in orders)
    assert len(orders) >= 10


def test_a_seed_gives_the_same_run_again():
    assert [arrivals(seed) for seed in SEEDS] == [arrivals(seed) for seed in SEEDS]


def test_waiting_costs_the_same_under_every_seed():
    """Parked warps take no instructions: no seed runs half as many again as another"""
    steps = [arrivals(seed)[1] for seed in SEEDS]
    assert max(steps) < 1.5 * min(steps)


@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_clusters_start_in_many_orders(cluster):
    orders = {starts(seed, cluster) for seed in SEEDS}
    assert len(orders) >= 10
    assert len({order.index(0) // cluster for order in orders}) > 1
