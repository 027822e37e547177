"""Loops that ask memory for what nobody will write end with an error that says so, and soon."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.emulator import Deadlock, Trap, launch
from tilewright.runtime.emulator.machine import scheduler

QUIET_STEPS = 2_000
"""Of these tests; a launch waits ten times as long."""
MANY = 40 * QUIET_STEPS
"""Steps within which a loop is found, and far fewer than the scheduler's own limit."""
HEAD = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 flags) {
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %flags, %d<4>;
  .shared .align 8 .b64 full; .shared .align 4 .b32 word;
  ld.param.u64 %flags, [flags];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mov.u32 %r5, 0; mov.u32 %r6, 1;
"""


@pytest.fixture(autouse=True)
def looked_for_soon(monkeypatch):
    monkeypatch.setattr(scheduler, "QUIET_STEPS", QUIET_STEPS)


def stuck(body: str, grid: int = 2, block: int = 32, flags: int = 0, **options) -> Trap:
    memory = np.full(8, flags, np.uint32)
    with pytest.raises(Trap) as caught:
        launch(HEAD + body + "}", "k", grid=grid, block=block, params=[memory], max_steps=MANY,
               **options)  # fmt: skip
    return caught.value


def line(body: str, what: str) -> int:
    return next(n for n, text in enumerate((HEAD + body).splitlines(), 1) if what in text)


def loop(ask: str, test: str = "setp.eq.u32 %p1, %r2, 1;", inside: str = "") -> str:
    return f"SPIN:\n  {ask}\n  {inside}\n  {test}\n  @!%p1 bra SPIN;\n  ret;\n"


ASKS = {
    "acquire": "ld.acquire.gpu.global.u32 %r2, [%flags+4];",
    "relaxed": "ld.relaxed.gpu.global.u32 %r2, [%flags+4];",
    "volatile": "ld.volatile.global.u32 %r2, [%flags+4];",
    "weak": "ld.global.u32 %r2, [%flags+4];",
    "generic": "ld.acquire.sys.u32 %r2, [%flags+4];",
    "add of 0": "atom.add.acquire.gpu.global.u32 %r2, [%flags+4], 0;",
    "or of 0": "atom.or.relaxed.gpu.global.b32 %r2, [%flags+4], 0;",
    "swap of what is there": "atom.exch.acquire.gpu.global.b32 %r2, [%flags+4], 0;",
    "compare and swap": "atom.cas.acquire.gpu.global.b32 %r2, [%flags+4], 1, 2;",
    "pair": "ld.acquire.gpu.global.u64 %d1, [%flags+8]; cvt.u32.u64 %r2, %d1;",
}


@pytest.mark.parametrize("check", ["off", "full"])
@pytest.mark.parametrize("how", ASKS)
def test_a_flag_that_nobody_sets_is_named(how, check):
    body = loop(ASKS[how])
    trap = stuck(body, check=check, seed=len(how))
    assert isinstance(trap, Deadlock) and trap.line == line(body, ASKS[how].split(",")[0])
    place = 8 if how == "pair" else 4
    assert f"at byte {place} of parameter 0 (flags), which stay 0; every thread" in str(trap)


@pytest.mark.parametrize(
    "inside",
    [
        "nanosleep.u32 100;",
        "shl.b32 %r6, %r6, 1; min.u32 %r6, %r6, 4096; nanosleep.u32 %r6;",
        "bar.warp.sync -1;",
        "fence.acq_rel.gpu;",
        "st.global.u32 [%flags], %r5;",
        "atom.or.relaxed.gpu.global.b32 %r4, [%flags], 0;",
        "activemask.b32 %r7;",
        "setp.eq.u32 %p2, %r2, 3; vote.sync.any.pred %p3, %p2, -1;",
    ],
)
def test_what_else_the_loop_does_hides_nothing(inside):
    assert "at byte 4 of parameter 0" in str(stuck(loop(ASKS["acquire"], inside=inside)))


@pytest.mark.parametrize("seed", range(3))
def test_one_lane_of_a_warp_that_spins_is_found_beside_lanes_that_wait_for_it(seed):
    body = "  setp.ne.u32 %p0, %r1, 0;\n  @%p0 bra JOIN;\nSPIN:\n"
    body += f"  {ASKS['acquire']}\n  setp.eq.u32 %p1, %r2, 1;\n  @!%p1 bra SPIN;\n"
    body += "JOIN:\n  bar.warp.sync -1;\n  bar.sync 0;\n  ret;\n"
    trap = stuck(body, block=64, seed=seed)
    agents = trap.as_dict()["agents"]
    kinds = {each["waits_for"]["kind"] for each in agents}
    assert kinds == {"memory", "convergence", "barrier"}
    assert trap.lanes == 1


def test_a_word_of_shared_memory_is_named_by_its_cta():
    body = "  st.shared.u32 [word], 0;\n" + loop("ld.volatile.shared.u32 %r2, [word];")
    assert "of the shared memory of cta (" in str(stuck(body))


def test_an_answer_that_is_thrown_away_is_a_loop_too():
    """The wait is told no, but the loop asks a flag whether to go on"""
    body = "  mbarrier.init.shared::cta.b64 [full], 1;\n"
    wait = "mbarrier.test_wait.parity.shared::cta.b64 %p3, [full], 0;"
    body += loop(ASKS["relaxed"], inside=wait)
    assert stuck(body, block=1).category == "deadlock"


def test_a_loop_without_memory_is_told_from_others():
    assert "runs in a loop that reads no memory and never ends" in str(stuck("SPIN: bra SPIN;\n"))


def test_who_could_write_and_has_never_run_is_expected():
    body = "  setp.eq.u32 %p0, %r5, 7;\n  @%p0 st.release.gpu.global.u32 [%flags+4], 1;\n"
    body += loop(ASKS["acquire"])
    trap = stuck(body)
    (agent, *_) = trap.as_dict()["agents"]
    assert agent["waits_for"] == {
        "kind": "memory", "memory": "parameter 0 (flags)", "byte": 4, "bytes": 4, "value": 0,
        "text": "asks again and again for 4 bytes at byte 4 of parameter 0 (flags), which stay 0",
    }  # fmt: skip
    (expected,) = agent["expected_from"]
    assert expected["ptx_line"] == line(body, "st.release")
    assert f"expected: perhaps the instruction at ptx:{expected['ptx_line']}" in str(trap)


TURNSTILE = """  atom.add.acq_rel.gpu.global.u32 %r3, [%flags], 1;
SPIN:
  ld.acquire.gpu.global.u32 %r2, [%flags];
  setp.ge.u32 %p1, %r2, 6;
  @!%p1 bra SPIN;
  ret;
"""


def test_a_grid_that_waits_for_ctas_without_room_says_so():
    trap = stuck(TURNSTILE, grid=6, block=1, resident=4)
    assert "2 clusters have not started: 4 CTAs fit at once (`resident`)" in str(trap)
    assert "which stay 4" in str(trap)
    report = launch(HEAD + TURNSTILE + "}", "k", grid=6, block=1, resident=6,
                    params=[np.zeros(8, np.uint32)])  # fmt: skip
    assert report.steps < MANY


def test_shares_of_several_processes_give_up_as_soon():
    body = loop(ASKS["weak"])
    assert stuck(body, workers=2).category == "deadlock"


def test_a_long_stretch_that_is_no_jump_repeats_nothing():
    """It runs at once, and then the warp stands still for as many instructions."""
    stretch = "\n".join(f"add.u32 %q{n % 128}, %r{n % 2}, %r5;" for n in range(384))
    count = loop(stretch, "setp.eq.u32 %p1, %r2, 200;", "add.u32 %r2, %r2, 1;")
    body = f".reg .b32 %q<128>; mov.u32 %r2, 0;\n{count}"
    report = launch(HEAD + body + "}", "k", grid=2, block=64, params=[np.zeros(8, np.uint32)])
    assert report.steps > 10 * QUIET_STEPS


def test_a_loop_that_counts_its_rounds_ends_by_itself():
    body = loop("add.u32 %r2, %r2, 1;", "setp.eq.u32 %p1, %r2, 6000;")
    report = launch(HEAD.replace("%r5, 0;", "%r5, 0; mov.u32 %r2, 0;") + body + "}", "k", grid=1,
                    block=1, params=[np.zeros(8, np.uint32)])  # fmt: skip
    assert report.steps > 3 * QUIET_STEPS


@pytest.mark.parametrize("seed", range(4))
def test_whoever_works_meanwhile_is_waited_for(seed):
    """CTA 0 counts for long, in a register, before it sets what CTA 1 asks for"""
    body = "  setp.eq.u32 %p0, %r0, 1;\n  @%p0 bra SPIN;\nWORK:\n  add.u32 %r5, %r5, 1;\n"
    body += "  setp.lt.u32 %p2, %r5, 3000;\n  @%p2 bra WORK;\n"
    body += "  st.release.gpu.global.u32 [%flags+4], 1;\n" + loop(ASKS["acquire"])
    report = launch(HEAD + body + "}", "k", grid=2, block=32, params=[np.zeros(8, np.uint32)],
                    seed=seed)  # fmt: skip
    assert report.steps > 2 * QUIET_STEPS


@pytest.mark.parametrize("seed", range(4))
def test_two_that_answer_each_other_in_memory_are_none(seed):
    """Each waits for the other's number, 60 rounds long, without any barrier"""
    body = """  mul.lo.u32 %r3, %r0, 4; cvt.u64.u32 %d1, %r3; add.u64 %d1, %flags, %d1;
  xor.b32 %r4, %r0, 1; mul.lo.u32 %r4, %r4, 4; cvt.u64.u32 %d2, %r4; add.u64 %d2, %flags, %d2;
ROUND:
  add.u32 %r5, %r5, 1;
  st.release.gpu.global.u32 [%d1], %r5;
SPIN:
  ld.acquire.gpu.global.u32 %r2, [%d2];
  setp.lt.u32 %p1, %r2, %r5;
  @%p1 bra SPIN;
  setp.lt.u32 %p2, %r5, 60;
  @%p2 bra ROUND;
  ret;
"""
    flags = np.zeros(8, np.uint32)
    report = launch(HEAD + body + "}", "k", grid=2, block=1, params=[flags], seed=seed)
    assert report.steps > 2 * QUIET_STEPS and list(flags[:2]) == [60, 60]


def test_a_lock_that_two_hand_over_is_none():
    body = """AGAIN:
LOCK:
  atom.cas.acquire.gpu.global.b32 %r2, [%flags], 0, 1;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra LOCK;
  ld.relaxed.gpu.global.u32 %r3, [%flags+4];
  add.u32 %r3, %r3, 1;
  st.relaxed.gpu.global.u32 [%flags+4], %r3;
  st.release.gpu.global.u32 [%flags], 0;
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p2, %r5, 100;
  @%p2 bra AGAIN;
  ret;
"""
    flags = np.zeros(8, np.uint32)
    launch(HEAD + body + "}", "k", grid=3, block=1, params=[flags])
    assert flags[1] == 300


@pytest.mark.parametrize("seed", range(3))
def test_a_flag_that_is_set_for_a_moment_may_be_seen(seed):
    """CTA 0 sets the flag for two instructions of forty, until CTA 1 has seen it"""
    body = "  setp.eq.u32 %p0, %r0, 1;\n  @%p0 bra SPIN;\nBLINK:\n"
    body += (
        "  st.relaxed.gpu.global.u32 [%flags+4], 1;\n  st.relaxed.gpu.global.u32 [%flags+4], 0;\n"
    )
    body += "  mov.u32 %r5, %r6;\n" * 36
    body += "  ld.relaxed.gpu.global.u32 %r3, [%flags+8];\n  setp.eq.u32 %p2, %r3, 0;\n"
    body += "  @%p2 bra BLINK;\n  ret;\nSPIN:\n  ld.relaxed.gpu.global.u32 %r2, [%flags+4];\n"
    body += "  setp.eq.u32 %p1, %r2, 1;\n  @!%p1 bra SPIN;\n"
    body += "  st.relaxed.gpu.global.u32 [%flags+8], 1;\n  ret;\n"
    report = launch(HEAD + body + "}", "k", grid=2, block=1, params=[np.zeros(8, np.uint32)],
                    seed=seed)  # fmt: skip
    assert report.steps > 0


@pytest.mark.parametrize("seed", range(3))
def test_a_wait_that_may_end_by_its_time_limit_lets_others_go_on(seed):
    """Warp 1 gives a wait up, as try_wait allows, and sets what warp 0 asks for"""
    body = "  setp.ne.u32 %p2, %r1, 0;\n  @!%p2 mbarrier.init.shared::cta.b64 [full], 1;\n"
    body += "  bar.sync 0;\n  setp.lt.u32 %p0, %r1, 32;\n  @%p0 bra SPIN;\n"
    body += "  mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;\n"
    body += "  @!%p3 st.release.gpu.global.u32 [%flags+4], 1;\n  ret;\n" + loop(ASKS["acquire"])
    flags = np.zeros(8, np.uint32)
    launch(HEAD + body + "}", "k", grid=1, block=64, params=[flags], seed=seed, max_steps=MANY)
    assert flags[1] == 1


def test_a_loop_that_asks_for_a_coarse_time_ends_by_itself():
    """Of which a register keeps the upper bits alone"""
    read = "mov.u64 {}, %globaltimer; shr.u64 {}, {}, 16;"
    body = f"  {read.format(*['%d2'] * 3)}\n"
    body += loop(read.format(*["%d1"] * 3), "setp.ne.u64 %p1, %d1, %d2;")
    report = launch(HEAD + body + "}", "k", grid=1, block=32, params=[np.zeros(8, np.uint32)],
                    max_steps=MANY)  # fmt: skip
    assert report.steps > QUIET_STEPS
