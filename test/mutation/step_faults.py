"""Planted faults in which step before a loop along K the loop takes, and what it does then."""

from __future__ import annotations

from fault import Fault

TESTS = ("test/backend/test_first_steps.py",)
STEPS = [
    Fault(
        "first step: it may be one with other attributes",
        "            and attributes_of(one) == attributes_of(other)\n",
        "",
        TESTS,
    ),
    Fault(
        "first step: the counter of the loop may be any number in it",
        "            return constant_of(one) == 0\n",
        "            return constant_of(one) is not None\n",
        TESTS,
    ),
    Fault(
        "first step: it releases a slot, too",
        "    for op in ops[number + 1 :]:\n"
        "        op.operation.move_before(list(here.operations)[-1].operation)\n",
        "    _ = ops, number, here\n",
        TESTS,
    ),
    Fault(
        "first step: a loop that begins with another number takes it",
        "    if steps[0] != 1 or steps[2] != 1 or steps[1] is None or steps[1] < 1:\n",
        "    if steps[2] != 1 or steps[1] is None or steps[1] < 1:\n",
        TESTS,
    ),
    Fault(
        "step loop: as few groups may be pending as before",
        "attribute_of(wait.pending.value * turns)",
        "attribute_of(wait.pending.value)",
        ("test/passes/test_step_loops.py",),
    ),
    Fault(
        "step loop: the first MMA of a later turn begins the sums anew",
        "flag = op.accumulate if number else arith.ori(op.accumulate, later)",
        "flag = op.accumulate",
        ("test/backend/test_first_steps.py",),
    ),
    Fault(
        "step loop: sums go to another slot than they came from",
        "slot is not None and store.operands[1] == slot",
        "slot is not None",
        ("test/passes/test_step_loops.py",),
    ),
    Fault(
        "step loop: the strides of steps may differ",
        "kept and len(strides) == 1",
        "kept",
        ("test/passes/test_step_loops.py",),
    ),
]
