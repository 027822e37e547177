"""What the fence of one lane covers for others of its warp, and what each of several fences of a
thread covers (PTX ISA §8.8: a release pattern is of one thread)."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

HEADER = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 turn, .param .u64 out)
{ .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<4>; .shared .b32 ticket;
  ld.param.u64 %rd0, [data]; ld.param.u64 %rd1, [turn]; ld.param.u64 %rd2, [out];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; setp.ne.u32 %p0, %r1, 0; setp.eq.u32 %p3, %r1, 32;
"""
READ = """@%p0 bra END; WAIT: ld.acquire.gpu.global.b32 %r2, [%rd1];
setp.eq.u32 %p1, %r2, 0; @%p1 bra WAIT; ld.global.b32 %r3, [%rd0]; st.global.b32 [%rd2], %r3;"""


def outcomes(body: str) -> set[int | str]:
    found = set()
    for seed in range(3):
        params = [np.zeros(8, np.uint32) for _ in range(3)]
        try:
            launch(HEADER + body + "END: ret; }", "k", grid=2, block=64, params=params, seed=seed)
            found.add(int(params[2][0]))
        except Trap as trap:
            found.add(trap.category)
    return found


@pytest.mark.parametrize("fences, lane, wanted", [
    ("@%p3 fence.acq_rel.gpu;", 32, 41),
    ("@%p3 fence.acq_rel.gpu;", 33, "race"),
    ("@%p3 fence.acq_rel.gpu; bar.warp.sync -1; @%p3 fence.acq_rel.cta;", 32, 41),
    ("@%p3 fence.acq_rel.gpu; @%p3 fence.acq_rel.cta;", 32, 41),
    ("fence.acq_rel.gpu; @%p3 fence.acq_rel.cta;", 33, 41),
    ("@%p3 fence.acq_rel.cta;", 32, "race"),
])  # fmt: skip
def test_the_fence_of_a_lane_covers_what_all_know_for_its_own_relaxed_store(fences, lane, wanted):
    body = f"""setp.ne.u32 %p1, %r0, 0; @%p1 bra OTHER; @!%p0 st.global.b32 [%rd0], 41;
      bar.sync 0; {fences} setp.eq.u32 %p2, %r1, {lane}; @%p2 st.relaxed.gpu.global.b32 [%rd1], 1;
      bra END; OTHER: {READ}"""
    assert outcomes(body) == {wanted}


@pytest.mark.parametrize("fences, wanted", [
    ("membar.gl; membar.cta;", 41), ("membar.cta;", "race")
])  # fmt: skip
def test_a_narrower_fence_sc_leaves_what_a_wider_one_ahead_of_it_orders(fences, wanted):
    """Whoever draws the second ticket reads what the first one's threads wrote ahead of fences."""
    body = f"""mad.lo.u32 %r5, %r0, 4, 0; cvt.u64.u32 %rd3, %r5; add.u64 %rd3, %rd3, %rd0;
      setp.ne.u32 %p2, %r1, 33; @!%p2 st.global.b32 [%rd3], 41; {fences} bar.sync 0; @%p0 bra MEET;
      atom.relaxed.gpu.global.add.u32 %r2, [%rd1], 1; st.shared.b32 [ticket], %r2;
      MEET: bar.sync 0; ld.shared.b32 %r2, [ticket]; setp.eq.u32 %p1, %r2, 0; @%p1 bra END;
      @%p0 bra END; fence.sc.gpu; ld.global.b32 %r3, [%rd0]; ld.global.b32 %r4, [%rd0+4];
      min.u32 %r3, %r3, %r4; st.global.b32 [%rd2], %r3;"""
    assert outcomes(body) == {wanted}
