"""`tilewright tune` refuses what it can not read, in one line, and writes nothing."""

import json

import pytest

from tilewright.tools.commands import tune
from tilewright.tools.main import main


@pytest.mark.parametrize("shape", ["64x64x64:nm", "64x64x64:", "64x64x64:mn:k"])
def test_orders_that_there_are_none_of_are_refused(shape, tmp_path, capsys):
    words = ["tune", "compile", str(tmp_path / "c"), "--shapes", shape]
    assert main(words) == 2
    rule = "shapes: majors of A and B must be one of kk, kn, mk, mn"
    cure = "leave them out where K is contiguous"
    assert f"{rule}, got '{shape}'; {cure}" in capsys.readouterr().err


def test_a_type_that_is_none_is_wrong_usage(tilewright, tmp_path):
    ran = tilewright("tune", "compile", tmp_path, "--shapes", "64x64x64", "--type", "f63")
    assert ran.status == 2
    known = "f16, bf16, tf32, e4m3, e5m2, s8, u8, f32, f64, 3xtf32, bf16x9"
    assert ran.err == f"error: spec: type must be one of {known}, got 'f63'\n"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["tune"], 2, "error: tilewright tune: a step must be named, got none; see"),
        (
            ["tune", "compile", "FOLDER", "--shapes", "64x64"],
            2,
            "error: shapes: must be MxNxK separated by commas, got '64x64'",
        ),
        *(
            (
                ["tune", "compile", "FOLDER", "--shapes", shape],
                2,
                f"error: shapes: must be MxNxK separated by commas, got '{shape}'",
            )
            for shape in ("\u0663x64x64", "064x64x64", "1_0x64x64")
        ),
        (
            ["tune", "measure", "FOLDER"],
            1,
            "error: FOLDER/candidates.json: must be what tilewright tune compile has written, got",
        ),
        (
            ["tune", "table", "FOLDER", "-o", "x.json"],
            1,
            "error: FOLDER: must be what tilewright tune measure has written, got",
        ),
        (
            ["tune", "compile", "FOLDER", "--shapes", "64x64x64", "--count", "0"],
            2,
            "error: tilewright tune compile: argument --count: must be an integer from 1, got '0'",
        ),
        (
            ["tune", "measure", "FOLDER", "--rounds", "-1"],
            2,
            "error: tilewright tune measure: argument --rounds: must be an integer from 0 below",
        ),
        *(
            (
                ["tune", "measure", "FOLDER", "--rest", rest],
                2,
                f"error: tilewright tune measure: argument --rest: "
                f"must be a number from 0, got '{rest}'",
            )
            for rest in ("-1", "nan", "inf", "long")
        ),
    ],
)
def test_what_can_not_be_tuned_is_said(tmp_path, capsys, words, status, message):
    words = [str(tmp_path) if word == "FOLDER" else word for word in words]
    assert main(words) == status
    assert capsys.readouterr().err.startswith(message.replace("FOLDER", str(tmp_path)))


def test_an_index_that_is_none_is_refused(tmp_path, capsys):
    (tmp_path / tune.INDEX).write_text('["1x1x1.00.zip"]')
    assert main(["tune", "measure", str(tmp_path)]) == 1
    wanted = "must be what tilewright tune compile has written, got no entries by name"
    assert capsys.readouterr().err == f"error: {tmp_path / tune.INDEX}: {wanted}\n"


@pytest.mark.parametrize(
    ("entry", "got"),
    [
        ("{}", "1x1x1.00.zip: must have the field 'target', got none"),
        ('{"target": "sm_90a", "spec": {}}', "1x1x1.00.zip: must have the field 'pipeline'"),
        ('{"target": "sm_90a", "pipeline": "p"}', "1x1x1.00.zip: must have the field 'spec'"),
        (
            '{"target": "sm_90a", "spec": {}, "pipeline": "p", "problem": 3}',
            "1x1x1.00.zip.problem: must be an object, got 3",
        ),
    ],
)
def test_an_entry_of_an_index_that_is_none_is_refused(tmp_path, capsys, entry, got):
    (tmp_path / tune.INDEX).write_text(f'{{"1x1x1.00.zip": {entry}}}')
    for words in (["measure", str(tmp_path)], ["compile", str(tmp_path), "--shapes", "64x64x64"]):
        assert main(["tune", *words]) == 1
        wanted = f"must be what tilewright tune compile has written, got {got}"
        assert capsys.readouterr().err.startswith(f"error: {tmp_path / tune.INDEX}: {wanted}")


SIZES = dict(m=64, n=64, k=64, element_bytes=2, k_per_mma=16, c_bytes=2, tma_alignment_bytes=16)


SIZES |= {"a_major": "k", "b_major": "k"}


def text_of(**fields):
    """Results of one row with other fields."""
    row = {"problem": SIZES, "schedule": {"tile": [64, 64, 64]}, "us": 3.5, "target": "sm_90a"}
    return rows_of(row | fields)


def rows_of(*rows):
    return json.dumps({"gpu": "NVIDIA H200", "date": "2026-11-20", "rows": rows})


@pytest.mark.parametrize("step", [["rank"], ["table", "-o", "OUT"]])
@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("{}", "results: must have the field 'gpu', got none"),
        ("[1]", "results: must be an object, got [1]"),
        (
            '{"gpu": "H200", "date": "today", "rows": [3]}',
            "results.rows[0]: must be an object, got 3",
        ),
        ('{"gpu": "H200", "date": "today", "rows": []}', "no row"),
        (text_of(problem=SIZES | {"l": 1}), "row.problem: must have no other fields "),
        (rows_of({"problem": SIZES}), "row: must have the field 'us'"),
        (
            rows_of({"problem": SIZES, "us": 1, "target": "sm_90a"}),
            "row: must have the field 'schedule'",
        ),
        (
            rows_of({"spec": {}, "us": 1, "target": "sm_90a"}),
            "row: must have the field 'pipeline'",
        ),
        (rows_of({"us": 1, "target": "sm_90a"}), "row: must have the field 'problem'"),
        (text_of(problem=SIZES | {"m": -64}), "row.problem.m: must be an integer "),
        (text_of(problem=SIZES | {"m": 1.5}), "row.problem.m: must be an integer "),
        (text_of(schedule={"tile": [64, 64, 0]}), "row.schedule.tile[2]: must be an "),
        (text_of(schedule={"tile": "x"}), "row.schedule.tile: must be "),
        (text_of(us=0), "row.us: must be a number above 0, got 0"),
        (text_of(us=-1.0), "row.us: must be a number above 0, got -1.0"),
        (text_of(us=float("nan")), "row.us: must be a number above 0, got "),
        (text_of(us="3"), "row.us: must be a number above 0, got '3'"),
        (text_of(target=7), "row.target: must be "),
    ],
)
def test_results_that_are_none_are_refused_and_no_table_is_written(
    tmp_path, capsys, step, text, got
):
    results, table = tmp_path / "r.json", tmp_path / "t.json"
    results.write_text(text)
    assert main(["tune", step[0], str(results), *(["-o", str(table)] if step[1:] else [])]) == 1
    message = f"error: {results}: must be what tilewright tune measure has written, got {got}"
    assert capsys.readouterr().err.startswith(message)
    assert not table.exists()
