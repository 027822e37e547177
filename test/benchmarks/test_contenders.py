"""What comparisons of kernels with torch share: bundles by name, exit status, graphs in turns."""

import argparse
import importlib
import json
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilewright.compiler.spec import MatmulSpec

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def contenders(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import contenders

    yield contenders
    del sys.modules["contenders"]


def test_kernels_are_found_again_by_the_parts_of_their_names(contenders, tmp_path, capsys):
    spec = MatmulSpec(16, 16, 16)
    paths = [tmp_path / f"16x16x16.{name}.zip" for name in ("fast.chosen", "fast.a.b", "exact.x")]
    assert all(contenders.write_bundle(spec, path, "sm_90a") for path in paths)
    assert capsys.readouterr().err.count("tiling{") == 3
    found = contenders.loaded(tmp_path, parts=2)
    names = {("16x16x16", "exact"): ["x"], ("16x16x16", "fast"): ["a.b", "chosen"]}
    assert {key: sorted(kernels) for key, kernels in found.items()} == names
    assert list(contenders.loaded(tmp_path)) == [("16x16x16",)]


def test_a_folder_without_bundles_ends_the_program_with_what_it_lacks(contenders, tmp_path):
    (tmp_path / "16x16x16.static.zip").touch()
    assert contenders.bundles_of(tmp_path, "*.static.zip") == [tmp_path / "16x16x16.static.zip"]
    with pytest.raises(
        SystemExit, match=r"error: \S+: must hold bundles \*\.any\.zip, got none; co"
    ):
        contenders.bundles_of(tmp_path, "*.any.zip")
    with pytest.raises(SystemExit, match="must hold bundles"):
        contenders.measured(SimpleNamespace(folder=tmp_path / "gone"), None)


def test_kernels_of_a_folder_are_measured_by_their_names(contenders, tmp_path):
    for name in ("a", "b"):
        contenders.write_bundle(MatmulSpec(16, 16, 16), tmp_path / f"s.fast.{name}.zip", "sm_90a")
    asked = []

    def measure(shape, recipe, kernels, options):
        asked.append((shape, recipe, sorted(kernels)))
        return [{"right": each == "a"} for each in kernels]

    options = SimpleNamespace(folder=tmp_path, json=tmp_path / "rows.json")
    assert contenders.measured(options, measure, parts=2) == 1
    assert asked == [("s", "fast", ["a", "b"])]
    assert len(json.loads(options.json.read_text())) == 2


def test_a_refused_kernel_is_named_and_writes_nothing(contenders, tmp_path, capsys):
    path = tmp_path / "16x16x16.wide.zip"
    assert not contenders.write_bundle(MatmulSpec(16, 16, 16), path, "sm_90a", "tiling{tile=8x8x8}")
    assert capsys.readouterr().err.startswith("16x16x16.wide ")
    assert not path.exists()


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("run F --shapes 8x8x8", "run must come without --shapes, which it does not read"),
        ("run F --wide --target sm_100a", "run must come without --target, --wide, which it does"),
        ("compile F --rounds 3 --json x", "compile must come without --json, --rounds, which"),
    ],
)
def test_an_option_that_a_step_does_not_read_is_refused(
    contenders, words, rule, monkeypatch, capsys
):
    def parse(*given):
        monkeypatch.setattr(sys, "argv", ["x", *given])
        parser = contenders.comparison_parser("A comparison.", "16x16x16")
        parser.add_argument("--wide", action="store_true")
        reads = {"compile": ("target", "shapes", "wide"), "run": ("rounds", "json")}
        return contenders.parsed(parser, **reads)

    assert parse("compile", "F", "--wide", "--shapes", "8x8x8").shapes == "8x8x8"
    assert parse("run", "F", "--rounds", "3").rounds == 3
    with pytest.raises(SystemExit):
        parse(*words.split())
    assert rule in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "words", "rule"),
    [
        ("grouped", "compile F --only chosen,fast", "--only must be of chosen, 128x256, "),
        ("grouped", "run F --kinds half", "--kinds must be of uniform, ragged, skewed, late, zipf"),
        ("grouped", "compile F --shapes 8x8x8", "--shapes must be MxNxKxGROUPS and a letter of"),
        ("grouped", "run F --only chosen", "run must come without --only"),
        ("swiglu", "compile F --shapes 8x8", "must be MxNxK,… of one product, got '8x8'"),
        (
            "few_rows",
            "compile F --shapes 8x8x8,8x2x0x8",
            "must be MxNxK or Mx2xNxK,…, got '8x2x0x8'",
        ),
        ("scaled", "compile F --only quick", "--only must be in one of 1x128-128x128, "),
        ("epilogues", "run F --only bias.ahead,glue", "--only must be of bias, relu, "),
        ("epilogues", "compile F --only bias.fast", "got 'bias.fast'"),
        ("kernel_ends", "run F --pipeline tiling", "run must come without --pipeline"),
        ("few_rows", "run F --shapes 1x64x64", "run must come without --shapes"),
        ("swiglu", "compile F --no-inductor", "compile must come without --no-inductor"),
        ("weight_only", "run F --jobs 3", "run must come without --jobs"),
    ],
)
def test_a_comparison_refuses_what_it_would_not_read(
    contenders, name, words, rule, monkeypatch, capsys
):
    script = importlib.import_module(name)
    monkeypatch.setattr(sys, "argv", [name, *words.split()])
    with pytest.raises(SystemExit):
        script.parse_options()
    assert rule in capsys.readouterr().err


