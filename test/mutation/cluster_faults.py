"""Faults of the meetings of a cluster's CTAs."""

from __future__ import annotations

from fault import Fault

CLUSTERS = [
    Fault(
        "prologue: CTAs that have written the address of tensor memory meet without a release",
        "releases=written or memory is not None",
        "releases=written",
        ("test/passes/test_phase_counts.py",),
    ),
    Fault(
        "ends: a meeting that must release need not",
        "not op.releases.value and self._writes(at)",
        "not op.releases.value and not self._writes(at)",
        ("test/passes/test_phase_counts.py",),
    ),
]
