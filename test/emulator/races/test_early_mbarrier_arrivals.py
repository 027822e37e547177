"""An arrival at an mbarrier comes behind a wait that has seen the phase before complete (PTX ISA
§9.7.13.15.4): what nothing orders behind one might have counted for that phase, and is refused in
every order of events.
"""

from __future__ import annotations

import pytest

from tilewright.runtime.emulator import Trap, launch

SEEDS = range(6)
HEADER = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k()
{ .reg .b32 %r<9>; .reg .pred %p<9>;
  .shared .align 8 .b64 done; .shared .align 8 .b64 told;
  mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; setp.eq.u32 %p0, %r0, 0;
  setp.eq.u32 %p1, %r1, 2; setp.eq.u32 %p2, %r1, 3;
  @%p0 mbarrier.init.shared::cta.b64 [done], 64; @%p0 mbarrier.init.shared::cta.b64 [told], 32;
  bar.sync 0;
"""
WAIT = "{0}: mbarrier.try_wait.parity{1}.shared::cta.b64 %p4, [{2}], 0; @!%p4 bra {0};"
ARRIVE = "mbarrier.arrive{}.shared::cta.b64 _, [{}];"
THREE_WARPS = f"@%p2 bra LAST; {{}} {ARRIVE.format('', 'done')} bra END; LAST: {{}}"
SEEN = WAIT.format("W", "", "done")
RELAXED = ".relaxed.cta"

RIGHT = {
    "behind a wait of its own": (f"@!%p1 bra A; {WAIT.format('V', '', 'done')} A:", SEEN),
    "behind a relaxed wait": (f"@!%p1 bra A; {WAIT.format('V', RELAXED, 'done')} A:", SEEN),
    "behind a barrier with the waiter": (
        "@!%p1 bra A; bar.sync 1, 64; A:", f"{SEEN} bar.sync 1, 64;"
    ),
    "told by the waiter": (
        f"@!%p1 bra A; {WAIT.format('V', RELAXED, 'told')} A:",
        f"{SEEN} {ARRIVE.format(RELAXED, 'told')}",
    ),
}  # fmt: skip
WRONG = {
    "a warp too many": ("", SEEN),
    "behind a barrier that the waiter left out": ("bar.sync 1, 96;", SEEN),
    "told before the wait": (
        f"@!%p1 bra A; {WAIT.format('V', '', 'told')} A:", f"{ARRIVE.format('', 'told')} {SEEN}"
    ),
}  # fmt: skip


def run(case: tuple[str, str], seed: int, check: str = "full"):
    text = f"{HEADER}{THREE_WARPS.format(*case)}\nEND: ret; }}\n"
    return launch(text, "k", grid=1, block=128, seed=seed, check=check)


@pytest.mark.parametrize("name", RIGHT)
def test_an_arrival_behind_a_wait_for_the_phase_before_is_right(name):
    for seed in SEEDS:
        assert not run(RIGHT[name], seed).warnings


@pytest.mark.parametrize("name", WRONG)
def test_an_arrival_that_may_have_counted_for_the_phase_before_is_refused(name):
    for seed in SEEDS:
        with pytest.raises(Trap) as caught:
            run(WRONG[name], seed)
        assert caught.value.category == "barrier-protocol" and caught.value.line, caught.value


def test_it_is_a_warning_where_libraries_ship_it():
    assert {each.category for each in run(WRONG["a warp too many"], 0, "shipped").warnings} <= {
        "barrier-protocol"
    }
