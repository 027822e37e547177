"""What a fence.proxy.async covers: generic writes that are complete, in its state space.

PTX ISA §9.7.13.4 (the state space of .async restricts the fence), §9.7.9.25.3 (cp.async: the writes
are made visible to the executing thread by the wait for them), §8.9.5 (proxies).
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

SEEDS = range(4)
HEADER = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 source)
{ .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<8>;
  .shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 bar; .shared .align 8 .b64 full;
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [source];
  mov.u32 %r0, %tid.x; mov.u32 %r1, bar; mov.u32 %r2, tile; mov.u32 %r3, full;
  shl.b32 %r4, %r0, 2; add.u32 %r5, %r2, %r4; cvt.u64.u32 %rd2, %r4; add.s64 %rd3, %rd1, %rd2;
  setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 32; mov.u32 %r6, %cluster_ctarank;
  @%p0 mbarrier.init.shared::cta.b64 [%r1], 32; @%p0 mbarrier.init.shared::cta.b64 [%r3], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
"""
COPY = "@%p1 cp.async.ca.shared.global [%r5], [%rd3], 4;"
STORE = """@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r2], 128;
  @%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;"""
FENCE = "fence.proxy.async.shared::cta;"
GROUP = "cp.async.commit_group; cp.async.wait_group 0;"
ARRIVE = "@%p1 cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];"
WAIT = "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0; @!%p2 bra W;"
GENERIC = "st.shared.u32 [%r5], %r4; {fence} bar.sync 0;" + STORE
# One thread of rank 0 writes global memory that it then has a bulk copy read.
GLOBAL = """setp.ne.u32 %p3, %r6, 0; @%p3 bra END; mov.u32 %r9, 7;
  @%p0 st.global.v4.u32 [%rd0+256], {{%r9, %r9, %r9, %r9}}; {fence}
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;
  @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2+512], [%rd0+256], 16,
    [%r3];
  W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra W; END:"""
# The CTA of rank 0 writes into its peer, which stores the bytes.
# One warp writes bytes of shared memory generically that a bulk copy then replaces.
REPLACED = """@%p1 st.shared.u32 [%r5], %r4; {fence} bar.sync 0;
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 64;
  @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 64, [%r3];
  W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra W;"""
PEER = (
    """setp.eq.u32 %p3, %r6, 0; xor.b32 %r7, %r6, 1; mapa.shared::cluster.u32 %r8, %r5, %r7;
  @%p3 st.shared::cluster.u32 [%r8], %r4; {writer}
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; {reader}
  @%p3 bra END; """
    + STORE
    + "END:"
)

RIGHT = {
    "behind the wait for the group": COPY + GROUP + FENCE + "bar.sync 0;" + STORE,
    "behind wait_all": COPY + "cp.async.wait_all;" + FENCE + "bar.sync 0;" + STORE,
    "by the reader behind the barrier": COPY + GROUP + "bar.sync 0;" + FENCE + STORE,
    "by the reader behind the mbarrier": COPY + ARRIVE + WAIT + FENCE + STORE,
    "halves of a warp that wait one after the other": COPY
    + "setp.lt.u32 %p4, %r0, 16; @%p4 bra LOW; cp.async.wait_all; bra BOTH; LOW: cp.async.wait_all;"
    + "BOTH: bar.warp.sync -1;" + FENCE + "bar.sync 0;" + STORE,
    "without a space": GENERIC.format(fence="fence.proxy.async;"),
    "of the cluster": GENERIC.format(fence="fence.proxy.async.shared::cluster;"),
    "one-way": GENERIC.format(
        fence="fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;"
    ),
    "of global memory": GLOBAL.format(fence="fence.proxy.async.global;"),
    "of all memory": GLOBAL.format(fence="fence.proxy.async;"),
    "of global memory by the writing lane alone": GLOBAL.format(
        fence="@%p0 fence.proxy.async.global;"
    ),
    "behind what a copy replaces": REPLACED.format(fence=FENCE),
    "of the cluster by the writer": PEER.format(
        writer="fence.proxy.async.shared::cluster;", reader=""
    ),
    "of its CTA by the reader": PEER.format(writer="", reader=FENCE),
    "without a space by the writer": PEER.format(writer="fence.proxy.async;", reader=""),
}  # fmt: skip
WRONG = {
    "before the wait for the group": (
        COPY + FENCE + GROUP + "bar.sync 0;" + STORE,
        "one before the wait for the copy does not cover it",
    ),
    "between commit and wait": (
        COPY + GROUP.replace("cp.async.wait", FENCE + "cp.async.wait") + "bar.sync 0;" + STORE,
        "one before the wait for the copy does not cover it",
    ),
    "before the arrival of cp.async": (
        COPY + FENCE + ARRIVE + WAIT + STORE,
        "one before the wait for the copy does not cover it",
    ),
    "between the arrival and the wait for it": (
        COPY + ARRIVE + FENCE + WAIT + STORE,
        "one before the wait for the copy does not cover it",
    ),
    "of global memory": (
        GENERIC.format(fence="fence.proxy.async.global;"),
        "restricted to global memory; it takes fence.proxy.async.shared::cta",
    ),
    "of shared memory": (
        GLOBAL.format(fence="fence.proxy.async.shared::cta;"),
        "restricted to shared memory; it takes fence.proxy.async.global",
    ),
    "of the cluster's shared memory": (
        GLOBAL.format(fence="fence.proxy.async.shared::cluster;"),
        "restricted to shared memory; it takes fence.proxy.async.global",
    ),
    "of the writer's own CTA": (
        PEER.format(writer=FENCE, reader=""),
        "take fence.proxy.async.shared::cluster",
    ),
    "none behind what a copy replaces": (REPLACED.format(fence=""), "no fence.proxy.async"),
    "none behind a write to a peer": (PEER.format(writer="", reader=""), "no fence.proxy.async"),
}


