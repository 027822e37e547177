"""A barrier that waits for another number than arrives is refused where the plan is made.

Those of presets, prefixes and clusters are counted by test_phase_counts.py.
"""

import pytest
from edited_ir import CLAIMS, PERMUTES, ROLES, change, refusal


def count(number, of):
    return change("sm.barriers", "arrivals", of, number)


def wrong(label, arrives, waits):
    return (
        f"sm.barriers: arrivals: {label!r} gets {arrives} in a phase, got a count of {waits}; wait "
        "for as many"
    )


PAIRS = "normalize,tiling{tile=128x64x64},tma-insertion,clustering{shape=2x2 pair=true}"
ROWS = {
    "full of operands": (ROLES, count(0, 2), wrong("operands.full", 1, 2)),
    "empty of operands": (ROLES, count(1, 2), wrong("operands.empty", 1, 2)),
    "full of sums": (ROLES, count(2, 4), wrong("accumulator.full", 1, 4)),
    "empty of sums": (ROLES, count(3, 3), wrong("accumulator.empty", 4, 3)),
    "full of claims": (CLAIMS, count(4, 2), wrong("claims.full", 1, 2)),
    "empty of claims": (CLAIMS, count(5, 1), wrong("claims.empty", 7, 1)),
    "a cluster's loads": (PAIRS, count(1, 1), wrong("operands.empty", 2, 1)),
    "copies under way": (
        ROLES,
        change("sm.ring", "under_way", 1),
        "sm.ring: under way: at most 0 of 2 slots here, got 1; lower it",
    ),
    "two arrivals of a commit": (
        "normalize,tiling",
        count(0, 2),
        "sm.barriers: done: must have one slot and one arrival, got 1 and 2",
    ),
    "nobody who tells that sums are done": (
        "normalize,tiling",
        lambda lines: [line.replace('"mma.done"', '"done"') for line in lines],
        "sm.columns: done: sums in no ring need the barrier 'mma.done', got none; add it",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_barrier_that_waits_for_another_number_is_refused(name):
    passes, edit, message = ROWS[name]
    found, line = refusal(f"{passes},plan-memory", edit)
    assert found == message
    assert message.partition(":")[0] in line


def test_consumers_that_take_turns_arrive_by_their_own_warps():
    found, _ = refusal(f"{PERMUTES},plan-memory", count(1, 8), "sm_90a")
    assert found == wrong("operands.empty", 4, 8)


def test_one_warp_of_a_warpgroup_arrives_in_each_cta_of_a_cluster():
    passes = ROLES.replace("pipelining", "clustering{shape=2x1 pair=false},pipelining")
    found, _ = refusal(f"{passes},plan-memory", count(1, 8), "sm_90a")
    assert found == wrong("operands.empty", 2, 8)