def test_one_wrong_row_makes_the_status_1(contenders, tmp_path):
    rows = [{"right": True}, {"right": False, "us": 2.5}]
    assert contenders.reported(rows, tmp_path / "rows.json") == 1
    assert json.loads((tmp_path / "rows.json").read_text()) == rows
    assert contenders.reported(rows[:1], None) == 0


class Clock:
    """A GPU on which each call takes as many milliseconds as it says."""

    def __init__(self, monkeypatch):
        self.now, self.order, clock = 0.0, [], self

        class Graph:
            def replay(self):
                clock.order.append(self.calls[0][0])
                clock.now += sum(ms for _, ms in self.calls)

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.at = clock.now

            def elapsed_time(self, end):
                return end.at - self.at

            def synchronize(self):
                pass

        @contextmanager
        def graph(made, stream):
            clock.calls = []
            yield
            made.calls, clock.calls = clock.calls, []

        fakes = {"CUDAGraph": Graph, "Event": Event, "Stream": lambda: None, "graph": graph}
        fakes |= {"stream": lambda _: nullcontext(), "synchronize": lambda: None}
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(**fakes)))
        self.calls = []

    def call(self, name, ms):
        return lambda: self.calls.append((name, ms))


def test_contenders_take_turns_and_times_are_of_one_call(contenders, monkeypatch):
    clock = Clock(monkeypatch)
    graphs = {
        "one": contenders.captured(clock.call("one", 3.0)),
        "several": contenders.captured(clock.call("several", 1.0), clock.call("several", 2.0)),
    }
    assert [count for _, count in graphs.values()] == [contenders.CALLS, 2]
    clock.order.clear()
    assert contenders.timed(graphs, 3) == {"one": 3000.0, "several": 1500.0}
    assert clock.order == ["one", "several"] * 3


def test_every_comparison_takes_the_shared_arguments(contenders):
    options = contenders.comparison_parser("Doc.\n\nMore.", "1x2x3", rounds=7).parse_args(
        ["run", "folder"]
    )
    assert (options.shapes, options.rounds, options.target) == ("1x2x3", 7, "sm_90a")
    assert (options.folder, options.json) == (Path("folder"), None)


@pytest.mark.parametrize("factor", ["-1", "nan", "inf", "two"])
def test_a_rest_that_is_no_time_is_refused(contenders, capsys, factor):
    parser = argparse.ArgumentParser()
    contenders.add_rest(parser)
    with pytest.raises(SystemExit):
        parser.parse_args([f"--rest={factor}"])
    assert f"--rest: must be 0 or more, got {factor}" in capsys.readouterr().err
    assert parser.parse_args(["--rest=0.5"]).rest == 0.5
