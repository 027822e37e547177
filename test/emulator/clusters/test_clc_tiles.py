"""clusterlaunchcontrol: persistent CTAs take over clusters that have not started (PTX ISA
§9.7.13.17 try_cancel, §9.7.13.18 query_cancel)."""

from __future__ import annotations

import numpy as np
import pytest

CANCEL = (
    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{form}.b128"
    " [%r40], [%r1];"
)
QUERY = "clusterlaunchcontrol.query_cancel."
FENCE = "fence.proxy.async.shared::cta;"
COUNT = """
  mov.u32 %r50, %nctaid.x; mov.u32 %r51, %nctaid.y; mad.lo.u32 %r52, %r33, %r51, %r32;
  mad.lo.u32 %r52, %r52, %r50, %r31; mul.wide.u32 %rd3, %r52, 4; add.s64 %rd3, %rd0, %rd3;
  @%p0 red.global.add.u32 [%rd3], 1;
"""
START = """
  mov.u32 %r40, resp; mov.u32 %r41, 0;
  mov.u32 %r31, %ctaid.x; mov.u32 %r32, %ctaid.y; mov.u32 %r33, %ctaid.z;
  mov.u32 %r34, %cluster_ctaid.x; mov.u32 %r35, %cluster_ctaid.y; mov.u32 %r36, %cluster_ctaid.z;
"""
WAIT = """
WAIT:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p7, [%r1], %r41;
  @!%p7 bra WAIT;
  xor.b32 %r41, %r41, 1;
"""
FORMS = {
    "vector": "get_first_ctaid.v4.b32.b128 {%r31, %r32, %r33, _}, %q0;",
    "axes": f"get_first_ctaid::x.b32.b128 %r31, %q0; {QUERY}get_first_ctaid::y.b32.b128 %r32, %q0;"
    f" {QUERY}get_first_ctaid::z.b32.b128 %r33, %q0;",
}
LOADS = {
    "b128": "ld.shared.b128 %q0, [%r40];",
    "halves": "ld.shared.v2.u64 {%rd4, %rd5}, [%r40]; mov.b128 %q0, {%rd4, %rd5};",
}


def persistent(clusters, *, form="vector", load="b128", multicast=False, fence=FENCE, work=COUNT):
    cancel = CANCEL.format(form=".multicast::cluster::all" if multicast else "")
    who = "%p2" if multicast else "%p0"
    between = clusters.CLUSTER_SYNC if multicast else "bar.sync 0;"
    return (
        clusters.barriers(1) + START + "TILE:\n" + work + between
        + f"@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;\n@{who} {cancel}\n" + WAIT
        + LOADS[load] + fence + f"{QUERY}is_canceled.pred.b128 %p5, %q0;\n@!%p5 bra DONE;\n"
        + QUERY + FORMS[form]
        + "add.u32 %r31, %r31, %r34; add.u32 %r32, %r32, %r35; add.u32 %r33, %r33, %r36;"
        + "bra TILE;\nDONE:\n" + (clusters.CLUSTER_SYNC if multicast else "")
    )  # fmt: skip


@pytest.mark.sweep(8)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("resident", [1, 3, 40])
def test_every_tile_is_worked_on_once(clusters, resident, seed):
    """More tiles than CTAs, and more room than tiles"""
    out = np.zeros((2, 3, 5), np.uint32)
    body = persistent(
        clusters, form=("vector", "axes")[seed % 2], load=("b128", "halves")[seed % 2]
    )
    clusters.run(body, out, grid=(5, 3, 2), cluster=1, block=64, seed=seed, resident=resident)
    assert (out == 1).all()


NUMBERED = """
  mov.u32 %r50, %nctaid.x; mad.lo.u32 %r52, %r32, %r50, %r31; mul.wide.u32 %rd3, %r52, 4;
  add.s64 %rd3, %rd0, %rd3; @%p0 st.global.u32 [%rd3], %r53; add.u32 %r53, %r53, 1;
"""


@pytest.mark.parametrize("seed", range(4))
def test_tiles_come_in_the_order_of_the_grid_where_libraries_count_on_it(clusters, seed):
    """As quack's scheduler for groups does, which looks for a group among later ones alone."""
    orders = {}
    for check in ("shipped", "full"):
        out = np.zeros((3, 4), np.uint32)
        body = "mov.u32 %r53, 0;\n" + persistent(clusters, work=NUMBERED)
        clusters.run(body, out, grid=(4, 3), cluster=1, seed=seed, resident=1, check=check)
        orders[check] = out.ravel().tolist()
    assert orders["shipped"] == list(range(12)) != orders["full"]


@pytest.mark.sweep(8)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("cluster", [(2, 1), (2, 2), (1, 2, 2), (4, 1)])
def test_a_multicast_response_reaches_every_cta_of_the_cluster(clusters, cluster, seed):
    grid = (cluster[0] * 3, cluster[1] * 2, 2)
    out = np.zeros(grid[::-1], np.uint32)
    body = persistent(clusters, multicast=True)
    clusters.run(
        body, out, grid=grid, cluster=cluster, seed=seed, resident=2 * int(np.prod(cluster))
    )
    assert (out == 1).all()


def test_clusters_are_taken_over_and_counted(clusters):
    out = np.zeros((2, 3, 5), np.uint32)
    report = clusters.run(persistent(clusters), out, grid=(5, 3, 2), cluster=1, seed=2, resident=2)
    taken = report.engines["clusters cancelled"]
    assert taken + 2 >= 28 and report.engines["cancellation requests"] > taken


