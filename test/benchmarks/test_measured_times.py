"""The table of measured times that the estimate is fitted to stays readable as schedules grow."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import find_target

FOLDER = Path(__file__).parents[2] / "benchmarks" / "estimate"


@pytest.fixture
def measured_times(monkeypatch):
    """The script, imported as when it is run."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("measured_times")
    sys.modules.pop("measured_times", None)


@pytest.mark.parametrize(("gpu", "least"), [("sm_90a", 2500), ("h100", 1500)])
def test_the_tables_in_the_repository_have_schedules_that_may_be_chosen(measured_times, gpu, least):
    target, shapes = find_target(gpu), measured_times.read_table(measured_times.TABLES[gpu], gpu)
    assert sum(map(len, shapes.values())) > least
    legal = measured_times.legal_rows(dict(list(shapes.items())[:8]), target)
    assert all(rows and all(row.us > 0 for row in rows) for rows in legal.values())


def test_rows_are_added_to_those_of_fewer_columns(measured_times, tmp_path):
    table = tmp_path / "times.csv"
    table.write_text('m,n,k,us,tile,stages\n14,344,6200,7.26,"[64,16,128]",10\n')
    problem = Problem.of(MatmulSpec(70, 328, 72), find_target("sm_90a"))
    added = Schedule((128, 80, 64), 5, swap=True, staging=(32, 2))
    measured_times.add_rows(table, [SimpleNamespace(problem=problem, schedule=added, us=3.5)])
    (first, second) = measured_times.read_table(table, "sm_90a").items()
    assert first[0].m == 14 and first[1] == [(Schedule((64, 16, 128), 10), 7.26, False)]
    assert second == (problem, [(added, 3.5, False)])


def test_rows_know_the_majors_of_their_operands(measured_times, tmp_path):
    table, target = tmp_path / "times.csv", find_target("sm_90a")
    specs = [MatmulSpec(72, 328, 72, a_major=a, b_major=b) for a, b in ("kk", "mk", "kn", "mn")]
    problems, schedule = [Problem.of(each, target) for each in specs], Schedule((64, 64, 64), 5)
    rows = [SimpleNamespace(problem=each, schedule=schedule, us=3.5) for each in problems]
    measured_times.add_rows(table, rows)
    assert list(measured_times.read_table(table, "sm_90a")) == problems


@pytest.mark.parametrize("gpu", ["sm_90a", "h100"])
def test_rows_of_clusters_that_met_with_a_release_count_as_less(measured_times, tmp_path, gpu):
    table = tmp_path / "times.csv"
    lines = ['2,"[1,2]",1', '1,"[1,2]",1', '0,"[1,2]",1', '2,"[1,1]",1', '2,"[1,1]",4']
    rows = [f'14,344,6200,7.26,"[64,16,128]",{each}' for each in lines]
    table.write_text("\n".join(["m,n,k,us,tile,released,cluster,split_k", *rows, ""]))
    (found,) = measured_times.read_table(table, gpu).values()
    first, last = measured_times.RELEASED_US[gpu]
    assert min(last, first) > 0
    less = [7.26 - row.us for row in found]
    assert less == pytest.approx([last + first, last, 0, 0, first])
    measured_times.add_rows(table, [])
    (kept,) = measured_times.read_table(table, gpu).values()
    assert kept == found


def test_rows_know_whether_their_boxes_were_whole(measured_times, tmp_path):
    table = tmp_path / "times.csv"
    table.write_text(
        "m,n,k,us,whole,tile\n"
        + "".join(f'14,344,6200,7.26,{each},"[64,16,128]"\n' for each in ("true", "false"))
    )
    measured_times.add_rows(table, [])
    (found,) = measured_times.read_table(table, "sm_90a").values()
    assert [row.whole for row in found] == [True, False]


def test_columns_that_no_schedule_has_are_refused(measured_times, tmp_path):
    table = tmp_path / "times.csv"
    table.write_text("m,n,k,us,colour\n")
    with pytest.raises(ValueError, match="colour"):
        measured_times.read_table(table, "sm_90a")
