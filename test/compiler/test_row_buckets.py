"""Which rows share a kernel: all of them have one, and one that does well there."""

import itertools

import pytest

from tilewright.compiler.buckets import bucket_specs, compile_buckets
from tilewright.compiler.driver import choose_pipeline
from tilewright.compiler.schedule.buckets import LOSS, STEPS, buckets_of
from tilewright.compiler.schedule.choice import choose_schedule, measured_schedule
from tilewright.compiler.schedule.estimate import estimate
from tilewright.compiler.schedule.problem import Problem
from tilewright.compiler.spec import ROWS_MOST, MatmulSpec
from tilewright.dialects.errors import OptionError
from tilewright.dialects.target import find_target

TARGETS = ("h200", "sm_90a", "sm_100a")
SHAPES = [(4096, 4096), (5120, 3072), (1024, 8192), (96, 200)]


@pytest.mark.sweep(12)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_kernels_share_all_rows_and_do_well_at_each_step(n, k, target):
    spec, chip = MatmulSpec(7, n, k), find_target(target)
    buckets = buckets_of(spec, chip)
    ends = [0, *(each.most_m for each in buckets)]
    assert ends[-1] == ROWS_MOST
    assert [each.least_m for each in buckets] == [end + 1 for end in ends[:-1]]
    for rows in STEPS:
        own = MatmulSpec(rows, n, k, dynamic_m=True, least_m=1, most_m=rows)
        shared = next(each for each in buckets if rows <= each.most_m)
        taken, best = choose_schedule(shared, chip), choose_schedule(own, chip)
        problem = Problem.of(own, chip)
        if taken != best:
            assert not measured_schedule(problem, chip)
            times = [estimate(problem, each, chip).total_us for each in (taken, best)]
            assert times[0] <= (1 + LOSS) * times[1]


def test_neighbours_have_different_schedules():
    for target in ("h200", "sm_100a"):
        found = [choose_pipeline(each, target) for each in bucket_specs(any_m(4096, 4096), target)]
        assert len(found) > 2
        assert all(one != other for one, other in itertools.pairwise(found))


def any_m(n: int, k: int, **more) -> MatmulSpec:
    return MatmulSpec(4096, n, k, dynamic_m=True, **more)


def test_few_rows_have_the_schedule_of_a_known_m():
    """Also A and B exchanged, and parts of K over the grid, which ask for rows of one tile."""
    for target, n, k, wanted in (("sm_100a", 5120, 3072, "swap"), ("sm_100a", 1024, 8192, "grid")):
        few = bucket_specs(any_m(n, k), target)[0]
        assert wanted in choose_pipeline(few, target)
        assert choose_pipeline(few, target) == choose_pipeline(MatmulSpec(few.m, n, k), target)


def test_threads_and_warps_need_one_kernel():
    assert [each.most_m for each in bucket_specs(any_m(64, 64), "sm_80")] == [0]
    doubles = any_m(64, 64, a_dtype="f64", b_dtype="f64", c_dtype="f64", acc_dtype="f64")
    assert [each.most_m for each in bucket_specs(doubles, "sm_90a")] == [0]


def test_linalg_gets_the_kernels_of_its_spec(tmp_path):
    spec = any_m(96, 200)
    source = tmp_path / "any.mlir"
    source.write_text(spec.mlir_text())
    begun = []
    of_text = compile_buckets(source, target="sm_100a", until="ptx", begin=begun.append)
    of_spec = compile_buckets(spec, target="sm_100a", until="ptx")
    assert [each.ptx for each in of_text] == [each.ptx for each in of_spec]
    assert [each.most_m for each in begun] == [
        each.most_m for each in bucket_specs(spec, "sm_100a")
    ]


@pytest.mark.parametrize(
    ("least", "most", "m", "dynamic"),
    [(1, 16, 17, True), (18, 32, 17, True), (1, 16, 8, False), (0, 16, 8, True), (1, 0, 8, True)],
)
def test_bounds_that_a_spec_does_not_take_are_refused(least, most, m, dynamic):
    said = "least_m and most_m must be around the m of a dynamic m, or both 0"
    with pytest.raises(OptionError, match=said):
        MatmulSpec(m, 64, 64, dynamic_m=dynamic, least_m=least, most_m=most)


def test_a_measured_schedule_serves_rows_that_fill_its_tiles():
    """96 rows would fill half of the second of two tiles of 64, which 128 rows fill."""
    few = next(each for each in bucket_specs(any_m(4096, 4096), "h200") if each.most_m == 96)
    chosen = choose_pipeline(few, "h200")
    assert chosen != choose_pipeline(MatmulSpec(128, 4096, 4096), "h200")
    assert "tile=64x64x64" not in chosen
