"""barrier.cluster (PTX ISA §9.7.13.3): who is waited for, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Deadlock

SHAPES = [(2, 1), (2, 2), (4, 1), (1, 2), (4, 4), (1, 1, 2)]
REMOTE_SUM = """
  add.u32 %r8, %r3, 1; mov.u32 %r9, %cluster_nctarank; rem.u32 %r8, %r8, %r9;
  mov.u32 %r10, tile; shl.b32 %r11, %r0, 2; add.u32 %r10, %r10, %r11;
  mapa.shared::cluster.u32 %r12, %r10, %r8;
  shl.b32 %r13, %r3, 8; add.u32 %r13, %r13, %r0;
  st.shared::cluster.u32 [%r12], %r13;
"""
STORE = """
  ld.shared.u32 %r14, [%r10];
  mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z; mov.u32 %r15, %nctaid.x;
  mov.u32 %r16, %nctaid.y; mad.lo.u32 %r5, %r6, %r16, %r5; mad.lo.u32 %r4, %r5, %r15, %r4;
  mov.u32 %r17, %ntid.x; mad.lo.u32 %r4, %r4, %r17, %r0; mul.wide.u32 %rd2, %r4, 4;
  add.s64 %rd2, %rd0, %rd2; st.global.u32 [%rd2], %r14;
"""


@pytest.mark.pairwise
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cluster", SHAPES)
@pytest.mark.parametrize(
    "pair",
    [
        ("barrier.cluster.arrive;", "barrier.cluster.wait;"),
        ("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"),
        ("barrier.cluster.arrive.release.aligned;", "barrier.cluster.wait.acquire.aligned;"),
        ("barrier.cluster.arrive.release;", "barrier.cluster.wait.acquire;"),
    ],
)
def test_every_thread_of_the_cluster_is_waited_for(clusters, cluster, pair, seed):
    """Each CTA writes into the next one's shared memory, §5.1.7"""
    ctas = int(np.prod(cluster))
    out = np.full((ctas, 96), 0xBAD, np.uint32)
    sync = " ".join(pair)
    body = sync + REMOTE_SUM + sync + STORE
    clusters.run(body, out, cluster=cluster, block=96, seed=seed)
    for rank in range(ctas):
        assert (out[rank] == ((rank - 1) % ctas << 8) + np.arange(96)).all()


def test_a_relaxed_arrive_completes_the_phase_too(clusters):
    out = np.full((2, 32), 0xBAD, np.uint32)
    relaxed = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"
    clusters.run(relaxed + REMOTE_SUM + clusters.CLUSTER_SYNC + STORE, out)
    assert (out[0] == 256 + np.arange(32)).all()


@pytest.mark.parametrize("seed", range(4))
def test_exited_threads_are_not_waited_for(clusters, seed):
    body = "@%p1 exit;" + clusters.CLUSTER_SYNC * 3
    clusters.run(body, np.zeros(1, np.uint32), block=96, seed=seed)


@pytest.mark.parametrize("seed", range(12))
def test_a_thread_that_arrives_and_exits_stands_in_for_nobody(clusters, seed):
    """Warp 0 of each CTA arrives and exits; the store of warp 1 still comes before its arrival"""
    out = np.full((2, 64), 0xBAD, np.uint32)
    body = (
        clusters.CLUSTER_SYNC
        + "barrier.cluster.arrive; @%p1 exit;\n"
        + "mov.u32 %r20, 0;\nSPIN: add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 300;"
        + "@%p3 bra SPIN;\n barrier.cluster.wait;"
        + REMOTE_SUM
        + clusters.CLUSTER_SYNC
        + STORE
    )
    clusters.run(body, out, block=64, seed=seed)
    assert (out[0, 32:] == 256 + np.arange(32, 64)).all()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "barrier.cluster.arrive; barrier.cluster.arrive;",
            "barrier.cluster.arrive must be followed by barrier.cluster.wait before the next"
            " arrive",
        ),
        ("barrier.cluster.wait;", "barrier.cluster.wait without barrier.cluster.arrive"),
    ],
)
def test_arrive_and_wait_alternate(clusters, body, message):
    trap = clusters.trap_of(body)
    assert (trap.category, trap.message) == ("protocol", message)


def test_a_cluster_barrier_that_one_cta_skips_is_a_deadlock(clusters):
    """§9.7.13.3: the other CTA's threads wait elsewhere, alive"""
    body = (
        clusters.barriers(1)
        + """
      setp.ne.u32 %p3, %r3, 0; @%p3 bra OTHER;
    """
        + clusters.CLUSTER_SYNC
        + "ret;\nOTHER:\n"
        + clusters.wait()
    )
    trap = clusters.trap_of(body)
    assert isinstance(trap, Deadlock)
    assert "cluster barrier with 32 of 64 threads arrived" in str(trap)


def test_an_aligned_arrive_of_half_a_warp_is_refused(clusters):
    trap = clusters.trap_of("setp.lt.u32 %p3, %r0, 16; @%p3 barrier.cluster.arrive.aligned;")
    assert trap.category == "convergence"
