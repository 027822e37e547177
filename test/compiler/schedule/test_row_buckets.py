"""Which rows share a kernel: all of them have one, and one that does well there."""

import functools
import itertools
from dataclasses import replace

import pytest

from tilewright.compiler.buckets import buckets_for, compile_buckets
from tilewright.compiler.driver import choose_pipeline
from tilewright.compiler.schedule.any_size.buckets import (
    JUDGED,
    SEARCHED,
    losses_of,
    shared_schedules,
)
from tilewright.compiler.schedule.any_size.sharing import LOSS, TIE, for_rows
from tilewright.compiler.schedule.estimates.estimate import estimate
from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.schedule.rules.rules import grid_parts
from tilewright.compiler.schedule.search.choice import choose_schedule
from tilewright.compiler.spec import ROWS_MOST, MatmulSpec
from tilewright.dialects.errors import OptionError
from tilewright.dialects.target import find_target
from tilewright.runtime.bundles.several import KERNELS_MAX

TARGETS = ("h100", "sm_90a", "sm_100a")
SHAPES = [(4096, 4096), (5120, 3072), (1024, 8192), (96, 200)]


shared_for = functools.cache(shared_schedules)
"""Once for the tests of this file: each takes a second."""


def any_m(n: int, k: int, **more) -> MatmulSpec:
    return MatmulSpec(4096, n, k, dynamic_m=True, **more)


@pytest.mark.sweep(12)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_kernels_share_all_rows_in_ranges_that_follow_each_other(n, k, target):
    buckets = buckets_for(any_m(n, k), target)
    assert 2 < len(buckets) <= KERNELS_MAX
    ranges = sorted(rows for each in buckets for rows in each.ranges)
    assert ranges[0][0] == 1 and ranges[-1][1] == ROWS_MOST
    assert all(least == before + 1 for (_, before), (least, _) in itertools.pairwise(ranges))
    for each in buckets:
        assert (each.spec.least_m, each.spec.most_m) == (each.ranges[0][0], each.ranges[-1][1])
    assert len({each.pipeline for each in buckets}) == len(buckets)
    assert [each.spec.least_m for each in buckets] == sorted(each.spec.least_m for each in buckets)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("target", "n", "k"), [("h200", 1024, 8192), ("sm_100a", 1024, 8192)])
def test_no_row_between_the_ends_of_ranges_is_served_much_slower(target, n, k):
    """Rows that are none of those that the kernels were compared at, as the choice takes each."""
    chip = find_target(target)
    shared = shared_for(any_m(n, k), chip)
    served = sorted(((rows[1], each) for each, own in shared for rows in own), key=lambda e: e[0])
    for m in (21, 100, 155, 300, 437, 700, 1100, 1555, 2600, 3333, 4700, 5000, 6000, 7111, 9999):
        own = MatmulSpec(m, n, k, dynamic_m=True, least_m=1, most_m=m)
        problem, taken = Problem.of(own, chip), next(each for most, each in served if m <= most)
        best = choose_schedule(own, chip)
        times = [estimate(problem, each, chip).total_us for each in (taken, best)]
        assert times[0] <= 1.15 * times[1], (m, times)


def test_a_schedule_is_left_out_where_the_others_do_as_well():
    """Each one that is kept is needed somewhere, and what is served is nearly the best there."""
    chip = find_target("h200")
    pool, losses = losses_of(any_m(96, 200), chip)
    shared = shared_for(any_m(96, 200), chip)
    assert len(shared) < len(pool) and len(JUDGED) == losses.shape[1]
    kept = [pool.index(schedule) for schedule, _ in shared]
    assert losses[kept].min(0).max() <= 1 + LOSS
    for one in kept:
        assert losses[[each for each in kept if each != one]].min(0).max() > 1 + LOSS
    for number, (_, ranges) in zip(kept, shared, strict=True):
        for column, rows in enumerate(JUDGED):
            if any(least <= rows <= most for least, most in ranges):
                assert losses[number, column] <= losses[kept, column].min() + TIE


def test_parts_of_k_over_the_grid_serve_rows_of_several_tiles():
    """As many as multiprocessors have tiles, as with a known M; of Hopper clusters have them."""
    chip, spec = find_target("sm_100a"), any_m(1024, 16384)
    shared = shared_for(spec, chip)
    parted = [(each, rows) for each, own in shared if each.split_grid > 1 for rows in own]
    several = [(each, rows) for each, rows in parted if rows[0] > each.tile[0]]
    assert several and all(most < ROWS_MOST for _, (_, most) in parted)
    for m in (130, 200, 300, 400):
        (taken,) = [each for each, (least, most) in several if least <= m <= most]
        known = replace(spec, m=m, dynamic_m=False)
        best = estimate(Problem.of(known, chip), choose_schedule(known, chip), chip).total_us
        assert estimate(Problem.of(for_rows(spec, m), chip), taken, chip).total_us <= 1.02 * best
    hopper = find_target("h200")
    assert all(each.split_grid == 1 for each, _ in shared_for(any_m(1024, 8192), hopper))