def test_different_seeds_hand_out_tiles_in_different_orders(clusters):
    """out[tile] is the CTA that worked on it"""
    mark = COUNT.replace("red.global.add.u32 [%rd3], 1", "st.global.u32 [%rd3], %r60")
    start = "mov.u32 %r60, %ctaid.x; mov.u32 %r61, %ctaid.y; mad.lo.u32 %r60, %r61, 10, %r60;"
    seen = set()
    for seed in range(10):
        out = np.full((1, 3, 5), 999, np.uint32)
        body = start + persistent(clusters, work=mark)
        clusters.run(body, out, grid=(5, 3), cluster=1, seed=seed, resident=3)
        assert not (out == 999).any()
        seen.add(out.tobytes())
    assert len(seen) > 5


def one_request(clusters, after: str, *, sync=WAIT, trapped=True, **options):
    body = clusters.barriers(1) + START + (
        "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;\n@%p0 " + CANCEL.format(
            form=""
        )
        + sync + "ld.shared.b128 %q0, [%r40];" + after
    )  # fmt: skip
    if trapped:
        return clusters.trap_of(body, cluster=1, grid=1, **options)
    return clusters.run(body, np.zeros(4096, np.uint32), cluster=1, grid=1, **options)


def test_the_first_ctaid_of_a_failed_request_is_garbage_and_told(clusters):
    """As the CuTe DSL asks: always, and without using the answer"""
    report = one_request(clusters, QUERY + FORMS["vector"], trapped=False)
    assert [each.category for each in report.warnings] == ["undefined-query"]


def test_a_verdict_says_that_the_answer_of_a_failed_request_was_used(clusters):
    """The undefined CTA becomes an address that is in no array"""
    use = (
        QUERY
        + FORMS["vector"]
        + COUNT.replace("red.global.add.u32 [%rd3], 1", "st.global.u32 [%rd3], 1")
    )
    trap = one_request(clusters, use)
    assert trap.category == "out-of-bounds"
    (remark,) = trap.remarks
    assert remark.startswith("before that, undefined-query: ptx:")
    assert f"\n  {remark}" in str(trap)


def test_no_request_may_follow_an_observed_failure(clusters):
    again = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;\n@%p0 "
    trap = one_request(
        clusters, f"{FENCE}{QUERY}is_canceled.pred.b128 %p5, %q0;" + again + CANCEL.format(form="")
    )
    assert trap.message == (
        "clusterlaunchcontrol.try_cancel after this warp has seen a request fail; leave the loop"
        " when is_canceled is false"
    )


def test_bytes_that_are_no_response_are_refused(clusters):
    trap = one_request(
        clusters, f"mov.b128 %q1, {{%rd0, %rd1}};{QUERY}is_canceled.pred.b128 %p5, %q1;"
    )
    assert trap.message.startswith(
        "the 16 bytes are no response of clusterlaunchcontrol.try_cancel"
    )


def test_a_response_read_too_early_was_never_written(clusters):
    use = f"{QUERY}is_canceled.pred.b128 %p5, %q0; trap;"
    found = {one_request(clusters, use, sync="", seed=seed).category for seed in range(10)}
    assert "uninitialised-read" in found


def test_a_response_buffer_is_reused_behind_a_proxy_fence_only(clusters):
    """§9.7.13.17 example: the reads of the old response are generic, the write is async"""
    trap = clusters.trap_of(persistent(clusters, fence=""), grid=8, cluster=1, resident=1)
    assert trap.category == "proxy-fence"
    assert trap.message == (
        "a new response would overwrite shared offset 0x420, which warp 0 has read through the"
        " generic proxy without fence.proxy.async afterwards"
    )


def test_the_release_sync_restrict_fence_serves_too(clusters):
    out = np.zeros((1, 1, 8), np.uint32)
    fence = (
        "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;"
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;"
        "fence.acquire.sync_restrict::shared::cluster.cluster;"
        "fence.release.sync_restrict::shared::cta.cluster;"
    )
    clusters.run(persistent(clusters, fence=fence), out, grid=8, cluster=1, resident=2)
    assert (out == 1).all()


def test_response_and_barrier_lie_in_the_own_cta(clusters):
    body = (
        clusters.barriers(1)
        + START
        + """
      mov.u32 %r8, 1; mapa.shared::cluster.u32 %r40, %r40, %r8; @%p2 """
        + CANCEL.format(form="")
    )
    trap = clusters.trap_of(body + clusters.CLUSTER_SYNC)
    assert trap.category == "address-space"


def test_the_response_must_be_aligned(clusters):
    body = clusters.barriers(1) + START + "add.u32 %r40, %r40, 8;@%p0 " + CANCEL.format(form="")
    assert clusters.trap_of(body, cluster=1).category == "misaligned"


def test_a_multicast_needs_a_barrier_in_every_cta(clusters):
    body = (
        START
        + """
      @%p2 mbarrier.init.shared::cta.b64 [%r1], 1;
      @%p2 """
        + CANCEL.format(form=".multicast::cluster::all")
        + clusters.CLUSTER_SYNC
    )
    trap = clusters.trap_of(body)
    assert trap.category == "barrier-protocol"
    assert trap.message.startswith("no mbarrier object at shared offset 0x400 of cta (1, 0, 0)")
