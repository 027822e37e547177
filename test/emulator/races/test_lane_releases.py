"""A release by some lanes of a warp covers what they did, and what came before they met the others.

PTX ISA §8.9.5: causality order is one of threads; `bar.warp.sync` orders those of a warp.
"""

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

SEEDS = range(4)
HEADER = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flag)
{ .reg .b32 %r<8>; .reg .b64 %rd<6>; .reg .pred %p<4>;
  .shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 full;
  ld.param.u64 %rd0, [data]; ld.param.u64 %rd1, [flag];
  mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; mov.u32 %r2, tile; mov.u32 %r3, full;
  shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4; cvt.u64.u32 %rd2, %r4; add.s64 %rd3, %rd0, %rd2;
  setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r1, 0; setp.ge.u32 %p2, %r0, 32; add.u32 %r6, %r0, 7;
"""
WAIT = "W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0; @!%p3 bra W;"
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%r3];"
POLL = "G: ld.acquire.gpu.global.b32 %r7, [%rd1]; setp.eq.u32 %p3, %r7, 0; @%p3 bra G;"

SHARED = """  @%p0 mbarrier.init.shared::cta.b64 [%r3], {count}; bar.sync 0; @%p2 bra OTHER;
  {writes}
  bra END;
OTHER: {reads}
END: ret; }}"""
"""Two warps, one of which hands something to the other."""
GLOBAL = """  mov.u32 %r7, %ctaid.x; setp.ne.u32 %p3, %r7, 0; @%p3 bra OTHER;
  {writes}
  bra END;
