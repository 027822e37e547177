"""The table of measured schedules: what it serves, what it refuses, and that it goes first."""

import json
from dataclasses import fields, replace

import pytest

from tilewright.compiler.schedule import tuned_schedules
from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.schedule.search.choice import (
    choose_schedule,
    explain_schedule,
    measured_schedule,
)
from tilewright.compiler.schedule.tuned_pipelines import tuned_pipeline
from tilewright.compiler.schedule.tuned_schedules import (
    PROBLEM,
    SCHEDULE,
    SHIPPED,
    VARIABLE,
    Tuned,
    is_of_gpu,
    read_table,
    tuned_schedule,
    write_table,
)
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.errors import CompileError
from tilewright.dialects.target import GPUS, TARGETS, find_target
from tilewright.dialects.verify import ORDERS
from tilewright.passes.schedule.epilogue_staging import VECTORS

HOPPER = find_target("sm_90a")
SPEC = MatmulSpec(640, 896, 1000)
ODD = Schedule((64, 64, 64), stages=3, staging=(32, 2))


def entry(spec=SPEC, schedule=ODD, us=12.5):
    return Tuned(Problem.of(spec, HOPPER), schedule, us, "NVIDIA H200", "2026-11-20")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table in the folder that the environment names."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    write_table(tmp_path / "sm_90a.json", [entry()])
    return tmp_path / "sm_90a.json"


@pytest.mark.usefixtures("fewer_tiles")
def test_a_measured_schedule_goes_before_the_estimate(table):
    choice = explain_schedule(SPEC, HOPPER)
    assert choose_schedule(SPEC, HOPPER) == choice.schedule == ODD
    assert choice.tuned == entry()
    measured = [each for each in choice.rejected if each.rule == "measured"]
    assert measured and ODD not in [each.schedule for each in measured]
    assert "a table has a measured one: 12.50 us for 640x896x1000 on an NVIDIA H200" in (
        measured[0].reason
    )


def test_a_table_is_read_once_for_schedules_and_pipelines(table, monkeypatch):
    files, read = [], tuned_schedules.read_regular

    def noted(path, most):
        files.append(path)
        return read(path, most)

    monkeypatch.setattr(tuned_schedules, "read_regular", noted)
    assert tuned_schedule(Problem.of(SPEC, HOPPER), HOPPER) == entry()
    assert tuned_pipeline(SPEC, HOPPER) is None
    assert files.count(table) == 1


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("instructions", "taken"), [(0, True), (6, False)])
def test_a_longer_epilogue_takes_what_hides_it(tmp_path, monkeypatch, instructions, taken):
    """Two warpgroups share the tile that was measured, and none multiplies while they compute."""
    spec, together = MatmulSpec(4096, 4096, 4096), Schedule((128, 256, 64), 4, staging=(64, 2))
    together = replace(together, scheduler="static", order="grouped")
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    write_table(tmp_path / "sm_90a.json", [entry(spec, together, 180.0)])
    longer = replace(spec, epilogue_instructions=instructions)
    assert (explain_schedule(longer, HOPPER).tuned is not None) == taken
    chosen = choose_schedule(longer, HOPPER)
    assert chosen == together if taken else chosen.ping_pong


@pytest.mark.parametrize(("instructions", "us"), [(0, 180.0), (2, 180.0), (4, 190.0), (6, 190.0)])
def test_of_entries_for_the_same_sizes_that_with_an_epilogue_as_long_serves(
    tmp_path, monkeypatch, instructions, us
):
    specs = [replace(SPEC, epilogue_instructions=each) for each in (0, 6, instructions)]
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    write_table(
        tmp_path / "sm_90a.json", [entry(specs[0], ODD, 180.0), entry(specs[1], ODD, 190.0)]
    )
    assert tuned_schedule(Problem.of(specs[2], HOPPER), HOPPER).us == us


@pytest.mark.parametrize(
    ("change", "serves"),
    [
        ({"m": 620}, True),
        ({"m": 619}, False),
        ({"m": 576}, False),
        ({"n": 872}, True),
        ({"n": 864}, False),
        ({"n": 900}, False),
        ({"k": 1240}, True),
        ({"k": 760}, True),
        ({"k": 1256}, False),
        ({"k": 1008}, False),
        ({"k": 1024}, False),
        ({"c_dtype": "f32"}, False),
        ({"b_major": "n"}, False),
        ({"k": 1001}, False),
    ],
)
def test_it_serves_problems_with_the_same_tiles_and_types(table, change, serves):
    """640×896 in 64×64 tiles is 10×14; rows of 1000 bf16 start inside sectors of L2, those of 1008
    with one, those of 1024 with a line, and TMA does not address those of 1001. Of ten tiles of 64
    rows 620 leave less than a thirty-second part outside"""
    found = tuned_schedule(Problem.of(replace(SPEC, **change), HOPPER), HOPPER)
    assert (found is not None) == serves


