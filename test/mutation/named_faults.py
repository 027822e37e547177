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
    Fault(
        "rounded sums: an MMA writes sums before a cvt reads them where they are",
        "    if behind or any(reader.name",
        "    if any(reader.name",
        ("test/passes/test_rounded_sums.py",),
    ),
    Fault(
        "rounded sums: the halves of a pair are exchanged",
        "{registers[high]}, {registers[low]};",
        "{registers[low]}, {registers[high]};",
        ("test/passes/test_rounded_sums.py",),
    ),
]
