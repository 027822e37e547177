"""benchmarks/emulator: its table, its aims and its plot, on made-up figures and one tiny run."""

from __future__ import annotations

import importlib
import json
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "emulator"


@pytest.fixture
def emulator_benchmark(monkeypatch):
    """The module `emulator` of the folder, and its `Row`."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("emulator"), importlib.import_module("emulator_runs").Row


def rows(row, seconds_of):
    return [
        row((edge,) * 3, "v6", check, *seconds_of(edge, check), 500_000_000, 1000 * edge)
        for check in ("off", "fast", "full")
        for edge in (256, 2048, 4096)
    ]


def test_an_aim_that_is_missed_is_said(emulator_benchmark):
    module, row = emulator_benchmark
    slow = rows(row, lambda edge, check: (91.0, 80.0))
    lines = module.as_text(slow, 1, "a machine").splitlines()
    missed = [line for line in lines if line.endswith("MISSED")]
    assert [line.split()[:3] for line in missed] == [
        ["4096×4096×4096", "v6", "off"],
        ["2048×2048×2048", "v6", "full"],
    ]
    quick = module.as_text(rows(row, lambda edge, check: (1.0, 1.0)), 1, "a machine")
    assert quick.count(": met") == 2 and "MISSED" not in quick


def test_the_plot_has_a_falling_line_of_cost_for_each_level(emulator_benchmark):
    module, row = emulator_benchmark
    factor = {"off": 1.0, "fast": 1.1, "full": 4.0}
    made = rows(row, lambda edge, check: (1.0, factor[check] * edge**3 / 1e9))
    root = ElementTree.fromstring(module.plot(made))
    lines = root.findall("{*}polyline")
    assert len(lines) == 3
    ends = []
    for line in lines:
        places = [tuple(map(float, pair.split(","))) for pair in line.get("points", "").split()]
        assert [x for x, _ in places] == sorted(x for x, _ in places)
        (x0, y0), _, (x1, y1) = places
        ends.append(y1)
        assert y1 < y0 and x1 > x0
    assert ends[2] < ends[1] < ends[0]
    names = [t for t in root.findall("{*}text") if (t.text or "").startswith("check=")]
    heights = sorted(float(text.get("y", "0")) for text in names)
    assert len(names) == 3 and min(b - a for a, b in pairwise(heights)) >= 15


def test_the_command_measures_a_run_that_is_right(emulator_benchmark, monkeypatch, capsys):
    words = ["emulator.py", "--size", "64", "--preset", "v1a", "--json"]
    monkeypatch.setattr(sys, "argv", words)
    emulator_benchmark[0].main()
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["size"], row["check"]) == ([64, 64, 64], "full")
    assert 0 < row["seconds"] and 0 < row["cpu_seconds"] and row["instructions"] > 100
