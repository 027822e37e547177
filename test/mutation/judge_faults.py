"""Faults of what the emulator tells of registers, and of what it takes that few write."""

from __future__ import annotations

from fault import Fault

JUDGES = [
    Fault(
        "setmaxnreg: a request for more gives registers up",
        '        if direction == "inc":\n            pool.grows(warp.index, count)\n',
        "",
        ("test/emulator/test_register_budget.py",),
    ),
    Fault(
        "setmaxnreg: the first CTA has the registers of all that a multiprocessor holds",
        "    threads = together if threads <= together <= SM_THREADS else threads\n",
        "",
        ("test/emulator/test_register_budget.py",),
    ),
    Fault(
        "tcgen05: instructions that nobody reaches may be of the other .cta_group",
        "    if len(first) > 1:\n        (before, _), (group, each)",
        "    if len(first) > 2:\n        (before, _), (group, each)",
        ("test/emulator/engines/test_tensor_memory.py",),
    ),
]
