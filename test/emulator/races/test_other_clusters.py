"""What is passed on by way of other clusters, and what comes back from there (PTX ISA §8.9.3)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch
from tilewright.runtime.emulator.checks.races.clock import KNOWN, Domain, Message

HEADER = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 turn, .param .u64 out)
{ .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<4>;
  ld.param.u64 %rd0, [data]; ld.param.u64 %rd1, [turn]; ld.param.u64 %rd2, [out];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; and.b32 %r4, %r1, 31; shr.u32 %r1, %r1, 5;
  setp.ne.u32 %p3, %r4, 0; setp.ne.u32 %p0, %r1, 0; setp.eq.u32 %p2, %r0, 2;
"""
"""r0: the CTA, r1: the warp, p3: any lane but the first, p0: any warp but the first."""
WRITE = "st.global.b32 [%rd0], 41; {first} bra END;"
READ = "ld.global.b32 %r3, [%rd0]; st.global.b32 [%rd2], %r3; bra END;"
RELEASE = "st.release.gpu.global.b32 [%rd1{place}], 1;"


def until_set(label: str, place: str = "") -> str:
    return (
        f"{label}: ld.acquire.gpu.global.b32 %r2, [%rd1{place}];"
        f"setp.eq.u32 %p1, %r2, 0; @%p1 bra {label};"
    )


def outcomes(body: str, ctas: int, seeds: int = 4) -> set[int | str]:
    """What was read, or the verdict, of every seed."""
    found = set()
    for seed in range(seeds):
        params = [np.zeros(8, np.uint32), np.zeros(32, np.uint32), np.zeros(8, np.uint32)]
        try:
            text = HEADER + body + "END: ret; }"
            launch(text, "k", grid=ctas, block=64, params=params, seed=seed)
            found.add(int(params[2][0]))
        except Trap as trap:
            found.add(trap.category)
    return found


def test_what_returns_from_another_cluster_orders_the_warps_of_a_cta():
    first, second = RELEASE.format(place=""), RELEASE.format(place="+32")
    body = f"""@%p3 bra END; setp.ne.u32 %p1, %r0, 0; @%p1 bra OTHER; @%p0 bra SECOND;
      {WRITE.format(first=first)}
      SECOND: {until_set("A", "+32")} {READ}
      OTHER: @%p0 bra END; {until_set("B")} {second}"""
    assert outcomes(body, 2) == {41}


@pytest.mark.parametrize("order", ["acquire", "acq_rel"])
def test_who_polls_a_counter_by_adding_to_it_sees_the_releases_of_its_own_cta(order):
    """Other clusters add to it too: their atomic updates go on with what was released before."""
    poll = (
        "{label}: atom.{order}.gpu.global.add.u32 %r2, [%rd1], 256;"
        "and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra {label};"
    )
    body = f"""@%p3 bra END; setp.ne.u32 %p1, %r0, 0; @%p1 bra OTHER; @%p0 bra SECOND;
      {WRITE.format(first="red.release.gpu.global.add.u32 [%rd1], 1;")}
      SECOND: {poll.format(label="A", order=order)} {READ}
      OTHER: @%p0 bra END; {poll.format(label="B", order=order)}"""
    assert outcomes(body, 3, seeds=12) == {41}


@pytest.mark.parametrize("fence, wanted", [
    ("", "race"),
    ("fence.acq_rel.gpu;", 41),
    ("fence.acq_rel.cluster;", "race"),
])  # fmt: skip
def test_a_relaxed_store_passes_on_what_a_fence_covers_of_other_clusters_too(fence, wanted):
    body = f"""@%p3 bra END; @%p0 bra END; @%p2 bra THIRD;
      setp.eq.u32 %p1, %r0, 1; @%p1 bra SECOND;
      {WRITE.format(first=RELEASE.format(place=""))}
      SECOND: {until_set("B")} {fence} st.relaxed.gpu.global.b32 [%rd1+32], 1; bra END;
      THIRD: {until_set("C", "+32")} {READ}"""
    assert outcomes(body, 3) == {wanted}


@pytest.mark.parametrize("lane, wanted", [(0, 41), (1, "race")])
def test_the_fence_of_a_lane_covers_its_own_relaxed_store_behind_a_meeting_of_all(lane, wanted):
    """A release pattern is of one thread (PTX ISA §8.8)."""
    body = f"""@%p0 bra END; @%p2 bra THIRD; setp.eq.u32 %p1, %r0, 1; @%p1 bra SECOND; @%p3 bra END;
      {WRITE.format(first=RELEASE.format(place=""))}
      SECOND: @%p3 bra MEET; {until_set("B")} fence.acq_rel.gpu;
      MEET: bar.warp.sync -1; setp.ne.u32 %p1, %r4, {lane}; @%p1 bra END;
      st.relaxed.gpu.global.b32 [%rd1+32], 1; bra END;
      THIRD: @%p3 bra END; {until_set("C", "+32")} {READ}"""
    assert outcomes(body, 3) == {wanted}


def test_a_message_takes_in_what_another_cluster_has_of_its_own():
    own, other = Domain(0, 4), Domain(1, 4)
    writer, reader = own.component("writer"), other.component("reader")
    message, carried = Message(own), Message(other)
    released = Message(own)
    released.note((writer, 7), generic=True)
    carried.join(released)
    carried.note((reader, 3), generic=True)
    message.join(carried)
    assert message.rows[KNOWN, writer] == 7
    assert message.others[1][KNOWN, reader] == 3 and 0 not in message.others