def run(body: str, seed: int, check: str = "full") -> np.ndarray:
    out, source = np.zeros(256, np.uint32), np.arange(64, dtype=np.uint32) + 5
    launch(HEADER + body + " ret; }", "k", grid=2, block=64, cluster=2, params=[out, source],
           seed=seed, check=check)  # fmt: skip
    return out


BETWEEN_CLUSTERS = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flag)
{{ .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p<2>;
  .shared .align 16 .b8 tile[16]; .shared .align 8 .b64 full;
  ld.param.u64 %rd0, [data]; ld.param.u64 %rd1, [flag]; mov.u32 %r0, %ctaid.x; mov.u32 %r2, tile;
  mov.u32 %r3, full; setp.ne.u32 %p0, %r0, 0; @%p0 bra READER;
  mov.b32 %r1, 7; st.global.v4.b32 [%rd0], {{%r1, %r1, %r1, %r1}}; {writer}
  st.release.gpu.global.b32 [%rd1], 1; bra END;
READER: ld.acquire.gpu.global.b32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra READER; {reader}
  mbarrier.init.shared::cta.b64 [%r3], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd0], 16, [%r3];
W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0; @!%p1 bra W;
END: ret; }}
"""


def hand_over(writer: str, reader: str, seed: int) -> None:
    params = [np.zeros(4, np.uint32), np.zeros(1, np.uint32)]
    text = BETWEEN_CLUSTERS.format(writer=writer, reader=reader)
    launch(text, "k", grid=2, block=1, params=params, seed=seed)


@pytest.mark.parametrize("fence", ["fence.proxy.async.global;", "fence.proxy.async;"])
@pytest.mark.parametrize("side", [0, 1])
def test_a_fence_of_either_side_covers_what_another_cluster_wrote(fence, side):
    for seed in SEEDS:
        hand_over(*((fence, "") if side == 0 else ("", fence)), seed)


@pytest.mark.parametrize("fence", ["", FENCE])
def test_without_one_of_global_memory_it_is_refused(fence):
    for seed in SEEDS:
        with pytest.raises(Trap) as caught:
            hand_over(fence, fence, seed)
        assert caught.value.category == "proxy-fence"


@pytest.mark.parametrize("name", RIGHT)
def test_a_fence_covers_what_is_complete_in_its_space(name):
    for seed in SEEDS:
        run(RIGHT[name], seed)
        run(RIGHT[name], seed, "fast")


@pytest.mark.parametrize("name", WRONG)
def test_a_fence_that_covers_something_else_is_named_in_every_order(name):
    body, says = WRONG[name]
    for seed in SEEDS:
        with pytest.raises(Trap) as caught:
            run(body, seed)
        assert caught.value.category == "proxy-fence"
        assert says in str(caught.value)


def test_fast_checks_name_what_a_copy_replaces_too():
    with pytest.raises(Trap, match="an asynchronous write replaces shared offset") as caught:
        run(REPLACED.format(fence=""), 0, "fast")
    assert caught.value.category == "proxy-fence"


def test_one_lanes_wait_is_not_that_of_the_other_lanes():
    """cp.async.wait_group waits for the copies of the executing thread (§9.7.9.25.3.3)"""
    body = COPY + "@%p0 cp.async.wait_all; bar.sync 0; ld.shared.u32 %r8, [%r5];"
    for seed in SEEDS:
        with pytest.raises(Trap) as caught:
            run(body, seed)
        assert caught.value.category in ("race", "uninitialised-read")


PRODUCT = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 source)
{ .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<4>; .reg .pred %p<2>;
  .shared .align 128 .b8 tile[4096];
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [source]; mov.u32 %r0, %tid.x; mov.u32 %r1, tile;
  shl.b32 %r2, %r0, 4; add.u32 %r3, %r1, %r2; cvt.u64.u32 %rd2, %r2; add.s64 %rd3, %rd1, %rd2;
  cp.async.cg.shared.global [%r3], [%rd3], 16;
  cp.async.cg.shared.global [%r3+2048], [%rd3+2048], 16;
  BEHIND bar.sync 0; cvt.u64.u32 %rd4, %r1; shr.u64 %rd4, %rd4, 4;
  or.b64 %rd4, %rd4, 0x1000080000; add.u64 %rd5, %rd4, 128; setp.eq.u32 %p0, 0, 1;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16
    {%f0, %f1, %f2, %f3}, %rd4, %rd5, %p0, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
  mul.wide.u32 %rd6, %r0, 4; add.s64 %rd6, %rd0, %rd6; st.global.f32 [%rd6], %f0; ret; }
"""


