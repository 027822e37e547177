"""Waits that end by a time limit, in loops that do something each time: how long they go on."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Deadlock, launch
from tilewright.runtime.emulator.machine import scheduler

HEAD = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 flags) {
  .reg .pred %p<6>; .reg .b32 %r<9>; .reg .b64 %flags;
  .shared .align 8 .b64 full; .shared .align 8 .b64 other;
  ld.param.u64 %flags, [flags];
  mov.u32 %r1, %tid.x; mov.u32 %r5, 0; setp.lt.u32 %p0, %r1, 32; setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared::cta.b64 [full], 1;
  @%p1 mbarrier.init.shared::cta.b64 [other], COUNT;
  bar.sync 0;
  @%p0 bra ASK;
"""
ANSWER = """WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [other], 0; @!%p3 bra WAIT;
  setp.eq.u32 %p4, %r1, 32; @%p4 mbarrier.arrive.shared::cta.b64 _, [full]; ret;
"""


def run(rest: str, count: int = 1, seed: int = 0, **options) -> np.ndarray:
    flags = np.zeros(4, np.uint32)
    text = HEAD.replace("COUNT", str(count)) + rest + "}"
    launch(text, "k", grid=1, block=64, params=[flags], seed=seed, **options)
    return flags


def polls(inside: str, ask: str = "try_wait") -> str:
    return f"""ASK: {inside}
  mbarrier.{ask}.parity.shared::cta.b64 %p2, [full], 0; @!%p2 bra ASK; ret;
"""


ARRIVES = "@%p1 mbarrier.arrive.shared::cta.b64 _, [other];"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [65, 400])
def test_who_arrives_elsewhere_each_time_goes_on(count, seed):
    """Warp 0 arrives once a round; the other warp answers all of its arrivals"""
    stop = "add.u32 %r5, %r5, 1; setp.le.and.u32 %p1, %r5, COUNT, %p1;".replace("COUNT", str(count))
    run(ANSWER + polls(f"{stop} {ARRIVES}"), count, seed)


def test_bytes_that_are_expected_and_come_elsewhere_count():
    more = "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [other], 16;"
    stop = "add.u32 %r5, %r5, 1; setp.eq.and.u32 %p4, %r5, 300, %p1;"
    less = "@%p4 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [other], 4800;"
    last = "setp.le.and.u32 %p1, %r5, 299, %p1;"
    run(ANSWER + polls(f"{stop} {more} {less} @%p4 {ARRIVES[5:]} {last}"))


def test_who_asks_without_a_wait_goes_on_too(monkeypatch):
    """Its registers are the same each round, and no byte changes: the barrier alone does. It may
    arrive once more than is counted, which the full checks refuse"""
    monkeypatch.setattr(scheduler, "QUIET_STEPS", 500)
    lone = polls(ARRIVES.removeprefix("@%p1 "), "test_wait").replace("ASK", "LONE")
    run(f"{ANSWER}ASK: @%p1 bra LONE; ret;\n{lone}", count=6_000, check="fast")


def test_who_counts_its_rounds_gives_up_by_itself():
    """The other warp waits for what comes only then"""
    count = "add.u32 %r5, %r5, 1; setp.eq.u32 %p3, %r5, 1000; @%p3 bra GIVEN_UP;"
    run(ANSWER + polls(count) + f"GIVEN_UP: {ARRIVES} ret;\n")


def test_who_counts_its_rounds_may_wait_beside_one_that_reads_a_clock():
    clocked = """WAIT: mov.u32 %r6, %clock;
      mbarrier.try_wait.parity.shared::cta.b64 %p3, [other], 0; @!%p3 bra WAIT; ret;
    """
    count = "add.u32 %r5, %r5, 1; setp.eq.u32 %p3, %r5, 1000; @%p3 bra GIVEN_UP;"
    run(clocked + polls(count) + f"GIVEN_UP: {ARRIVES} ret;\n")


def test_who_counts_in_memory_is_waited_for():
    """The other warp asks for the count"""
    seen = """SEE: ld.relaxed.gpu.global.u32 %r2, [%flags]; setp.lt.u32 %p3, %r2, 200;
      mbarrier.try_wait.parity.shared::cta.b64 %p4, [other], 0;
      @%p3 bra SEE; setp.eq.u32 %p4, %r1, 32; @%p4 mbarrier.arrive.shared::cta.b64 _, [full]; ret;
    """
    flags = run(seen + polls("@%p1 red.relaxed.gpu.global.add.u32 [%flags], 1;"))
    assert flags[0] >= 200


ENDLESS = {
    "nothing": "",
    "what is there": "@%p1 st.relaxed.gpu.global.u32 [%flags], 0;",
    "a clock": "mov.u32 %r6, %clock;",
    "a toggle": "xor.b32 %r5, %r5, 1;",
    "a count": "add.u32 %r5, %r5, 1;",
    "no bytes": "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [other], 0;",
}


@pytest.mark.parametrize("inside", ENDLESS)
def test_rounds_that_lead_nowhere_are_a_deadlock_soon(inside):
    with pytest.raises(Deadlock, match="every thread waits and nothing is under way"):
        run(ANSWER + polls(ENDLESS[inside]), max_steps=200_000)