def test_a_single_tile_has_boxes_that_end_with_the_rows(table):
    write_table(table, [entry(replace(SPEC, m=64))])
    for m in (2, 40, 64):
        assert tuned_schedule(Problem.of(replace(SPEC, m=m), HOPPER), HOPPER) is not None


def test_rows_that_are_not_known_yet_leave_none_outside(table):
    dynamic = replace(SPEC, m=577, dynamic_m=True)
    write_table(table, [entry(replace(SPEC, dynamic_m=True))])
    assert tuned_schedule(Problem.of(dynamic, HOPPER), HOPPER) is not None


def test_an_entry_of_the_gpu_goes_before_those_of_others(table):
    h100 = find_target("h100")
    problem = Problem.of(SPEC, h100)
    assert tuned_schedule(problem, h100).schedule == ODD, "L2 holds the operands of both"
    other = replace(ODD, stages=4)
    write_table(table, [replace(entry(), schedule=other, gpu="NVIDIA H100 80GB HBM3")])
    assert tuned_schedule(problem, h100).schedule == other


def test_entries_of_two_gpus_each_serve_theirs(table):
    other = replace(ODD, stages=4)
    of_h100 = replace(entry(), schedule=other, gpu="NVIDIA H100 80GB HBM3")
    for entries in ([of_h100, entry()], [entry(), of_h100]):
        write_table(table, entries)
        assert len(read_table(table)) == 2
        for name, schedule in (("sm_90a", ODD), ("h200", ODD), ("h100", other)):
            found = find_target(name)
            assert tuned_schedule(Problem.of(SPEC, found), found).schedule == schedule


def test_an_entry_of_another_gpu_serves_only_what_l2_holds(table):
    """58 MB of A and B: more than an H100's 50"""
    large = MatmulSpec(2048, 2048, 7088)
    write_table(table, [entry(large)])
    for target, serves in (("h200", True), ("h100", False)):
        found = find_target(target)
        assert (tuned_schedule(Problem.of(large, found), found) is not None) == serves


def test_the_nearest_entry_serves(table):
    near = replace(SPEC, k=1112)
    write_table(table, [entry(), entry(near, replace(ODD, stages=4), 14.0)])
    assert choose_schedule(replace(SPEC, k=1096), HOPPER).stages == 4
    assert choose_schedule(replace(SPEC, k=1016), HOPPER).stages == 3


@pytest.mark.usefixtures("fewer_tiles")
def test_an_entry_that_breaks_a_rule_is_left_out_with_a_warning(table):
    along_m = ODD.but(scheduler="static", order="m")
    write_table(table, [entry(schedule=along_m)])
    assert choose_schedule(SPEC, HOPPER) == along_m
    broken = along_m.but(order="grouped", group=10)
    write_table(table, [entry(schedule=broken)])
    rule = "breaks group-height: a group of 10 is no less than the 10 tiles along M; it is left out"
    with pytest.warns(UserWarning, match=rule):
        assert choose_schedule(SPEC, HOPPER) != broken


def test_a_later_entry_replaces_an_earlier_one(tmp_path):
    path = tmp_path / "new" / "table.json"
    write_table(path, [entry(us=1.0), entry(MatmulSpec(1, 1, 1)), entry(us=2.0)])
    assert [each.us for each in read_table(path) if each.problem.m == 640] == [2.0]
    assert len(read_table(path)) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "must be a table that tilewright tune has written, got JSONDecodeError"),
        ('{"schema": 2, "entries": []}', "schema must be 1, got 2; tune again"),
        (
            '{"schema": 1}',
            "must be a table that tilewright tune has written, got ValueError: table:"
            " must have the field 'entries', got none; tune again",
        ),
        (
            '{"schema": 1, "entries": [], "notes": ""}',
            "must be a table that tilewright tune has written, got ValueError: table:"
            " must have no other fields than it has, got 'notes'; tune again",
        ),
        (
            '{"schema": 1, "entries": [{"problem": {"m": 1}}]}',
            "must be a table that tilewright tune has written, got ValueError: table.entries[0]:"
            " must have the field 'schedule', got none; tune again",
        ),
        ("[" * 100_000, "must be a table that tilewright tune has written, got ValueError: more"),
        ('{"schema": NaN}', "schema must be 1, got nan; tune again"),
    ],
)
def test_a_damaged_table_is_named(table, text, message):
    table.write_text(text)
    with pytest.raises(CompileError) as caught:
        choose_schedule(SPEC, HOPPER)
    assert str(caught.value).startswith(f"error: {table}: {message}")


