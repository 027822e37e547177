"""An arrival at an mbarrier comes behind a wait that has seen the phase before complete (PTX ISA
§9.7.13.15.4): what nothing orders behind one might have counted for that phase, and is refused in
every order of events.
"""

from __future__ import annotations

import numpy as np
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


EMPTY_COMMIT = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out) .reqntid 64
{ .reg .b32 %r<9>; .reg .pred %p<9>; .reg .b64 %rd<3>;
  .shared .align 8 .b64 empty; .shared .align 8 .b64 full; .shared .b32 told;
  mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0; setp.ge.u32 %p1, %r0, 32;
  @%p0 mbarrier.init.shared::cta.b64 [empty], 32; @%p0 mbarrier.init.shared::cta.b64 [full], 1;
  bar.sync 0; @%p1 bra READ;
  @!%p0 bra END;
W: mbarrier.try_wait.parity.shared::cta.b64 %p4, [empty], 1; @!%p4 bra W;
  st.shared.u32 [told], 7; mov.u32 %r1, full;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1]; bra END;
READ:
R: mbarrier.try_wait.parity.shared::cta.b64 %p4, [full], 0; @!%p4 bra R;
  ld.shared.u32 %r2, [told];
  mbarrier.arrive.shared::cta.b64 _, [empty];
  ld.param.u64 %rd0, [out]; cvta.to.global.u64 %rd0, %rd0; mad.wide.u32 %rd1, %r0, 4, %rd0;
  st.global.u32 [%rd1], %r2;
END: ret; }
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_commit_of_nothing_passes_on_what_its_thread_has_seen(seed):
    """As quack's products of groups without columns hand over sums that are zero."""
    out = np.zeros(64, np.uint32)
    report = launch(EMPTY_COMMIT, "k", grid=1, block=64, params=[out], seed=seed)
    assert [warning.category for warning in report.warnings] == ["empty-commit"]
    assert (out[32:] == 7).all()
