"""The estimate written for arrays is the compiler's, and a fit of it finds figures that it lost."""

import importlib
import random
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tilewright.compiler.schedule.chips import chip_figures
from tilewright.compiler.schedule.estimates.estimate import estimate
from tilewright.compiler.schedule.search.candidates import rank
from tilewright.dialects.target import find_target

FOLDER = Path(__file__).parents[2] / "benchmarks" / "estimate"
GPUS = pytest.mark.parametrize("gpu", ["sm_90a", "h100"])


@pytest.fixture
def scripts(monkeypatch):
    """The scripts, imported as when one is run: those of tables, of arrays and of fits."""
    monkeypatch.syspath_prepend(str(FOLDER))
    names = "measured_times", "table_estimate", "fit_estimate"
    yield tuple(map(importlib.import_module, names))
    for name in names:
        sys.modules.pop(name, None)


def some_of(measured_times, gpu, count):
    """As many shapes of a table, far from each other, without what breaks a rule; of kernels as
    they are made today."""
    shapes = measured_times.read_table(measured_times.TABLES[gpu], gpu)
    some = dict(list(shapes.items())[:: len(shapes) // count])
    some = {problem: [row._replace(whole=False) for row in rows] for problem, rows in some.items()}
    return measured_times.legal_rows(some, find_target(gpu))


@GPUS
def test_arrays_say_what_the_compiler_says_with_any_figures(scripts, gpu):
    measured_times, table_estimate, _ = scripts
    target, drawn = find_target(gpu), random.Random(3)
    times = some_of(measured_times, gpu, 60)
    rows, own = table_estimate.rows_of(times, target), table_estimate.values_of(target)
    kinds = Counter(
        (each.split_k > 1, each.split_grid > 1, each.scheduler != "none", each.cluster_size > 1)
        for found in times.values()
        for each, *_ in found
    )
    assert len(kinds) >= 6
    for spread in (0, 0.7, 0.7):
        values = {
            name: value * np.exp(spread * drawn.uniform(-1, 1)) for name, value in own.items()
        }
        of_arrays = table_estimate.totals_us(rows, values, chip_figures.figures(target).clock)
        with table_estimate.with_figures(values, target):
            expected = [
                estimate(problem, schedule, target).total_us
                for problem, found in times.items()
                for schedule, *_ in found
            ]
        assert of_arrays == pytest.approx(expected, rel=1e-9)


@GPUS
def test_every_figure_of_a_fit_decides_something(scripts, gpu):
    measured_times, table_estimate, fit_estimate = scripts
    target = find_target(gpu)
    rows = table_estimate.rows_of(some_of(measured_times, gpu, 60), target)
    own = table_estimate.values_of(target)
    before = fit_estimate.estimated(rows, own, gpu)
    for name in fit_estimate.used_figures(own, rows):
        changed = own | {name: own[name] / 2}
        assert (fit_estimate.estimated(rows, changed, gpu) != before).any(), name


@GPUS
def test_what_is_judged_is_what_the_compiler_would_take(scripts, gpu):
    measured_times, table_estimate, fit_estimate = scripts
    target = find_target(gpu)
    times = some_of(measured_times, gpu, 40)
    rows, own = table_estimate.rows_of(times, target), table_estimate.values_of(target)
    expected = [
        min(row.us for row in found)
        / min(found, key=lambda row: rank(estimate(problem, row[0], target).total_us, row[0]))[1]
        for problem, found in times.items()
    ]
    judged = fit_estimate.ratios(rows, fit_estimate.estimated(rows, own, gpu))
    assert judged == pytest.approx(expected)
    assert min(expected) < 1  # some are chosen wrongly, and that shows


@GPUS
def test_figures_are_taken_and_given_back(scripts, monkeypatch, gpu):
    _, table_estimate, _ = scripts
    for name in ("FIGURES", "OF_GPUS"):
        monkeypatch.setattr(chip_figures, name, dict(getattr(chip_figures, name)))
    target = find_target(gpu)
    before = chip_figures.figures(target)
    values = {"parts_read": 7, "split_share": 0.5, "tma_latency": 9}
    with pytest.raises(KeyError), table_estimate.with_figures(values, target):
        found = chip_figures.figures(target)
        raise KeyError
    assert (found.parts.read, found.split.share, found.tma_latency) == (7, 0.5, 9)
    assert (found.parts.write, found.split.start) == (before.parts.write, before.split.start)
    assert chip_figures.figures(target) is before


def test_a_part_of_the_rows_is_judged_as_in_the_whole(scripts):
    measured_times, table_estimate, fit_estimate = scripts
    target = find_target("h100")
    rows = table_estimate.rows_of(some_of(measured_times, "h100", 12), target)
    found = fit_estimate.estimated(rows, table_estimate.values_of(target), "h100")
    kept = rows.problem % 2 == 1
    of_kept = fit_estimate.ratios(rows.of(kept), found[kept])
    assert list(of_kept) == list(fit_estimate.ratios(rows, found)[1::2])


def test_a_fit_finds_figures_by_which_times_were_made(scripts):
    pytest.importorskip("cma")
    measured_times, table_estimate, fit_estimate = scripts
    target = find_target("sm_90a")
    rows = table_estimate.rows_of(some_of(measured_times, "sm_90a", 10), target)
    made = table_estimate.values_of(target) | {"l2_total_rate": 3500, "tma_latency": 1500}
    us = fit_estimate.estimated(rows, made, "sm_90a") + fit_estimate.LAUNCH_US
    names = ("l2_total_rate", "tma_latency")
    task = fit_estimate.Task(rows._replace(us=us), "sm_90a", names, seed=2, steps=30)
    found = fit_estimate.fitted(task)
    assert found == fit_estimate.fitted(task)
    assert found["l2_total_rate"] == pytest.approx(3500, rel=0.02)
    assert found["tma_latency"] == pytest.approx(1500, rel=0.02)
    assert {name: found[name] for name in made if name not in names} == {
        name: made[name] for name in made if name not in names
    }


def test_the_choice_is_as_good_as_the_page_says(scripts):
    """docs/appendix/estimate.md: of all measured schedules, none of them left out."""
    measured_times, table_estimate, fit_estimate = scripts
    target = find_target("sm_90a")
    times = measured_times.read_table(measured_times.TABLE, "sm_90a")
    rows = table_estimate.rows_of(measured_times.legal_rows(times, target), target)
    assert (rows.problem[-1] + 1, len(rows.us)) == (733, 12320)
    values = table_estimate.values_of(target)
    found = fit_estimate.ratios(rows, fit_estimate.estimated(rows, values, "sm_90a"))
    assert np.exp(np.log(found).mean()) > 0.982
    assert found.min() > 0.852
    assert (found < 0.9).sum() <= 12
