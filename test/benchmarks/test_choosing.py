"""The kinds of products whose choice is timed, and what is said of the times."""

import importlib
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from tilewright.compiler.schedule.search.choice import target_for

FOLDER = Path(__file__).parents[2] / "benchmarks"
UNGROUPED = {"group_axis": "k", "groups": 8}
"""Refused, as such groups need operands with K as rows."""


@pytest.fixture
def choosing(monkeypatch):
    """The script, imported as when it is run."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("choosing")
    for name in ("choosing", "shape_lists"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("chip", ["sm_90a", "sm_100a"])
def test_every_kind_is_taken(choosing, chip):
    assert len({repr(kind) for kind in choosing.KINDS}) == 36
    for kind in choosing.KINDS:
        target_for(choosing.spec_of("512x1024x2048", kind), chip)


def test_shapes_that_a_kind_does_not_take_are_left_out(choosing, monkeypatch):
    monkeypatch.setattr(choosing, "choose_schedule", lambda *_: None)
    asked = [("64x64x64", UNGROUPED), ("64x64x64", {}), ("64x64x128", {"batch": 2})]
    found = choosing.times_of(asked, "sm_90a", Namespace(repeat=1, first=False))
    assert list(found) == ["64x64x64 ", "64x64x128 {'batch': 2}"]


def test_mean_and_how_many_take_over_10_ms_are_said(choosing):
    times = dict(zip("abcd", (1.0, 2.0, 10.0, 15.0), strict=True))
    found = choosing.figures(times)
    assert found["mean"] == 7 and found["median"] == 6 and found["longest"] == "d"
    text = choosing.as_text({"machine": "", "shapes": 5, "seed": 1, "cpu_ms": {"sm_90a": found}})
    assert " 15.0     1 of 4  d" in text
