"""A CTA may exit only behind what other CTAs signal at its mbarriers, in every order of events."""

from __future__ import annotations

import pytest

from tilewright.runtime.emulator import Trap, launch

TEXT = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k()
{{ .reg .b32 %r<8>; .reg .pred %p<4>; .shared .align 8 .b64 bar;
  mov.u32 %r0, %tid.x; mov.u32 %r1, bar; mov.u32 %r2, %cluster_ctarank;
  setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r2, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r1], 32; fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  mapa.shared::cluster.u32 %r3, %r1, 0;
  @%p1 bra HOME; mbarrier.arrive.{order}.shared::cluster.b64 _, [%r3];
  {away} bra END;
HOME: {home}
END: ret; }}
"""
WAIT = "mbarrier.try_wait.parity.{}.cta.shared::cta.b64 %p2, [%r1], 0; @!%p2 bra HOME;"
BARRIER = "barrier.cluster.arrive.relaxed; barrier.cluster.wait;"


def run(seed: int, home: str, away: str = "", order: str = "release.cluster") -> None:
    launch(TEXT.format(home=home, away=away, order=order), "k", grid=2, block=32, cluster=2,
           seed=seed)  # fmt: skip


@pytest.mark.parametrize(
    ("home", "away", "order"),
    [
        (WAIT.format("acquire"), "", "release.cluster"),
        (WAIT.format("relaxed"), "", "relaxed.cluster"),
        (WAIT.format("acquire"), "", "release.cta"),
        (BARRIER, BARRIER, "release.cluster"),
    ],
)
def test_a_wait_or_a_cluster_barrier_keeps_it_there(home, away, order):
    for seed in range(6):
        run(seed, home, away, order)


def test_without_either_every_order_is_refused():
    for seed in range(8):
        with pytest.raises(Trap) as caught:
            run(seed, "")
        assert caught.value.category == "exited-cta"


COMMITS = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k()
{{ .reg .b32 %r<8>; .reg .b16 %mask; .reg .pred %p<4>; .shared .align 8 .b64 bars[2];
  mov.u32 %r0, %tid.x; mov.u32 %r1, bars; mov.u32 %r2, %cluster_ctarank; mov.b16 %mask, 1;
  setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r2, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r1], 1; @%p0 mbarrier.init.shared::cta.b64 [%r1+8], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  @%p1 bra HOME; @!%p0 bra END;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
    [%r1], %mask;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
    [%r1+8], %mask;
  bra END;
HOME: {waits}
END: barrier.cluster.arrive; barrier.cluster.wait; ret; }}
"""
FIRST = "FIRST: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0; @!%p2 bra FIRST;"
SECOND = "SECOND: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1+8], 0; @!%p2 bra SECOND;"


@pytest.mark.parametrize("waits", [FIRST + SECOND, SECOND + FIRST])
def test_having_waited_for_each_commit_of_a_peer_is_enough(waits):
    for seed in range(4):
        launch(COMMITS.format(waits=waits), "k", grid=2, block=32, cluster=2, seed=seed)


@pytest.mark.parametrize(("waits", "told"), [(SECOND, True), (FIRST, False), ("", False)])
def test_where_libraries_go_by_the_order_of_commits_the_last_one_is_enough(waits, told):
    """DeepGEMM's kernels for pairs wait for the last commit of their accumulators."""
    for seed in range(12):
        try:
            report = launch(COMMITS.format(waits=waits), "k", grid=2, block=32, cluster=2,
                            seed=seed, check="shipped")  # fmt: skip
        except Trap as trap:
            assert trap.category == "exited-cta" and not told
        else:
            categories = {warning.category for warning in report.warnings}
            assert told and categories - {"empty-commit"} == {"unawaited-commit"}


@pytest.mark.parametrize("waits", [FIRST, SECOND, ""])
def test_no_commit_of_a_peer_is_ordered_by_another_or_by_a_cluster_barrier(waits):
    """The issuing thread comes to the cluster barrier, its commits' arrivals come when they can."""
    for seed in range(8):
        with pytest.raises(Trap) as caught:
            launch(COMMITS.format(waits=waits), "k", grid=2, block=32, cluster=2, seed=seed)
        assert caught.value.category == "exited-cta"


MEMORY = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k()
{{ .reg .b32 %r<8>; .reg .b64 %rd<2>; .reg .pred %p<2>; .shared .align 8 .b8 tile[128];
  mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r3, tile; add.u32 %r1, %r1, %r3;
  mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r2, 0; st.shared.b32 [%r1], %r0;
  {before}
  mapa.shared::cluster.u32 %r4, %r1, 0; cvt.u64.u32 %rd0, %r4; cvta.shared::cluster.u64 %rd0, %rd0;
  @%p1 bra END;
  {access}
END: {behind} ret; }}
"""
ALIGNED = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
ACCESSES = {
    "load": "ld.shared::cluster.b32 %r5, [%r4];",
    "store": "st.shared::cluster.b32 [%r4], 7;",
    "atomic": "atom.shared::cluster.add.u32 %r5, [%r4], 1;",
    "reduction": "red.shared::cluster.add.u32 [%r4], 1;",
    "generic load": "ld.b32 %r5, [%rd0];",
}


def reach(seed: int, access: str, before: str = ALIGNED, behind: str = ALIGNED) -> None:
    text = MEMORY.format(access=ACCESSES[access], before=before, behind=behind)
    launch(text, "k", grid=2, block=32, cluster=2, seed=seed)


@pytest.mark.parametrize("behind", [ALIGNED, "fence.acq_rel.cluster;" + BARRIER])
@pytest.mark.parametrize("access", ACCESSES)
def test_a_peer_may_reach_for_memory_between_two_cluster_barriers(access, behind):
    for seed in range(3):
        reach(seed, access, behind=behind)


@pytest.mark.parametrize("access", ACCESSES)
def test_a_cta_may_not_exit_while_a_peer_may_still_reach_for_its_memory(access):
    """In every order: where the access came first, the exit is named."""
    named = set()
    for seed in range(8):
        with pytest.raises(Trap) as caught:
            reach(seed, access, behind="")
        assert caught.value.category == "exited-cta"
        named.add(caught.value.text.split()[0])
    assert "ret" in named


@pytest.mark.parametrize("behind", [BARRIER, "fence.acq_rel.cta;" + BARRIER])
@pytest.mark.parametrize("access", ACCESSES)
def test_a_relaxed_arrival_does_not_say_that_accesses_are_over(access, behind):
    """PTX ISA §9.7.13.3: it gives no guarantee of the memory accesses before it"""
    for seed in range(4):
        with pytest.raises(Trap, match="only a relaxed arrival orders that behind") as caught:
            reach(seed, access, behind=behind)
        assert caught.value.category == "exited-cta"


@pytest.mark.parametrize("access", ACCESSES)
def test_a_peers_memory_is_reached_for_behind_its_start(access):
    for seed in range(4):
        with pytest.raises(Trap, match="not ordered behind the start of cta") as caught:
            reach(seed, access, before="")
        assert caught.value.category == "race"
