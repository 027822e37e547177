"""What counts as a release by one thread (PTX ISA §8.8): an operation that releases, alone or ahead
of a strong write there, or a fence ahead of one."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

HEADER = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 turn, .param .u64 out)
{ .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<4>; .shared .b32 place;
  ld.param.u64 %rd0, [data]; ld.param.u64 %rd1, [turn]; ld.param.u64 %rd2, [out];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; setp.ne.u32 %p0, %r0, 0; setp.ne.u32 %p1, %r1, 0;
"""
WAIT = """setp.ne.u32 %p0, %r1, 7; @%p0 bra END;
WAIT: ld.acquire.gpu.global.b32 %r2, [%rd1]; setp.ne.u32 %p1, %r2, 2; @%p1 bra WAIT;
ld.global.b32 %r3, [%rd0]; st.global.b32 [%rd2], %r3; bra END;"""


def outcomes(body: str, cluster: int = 1) -> set[int | str]:
    found = set()
    for seed in range(4):
        params = [np.zeros(8, np.uint32) for _ in range(3)]
        text = HEADER + body + "END: ret; }"
        try:
            launch(text, "k", grid=2, block=32, cluster=cluster, params=params, seed=seed)
            found.add(int(params[2][0]))
        except Trap as trap:
            found.add(trap.category)
    return found


@pytest.mark.parametrize("first, lane, wanted", [
    ("st.release.gpu", 0, 41),
    ("st.release.gpu", 1, "race"),
    ("st.release.cta", 0, "race"),
    ("st.relaxed.gpu", 0, "race"),
])  # fmt: skip
def test_a_release_and_a_later_strong_write_of_the_same_thread_are_one(first, lane, wanted):
    body = f"""@%p0 bra OTHER; @%p1 bra SECOND; st.global.b32 [%rd0], 41;
      {first}.global.b32 [%rd1], 1; SECOND: bar.warp.sync -1; setp.ne.u32 %p0, %r1, {lane};
      @!%p0 st.relaxed.gpu.global.b32 [%rd1], 2; bra END;
      OTHER: {WAIT}"""
    assert outcomes(body) == {wanted}


@pytest.mark.parametrize("fence, wanted", [
    ("fence.acq_rel.cluster;", 41), ("fence.acq_rel.cta;", "race"), ("", "race")
])  # fmt: skip
def test_the_fence_of_one_lane_covers_its_writes_for_the_relaxed_arrival_of_all(fence, wanted):
    body = f"""@%p0 bra MEET; @%p1 bra MEET; st.global.b32 [%rd0], 41; {fence}
      MEET: barrier.cluster.arrive.relaxed; barrier.cluster.wait; @!%p0 bra END; @%p1 bra END;
      ld.global.b32 %r3, [%rd0]; st.global.b32 [%rd2], %r3;"""
    assert outcomes(body, cluster=2) == {wanted}
