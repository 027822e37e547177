"""`tilewright tune`: candidates become bundles, measurements a table; no GPU is needed for it."""

import functools
import json
from dataclasses import asdict, replace

import pytest

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
from tilewright.tools.tuning.candidates import Wanted, candidates_of, of_every_kind


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


def test_other_types_are_tuned_apart(gpu, tmp_path):
    table = tmp_path / "sm_90a.json"
    for type_ in ("e4m3", "s8", "tf32"):
        words = ["tune", "all", "--shapes", "64x64x64", "--count", "1", "--type", type_]
        assert main([*words, "-o", str(table)]) == 0
    problems = [entry.problem for entry in read_table(table)]
    found = {(each.element_bytes, each.k_per_mma, each.c_bytes) for each in problems}
    assert found == {(1, 32, 2), (1, 32, 4), (4, 8, 4)}


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
        for wanted in (Wanted(3), Wanted(3, kinds=5), Wanted(3, kinds=5, groups=(4, 16, 32)))
    )
    kinds = [
        (s.cluster, s.split_k, s.split_grid > 1, s.swap, s.scheduler, s.ping_pong) for s in more
    ]
    assert more[:3] == few and len(more) == 8
    assert len(set(kinds[3:])) == 5 and not set(kinds[3:]) & set(kinds[:3])
    others = [each for each in grouped if each not in more]
    assert others and {each.group for each in others} == {4, 16}, "32 are all tiles along M"
    assert all({replace(each, group=usual) for usual in (8, 16)} & {*more} for each in others)


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

    def measured(paths, rounds, rest):
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
