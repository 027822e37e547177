"""Distributed shared memory: windows, mapa, remote arrivals, asynchronous stores, exits."""

from __future__ import annotations

import numpy as np
import pytest

PEER = "xor.b32 %r8, %r3, 1; mapa.shared::cluster.u32 %r9, %r2, %r8;"
PEER_BAR = "xor.b32 %r8, %r3, 1; mapa.shared::cluster.u32 %r10, %r1, %r8;"
FIRST_BAR = "mapa.shared::cluster.u32 %r10, %r1, %r8;"
OUT = """
  shl.b32 %r4, %r3, 5; add.u32 %r4, %r4, %r0; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd2, %rd0, %rd2;
  st.global.u32 [%rd2], %r14;
"""


def test_addresses_carry_the_rank_in_bits_24_and_up(clusters):
    """§9.7.9.23 mapa, §9.7.9.24 getctarank, generic and .shared::cluster forms"""
    out = np.zeros((4, 32), np.uint32)
    clusters.run(
        """shr.u32 %r14, %r2, 24; mov.u32 %r8, 3; mapa.shared::cluster.u32 %r9, %r2, %r8;
        shr.u32 %r10, %r9, 24; shl.b32 %r10, %r10, 4; or.b32 %r14, %r14, %r10;
        cvta.shared.u64 %rd3, tile; mov.u32 %r8, 2; mapa.u64 %rd3, %rd3, %r8;
        getctarank.u64 %r11, %rd3; shl.b32 %r11, %r11, 8; or.b32 %r14, %r14, %r11;
        getctarank.shared::cluster.u32 %r12, %r9; shl.b32 %r12, %r12, 12;
        or.b32 %r14, %r14, %r12;""".replace("cvta.shared.u64 %rd3, tile;",
        "cvt.u64.u32 %rd3, %r2; cvta.shared.u64 %rd3, %rd3;") + OUT,
        out,
        cluster=(2, 2),
    )  # fmt: skip
    assert out[:, 0].tolist() == [0x3230 | rank for rank in range(4)]


@pytest.mark.parametrize("seed", range(4))
def test_generic_and_atomic_accesses_reach_a_peer(clusters, seed):
    """§5.1.7, §9.7.13.5 atom.shared::cluster"""
    out = np.zeros((2, 32), np.uint32)
    body = (
        "@%p0 st.shared.u32 [%r2], 5;"
        + clusters.CLUSTER_SYNC
        + PEER
        + "atom.shared::cluster.add.u32 %r13, [%r9], 2;"
        + clusters.CLUSTER_SYNC
        + "cvt.u64.u32 %rd3, %r9; cvta.shared::cluster.u64 %rd3, %rd3; ld.u32 %r14, [%rd3];"
        + clusters.CLUSTER_SYNC
    )
    clusters.run(body + OUT, out, seed=seed)
    assert (out == 5 + 64).all()


def test_shared_cta_accesses_do_not_reach_a_peer(clusters):
    trap = clusters.trap_of(clusters.CLUSTER_SYNC + PEER + "st.shared.u32 [%r9], 7;")
    assert trap.category == "address-space"
    rank = trap.cta[0]
    assert trap.message == (
        f"0x{(1 - rank << 24) + 0x800:x} is in the shared memory of cluster rank {1 - rank};"
        f" .shared::cta reaches rank {rank}, the own CTA, only"
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "arrive",
    [
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];",
        "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r10], 1;",
        """mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r10], 64;
        mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r10], 64;
        mbarrier.arrive.shared::cluster.b64 _, [%r10];""",
        """mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r10], 48;
        mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r10], 48;""",
    ],
)
def test_remote_arrivals_complete_the_peers_phase(clusters, arrive, seed):
    """§9.7.13.15.13 mbarrier.arrive on .shared::cluster, expect_tx and complete_tx"""
    body = clusters.barriers(1) + PEER_BAR + "@!%p0 bra ON;" + arrive + "ON:" + clusters.wait()
    clusters.run(body + clusters.CLUSTER_SYNC, np.zeros(1, np.uint32), seed=seed)


def test_a_remote_arrival_returns_no_state(clusters):
    trap = clusters.trap_of("mbarrier.arrive.shared::cluster.b64 %rd2, [%r10];")
    assert trap.category == "unmodelled"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("vector", "size"), [("", 4), (".v2", 8), (".v4", 16)])
def test_st_async_writes_and_completes_a_transaction(clusters, vector, size, seed):
    """§9.7.9.13: the value and its mbarrier lie in the same CTA"""
    count = size // 4
    out = np.zeros((2, 32), np.uint32)
    names = ", ".join(f"%r{20 + i}" for i in range(count))
    values = names if count == 1 else f"{{{names}}}"
    moves = "".join(f"mad.lo.u32 %r{20 + i}, %r3, 100, {i + 1};" for i in range(count))
    body = (
        clusters.barriers(1)
        + PEER
        + PEER_BAR
        + moves
        + f"""
      @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {32 * size};
      shl.b32 %r11, %r0, {size.bit_length() - 1}; add.u32 %r12, %r9, %r11;
      st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{vector}.u32 [%r12], {values},
        [%r10];
    """
        + clusters.wait()
        + f"add.u32 %r12, %r2, %r11; ld.shared.u32 %r14, [%r12+{size - 4}];"
    )
    clusters.run(body + clusters.CLUSTER_SYNC + OUT, out, seed=seed)
    assert (out[0] == 100 + count).all() and (out[1] == count).all()


