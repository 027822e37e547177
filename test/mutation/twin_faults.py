"""Planted faults of roles that become one program."""

from __future__ import annotations

from fault import Fault

TWINS = [
    Fault(
        "twin roles: where the second begins in a ring is where the first does",
        "            self._move(ops, loop)",
        "            _ = ops, loop",
        ("test/numerics/loops/test_ping_pong.py",),
    ),
    Fault(
        "twin programs: ops that say something else of themselves are the same",
        "        _require(_attributes_of(one) == _attributes_of(other))\n",
        "",
        ("test/backend/test_twin_roles.py",),
    ),
]
