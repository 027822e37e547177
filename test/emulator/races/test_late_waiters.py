"""A waiter that may fall two phases behind is found in every order of events.

PTX ISA §9.7.13.15.16: a wait may ask about the current phase and the one before it.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Trap, launch

SEEDS = range(6)
TEXT = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{{ .reg .b32 %r<12>; .reg .pred %p<8>; .reg .b64 %rd<2>; .reg .b64 %state;
  .shared .align 8 .b64 full; .shared .align 8 .b64 empty; .shared .align 4 .b32 flag;
  mov.u32 %r0, %tid.x; mov.u32 %r1, full; mov.u32 %r2, empty; ld.param.u64 %rd0, [out];
  shr.u32 %r3, %r0, 5; setp.eq.u32 %p0, %r0, 0;
  setp.eq.u32 %p1, %r3, 0; setp.eq.u32 %p2, %r3, 1; setp.eq.u32 %p3, %r3, 2;
  @%p0 mbarrier.init.shared::cta.b64 [%r1], 32;
  @%p0 mbarrier.init.shared::cta.b64 [%r2], {readers};
  @%p0 st.shared.u32 [flag], 0;
  bar.sync 0; mov.u32 %r4, 0; mov.u32 %r5, 0;
ROUND:
  @%p1 bra FILL; @%p3 bra IDLE;
READ:
  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r1], %r5; @!%p4 bra READ;
  mbarrier.arrive.shared::cta.b64 _, [%r2]; bra NEXT;
IDLE:
  {idle}
  bra NEXT;
FILL:
  mbarrier.arrive.shared::cta.b64 _, [%r1]; xor.b32 %r6, %r5, 0;
FREE:
  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r2], %r6; @!%p4 bra FREE;
NEXT:
  {together}
  xor.b32 %r5, %r5, 1; add.u32 %r4, %r4, 1; setp.lt.u32 %p5, %r4, {rounds}; @%p5 bra ROUND;
  ret; }}
"""
WAIT = "I: mbarrier.try_wait.parity{}.shared::cta.b64 %p4, [%r1], %r5; @!%p4 bra I;"


def run(seed: int, idle: str, *, readers: int = 32, together: str = "", rounds: int = 3) -> None:
    text = TEXT.format(idle=idle, readers=readers, together=together, rounds=rounds)
    launch(text, "k", grid=1, block=96, params=[np.zeros(8, np.uint32)], seed=seed)


@pytest.mark.parametrize("order", ["", ".relaxed.cta"])
def test_a_warp_that_only_waits_is_found_in_every_order(order):
    found = set()
    for seed in SEEDS:
        with pytest.raises(Trap) as caught:
            run(seed, WAIT.format(order))
        assert caught.value.category in ("barrier-protocol", "deadlock"), str(caught.value)
        found.add("behind the wait of warp 2 of cta (0, 0, 0)" in str(caught.value))
    assert True in found


RIGHT = {
    "it arrives too": dict(
        idle=WAIT.format("") + "mbarrier.arrive.shared::cta.b64 _, [%r2];", readers=64
    ),
    "its arrival is relaxed": dict(
        idle=WAIT.format("") + "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%r2];", readers=64
    ),
    "all come together in each round": dict(idle=WAIT.format(""), together="bar.sync 1;"),
    "there is one phase": dict(idle=WAIT.format(""), rounds=1),
    "it does not wait": dict(idle=""),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_waiter_that_the_next_phase_needs_is_none(name):
    for seed in SEEDS:
        run(seed, **RIGHT[name])


def test_a_relaxed_flag_keeps_a_waiter_from_falling_behind():
    """It orders no accesses, but the next round cannot begin before it"""
    idle = WAIT.format("") + "red.relaxed.cta.shared.add.u32 [flag], 1;"
    spin = """@!%p2 bra ON; mad.lo.u32 %r8, %r4, 32, 32;
    S: ld.relaxed.cta.shared.u32 %r7, [flag]; setp.lt.u32 %p6, %r7, %r8; @%p6 bra S;
    mbarrier.arrive.shared::cta.b64 _, [%r2]; ON:"""
    for seed in SEEDS:
        text = TEXT.format(idle=idle, readers=64, together=spin, rounds=3)
        launch(text, "k", grid=1, block=96, params=[np.zeros(8, np.uint32)], seed=seed)