def test_red_async_adds_in_the_peer(clusters):
    """§9.7.13.7: relaxed, at cluster scope"""
    out = np.zeros((2, 32), np.uint32)
    body = (
        "@%p0 st.shared.u32 [%r2], 7;"
        + clusters.barriers(1)
        + PEER
        + PEER_BAR
        + """
      @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;
      red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r9], %r0,
        [%r10];
    """
        + clusters.wait()
        + "ld.shared.u32 %r14, [%r2];"
        + clusters.CLUSTER_SYNC
    )
    clusters.run(body + OUT, out)
    assert (out == 7 + 31 * 16).all()


LOCAL = {
    "ld": "ld.shared::cta.u32 %r13, [%r9]",
    "arrival": "mbarrier.arrive.shared::cta.b64 _, [%r10]",
    "copy": "cp.async.ca.shared::cta.global [%r9], [%rd0], 4",
}


@pytest.mark.parametrize("access", LOCAL.values(), ids=LOCAL)
def test_an_address_of_rank_0_in_another_cta_is_told_of(clusters, access):
    first = PEER.replace("xor.b32 %r8, %r3, 1", "mov.u32 %r8, 0") + FIRST_BAR
    made = "@%p0 mbarrier.init.shared::cta.b64 [%r1], 1; @%p0 st.shared.u32 [%r2], 5;"
    body = made + clusters.CLUSTER_SYNC + first + f"@%p0 {access}; cp.async.wait_all;"
    report = clusters.run(body + clusters.CLUSTER_SYNC, np.zeros((2, 32), np.uint32))
    (warning,) = report.warnings
    assert (warning.category, warning.count) == ("rank-of-address", 1)
    own = body.replace("%r8, 0;", "%r8, %r3;")
    assert not clusters.run(own + clusters.CLUSTER_SYNC, np.zeros((2, 32), np.uint32)).warnings


def test_an_asynchronous_store_signals_the_cta_it_writes(clusters):
    body = (
        clusters.barriers(1)
        + PEER
        + """
      st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9], %r0, [%r1];"""
    )
    trap = clusters.trap_of(body)
    rank = trap.cta[0]
    assert trap.message == (
        f"the mbarrier of st.async must lie in the CTA of the value, rank {1 - rank},"
        f" got rank {rank}"
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_bulk_copy_moves_shared_memory_to_a_peer(clusters, seed):
    """§9.7.9.25.4.1 cp.async.bulk.shared::cluster.shared::cta"""
    out = np.zeros((2, 32), np.uint32)
    body = (
        clusters.barriers(1)
        + PEER
        + PEER_BAR
        + """
      shl.b32 %r11, %r0, 2; add.u32 %r12, %r2, %r11; mad.lo.u32 %r13, %r3, 1000, %r0;
      st.shared.u32 [%r12], %r13; fence.proxy.async.shared::cta; bar.sync 0;
      add.u32 %r9, %r9, 512;
      @!%p0 bra ON;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;
      cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r9], [%r2], 128,
        [%r10];
    ON:"""
        + clusters.wait()
        + "ld.shared.u32 %r14, [%r12+512];"
        + clusters.CLUSTER_SYNC
    )
    clusters.run(body + OUT, out, seed=seed)
    assert (out[0] == 1000 + np.arange(32)).all() and (out[1] == np.arange(32)).all()


# -- exits -------------------------------------------------------------------------------------

LEAVE_RANK_1 = "setp.ne.u32 %p3, %r3, 0; @%p3 exit;"
SPIN = """mov.u32 %r20, 0;
SPIN: add.u32 %r20, %r20, 1; setp.lt.u32 %p4, %r20, 3000; @%p4 bra SPIN;
"""


@pytest.mark.parametrize(
    "access",
    [
        "st.shared::cluster.u32 [%r9], %r0;",
        "ld.shared::cluster.u32 %r14, [%r9];",
        "mbarrier.arrive.shared::cluster.b64 _, [%r10];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9], %r0, [%r10];",
    ],
)
def test_a_cta_that_has_exited_is_out_of_reach(clusters, access):
    """§5.1.7: shared memory lives as long as its CTA"""
    body = clusters.barriers(32) + PEER + PEER_BAR + LEAVE_RANK_1 + SPIN + access
    trap = clusters.trap_of(body)
    assert trap.category == "exited-cta"
    assert trap.message.endswith("has exited")


def test_a_cta_may_not_exit_while_a_copy_into_it_is_under_way(clusters):
    body = (
        clusters.barriers(1)
        + PEER
        + PEER_BAR
        + """
      @%p0 st.shared.v4.u32 [%r2], {%r0, %r0, %r0, %r0}; @%p0 fence.proxy.async.shared::cta;
      @%p2 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r9], [%r2], 16,
        [%r10];
      bar.sync 0;
    """
        + clusters.CLUSTER_SYNC
    )
    found = set()
    for seed in range(12):
        trap = clusters.trap_of(body, seed=seed)
        found.add(trap.category)
    assert found <= {"exited-cta", "barrier-protocol"} and "exited-cta" in found
