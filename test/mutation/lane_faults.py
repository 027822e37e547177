"""Planted faults in how the lanes of a warp find groups together."""

from __future__ import annotations

from fault import Fault

GROUPS = ("test/numerics/groups/test_many_groups.py",)

LANES = [
    Fault(
        "groups: the first lane alone adds nothing of the lanes before",
        "build.less(lane, apart), value, join(value, other))",
        "build.equal(lane, 0), value, join(value, other))",
        GROUPS,
    ),
    Fault(
        "thread-rules: one lane walks over tiles whose groups all lanes find",
        "            if finds or self._places_by_group(op):\n",
        "            if False:\n",
        GROUPS,
    ),
]
