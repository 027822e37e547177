"""Estimates of a schedule for many problems at once are those of each by itself."""

import math

import numpy as np
import pytest

from tilewright.compiler.schedule.any_size import vectorized
from tilewright.compiler.schedule.any_size.sharing import for_rows
from tilewright.compiler.schedule.any_size.vectorized import (
    Numbers,
    Problems,
    Run,
    kept_by,
    times_of,
)
from tilewright.compiler.schedule.estimates.estimate import estimate
from tilewright.compiler.schedule.problem import Problem
from tilewright.compiler.schedule.rules.group_rules import level_schedule
from tilewright.compiler.schedule.rules.rules import broken_rule
from tilewright.compiler.schedule.search.choice import choose_schedule, target_for
from tilewright.compiler.spec import MatmulSpec

SIZES = [1, 8, 60, 64, 120, 129, 200, 500, 513, 1000, 2000, 3000, 4100, 8000, 9000, 20000]
BIAS = {"beside_columns": ("bf16",), "epilogue_instructions": 8}
MAJORS = {"a_major": "m", "b_major": "n"}
OPEN = {
    "rows": (1000, 4096, 1024, {"dynamic_m": True}),
    "rows beside a residual": (64, 768, 512, {"dynamic_m": True, "beside": ("bf16",)}),
    "rows that start inside lines": (64, 1000, 4100, {"dynamic_m": True, **BIAS}),
    "rows in groups": (4096, 2048, 1024, {"dynamic_m": True, "groups": 8}),
    "rows of an A with M contiguous": (64, 512, 512, {"dynamic_m": True, "a_major": "m"}),
    "matrices": (256, 384, 512, {"dynamic_batch": True, "batch": 16}),
    "rows of matrices": (64, 512, 512, {"dynamic_m": True, "dynamic_batch": True, "batch": 4}),
    "K": (256, 512, 1024, {"dynamic_k": True, **MAJORS}),
}


@pytest.mark.parametrize("chip", ["sm_90a", "h100", "sm_100a"])
@pytest.mark.parametrize("name", OPEN)
def test_every_time_is_that_of_the_problem_alone(name, chip, monkeypatch):
    monkeypatch.setattr(vectorized, "FEW", 1)
    m, n, k, more = OPEN[name]
    spec = MatmulSpec(m, n, k, **more)
    target = target_for(spec, chip)
    unit = max(1, spec.groups)
    specs = [for_rows(spec, unit * size) for size in SIZES if unit * size < 2**31]
    problems = [Problem.of(each, target) for each in specs]
    many, chosen = Problems(problems), {choose_schedule(each, target) for each in specs[1::5]}
    in_turn = {one.but(scheduler="static", order="hilbert") for one in chosen if not one.level}
    for one in chosen | in_turn:
        found = times_of(many, one, target, np.arange(len(problems))).tolist()
        assert found == [estimate(each, one, target).total_us for each in problems]
        assert all(map(math.isfinite, found))
    assert not times_of(Problems([]), next(iter(chosen)), target, np.arange(0)).size


@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", OPEN)
def test_rules_are_kept_by_the_problems_that_keep_them_alone(name, chip, monkeypatch):
    """Of schedules that are chosen at some sizes, and of others of which most break a rule."""
    monkeypatch.setattr(vectorized, "FEW", 1)
    m, n, k, more = OPEN[name]
    spec = MatmulSpec(m, n, k, **more)
    target, unit, judged = target_for(spec, chip), max(1, spec.groups), set()
    specs = [for_rows(spec, unit * size) for size in SIZES if unit * size < 2**31]
    problems = [Problem.of(each, target) for each in specs]
    chosen = {choose_schedule(each, target) for each in specs[1::5]}
    others = [(one.but(scheduler="static"), one.but(cluster=(2, 2))) for one in chosen]
    for one in (*chosen, *sum(others, ())):
        found = kept_by(Problems(problems), one, target)
        assert found == [broken_rule(each, one, target) is None for each in problems]
        judged |= set(found)
    assert judged == {True, False}


def test_tiles_of_equal_height_are_estimated_of_the_problem_before_it_is_exchanged():
    spec = MatmulSpec(8192, 8192, 5120, groups=16, b_major="n", dynamic_m=True)
    target = target_for(spec, "sm_90a")
    problems = [Problem.of(for_rows(spec, 16 * size), target) for size in SIZES]
    level = level_schedule(problems[0])
    alone = [estimate(each, level, target).total_us for each in problems]
    found = times_of(Problems(problems), level, target, np.arange(len(problems)))
    assert found.tolist() == alone
    kept = [broken_rule(each, level, target) is None for each in problems]
    assert kept_by(Problems(problems), level, target) == kept and any(kept) and not all(kept)


def test_a_function_of_one_number_is_asked_for_those_that_are_alike():
    run = Run(4)
    assert math.sqrt(Numbers(np.array([4, 9, 4, 16]), run)) == 2
    assert run.places.tolist() == [0, 2]
    assert sorted(place for places in run.others for place in places) == [1, 3]
