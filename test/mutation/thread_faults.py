"""Planted faults of what threads share."""

from __future__ import annotations

from fault import Fault

THREADS = [
    Fault(
        "emulator: a thread sees how often registers are named while another one counts",
        "        found = Counter[int]()\n        for pc in range(len(program.source)):\n",
        "        found = program.mentions = Counter[int]()\n"
        "        for pc in range(len(program.source)):\n",
        ("test/emulator/test_stretches.py",),
    ),
]