def multiplied(behind: str, check: str) -> set[str]:
    source, out = np.ones((4096 // 2,), np.float16), np.zeros(128, np.float32)
    report = launch(PRODUCT.replace("BEHIND", behind), "k", grid=1, block=128,
                    params=[out, source], check=check)  # fmt: skip
    assert (out == 16).all()
    return {warning.category for warning in report.warnings}


def test_copies_of_threads_that_a_product_reads_need_a_fence_behind_their_wait():
    """CUTLASS's example 92 has none, and Triton 3.6 had one ahead of the wait"""
    assert multiplied(GROUP + FENCE, "full") == set()
    for behind in (GROUP, FENCE + GROUP):
        with pytest.raises(Trap, match="one before the wait for the copy does not cover it"):
            multiplied(behind, "full")
        assert multiplied(behind, "shipped") == {"copy-fence"}


def test_other_accesses_of_the_async_proxy_need_it_at_every_level():
    with pytest.raises(Trap, match=r"no fence\.proxy\.async on the way behind its completion"):
        run(COPY + GROUP + "bar.sync 0;" + STORE, 0, "shipped")


COPIES = PRODUCT[PRODUCT.index("  cp.async") : PRODUCT.index("  BEHIND")]
FROM_AFAR = """mov.u32 %r4, %cluster_ctarank; xor.b32 %r4, %r4, 1;
  mapa.shared::cluster.u32 %r3, %r3, %r4; mov.u32 %r5, 0x3C003C00;
  st.shared::cluster.v4.u32 [%r3], {%r5, %r5, %r5, %r5};
  st.shared::cluster.v4.u32 [%r3+2048], {%r5, %r5, %r5, %r5};
"""


def test_stores_of_another_cta_that_a_product_reads_need_a_fence_at_each_level():
    meeting = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; "
    text = PRODUCT.replace(COPIES, FROM_AFAR)
    text = text.replace("  shl.b32 %r2, %r0, 4;", f"{meeting} shl.b32 %r2, %r0, 4;")

    def run(behind: str) -> np.ndarray:
        out = np.zeros(128, np.float32)
        params = [out, np.zeros(8, np.float16)]
        launch(text.replace("BEHIND", behind + meeting), "k", grid=2, cluster=2, block=128,
               params=params, check="shipped")  # fmt: skip
        return out

    assert (run("fence.proxy.async; ") == 16).all()
    with pytest.raises(Trap) as caught:
        run("")
    assert caught.value.category == "proxy-fence" and "cp.async" not in caught.value.message
