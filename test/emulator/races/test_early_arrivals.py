"""An arrival at a named barrier comes behind all arrivals of the phase before, or might be taken
for one of them (PTX ISA §9.7.13.1): such kernels are refused in every order of events.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

SEEDS = range(6)
HEADER = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{ .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p<9>; .shared .align 4 .b8 s[4096];
  .shared .align 8 .b64 turn;
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 64; setp.eq.u32 %p1, %r0, 0;
  mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2; cvt.u64.u32 %rd1, %r2;
  add.u64 %rd1, %rd0, %rd1; xor.b32 %r4, %r2, 124; add.u32 %r4, %r4, %r1; mov.u32 %r5, 0;
  @%p1 mbarrier.init.shared::cta.b64 [turn], 64; bar.sync 0;
"""
THREADS = 128
MIRRORED = "st.shared.u32 [%r3], %r0; bar.sync {}, 64; ld.shared.u32 %r5, [%r4];"

RIGHT = {
    "a barrier for each half": f"@%p0 bra A; {MIRRORED.format(1)} bra END; A: {MIRRORED.format(2)}",
    "one barrier, which the halves use in turn": f"""@!%p0 bra B; {MIRRORED.format(1)}
      mbarrier.arrive.shared::cta.b64 _, [turn]; bra END;
      B: mbarrier.try_wait.parity.shared::cta.b64 %p2, [turn], 0; @!%p2 bra B;
      {MIRRORED.format(1)}""",
    "one barrier, in turn by a relaxed mbarrier": f"""@!%p0 bra B; {MIRRORED.format(1)}
      mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [turn]; bra END;
      B: mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p2, [turn], 0; @!%p2 bra B;
      {MIRRORED.format(1)}""",
    "two barriers by which halves take turns": """@!%p0 bra B; bar.arrive 2, 128;
      A: bar.sync 1, 128; add.u32 %r5, %r5, 1; bar.arrive 2, 128;
      setp.lt.u32 %p2, %r5, 4; @%p2 bra A; bra LAST;
      B: bar.sync 2, 128; add.u32 %r5, %r5, 1; bar.arrive 1, 128;
      setp.lt.u32 %p2, %r5, 4; @%p2 bra B; bar.sync 2, 128;
      LAST: xor.b32 %r5, %r0, 31;""",
    "one barrier, of fewer threads behind one of all": f"""bar.sync 1, 128; @!%p0 bra B;
      {MIRRORED.format(1)} bra END; B: xor.b32 %r5, %r0, 31;""",
}
WRONG = {
    "halves that meet at one barrier": MIRRORED.format(1),
    "a warp too many": "bar.sync 1, 96; xor.b32 %r5, %r0, 31;",
    "a half that arrives twice without having seen the other": """xor.b32 %r5, %r0, 31;
      @!%p0 bra B; bar.arrive 1, 128; bar.arrive 1, 128; bra END;
      B: bar.sync 1, 128; bar.sync 1, 128;""",
    "a turn that is handed over before the barrier": f"""@!%p0 bra B;
      mbarrier.arrive.shared::cta.b64 _, [turn]; {MIRRORED.format(1)} bra END;
      B: mbarrier.try_wait.parity.shared::cta.b64 %p2, [turn], 0; @!%p2 bra B;
      {MIRRORED.format(1)}""",
}


def run(body: str, seed: int) -> list[int]:
    out = np.full(THREADS, 0xBAD, np.uint32)
    text = f"{HEADER}{body}\nEND: st.global.u32 [%rd1], %r5; ret; }}\n"
    launch(text, "k", grid=1, block=THREADS, params=[out], seed=seed)
    return out.tolist()


@pytest.mark.parametrize("name", RIGHT)
def test_phases_that_follow_each_other_are_right(name):
    for seed in SEEDS:
        assert run(RIGHT[name], seed) == [thread ^ 31 for thread in range(THREADS)]


@pytest.mark.parametrize("name", WRONG)
def test_an_arrival_that_may_come_early_is_refused(name):
    for seed in SEEDS:
        with pytest.raises(Trap, match="nothing orders it behind the arrival of warp") as caught:
            run(WRONG[name], seed)
        assert caught.value.category == "protocol" and caught.value.line