OTHER: {reads}
END: ret; }}"""
"""Two CTAs of one warp."""


def in_shared(writes: str, reads: str, count: int = 1) -> None:
    text = HEADER + SHARED.format(writes=writes, reads=reads, count=count)
    run(text, grid=1, block=64)


def in_global(writes: str, reads: str) -> None:
    run(HEADER + GLOBAL.format(writes=writes, reads=reads), grid=2, block=32)


def run(text: str, grid: int, block: int) -> None:
    for seed in SEEDS:
        params = [np.zeros(256, np.uint32), np.zeros(32, np.uint32)]
        launch(text, "k", grid=grid, block=block, params=params, seed=seed)


def refused(run, *args) -> str:
    """What is said in every order of events."""
    with pytest.raises(Trap) as caught:
        run(*args)
    assert caught.value.category == "race"
    return caught.value.message


STORE, LOAD = "st.shared.b32 [%r5], %r6;", WAIT + "ld.shared.b32 %r7, [%r5];"
MEET = "bar.warp.sync -1;"


def test_an_arrival_of_one_lane_does_not_cover_the_writes_of_the_others():
    says = refused(in_shared, STORE + "@%p1 " + ARRIVE, LOAD)
    assert "another lane of that warp has released since" in says


@pytest.mark.parametrize("before", [
    STORE + MEET + "@%p1 " + ARRIVE,
    STORE + "fence.acq_rel.cta;" + MEET + "@%p1 " + ARRIVE,
    "@%p1 st.shared.v4.b32 [%r2], {%r6, %r6, %r6, %r6}; @%p1 " + ARRIVE,
    "@%p1 bar.warp.sync 1;" + STORE + MEET + "@%p1 " + ARRIVE,
])  # fmt: skip
def test_it_covers_what_came_before_they_met_and_its_own(before):
    reads = LOAD if "[%r5]" in before else WAIT + "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2];"
    in_shared(before, reads)


def test_its_own_part_of_what_all_lanes_wrote_is_covered():
    in_shared(STORE + "@%p1 " + ARRIVE, WAIT + "@%p1 ld.shared.b32 %r7, [%r5];")


def test_an_arrival_of_every_lane_covers_them_all():
    in_shared(STORE + ARRIVE, LOAD, 32)


def test_lanes_that_arrive_one_after_the_other_cover_them_all():
    odd = "and.b32 %r7, %r1, 1; setp.eq.u32 %p3, %r7, 0; @%p3 " + ARRIVE + "@!%p3 " + ARRIVE
    in_shared(STORE + odd, LOAD, 32)


@pytest.mark.parametrize("load", [
    "ld.shared.b32 %r7, [%r5];",
    "shl.b32 %r7, %r1, 4; add.u32 %r7, %r2, %r7;"
    " ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r7];",
])  # fmt: skip
def test_nor_are_the_reads_of_others_over_when_one_lane_says_so(load):
    fill = "st.shared.v4.b32 [%r2+{}], {{%r7, %r7, %r7, %r7}};"
    start = "mov.b32 %r7, 5;" + " ".join(fill.format(at) for at in range(0, 512, 16)) + MEET
    writes = WAIT + "mov.b32 %r7, 6; st.shared.v4.b32 [%r2+64], {%r7, %r7, %r7, %r7};"
    refused(in_shared, start + load + "@%p1 " + ARRIVE, writes)
    in_shared(start + load + MEET + "@%p1 " + ARRIVE, writes)


def test_a_wait_for_something_else_does_not_make_lanes_meet():
    """Only who arrives tells others what it did."""
    refused(in_shared, STORE + "@%p1 " + ARRIVE + WAIT + FLAG, POLL + "ld.shared.b32 %r7, [%r5];")


ST, LD = "st.global.b32 [%rd3], %r6;", "ld.global.b32 %r7, [%rd3];"
FLAG = "@%p1 st.release.gpu.global.b32 [%rd1], 1;"
ADD = "@%p1 red.relaxed.gpu.global.add.u32 [%rd1], 1;"
FENCE = "fence.acq_rel.gpu;"
ATOMIC = "@%p1 atom.add.release.gpu.global.u32 %r7, [%rd1], 1;"


@pytest.mark.parametrize("release", [
    FLAG, ATOMIC, "@%p1 " + FENCE + ADD, FENCE + ADD, FENCE + MEET + ADD,
    "@%p1 " + FENCE + MEET + ADD,
])  # fmt: skip
def test_a_release_of_one_lane_in_global_memory_covers_it_alone(release):
    """Where every lane has its own fence, it covers what that lane did, and the place is written
    by one; a fence ahead of the barrier covers nothing of others either."""
    refused(in_global, ST + release, POLL + LD)


@pytest.mark.parametrize("release", [
    MEET + FLAG, MEET + ATOMIC, MEET + FENCE + ADD, MEET + "@%p1 " + FENCE + ADD,
    "bar.sync 0;" + FENCE + ADD,
])  # fmt: skip
def test_behind_a_barrier_it_covers_the_others(release):
    in_global(ST + release, POLL + LD)


def test_reads_of_other_lanes_are_not_over_either():
    refused(in_global, LD + FLAG, POLL + ST)
    in_global(LD + MEET + FLAG, POLL + ST)


def test_every_lane_may_have_a_flag_of_its_own():
    flags = "add.s64 %rd4, %rd1, %rd2; "
    poll = flags + POLL.replace("[%rd1]", "[%rd4]")
    in_global(ST + flags + "st.release.gpu.global.b32 [%rd4], 1;", poll + LD)


def test_the_flag_of_a_lane_covers_that_lane_alone():
    flags = "add.s64 %rd4, %rd1, %rd2; "
    refused(in_global, ST + flags + "st.release.gpu.global.b32 [%rd4], 1;", POLL + LD)


def test_a_lane_learns_from_another_through_memory():
    wait = POLL.replace("acquire.gpu", "acquire.cta")
    body = "st.shared.b32 [%r5], %r6; @%p1 st.release.cta.global.b32 [%rd1], 1;" + wait
    run(HEADER + body + "ld.shared.b32 %r7, [%r2]; ret; }", grid=1, block=32)


def test_a_copy_of_one_lane_reads_what_others_wrote_behind_a_barrier_alone():
    fence = "fence.proxy.async.shared::cta;"
    copy = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r2], 128; @%p1"
    copy += " cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0; ret; }"
    run(HEADER + STORE + fence + MEET + copy, grid=1, block=32)
    text = HEADER + STORE + fence + copy
    assert "lane" in refused(run, text, 1, 32)


def test_a_barrier_of_some_lanes_orders_those():
    some = "setp.lt.u32 %p3, %r1, 2; {} @%p3 bar.warp.sync 3; @%p1 " + ARRIVE
    reads = WAIT + "and.b32 %r7, %r1, 1; shl.b32 %r7, %r7, 2; add.u32 %r7, %r7, %r2;"
    reads += "ld.shared.b32 %r7, [%r7];"
    in_shared(some.format("@%p3 " + STORE), reads)
    refused(in_shared, some.format(STORE), LOAD)


ALIGNED = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k()
{{ .reg .b32 %r<8>; .reg .b64 %desc; .reg .f32 %f<4>; .reg .pred %p<4>;
  .shared .align 1024 .b8 tile[2048]; .shared .align 16 .b8 words[128]; .shared .align 8 .b64 free;
  mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; mov.u32 %r2, words; mov.u32 %r3, free;
  shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4; mov.u32 %r6, tile;
  setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r1, 0; setp.ge.u32 %p2, %r0, 128;
  @%p0 mbarrier.init.shared::cta.b64 [%r3], 4;
  shr.u32 %r7, %r6, 4; cvt.u64.u32 %desc, %r7; add.s64 %desc, %desc, 0x0000001000080000;
  mad.lo.u32 %r6, %r0, 16, %r6; mov.b32 %r7, 0;
  @!%p2 st.shared.v4.b32 [%r6], {{%r7, %r7, %r7, %r7}}; @%p2 st.shared.b32 [%r5], %r0;
  mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
  fence.proxy.async.shared::cta; bar.sync 0; @%p2 bra OTHER;
  ld.shared.b32 %r7, [%r5];
  {products}
  @%p1 mbarrier.arrive.shared::cta.b64 _, [%r3]; bra END;
OTHER: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0; @!%p3 bra OTHER;
  st.shared.b32 [%r5], %r0;
END: ret; }}
"""
PRODUCTS = """wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %desc, %desc,
    1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"""


