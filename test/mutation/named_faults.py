"""Planted faults of sums in registers that PTX names."""

from __future__ import annotations

from fault import Fault

NAMED = [
    Fault(
        "named sums: what somebody stores to a slot between MMAs is lost",
        'IN_PLACE = re.compile("(lp|lm+s)*")',
        'IN_PLACE = re.compile("(lp|lm+|s)*")',
        ("test/backend/test_named_sums.py",),
    ),
]
