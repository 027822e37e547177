"""Faults of operands in tensor memory that are shifted, and of strides in shared memory."""

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
    Fault(
        "box-axes: the rows of a box count as one along which an operand may move twice",
        "        for place in _coordinates(logical, box.shape)\n",
        "        for place in _coordinates(logical, box.shape[:1])\n",
        ("test/emulator/tensor_core/test_box_axes.py",),
    ),
]
