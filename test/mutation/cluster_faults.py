"""Faults of the meetings of a cluster's CTAs."""

from __future__ import annotations

from fault import Fault

PREFERRED = ("test/numerics/test_preferred_clusters.py",)
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
        "fallback: a barrier counts as many arrivals as in the preferred cluster",
        "        count = arith.select(preferred, count, build.constant(in_fallback))\n",
        "        count = arith.select(preferred, count, count)\n",
        PREFERRED,
    ),
    Fault(
        "fallback: a CTA loads its own part of a tile and not those that nobody else has",
        "        return first, first + self._either(build.constant(1), build.constant(share))",
        "        return first, first + self._either(build.constant(1), build.constant(1))",
        PREFERRED,
    ),
    Fault(
        "fallback: a mask has the ranks of the preferred cluster",
        "self._either(mask, self.fallback.mask(pair, axes))",
        "self._either(mask, mask)",
        PREFERRED,
    ),
    Fault(
        "fallback: the leader CTA has its rank of the preferred cluster",
        "        return self._either(own, self.fallback.leader_rank())",
        "        return self._either(own, own)",
        PREFERRED,
    ),
    Fault(
        "fallback: the kernel requires its preferred cluster of a launch",
        " and fallback_of(kernel) is None:  # else",
        ":  # else",
        PREFERRED,
    ),
    Fault(
        "phases: arrivals in a fallback cluster are not counted",
        "        _Phases(kernel, fallback, of_fallback=True).check()",
        "        pass",
        ("test/passes/test_phase_counts.py",),
    ),
    Fault(
        "bundles: the hash of a launch leaves its preferred cluster out",
        "    records += [manifest[PREFERRED]] if PREFERRED in manifest else []\n",
        "",
        ("test/runtime/test_manifest_and_ptx.py",),
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
