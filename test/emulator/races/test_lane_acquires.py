"""What one lane of a warp acquires the others know behind a barrier of the warp, and not before.

PTX ISA §8.9.5: causality order is one of threads. A wait for an mbarrier, an acquire, and a wait
for own copies order what follows in the thread that executes them.
"""

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

SEEDS = range(4)
HEADER = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flag, .param .u64 more)
{ .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<6>;
  .shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 full;
  ld.param.u64 %rd0, [data]; ld.param.u64 %rd1, [flag]; ld.param.u64 %rd5, [more];
  mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; mov.u32 %r2, tile; mov.u32 %r3, full;
  shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4; cvt.u64.u32 %rd2, %r4; add.s64 %rd3, %rd0, %rd2;
  add.s64 %rd6, %rd1, %rd2; setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r1, 0;
  setp.ge.u32 %p2, %r0, 32; add.u32 %r6, %r0, 7; mov.u32 %r9, %ctaid.x; setp.ne.u32 %p4, %r9, 0;
  shl.b32 %r8, %r1, 4; cvt.u64.u32 %rd4, %r8; add.u32 %r8, %r8, %r2; add.s64 %rd4, %rd4, %rd5;
  mov.b32 %r7, 0; @!%p2 st.shared.v4.b32 [%r8], {%r7, %r7, %r7, %r7};
  @!%p2 st.shared.v4.b32 [%r8+512], {%r7, %r7, %r7, %r7}; bar.sync 0;
"""
MEET, LOAD = "bar.warp.sync -1;", "ld.shared.b32 %r7, [%r5];"
WAIT = "W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0; @!%p3 bra W;"
ONE_WAITS = "@!%p1 bra ALL;" + WAIT + "ALL:"
"""Lane 0 waits; the other lanes go on."""
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%r3];"
POLL = "G: ld.acquire.gpu.global.b32 %r7, [%rd1]; setp.eq.u32 %p3, %r7, 0; @%p3 bra G;"
ONE_POLLS = "@!%p1 bra ALL;" + POLL + "ALL:"
READ = "ld.global.b32 %r7, [%rd3];"
COPIED = (
    "cp.async.ca.shared.global [%r8], [%rd4], 16; cp.async.commit_group; cp.async.wait_group 0;"
)
WIDE = "ld.shared.v4.b32 {%r4, %r6, %r7, %r10}, [%r8];"


def run(body: str, grid: int = 1, block: int = 64) -> None:
    for seed in SEEDS:
        params = [
            np.zeros(256, np.uint32),
            np.zeros(64, np.uint32),
            np.arange(256, dtype=np.uint32),
        ]
        launch(HEADER + body + "ret; }", "k", grid=grid, block=block, params=params, seed=seed)


def two_warps(writes: str, reads: str, count: int = 32) -> str:
    """Warp 0 hands something to warp 1."""
    init = f"@%p0 mbarrier.init.shared::cta.b64 [%r3], {count}; bar.sync 0; @%p2 bra OTHER;"
    return init + writes + "bra END; OTHER: " + reads + " END: "


def two_ctas(writes: str, reads: str) -> str:
    return "@%p4 bra OTHER;" + writes + "bra END; OTHER: " + reads + " END: "


def refused(body: str, category: str = "race", **launched: int) -> str:
    """What is said in every order of events."""
    found = set()
    for seed in SEEDS:
        params = [
            np.zeros(256, np.uint32),
            np.zeros(64, np.uint32),
            np.arange(256, dtype=np.uint32),
        ]
        with pytest.raises(Trap) as caught:
            launch(HEADER + body + "ret; }", "k", params=params, seed=seed, **launched)
        assert caught.value.category == category
        found.add(caught.value.message)
    return found.pop()


HANDED = "st.shared.b32 [%r5], %r6;" + ARRIVE


def test_what_one_lane_waited_for_the_others_do_not_know():
    says = refused(two_warps(HANDED, ONE_WAITS + LOAD), grid=1, block=64)
    assert "another lane of this warp has waited for that" in says


@pytest.mark.parametrize("no_order", [
    "shfl.sync.idx.b32 %r7, %r6, 0, 31, -1;",
    "vote.sync.all.pred %p3, %p2, -1;",
    "activemask.b32 %r7;",
    "fence.acq_rel.cta;",
])  # fmt: skip
def test_what_does_not_order_lanes_passes_nothing_on(no_order):
    refused(two_warps(HANDED, ONE_WAITS + no_order + LOAD), grid=1, block=64)


@pytest.mark.parametrize("reads", [
    WAIT + LOAD,
    ONE_WAITS + MEET + LOAD,
    ONE_WAITS + "bar.sync 1, 32;" + LOAD,
    ONE_WAITS + "@%p1 " + LOAD,
    "setp.lt.u32 %p3, %r1, 16; @%p3 bra LOW; V: mbarrier.try_wait.parity.shared::cta.b64 %p3,"
    " [%r3], 0; @!%p3 bra V; bra ALL; LOW: " + WAIT + "ALL:" + LOAD,
    "setp.gt.u32 %p5, %r1, 1; @!%p1 bra ALL;" + WAIT + "ALL: @!%p5 bar.warp.sync 3; @%p5 bra END;"
    + LOAD,
])  # fmt: skip
def test_who_waited_or_met_who_did_knows(reads):
    run(two_warps(HANDED, reads))


def test_lanes_may_meet_later_and_many_times():
    again = "@%p1 ld.shared.b32 %r7, [%r2]; @%p1 " + LOAD
    run(two_warps(HANDED, ONE_WAITS + again + MEET + LOAD + "bar.warp.sync -1;" + LOAD))


@pytest.mark.parametrize("read", [
    "shl.b32 %r7, %r1, 4; and.b32 %r7, %r7, 127; add.u32 %r7, %r2, %r7;"
    " ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r7];",
    "ld.shared.b32 %r7, [%r2];",
])  # fmt: skip
def test_reads_that_lanes_do_together_need_all_of_them(read):
    refused(two_warps(HANDED, ONE_WAITS + read), grid=1, block=64)
    run(two_warps(HANDED, ONE_WAITS + MEET + read))


def test_nor_may_others_overwrite_what_one_lane_knows_to_be_read():
    fill = "st.shared.b32 [%r5], %r6;" + MEET + LOAD + ARRIVE
    store = "add.u32 %r6, %r6, 5; st.shared.b32 [%r5], %r6;"
    refused(two_warps(fill, ONE_WAITS + store), grid=1, block=64)
    run(two_warps(fill, ONE_WAITS + MEET + store))


def test_what_one_lane_knows_it_passes_on_alone():
    """Warp 1 relays to CTA 1's warp by a flag of one lane, behind the wait of the same or another
    lane."""
    flag = " st.release.gpu.global.b32 [%rd1], 1;"
    data = "st.global.b32 [%rd3], %r6;" + ARRIVE
    relay = "@%p4 bra FAR;" + two_warps(data, ONE_WAITS + "{}" + flag)
    far = "bra OVER; FAR: @%p2 bra OVER;" + POLL + READ + "OVER: "
    run(relay.format("@%p1") + far, grid=2)
    other = "setp.eq.u32 %p3, %r1, 1; @%p3"
    refused(relay.format(other) + far, grid=2, block=64)
    run(relay.format(MEET + other) + far, grid=2)


# -- acquires of places in memory --------------------------------------------------------------

FLAGGED = "st.global.b32 [%rd3], %r6;" + MEET + "@%p1 st.release.gpu.global.b32 [%rd1], 1;"


def test_an_acquire_by_one_lane_orders_that_lane():
    refused(two_ctas(FLAGGED, ONE_POLLS + READ), grid=2, block=32)
    run(two_ctas(FLAGGED, ONE_POLLS + "@%p1 " + READ), grid=2, block=32)
    run(two_ctas(FLAGGED, ONE_POLLS + MEET + READ), grid=2, block=32)
    run(two_ctas(FLAGGED, POLL + READ), grid=2, block=32)


def test_a_fence_makes_an_acquire_of_the_lane_that_read():
    relaxed = ONE_POLLS.replace("acquire", "relaxed")
    refused(two_ctas(FLAGGED, relaxed + "fence.acq_rel.gpu;" + READ), grid=2, block=32)
    refused(two_ctas(FLAGGED, relaxed + "@!%p1 fence.acq_rel.gpu;" + MEET + READ), grid=2, block=32)
    run(two_ctas(FLAGGED, relaxed + "@%p1 fence.acq_rel.gpu;" + MEET + READ), grid=2, block=32)


def test_each_lane_acquires_what_its_own_place_passes_on():
    own = POLL.replace("[%rd1]", "[%rd6]")
    flags = "st.global.b32 [%rd3], %r6; st.release.gpu.global.b32 [%rd6], 1;"
    run(two_ctas(flags, own + READ), grid=2, block=32)
    neighbours = "xor.b64 %rd7, %rd3, 4; ld.global.b32 %r7, [%rd7];"
    refused(two_ctas(flags, own + neighbours), grid=2, block=32)
    run(two_ctas(flags, own + MEET + neighbours), grid=2, block=32)


def test_lanes_that_know_different_things_store_to_one_place():
    """They agree on the value, so that it does not matter who is last."""
    own = POLL.replace("[%rd1]", "[%rd6]")
    flags = "st.global.b32 [%rd3], %r6; st.release.gpu.global.b32 [%rd6], 1;"
    run(two_ctas(flags, own + "mov.b32 %r10, 9; st.global.b32 [%rd0+512], %r10;"), grid=2, block=32)


# -- initialisations of barriers, and waits for copies ---------------------------------------------


def test_another_lane_must_not_use_a_barrier_that_one_lane_has_just_made():
    start = "@%p2 bra END; @%p1 mbarrier.init.shared::cta.b64 [%r3], 32;"
    says = refused(start + ARRIVE + "END:", "missing-fence", grid=1, block=64)
    assert "mbarrier.init is not ordered before" in says
    run(start + MEET + ARRIVE + "END:")


def test_a_lane_reads_its_own_copies_when_it_has_waited():
    run(COPIED + WIDE, block=32)
    first = "@%p1 ld.shared.b32 %r7, [%r2+16];"
    refused(COPIED + first, grid=1, block=32)
    run(COPIED + MEET + first, block=32)


def test_one_lane_does_not_hand_over_the_copies_of_the_others():
    """All lanes have waited, each for its own copies; one arrives."""
    refused(two_warps(COPIED + "@%p1 " + ARRIVE, WAIT + WIDE, 1), grid=1, block=64)
    run(two_warps(COPIED + MEET + "@%p1 " + ARRIVE, WAIT + WIDE, 1))
    run(two_warps(COPIED + ARRIVE, WAIT + WIDE))


def test_lanes_that_fence_apart_hand_their_copies_over_when_they_have_met():
    """Half of the lanes copy; the others wait for nothing, and fence ahead of them."""
    half = "setp.ge.u32 %p5, %r1, 16; @%p5 bra PAST;" + COPIED.replace("cp.async.wait_group 0;", "")
    fences = "PAST: cp.async.wait_group 0; fence.proxy.async.shared::cta;"
    tell = MEET + "@%p1 " + ARRIVE
    store = WAIT + "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r2], 256;"
    store += "@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;"
    run(two_warps(half + fences + tell, store, 1))
    early = fences.replace("cp.async.wait_group 0; fence.proxy.async.shared::cta;", "")
    early += "fence.proxy.async.shared::cta; cp.async.wait_group 0;"
    refused(two_warps(half + early + tell, store, 1), "proxy-fence", grid=1, block=64)


ISSUED = "cp.async.ca.shared.global [%r8], [%rd4], 16;"
NOINC = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r3];"


def test_an_arrival_of_copies_is_of_those_of_its_lane():
    run(two_warps(ISSUED + NOINC, WAIT + WIDE))
    refused(two_warps(ISSUED + "@%p1 " + NOINC, WAIT + WIDE, 1), grid=1, block=64)
    run(two_warps(ISSUED + "@%p1 " + NOINC, WAIT + "@%p1 " + WIDE, 1))


def test_a_bulk_store_is_over_for_the_lane_that_has_waited():
    fill = "st.shared.b32 [%r5], %r6; fence.proxy.async.shared::cta;" + MEET
    copy = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r2], 128;"
    copy += "@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;"
    refused(fill + copy + READ, grid=1, block=32)
    run(fill + copy + "@%p1 " + READ, block=32)
    run(fill + copy + MEET + READ, block=32)
