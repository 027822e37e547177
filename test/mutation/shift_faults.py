"""Faults of operands in tensor memory that are shifted."""

from __future__ import annotations

from fault import Fault

SHIFTS = [
    Fault(
        "tensor-memory: rows are shifted up",
        "                lanes[:-1] = lanes[1:].copy()\n",
        "                lanes[1:] = lanes[:-1].copy()\n",
        ("test/emulator/tensor_core/test_shifted_rows.py",),
    ),
    Fault(
        "shift: it may come before the product that it was issued behind",
        "    behind = () if leader.last is None or leader.last.done else (leader.last,)\n",
        "    behind = ()\n",
        ("test/emulator/tensor_core/test_shifted_rows.py",),
    ),
]
