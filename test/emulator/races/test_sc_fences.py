"""fence.sc orders what it must: where a read behind one came before a write ahead of the other.

PTX ISA §8.9: the order of fence.sc is one of each run, and fences that come first synchronize with
later ones. A kernel may rely on it only as far as the values that it reads tell of it.
"""

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

SEEDS = range(24)
HEADER = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 turn, .param .u64 out)
{ .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<4>;
  ld.param.u64 %rd0, [data]; ld.param.u64 %rd1, [turn]; ld.param.u64 %rd2, [out];
  mov.u32 %r0, %ctaid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra OTHER;
"""
WRITER = """st.global.b32 [%rd0], 41; {fence} ld.relaxed.gpu.global.b32 %r1, [%rd1];
  setp.ne.u32 %p1, %r1, 0; @%p1 bra END; st.relaxed.gpu.global.b32 [%rd1+32], 1; bra END;"""
"""It tells that it was first, by a flag without release."""
READER = """OTHER: st.relaxed.gpu.global.b32 [%rd1], 1; {fence}
  ld.relaxed.gpu.global.b32 %r1, [%rd1+32]; setp.eq.u32 %p1, %r1, 0; @%p1 bra END;
  ld.global.b32 %r2, [%rd0]; st.global.b32 [%rd2], %r2;"""


def outcomes(writer: str, reader: str, cluster: int = 1) -> list[int | str]:
    """What the reader read, 0 for nothing, or the verdict, of every seed."""
    found = []
    for seed in SEEDS:
        params = [np.zeros(8, np.uint32), np.zeros(16, np.uint32), np.zeros(8, np.uint32)]
        text = HEADER + WRITER.format(fence=writer) + READER.format(fence=reader) + "END: ret; }"
        try:
            launch(text, "k", grid=2, block=1, cluster=cluster, params=params, seed=seed)
            found.append(int(params[2][0]))
        except Trap as trap:
            assert trap.category == "race"
            found.append("race")
    return found


@pytest.mark.parametrize("fence", ["fence.sc.gpu;", "fence.sc.sys;", "membar.gl;"])
def test_who_was_first_by_what_was_read_is_ordered_before(fence):
    found = outcomes(fence, fence)
    assert set(found) == {0, 41}


def test_a_cluster_is_reached_by_its_scope():
    assert set(outcomes("fence.sc.cluster;", "fence.sc.cluster;", cluster=2)) == {0, 41}


@pytest.mark.parametrize("writer, reader", [
    ("fence.acq_rel.gpu;", "fence.sc.gpu;"),
    ("fence.sc.gpu;", "fence.acq_rel.gpu;"),
    ("fence.sc.cta;", "fence.sc.gpu;"),
    ("fence.sc.gpu;", "fence.sc.cluster;"),
])  # fmt: skip
def test_weaker_or_narrower_fences_order_nothing(writer, reader):
    found = outcomes(writer, reader)
    assert "race" in found and 41 not in found


def test_two_fences_alone_are_in_no_order_that_a_kernel_can_know():
    """Whichever comes first in a run, it might have been the other."""
    body = "st.global.b32 [%rd0], 41; fence.sc.gpu; bra END; OTHER: fence.sc.gpu;"
    for seed in SEEDS:
        params = [np.zeros(8, np.uint32), np.zeros(16, np.uint32), np.zeros(8, np.uint32)]
        text = HEADER + body + "ld.global.b32 %r2, [%rd0]; END: ret; }"
        with pytest.raises(Trap, match="race"):
            launch(text, "k", grid=2, block=1, params=params, seed=seed)


TICKETS = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 turn, .param .u64 out)
{{ .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<4>; .shared .b32 last;
  ld.param.u64 %rd0, [data]; ld.param.u64 %rd1, [turn]; ld.param.u64 %rd2, [out];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mad.lo.u32 %r2, %r0, 64, %r1;
  mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd3, %rd0; st.global.b32 [%rd3], 41;
  {writers} bar.sync 0; setp.ne.u32 %p0, %r1, {who}; @%p0 bra MEET;
  {draw} {behind}
  setp.eq.u32 %p1, %r3, 1; selp.b32 %r3, 1, 0, %p1; st.shared.b32 [last], %r3;
MEET: bar.sync 0; ld.shared.b32 %r3, [last]; setp.eq.u32 %p1, %r3, 0; @%p1 bra END; {readers}
  mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %rd4, %rd0; add.u64 %rd4, %rd4, %rd2;
  ld.global.b32 %r4, [%rd5]; ld.global.b32 %r5, [%rd5+256];
  add.u32 %r4, %r4, %r5; st.global.b32 [%rd4], %r4;
END: ret; }}"""
"""Every thread writes; the CTA that draws the last ticket reads what all wrote."""
DRAW = "atom.relaxed.gpu.global.add.u32 %r3, [%rd1], 1;"
FLAG = """mov.u32 %r3, 0; setp.ne.u32 %p2, %r0, 0; @!%p2 st.relaxed.gpu.global.b32 [%rd1], 1;
POLL: @%p2 ld.relaxed.gpu.global.b32 %r3, [%rd1]; setp.ne.u32 %p1, %r3, %r0; @%p1 bra POLL;"""


def tickets(
    writers: str, readers: str, who: int, behind: str = "", draw: str = DRAW
) -> set[int | str]:
    found = set()
    for seed in range(4):
        params = [np.zeros(128, np.uint32), np.zeros(1, np.uint32), np.zeros(64, np.uint32)]
        text = TICKETS.format(writers=writers, readers=readers, who=who, behind=behind, draw=draw)
        try:
            launch(text, "k", grid=2, block=64, params=params, seed=seed)
            found.update(params[2].tolist())
        except Trap as trap:
            found.add(trap.category)
    return found


@pytest.mark.parametrize("who", [0, 33])
def test_a_thread_that_draws_a_ticket_behind_a_barrier_tells_of_the_fences_of_all(who):
    """Were the reader's fence first, its ticket would come before the one that it has seen."""
    assert tickets("fence.sc.gpu;", "membar.gl;", who) == {82}
    assert tickets("fence.sc.gpu;", "", who, behind="fence.sc.gpu;") == {82}
    assert tickets("fence.sc.gpu;", "fence.sc.gpu;", who, draw=FLAG) == {82}


@pytest.mark.parametrize("writers, readers", [
    ("fence.sc.gpu;", ""),
    ("", "fence.sc.gpu;"),
    ("fence.sc.gpu;", "fence.acq_rel.gpu;"),
    ("fence.acq_rel.gpu;", "fence.sc.gpu;"),
    ("fence.sc.cta;", "fence.sc.gpu;"),
    ("fence.sc.gpu;", "fence.sc.cta;"),
])  # fmt: skip
def test_a_ticket_tells_nothing_without_two_fences_that_reach(writers, readers):
    assert tickets(writers, readers, 33) == {"race"}
