"""Multicast tensor loads and commits across a cluster (PTX ISA §9.7.9.27.1.2, §9.7.16.12)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import TensorMap, Trap, launch

SHAPES = [(2, 1), (2, 2), (4, 1), (1, 2), (4, 4)]
LOAD = (
    "cp.async.bulk.tensor.2d{group}.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    ".multicast::cluster [%r2], [%rd1, {{%r10, %r11}}], [%r9], %h0;\n"
)
COPY_OUT = """
  shl.b32 %r4, %r0, 2; shl.b32 %r5, %r3, 7; add.u32 %r5, %r5, %r4; cvt.u64.u32 %rd8, %r5;
  add.s64 %rd8, %rd0, %rd8; add.u32 %r6, %r2, %r4; ld.shared.u32 %r7, [%r6];
  st.global.u32 [%rd8], %r7;
"""


def run(clusters, body, cluster, seed=0):
    header = clusters.HEADER.replace(".param .u64 in", ".param .align 64 .b8 in[128]")
    header = header.replace(
        "ld.param.u64 %rd1, [in];", "mov.b64 %rd1, in; cvta.param.u64 %rd1, %rd1;"
    )
    source = np.random.default_rng(2).integers(1, 1 << 15, (16, 64)).astype(np.uint16)
    ctas = int(np.prod(cluster))
    out = np.zeros((ctas, 64), np.uint16)
    tensor_map = TensorMap(source, "bf16", (64, 16), (128,), (64, 1))
    launch(header + body + clusters.FOOTER, "k", grid=cluster, block=32, cluster=cluster,
           shared_bytes=8192, params=[out, tensor_map], seed=seed)  # fmt: skip
    return source, out


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cluster", SHAPES)
def test_every_cta_can_send_its_row_to_any_subset(clusters, cluster, seed):
    """Each rank loads row `rank` for the ranks that share its last bit; own barriers signal"""
    ctas = int(np.prod(cluster))
    masks = {rank: sum(1 << r for r in range(ctas) if r % 2 == rank % 2) for rank in range(ctas)}
    senders = {rank: rank & 1 for rank in range(ctas)}
    body = (
        clusters.barriers(1)
        + f"""
      @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;
      mov.u32 %r9, %r1; mov.u32 %r10, 0; mov.u32 %r11, %r3;
      and.b32 %r12, %r3, 1; mov.u32 %r13, {masks[0]}; shl.b32 %r13, %r13, %r12;
      cvt.u16.u32 %h0, %r13; setp.lt.and.u32 %p3, %r3, 2, %p0;
      @%p3 """
        + LOAD.format(group="")
        + clusters.wait()
        + COPY_OUT
        + clusters.CLUSTER_SYNC
    )
    source, out = run(clusters, body, cluster, seed)
    assert np.array_equal(out, source[[senders[rank] for rank in range(ctas)]])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cluster", SHAPES)
def test_a_pair_load_signals_the_named_parity_for_both_members(clusters, cluster, seed):
    """cta_group::2: every even rank counts its own and its odd peer's bytes"""
    ctas = int(np.prod(cluster))
    body = (
        clusters.barriers(1, 1)
        + f"""
      and.b32 %r12, %r3, 1; setp.eq.and.u32 %p3, %r12, 0, %p0;
      @%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 256;
      and.b32 %r9, %r1, 0xFEFFFFFF; mov.u32 %r10, 0; mov.u32 %r11, 9;
      mov.u16 %h0, {(1 << ctas) - 1};
      @%p2 """
        + LOAD.format(group=".cta_group::2")
        + "setp.ne.u32 %p4, %r12, 0; @%p4 bra BOTH;"
    )
    body += clusters.wait() + "BOTH:" + clusters.CLUSTER_SYNC + COPY_OUT + clusters.CLUSTER_SYNC
    source, out = run(clusters, body, cluster, seed)
    assert np.array_equal(out, source[[9] * ctas])


def test_a_pair_load_into_the_own_cta_may_signal_the_leader(clusters):
    """.shared::cta destination with cta_group::2: the mbarrier may be the pair peer's"""
    body = (
        clusters.barriers(1)
        + """
      @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 256;
      and.b32 %r9, %r1, 0xFEFFFFFF; mov.u32 %r10, 0; add.u32 %r11, %r3, 4;
      @%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes.cta_group::2
        [%r2], [%rd1, {%r10, %r11}], [%r9];
      setp.ne.u32 %p4, %r3, 0; @%p4 bra BOTH;"""
    )
    body += clusters.wait() + "BOTH:" + clusters.CLUSTER_SYNC + COPY_OUT
    source, out = run(clusters, body, (2, 1))
    assert np.array_equal(out, source[[4, 5]])


def test_too_many_bytes_for_the_expected_count_are_refused(clusters):
    """§9.7.13.15.5: a pair load brings the leader twice the box"""
    body = (
        clusters.barriers(1)
        + """
      @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;
      and.b32 %r9, %r1, 0xFEFFFFFF; mov.u32 %r10, 0; mov.u32 %r11, 9; mov.u16 %h0, 3;
      @%p2 """
        + LOAD.format(group=".cta_group::2")
        + clusters.CLUSTER_SYNC * 2
    )
    found = set()
    for seed in range(8):
        with pytest.raises(Exception) as caught:
            run(clusters, body, (2, 1), seed)
        found.add(caught.value.category)
    assert found <= {"barrier-protocol", "exited-cta"}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cluster", SHAPES)
def test_a_commit_arrives_at_every_cta_of_its_mask(clusters, cluster, seed):
    """§9.7.16.12: bits are %cluster_ctarank, the offset is the same everywhere"""
    ctas = int(np.prod(cluster))
    body = (
        clusters.barriers(ctas)
        + f"""
      mov.u16 %h0, {(1 << ctas) - 1};
      @%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
        [%r1], %h0;
    """
        + clusters.wait()
        + clusters.CLUSTER_SYNC
    )
    clusters.run(body, np.zeros(1, np.uint32), cluster=cluster, seed=seed)


def test_a_cta_may_not_exit_before_a_commit_from_a_peer_has_arrived(clusters):
    body = (
        clusters.barriers(1)
        + """
      mov.u16 %h0, 2;
      @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
        [%r1], %h0;
    """
        + clusters.CLUSTER_SYNC
    )
    messages = set()
    for seed in range(12):
        with pytest.raises(Trap) as caught:
            clusters.run(body, np.zeros(1, np.uint32), seed=seed)
        assert caught.value.category == "exited-cta"
        messages.add(caught.value.message[:20])
    assert messages == {"the CTA exits while ", "the CTA exits, and n"}


TWO_COMMITS = """
      mov.u16 %h0, 2;
      @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
        [%r1], %h0;
      @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
        [%r1+8], %h0;
      setp.eq.u32 %p3, %r3, 0;
      @%p3 bra AWAY;
"""


@pytest.mark.parametrize("waits_for", [(8,), (0, 8), (8, 0)])
def test_a_cta_waits_for_each_commit_that_signals_it_before_it_exits(clusters, waits_for):
    """No order of the arrivals of two commits is in the ISA, so the later one says nothing"""
    waits = "".join(clusters.wait(offset) for offset in waits_for)
    body = clusters.barriers(1, 1) + TWO_COMMITS + waits + "AWAY:\n"
    found = set()
    for seed in range(12):
        try:
            clusters.run(body, np.zeros(1, np.uint32), seed=seed)
        except Trap as trap:
            found.add((trap.category, trap.text, trap.lanes))
    assert found == ({("exited-cta", "ret", 0xFFFFFFFF)} if waits_for == (8,) else set())
