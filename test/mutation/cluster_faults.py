"""Faults of the meetings of a cluster's CTAs."""

from __future__ import annotations

from fault import Fault

PAIR_COLUMNS = ("test/numerics/test_pair_columns.py",)

CLUSTERS = [
    Fault(
        "legality: 2-CTA MMAs of 8 bits have halves of B of 8 rows, too",
        " and set(elements) <= set(HALF_STEP_TYPES)",
        "",
        PAIR_COLUMNS,
    ),
    Fault(
        "clustering: tiles have 2-CTA MMAs with halves of 8 rows that nobody asked for",
        "pair_step_of(mma, target) if asked else None",
        "pair_step_of(mma, target)",
        PAIR_COLUMNS,
    ),
    Fault(
        "prologue: a pair asks for tensor memory before its CTAs have met",
        "        build.cluster_barrier(written)\n    elif",
        "        pass\n    elif",
        ("test/passes/test_phase_counts.py",),
    ),
    Fault(
        "ends: a meeting that must release need not",
        "not op.releases.value and self._writes(at)",
        "not op.releases.value and not self._writes(at)",
        ("test/passes/test_phase_counts.py",),
    ),
    Fault(
        "prologue: CTAs that read each other's memory end behind a relaxed meeting",
        "_meet(rings, releases=rings.cluster.split > 1)",
        "_meet(rings, releases=False)",
        ("test/passes/test_phase_counts.py",),
    ),
    Fault(
        "allocation: a pair may ask for tensor memory before both CTAs are there",
        "        if group == 2:\n            warp.launch",
        "        if group == 3:\n            warp.launch",
        ("test/bugs",),
    ),
    Fault(
        "freed-pairs: one CTA may free what the other still takes",
        "    if taken and not _unknown(taken, happened):\n",
        "    if peer:\n",
        ("test/emulator/races/test_freed_pairs.py",),
    ),
    Fault(
        "pipes: who copied for the leader of a pair arrives with the scope of its own CTA",
        "in_cluster=writes)",
        "in_cluster=False)",
        ("test/bugs",),
    ),
]
