"""What a lane must not do with barriers before the threads of its CTA have met."""

import pytest
from edited_ir import ROLES, drop, insert, refusal, replace

PASSES = f"{ROLES},pipes-to-barriers"
WAIT = "sm.wait_barrier: early: "
PROLOGUE = """"sm.prologue"() ({ "sm.run"() ({
  %zero = arith.constant 0 : i32
  %full = "sm.barrier"(%2, %zero) : (!sm.mbarriers<2 : i64>, i32) -> !llvm.ptr<3>
  "sm.barrier_init"(%full) {count = 1 : i64} : (!llvm.ptr<3>) -> ()
  "sm.fence"() {kind = "mbarrier_init"} : () -> ()
}) {by = "lane"} : () -> () }) : () -> ()"""


def by_another_lane(lines):
    """The first barrier is initialised in a prologue."""
    lines = drop('"sm.barrier_init"')(lines)
    return insert('"sm.early"', PROLOGUE, before=True)(lines)


def fenced_last(lines):
    """The fence is the last thing that the lane does early."""
    fence = next(line for line in lines if "mbarrier_init" in line)
    return insert("{warp = 4", fence, before=True)(drop("mbarrier_init")(lines))


ROWS = {
    "more steps than slots": (
        replace("%c2 = arith.constant 2", "%c2 = arith.constant 5"),
        f"{WAIT}2 empty slots at most may be waited for before all threads meet, in one loop, got "
        "5 steps; wait after the meeting",
    ),
    "a warp in the middle of a role": (
        replace("{warp = 4", "{warp = 1"),
        "sm.early: early: who loads must be of the first warp of a role, [0, 4], got 1; take one "
        "of them",
    ),
    "earlier grids that may still write": (
        drop('"sm.await_grids"'),
        f"{WAIT}earlier grids must have been awaited before, got none; await them",
    ),
    "barriers that are fenced behind the loads": (
        fenced_last,
        f"{WAIT}what was initialised must have been fenced before, got none; fence it",
    ),
    "a barrier that may not be there": (
        by_another_lane,
        f"{WAIT}the lane that loads must have initialised all barriers itself, got others of "
        "another; initialise them here",
    ),
    "slots that others fill": (
        replace('"sm.barrier"(%3, %20#0)', '"sm.barrier"(%2, %20#0)'),
        "sm.wait_barrier: source: 'operands.full' is waited for by the phase of the reading that "
        "the index is from, got another parity; take that one",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_loads_that_come_too_early_are_refused(name):
    edit, message = ROWS[name]
    found, line = refusal(PASSES, edit, "sm_90a")
    assert found == message
    assert message.partition(":")[0] in line


def test_another_warp_than_the_one_that_loads_fills_no_slots():
    """Its arrivals count for its own role."""
    found, _ = refusal(PASSES, replace("{warp = 4", "{warp = 0"), "sm_90a")
    assert found.startswith("sm.barriers: arrivals: 'operands.full' gets 2 in a phase")