@pytest.mark.parametrize(
    ("target", "most", "said"),
    [
        ("sm_100a", 0, "tiles whose most are known"),
        ("sm_100a", 64 * 149, "149 tiles are over 148 multiprocessors"),
        ("h200", 200, "in clusters where that was measured"),
    ],
)
def test_rows_without_end_or_of_too_many_tiles_have_no_parts_over_the_grid(target, most, said):
    chip = find_target(target)
    bounds = {"least_m": 1, "most_m": most} if most else {}
    problem = Problem.of(replace(any_m(64, 8192), m=100, **bounds), chip)
    assert said in (grid_parts(problem, Schedule((64, 64, 64), split_grid=4), chip) or "")


def test_a_schedule_is_chosen_at_rows_that_are_compared():
    assert set(SEARCHED) <= set(JUDGED) and list(JUDGED) == sorted(set(JUDGED))
    assert all(rows % 64 == 0 for rows in JUDGED if rows > 2048)


def test_few_rows_have_the_schedule_of_a_known_m():
    """One by lanes for each number that these take, then also A and B exchanged, and parts of K
    over the grid, which ask for rows of one tile."""
    for target, n, k, wanted in (("h100", 1024, 8192, "swap"), ("sm_100a", 1024, 8192, "grid")):
        *lanes, few = buckets_for(any_m(n, k), target)[:5]
        for m, each in enumerate(lanes, 1):
            assert each.ranges == ((m, m),) and each.spec.least_m == each.spec.most_m == m
            assert each.pipeline.startswith(f"tiling{{tile={m}x")
            assert each.pipeline == choose_pipeline(MatmulSpec(m, n, k), target)
        assert wanted in few.pipeline and few.ranges[0][0] == few.spec.least_m == 5
        known = [MatmulSpec(m, n, k) for m in SEARCHED if m <= few.ranges[0][1]]
        assert few.pipeline in [choose_pipeline(each, target) for each in known]


def test_threads_and_warps_need_one_kernel():
    assert [each.spec.most_m for each in buckets_for(any_m(64, 64), "sm_80")] == [0]
    doubles = any_m(64, 64, a_dtype="f64", b_dtype="f64", c_dtype="f64", acc_dtype="f64")
    assert [each.spec.most_m for each in buckets_for(doubles, "sm_90a")] == [0]


def test_linalg_gets_the_kernels_of_its_spec(tmp_path):
    """But for their names, which a text gives."""
    spec = any_m(96, 200)
    source = tmp_path / "any.mlir"
    source.write_text(spec.mlir_text())
    begun = []
    of_text = compile_buckets(source, target="sm_100a", until="ptx", begin=begun.append)
    of_spec = compile_buckets(spec, target="sm_100a", until="ptx")
    wanted, found = (
        [each.ptx.replace(each.entry, "kernel") for each in several]
        for several in (of_spec, of_text)
    )
    assert found == wanted
    assert begun == buckets_for(spec, "sm_100a")
    assert [each.ranges for each in of_text] == [each.ranges for each in begun]


@pytest.mark.parametrize(
    ("least", "most", "m", "dynamic"),
    [(1, 16, 17, True), (18, 32, 17, True), (1, 16, 8, False), (0, 16, 8, True), (1, 0, 8, True)],
)
def test_bounds_that_a_spec_does_not_take_are_refused(least, most, m, dynamic):
    said = "least_m and most_m must be around the m of a dynamic m, or both 0"
    with pytest.raises(OptionError, match=said):
        MatmulSpec(m, 64, 64, dynamic_m=dynamic, least_m=least, most_m=most)


def test_a_measured_schedule_serves_its_own_rows():
    """Also where another is estimated to be as fast; 96 rows would fill half of its last tile."""
    spec = any_m(14336, 4096)
    served = {most: each.pipeline for each in buckets_for(spec, "h200") for _, most in each.ranges}
    measured = choose_pipeline(MatmulSpec(128, 14336, 4096), "h200")
    assert served[next(most for most in sorted(served) if most >= 128)] == measured
    assert served[next(most for most in sorted(served) if most >= 96)] != measured
