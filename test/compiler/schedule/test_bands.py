"""Which rows of how many matrices share a kernel: all have one, and one that does well there."""

from dataclasses import replace
from itertools import groupby, pairwise
from statistics import mean

import pytest

from tilewright.compiler.schedule.any_size import buckets
from tilewright.compiler.schedule.any_size.buckets import shared_schedules
from tilewright.compiler.schedule.any_size.sharing import for_rows
from tilewright.compiler.schedule.estimates.estimate import estimate
from tilewright.compiler.schedule.problem import Problem
from tilewright.compiler.schedule.rules.rules import broken_rule
from tilewright.compiler.schedule.search.choice import choose_schedule
from tilewright.compiler.spec import BATCH_HINT, ROWS_MOST, MatmulSpec
from tilewright.dialects.target import find_target
from tilewright.runtime.bundles.several import (
    BANDS_MAX,
    KERNELS_MAX,
    RANGES_MAX,
    bands_of,
    number_of,
)

SIZES = [
    *(
        (1, 1),
        (1, 77),
        (1, 1300),
        (2, 20),
        (3, 225),
        (5, 300),
        (8, 8),
        (9, 190),
        (20, 40),
        (31, 700),
    ),
    *((50, 3), (100, 130), (200, 17), (700, 65)),
]
"""Matrices and their rows, hardly any of which are those that kernels are compared at."""


def any_sizes(n: int, k: int) -> MatmulSpec:
    return MatmulSpec(4096, n, k, dynamic_m=True, batch=BATCH_HINT, dynamic_batch=True)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(("n", "k"), [(1024, 1024), (128, 768), (200, 4096)])
def test_kernels_share_all_rows_of_all_numbers_of_matrices(n, k, target, monkeypatch):
    """Each pair once; a kernel keeps the rules for all of its rows, and is estimated to take hardly
    longer than the one that is chosen for the pair alone."""
    spec, chip = any_sizes(n, k), find_target(target)
    shared = shared_schedules(spec, chip)
    assert 2 < len(shared) <= KERNELS_MAX
    assert len({schedule for schedule, _ in shared}) == len(shared)
    found = sorted(each[2:] + each[:2] for _, ranges in shared for each in ranges)
    bands = [(band, [each[2:] for each in own]) for band, own in groupby(found, lambda e: e[:2])]
    for ends in ([band for band, _ in bands], *(rows for _, rows in bands)):
        assert ends[0][0] == 1 and ends[-1][1] == ROWS_MOST
        assert all(least == before + 1 for (_, before), (least, _) in pairwise(ends))
    assert 2 < len(bands) <= BANDS_MAX and max(len(rows) for _, rows in bands) <= RANGES_MAX
    table = bands_of([ranges for _, ranges in shared])
    first = dict.fromkeys(number for _, ranges in table for _, number in ranges)
    assert list(first) == list(range(len(shared)))
    monkeypatch.setattr(buckets, "shared_schedules", lambda *_: shared)
    for bucket, (schedule, ranges) in zip(buckets.buckets_of(spec, chip), shared, strict=True):
        own = bucket.spec
        ends = min(each[0] for each in ranges), max(each[1] for each in ranges)
        assert (own.least_m, own.most_m) == ends and bucket.ranges == tuple(ranges)
        problems = (Problem.of(replace(own, batch=batch), chip) for batch in (1, 1024))
        assert any(broken_rule(each, schedule, chip) is None for each in problems)
    losses = []
    for batch, m in SIZES:
        own = for_rows(replace(spec, batch=batch), m)
        pair = shared[number_of(table, m, batch)][0], choose_schedule(own, chip)
        ours, best = (estimate(Problem.of(own, chip), each, chip).total_us for each in pair)
        losses.append(ours / best)
    assert mean(losses) < 1.08 and max(losses) < 1.6, losses
