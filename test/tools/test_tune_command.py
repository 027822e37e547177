"""`tilewright tune`: candidates become bundles, measurements a table; no GPU is needed for it."""

import functools
import json
from dataclasses import asdict, replace

import pytest

from tilewright.compiler import own_sources
from tilewright.compiler.driver import choose_pipeline
from tilewright.compiler.schedule import tuned_schedules
from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.schedule.search import choice
from tilewright.compiler.schedule.tuned_pipelines import read_pipelines
from tilewright.compiler.schedule.tuned_schedules import read_table
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import find_target
from tilewright.runtime import read_bundle
from tilewright.tools.commands import tune
from tilewright.tools.main import main
from tilewright.tools.tuning import candidates as tune_candidates
from tilewright.tools.tuning.candidates import Wanted, candidates_of, of_every_kind
from tilewright.tools.tuning.progress import left


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that takes 30 us for the first bundle of each shape, 20 for the next, then 25."""
    from tilewright.runtime.launch import comparison

    def measured(paths, rounds):
        assert all(read_bundle(path) for path in paths)
        return [30.0, 20.0, 25.0][: len(paths)]

    monkeypatch.setattr(comparison, "measure_together", measured)
    monkeypatch.setattr(comparison, "machine", lambda: {"gpu": "NVIDIA H200", "date": "2026-11-20"})


def test_candidates_are_compiled_measured_and_the_fastest_kept(gpu, tmp_path, capsys):
    folder, results, table = tmp_path / "c", tmp_path / "r.json", tmp_path / "t" / "sm_90a.json"
    table.parent.mkdir()
    assert main(["tune", "compile", str(folder), "--shapes", "136x72x264", "--count", "3"]) == 0
    assert capsys.readouterr().out == f"3 bundles in {folder}\n"
    index = json.loads((folder / tune.INDEX).read_text())
    assert list(index) == [f"136x72x264.0{number}.zip" for number in range(3)]
    assert main(["tune", "measure", str(folder), "-o", str(results)]) == 0
    assert main(["tune", "table", str(results), "-o", str(table)]) == 0
    (entry,) = read_table(table)
    second = index["136x72x264.01.zip"]["schedule"]
    assert (entry.us, list(entry.schedule.tile)) == (20.0, second["tile"])
    assert entry.schedule.label() in capsys.readouterr().out
    before = table.read_bytes()
    assert main(["tune", "table", str(results), "-o", str(table), "--json"]) == 0
    assert table.read_bytes() == before


def test_all_steps_in_one(gpu, tmp_path, capsys):
    table = tmp_path / "sm_90a.json"
    words = ["tune", "all", "--shapes", "64x64x64", "--count", "1", "-o", str(table)]
    assert main(words) == 0
    assert [entry.us for entry in read_table(table)] == [30.0]
    results = tmp_path / "r.json"
    words[3:6] = ["64x64x64,64x72x64", "--count", "2"]
    assert main([*words, "--results", str(results)]) == 0
    assert [entry.us for entry in read_table(table)] == [20.0, 20.0]
    rows = json.loads(results.read_text())["rows"]
    assert sorted((row["spec"]["n"], row["us"]) for row in rows) == [
        (64, 20.0),
        (64, 30.0),
        (72, 20.0),
        (72, 30.0),
    ]
    assert main(["tune", "rank", str(results)]) == 0


def test_operands_in_other_orders_are_tuned_apart(gpu, tmp_path):
    """All four, as forward, backward and both gradients of a layer multiply, serve their own."""
    folder, table = tmp_path / "c", tmp_path / "sm_90a.json"
    majors = ("kk", "kn", "mk", "mn")
    shapes = ",".join(f"136x72x264{':' * bool(e)}{e}" for e in ("", *majors))
    words = ["--shapes", shapes, "--count", "1", "--jobs", "1"]
    assert main(["tune", "compile", str(folder), *words]) == 0
    index = json.loads((folder / tune.INDEX).read_text())
    names = [f"136x72x264{e}.00.zip" for e in ("", "-kn", "-mk", "-mn")]
    assert list(index) == names, "an order that is told twice is tuned once"
    for name, wanted in zip(names, majors, strict=True):
        spec = index[name]["spec"]
        assert spec["a_major"] + spec["b_major"] == wanted
        steps = [each["strides"] for each in read_bundle(folder / name).manifest["tensors"][:2]]
        assert [1 if each[1] == 1 else 0 for each in steps] == [e == "k" for e in wanted]
    results = tmp_path / "r.json"
    assert main(["tune", "measure", str(folder), "-o", str(results)]) == 0
    assert main(["tune", "table", str(results), "-o", str(table)]) == 0
    found = {(e.problem.a_major, e.problem.b_major) for e in read_table(table)}
    assert found == {(a, b) for a in ("k", "mn") for b in ("k", "mn")}


@pytest.mark.parametrize("shape", ["64x64x64:nm", "64x64x64:", "64x64x64:mn:k"])
def test_orders_that_there_are_none_of_are_refused(shape, tmp_path, capsys):
    words = ["tune", "compile", str(tmp_path / "c"), "--shapes", shape]
    assert main(words) == 2
    rule = "shapes: majors of A and B must be one of kk, kn, mk, mn"
    cure = "leave them out where K is contiguous"
    assert f"{rule}, got '{shape}'; {cure}" in capsys.readouterr().err


def test_other_types_are_tuned_apart(gpu, tmp_path):
    table = tmp_path / "sm_90a.json"
    for type_ in ("e4m3", "s8", "tf32"):
        words = ["tune", "all", "--shapes", "64x64x64", "--count", "1", "--type", type_]
        assert main([*words, "-o", str(table)]) == 0
    problems = [entry.problem for entry in read_table(table)]
    found = {(each.element_bytes, each.k_per_mma, each.c_bytes) for each in problems}
    assert found == {(1, 32, 2), (1, 32, 4), (4, 8, 4)}


def test_a_type_that_is_none_is_wrong_usage(tilewright, tmp_path):
    ran = tilewright("tune", "compile", tmp_path, "--shapes", "64x64x64", "--type", "f63")
    assert ran.status == 2
    known = "f16, bf16, tf32, e4m3, e5m2, s8, u8, f32, f64, 3xtf32, bf16x9"
    assert ran.err == f"error: spec: type must be one of {known}, got 'f63'\n"


def test_the_estimate_is_ranked_by_what_was_measured(tmp_path, tilewright):
    problem = asdict(Problem.of(MatmulSpec(1024, 1024, 8192), find_target("sm_90a")))
    slow, fast = Schedule((64, 64, 64), 12), Schedule((64, 64, 64), 1)  # by estimate the other way
    rows = [
        {"target": "sm_90a", "problem": problem, "schedule": asdict(schedule), "us": us}
        for schedule, us in ((slow, 30.0), (fast, 20.0))
    ]
    results = tmp_path / "r.json"
    results.write_text(json.dumps({"gpu": "NVIDIA H200", "date": "2026-11-20", "rows": rows}))
    found = tilewright("tune", "rank", results, "--json").json
    assert found["shapes"] == {"1024x1024x8192": {"ratio": pytest.approx(2 / 3), "rank": 1}}
    assert (found["mean"], found["least"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    ran = tilewright("tune", "rank", results)
    assert "geometric mean 0.667, least 0.667 of the fastest that was measured" in ran.out
    assert "1 of 2" in ran.out


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


def test_each_candidate_is_of_its_own_tile_cluster_and_order(monkeypatch):
    monkeypatch.setattr(choice, "judged", functools.cache(choice.judged))
    spec, target = MatmulSpec(256, 256, 256), find_target("sm_90a")
    found = [schedule for _, schedule in candidates_of(spec, target, Wanted(14, drawn=6))]
    keys = {(each.tile, each.cluster, each.scheduler, each.order) for each in found}
    assert len(keys) == len(found) == 20
    assert found == [schedule for _, schedule in candidates_of(spec, target, Wanted(14, drawn=6))]
    assert found[:14] == [schedule for _, schedule in candidates_of(spec, target, Wanted(14))]


def test_the_best_of_further_kinds_and_other_groups_are_candidates_too(monkeypatch):
    monkeypatch.setattr(choice, "judged", functools.cache(choice.judged))
    spec, target = MatmulSpec(4096, 4096, 1024), find_target("sm_90a")
    few, more, grouped = (
        [schedule for _, schedule in candidates_of(spec, target, wanted)]
        for wanted in (Wanted(3), Wanted(3, kinds=5), Wanted(3, kinds=5, groups=(4, 32)))
    )
    kinds = [
        (s.cluster, s.split_k, s.split_grid > 1, s.swap, s.scheduler, s.ping_pong) for s in more
    ]
    assert more[:3] == few and len(more) == 8
    assert len(set(kinds[3:])) == 5 and not set(kinds[3:]) & set(kinds[:3])
    others = [each for each in grouped if each not in more]
    assert others and {each.group for each in others} == {4, 32}
    assert all(replace(each, group=8) in more for each in others)


@pytest.mark.parametrize(
    ("m", "type_", "target"),
    [
        (1, "bf16", "sm_90a"),
        (3, "f16", "h100"),
        (4, "bf16", "sm_100a"),
        (5, "bf16", "sm_90a"),
        (200, "e4m3", "sm_100a"),
        (2, "f32", "sm_90a"),
        (2, "bf16", "sm_80"),
        (300, "f32", "sm_100a"),
        (300, "f64", "sm_90a"),
        (300, "3xtf32", "sm_90a"),
        (300, "bf16", "sm_89"),
    ],
)
def test_what_the_compiler_chooses_is_a_candidate_of_whatever_kind(m, type_, target):
    spec = MatmulSpec.of_type(m, 600, 712, type_)
    found = [
        passes for passes, _ in of_every_kind(spec, choice.target_for(spec, target), Wanted(2))
    ]
    assert choose_pipeline(spec, target) in found
    assert len(set(found)) == len(found)


def test_few_rows_are_measured_by_tiles_and_by_lanes():
    kinds = [
        "lanes=" in passes
        for passes, _ in of_every_kind(few_rows(), find_target(HOPPER), Wanted(2))
    ]
    assert kinds[:2] == [False, False]
    assert len(kinds) > 2 and all(kinds[2:])


HOPPER = "sm_90a"


def few_rows():
    return MatmulSpec(2, 600, 712)


@pytest.mark.parametrize("lanes_us", [10.0, 90.0])
def test_the_faster_of_two_kinds_is_taken_where_both_were_measured(
    lanes_us, tmp_path, monkeypatch, tilewright
):
    from tilewright.runtime.launch import comparison

    def measured(paths, rounds):
        tiles = [50.0, 40.0]
        return [*tiles, *(lanes_us + number for number in range(len(paths) - len(tiles)))]

    monkeypatch.setattr(comparison, "measure_together", measured)
    monkeypatch.setattr(comparison, "machine", lambda: {"gpu": "NVIDIA H200", "date": "2026-11-20"})
    table = tmp_path / "sm_90a.json"
    words = ["tune", "all", "--shapes", "2x600x712", "--count", "2", "--jobs", "1"]
    assert main([*words, "-o", str(table)]) == 0
    before = table.read_bytes()
    assert main([*words, "-o", str(table), "--json"]) == 0
    assert table.read_bytes() == before
    (tiles,), (fastest,) = read_table(table), read_pipelines(table)
    assert (tiles.us, fastest.us) == (40.0, min(40.0, lanes_us))
    monkeypatch.setenv(tuned_schedules.VARIABLE, str(tmp_path))
    choose_pipeline.cache_clear()
    assert ("lanes=" in choose_pipeline(few_rows(), HOPPER)) == (lanes_us < 40)
    assert choose_pipeline(few_rows(), HOPPER) == fastest.pipeline()
    sizes = ["--m", "2", "--n", "600", "--k", "712"]
    ran = tilewright("explain", "schedule", *sizes, "--target", HOPPER)
    assert f"schedule   {fastest.label()}" in ran.out
    assert fastest.pipeline() != choose_pipeline(few_rows(), "h100") or lanes_us < 40
    assert "lanes=" in choose_pipeline(few_rows(), "h100")
    choose_pipeline.cache_clear()


def test_what_was_stopped_goes_on_where_it_was(gpu, tmp_path, capsys):
    folder, results = tmp_path / "c", tmp_path / "r.json"
    words = ["tune", "compile", str(folder), "--count", "2", "--shapes"]
    assert main([*words, "64x64x64"]) == 0
    assert main(["tune", "measure", str(folder), "-o", str(results)]) == 0
    first = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.zip")}
    rows = json.loads(results.read_text())["rows"]
    rows[0]["us"] = 77.0
    results.write_text(json.dumps(json.loads(results.read_text()) | {"rows": rows}))
    assert main([*words, "64x64x64,64x72x64"]) == 0
    assert {path.name: path.stat().st_mtime_ns for path in folder.glob("64x64*.zip")} == first
    assert main(["tune", "measure", str(folder), "-o", str(results)]) == 0
    assert [row["us"] for row in json.loads(results.read_text())["rows"]] == [
        77.0,
        20.0,
        30.0,
        20.0,
    ]
    capsys.readouterr()
    assert main(["tune", "measure", str(folder), "-o", str(results), "--rounds", "3"]) == 1
    assert "must be of rounds 3, got 9; name another file" in capsys.readouterr().err
    assert main([*words, "64x64x64", "--type", "e4m3"]) == 1
    assert "must be of the same type and for sm_90a" in capsys.readouterr().err
    (folder / "64x72x64.01.zip").write_bytes(b"PK")
    assert main([*words, "64x64x64,64x72x64"]) == 0
    read_bundle(folder / "64x72x64.01.zip")
    assert {path.name: path.stat().st_mtime_ns for path in folder.glob("64x64*.zip")} == first


def test_what_other_sources_made_is_made_and_measured_anew(gpu, tmp_path, monkeypatch):
    folder, results = tmp_path / "c", tmp_path / "r.json"
    words = ["tune", "compile", str(folder), "--jobs", "1", "--shapes", "64x64x64", "--count"]
    assert main([*words, "3"]) == 0
    assert main(["tune", "measure", str(folder), "-o", str(results)]) == 0
    monkeypatch.setattr(own_sources, "source_digest", lambda: "other")
    assert main([*words, "2"]) == 0
    index = json.loads((folder / "candidates.json").read_text())
    assert [entry["sources"] for entry in index.values()] == ["other"] * 2
    assert main(["tune", "measure", str(folder), "-o", str(results)]) == 0
    assert [row["sources"] for row in json.loads(results.read_text())["rows"]] == ["other"] * 2


def test_two_that_compile_into_a_folder_keep_what_each_has_made(tmp_path, monkeypatch):
    entry = {"target": "sm_90a", "spec": {}, "pipeline": "tiling"}
    index, made = tmp_path / "candidates.json", {"64x64x64.00.zip": entry}
    other = {"72x64x64.00.zip": entry}

    def compiled(jobs, processes):
        index.write_text(json.dumps(other))  # by somebody else, meanwhile
        yield made

    monkeypatch.setattr(tune_candidates, "_compiled", compiled)
    assert main(["tune", "compile", str(tmp_path), "--shapes", "64x64x64", "--jobs", "1"]) == 0
    assert json.loads(index.read_text()) == other | made


def test_the_time_that_is_left_follows_the_pace():
    assert left(0, 10, 5.0) == ""
    assert left(4, 10, 20.0) == ", 30 s left"
    assert left(1, 100, 6.0) == ", 10 min left"
