"""Processes build at the same time, and measure one after the other when all have built."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
CASES = """
import os, time

def said(options, what):
    with open(options.log, "a") as log:
        log.write(f"{what} {os.getpid()}\\n")

def build(part, options, alone):
    said(options, "building")
    with alone():
        said(options, "alone")
        time.sleep(0.2)
        said(options, "alone")
    if part == options.broken:
        raise ValueError(part)
    yield part

def measure(case, options):
    said(options, "measuring")
    time.sleep(0.2)
    said(options, "measuring")
    return case
"""

PERMUTES = """
import contextlib, fcntl

def take_turns(path):
    file = open(path, "w")

    @contextlib.contextmanager
    def turn():
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
        fcntl.flock(file, fcntl.LOCK_UN)

    return turn

def load_candidates_ahead():
    pass
"""
"""In the place of `model_times`, which imports torch."""


@pytest.fixture
def cases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    (tmp_path / "cases_to_build.py").write_text(CASES)
    (tmp_path / "model_times.py").write_text(PERMUTES)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.syspath_prepend(str(tmp_path))
    import built_apart
    import cases_to_build

    yield built_apart.built_apart, cases_to_build
    del sys.modules["built_apart"], sys.modules["cases_to_build"]


def test_none_measures_before_all_have_built_and_one_at_a_time_uses_the_gpu(
    cases: Any, tmp_path: Path
) -> None:
    built_apart, functions = cases
    options = Namespace(log=tmp_path / "log", broken="")
    assert built_apart("ab", functions.build, functions.measure, options) == ["a", "b"]
    lines = options.log.read_text().splitlines()
    assert lines[-4].startswith("measuring") and len({each.split()[1] for each in lines}) == 2
    for what in ("alone", "measuring"):
        told = [each for each in lines if each.startswith(what)]
        assert told[0] == told[1] != told[2] == told[3]


def test_a_part_that_fails_does_not_let_the_others_wait(cases: Any, tmp_path: Path) -> None:
    built_apart, functions = cases
    options = Namespace(log=tmp_path / "log", broken="b")
    with pytest.raises(ValueError, match=r"^b$"):
        built_apart("ab", functions.build, functions.measure, options)


def test_a_part_keeps_what_inductor_tunes_in_a_folder_of_its_own(
    cases: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from built_apart import CACHES, own_caches  # pyright: ignore[reportMissingImports]

    monkeypatch.setenv(CACHES, str(tmp_path))
    own_caches("8x8x8")
    assert os.environ[CACHES] == str(tmp_path / "8x8x8")
    monkeypatch.delenv(CACHES)
    own_caches("8x8x8")
    assert CACHES not in os.environ