def test_a_wait_for_products_of_all_lanes_orders_no_reads():
    """DeepGEMM reads scale factors, waits for its products and releases the slot by one lane."""
    text = ALIGNED.format(products=PRODUCTS)
    for seed in SEEDS:
        with pytest.raises(Trap) as caught:
            launch(text, "k", grid=1, block=160, seed=seed)
        assert "another lane of that warp has released since" in caught.value.message
        report = launch(text, "k", grid=1, block=160, seed=seed, check="shipped")
        told = {warning.category for warning in report.warnings}
        assert told == {"lane-release", "unused-load"}, "the factors are only read"
        with pytest.raises(Trap):
            bare = ALIGNED.format(products="")
            launch(bare, "k", grid=1, block=160, seed=seed, check="shipped")
    met = ALIGNED.format(products=PRODUCTS + "bar.warp.sync -1;")
    told = {warning.category for warning in launch(met, "k", grid=1, block=160).warnings}
    assert told == {"unused-load"}


@pytest.mark.parametrize("check", ["full", "shipped"])
def test_one_warp_that_has_waited_for_products_releases_no_reads_of_the_others(check):
    text = ALIGNED.format(products=PRODUCTS).replace("[%r3], 4;", "[%r3], 1;")
    text = text.replace("@%p1 mbarrier.arrive", "@%p0 mbarrier.arrive")
    for seed in SEEDS:
        with pytest.raises(Trap) as caught:
            launch(text, "k", grid=1, block=160, seed=seed, check=check)
        assert caught.value.category == "race"