@pytest.mark.parametrize(
    ("place", "field", "value", "rule"),
    [
        ("problem", "m", "1", "problem.m: must be an integer from 1 to"),
        ("problem", "a_major", "m", "problem.a_major: must be 'k' or 'mn', got 'm'"),
        ("schedule", "tile", "abc", "schedule.tile: must be a list, got 'abc'"),
        ("schedule", "tile", [64, 0, 64], "schedule.tile[1]: must be an integer from 1 to 1024"),
        ("schedule", "stages", 10**9, "schedule.stages: must be an integer from 1 to 1024"),
        ("schedule", "pair", 1, "schedule.pair: must be False or True, got 1"),
        ("schedule", "scheduler", "s", "schedule.scheduler: must be 'none' or 'static' or 'clc'"),
        ("schedule", "order", "rows", "schedule.order: must be 'm' or 'n' or 'grouped' or 'hilb"),
        ("schedule", "vectors", 3, "schedule.vectors: must be 'threads' or 'ahead' or 'registers'"),
        ("schedule", "stage", 3, "schedule: must have no other fields than it has, got 'stage'"),
        ("problem", "leading", 5, "problem.leading: must be a list, got 5"),
        ("problem", "leading", [0, 0], "problem.leading: must"),
        ("problem", "beside", "abc", "problem.beside: must be a list, got 'abc'"),
        ("problem", "products", "two", "problem.products: must be an integer from 1 to 2"),
        ("problem", "quantized", 3, "problem.quantized: must be None, got 3"),
        ("problem", "rows", 3, "problem: must have no other fields than it has, got 'rows'"),
        (None, "us", "12.5", "entries[0].us: must be a number above 0, got '12.5'"),
        (None, "us", 0, "entries[0].us: must be a number above 0, got 0"),
        (None, "us", float("nan"), "entries[0].us: must be a number above 0, got nan"),
        (None, "seconds", 1, "entries[0]: must have no other fields than it has, got 'seconds'"),
    ],
)
def test_a_value_of_another_kind_in_a_table_is_named(table, place, field, value, rule):
    write_table(table, [entry()])
    content = json.loads(table.read_text())
    (found,) = content["entries"]
    (found[place] if place else found)[field] = value
    table.write_text(json.dumps(content))
    with pytest.raises(CompileError, match=r"got ValueError: table\.entries") as caught:
        choose_schedule(SPEC, HOPPER)
    assert rule in str(caught.value)


def test_each_field_of_an_entry_has_a_rule():
    for kind, rules in ((Problem, PROBLEM), (Schedule, SCHEDULE)):
        names = {field.name for field in fields(kind)}
        assert rules.fields.keys() | rules.optional.keys() == names
    assert SCHEDULE.optional["order"].values == ORDERS
    assert SCHEDULE.optional["vectors"].values == VECTORS


def test_a_folder_that_is_none_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    with pytest.raises(CompileError, match=r"TILEWRIGHT_TUNED: must name a folder, got '.*none'"):
        choose_schedule(SPEC, HOPPER)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    choose_schedule(SPEC, HOPPER)


def test_every_shipped_entry_is_taken_for_its_own_problem():
    for path in SHIPPED.glob("*.json"):
        assert path.stem in TARGETS
        of_chip = [each for each in (*TARGETS.values(), *GPUS.values()) if each.chip == path.stem]
        for each in read_table(path):
            assert tuned_schedule(each.problem, TARGETS[path.stem]) == each, each.describe()
            target = next(one for one in of_chip if is_of_gpu(each.gpu, one))
            used = target.using(target.added_mma.name) if each.problem.adds_products else target
            taken = measured_schedule(each.problem, used)
            assert taken and taken.schedule == each.schedule, each.describe()
        assert json.loads(path.read_text())["schema"] == 1
