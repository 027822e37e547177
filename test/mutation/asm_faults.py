"""Faults of MMAs that share an asm."""

from __future__ import annotations

from fault import Fault

ASMS = [
    Fault(
        "wgmma: an asm goes on behind the end of a group",
        "    return pure and not any(",
        "    return not any(",
        ("test/passes/test_wgmma_runs.py",),
    ),
]
