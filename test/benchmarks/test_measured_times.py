"""The table of measured times that the estimate is fitted to stays readable as schedules grow."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilewright.compiler.schedule.chips import chip_figures
from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import find_target

FOLDER = Path(__file__).parents[2] / "benchmarks" / "estimate"


@pytest.fixture
def fit_estimate(monkeypatch):
    """The script, imported as when it is run."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("fit_estimate")
    sys.modules.pop("fit_estimate", None)


@pytest.mark.parametrize(("gpu", "least"), [("sm_90a", 2500), ("h100", 1500)])
def test_the_tables_in_the_repository_can_be_judged(fit_estimate, gpu, least):
    target, shapes = find_target(gpu), fit_estimate.read_table(fit_estimate.TABLES[gpu], gpu)
    assert sum(map(len, shapes.values())) > least
    some = dict(list(fit_estimate.legal_rows(shapes, target).items())[:8])
    assert all(0.5 < each <= 1 for each in fit_estimate.ratios(some, some, target))


def test_a_fit_moves_only_the_figures_of_its_gpu(fit_estimate, monkeypatch):
    shapes = fit_estimate.read_table(fit_estimate.TABLES["h100"])
    some, target = dict(list(shapes.items())[:2]), find_target("h100")
    usual = dict(chip_figures.FIGURES)
    monkeypatch.setattr(chip_figures, "OF_GPUS", dict(chip_figures.OF_GPUS))
    found = fit_estimate.fit(some, 1, 0, target)
    assert set(found) == set(fit_estimate.DIFFERING)
    assert chip_figures.FIGURES == usual
    assert fit_estimate.loss(some, target) >= 0


def test_rows_are_added_to_those_of_fewer_columns(fit_estimate, tmp_path):
    table = tmp_path / "times.csv"
    table.write_text('m,n,k,us,tile,stages\n14,344,6200,7.26,"[64,16,128]",10\n')
    problem = Problem.of(MatmulSpec(70, 328, 72), find_target("sm_90a"))
    added = Schedule((128, 80, 64), 5, swap=True, staging=(32, 2))
    fit_estimate.add_rows(table, [SimpleNamespace(problem=problem, schedule=added, us=3.5)])
    (first, second) = fit_estimate.read_table(table).items()
    assert first[0].m == 14 and first[1] == [(Schedule((64, 16, 128), 10), 7.26)]
    assert second == (problem, [(added, 3.5)])


def test_rows_know_the_majors_of_their_operands(fit_estimate, tmp_path):
    table, target = tmp_path / "times.csv", find_target("sm_90a")
    specs = [MatmulSpec(72, 328, 72, a_major=a, b_major=b) for a, b in ("kk", "mk", "kn", "mn")]
    problems, schedule = [Problem.of(each, target) for each in specs], Schedule((64, 64, 64), 5)
    rows = [SimpleNamespace(problem=each, schedule=schedule, us=3.5) for each in problems]
    fit_estimate.add_rows(table, rows)
    assert list(fit_estimate.read_table(table)) == problems


@pytest.mark.parametrize("gpu", ["sm_90a", "h100"])
def test_figures_of_parts_are_taken_and_given_back(fit_estimate, monkeypatch, gpu):
    for name in ("FIGURES", "OF_GPUS"):
        monkeypatch.setattr(chip_figures, name, dict(getattr(chip_figures, name)))
    target = find_target(gpu)
    before = chip_figures.figures(target)
    fit_estimate.with_figures({"parts_read": 7, "split_share": 0.5, "tma_latency": 9}, target)
    found = chip_figures.figures(target)
    assert (found.parts.read, found.split.share, found.tma_latency) == (7, 0.5, 9)
    assert (found.parts.write, found.split.start) == (before.parts.write, before.split.start)
    fit_estimate.with_figures({}, target)
    assert chip_figures.figures(target) == before


@pytest.mark.parametrize("gpu", ["sm_90a", "h100"])
def test_rows_of_clusters_that_met_with_a_release_count_as_less(fit_estimate, tmp_path, gpu):
    table = tmp_path / "times.csv"
    lines = ['2,"[1,2]",1', '1,"[1,2]",1', '0,"[1,2]",1', '2,"[1,1]",1', '2,"[1,1]",4']
    rows = [f'14,344,6200,7.26,"[64,16,128]",{each}' for each in lines]
    table.write_text("\n".join(["m,n,k,us,tile,released,cluster,split_k", *rows, ""]))
    (found,) = fit_estimate.read_table(table, gpu).values()
    first, last = fit_estimate.RELEASED_US[gpu]
    assert min(last, first) > 0
    less = [7.26 - us for _, us in found]
    assert less == pytest.approx([last + first, last, 0, 0, first])
    fit_estimate.add_rows(table, [])
    (kept,) = fit_estimate.read_table(table, gpu).values()
    assert kept == found


def test_columns_that_no_schedule_has_are_refused(fit_estimate, tmp_path):
    table = tmp_path / "times.csv"
    table.write_text("m,n,k,us,colour\n")
    with pytest.raises(ValueError, match="colour"):
        fit_estimate.read_table(table)
