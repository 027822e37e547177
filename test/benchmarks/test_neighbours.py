"""What a correction of estimates by those of other shapes takes into account."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "estimate"


@pytest.fixture
def neighbours(monkeypatch):
    """The script, imported as when it is run."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("neighbours")
    for name in ("neighbours", "measured_times"):
        sys.modules.pop(name, None)


def test_times_of_a_shape_correct_others_alike_and_not_its_own(neighbours):
    places = np.array([[0.0], [0.1], [0.0], [9.0]])
    off, shape = np.array([0.4, 0.2, 0.8, -0.6]), np.array([0, 0, 1, 2])
    found = neighbours.corrections(places, off, shape, width=0.5)
    near = np.exp(-(0.1**2) / 0.5)
    assert found == pytest.approx(
        [0.8 / 2, near * 0.8 / (near + 1), (0.4 + near * 0.2) / (2 + near), 0.0], abs=1e-6
    )


def test_a_choice_is_judged_by_the_time_of_what_is_taken(neighbours):
    us, shape = np.array([2.0, 1.0, 3.0, 4.0]), np.array([0, 0, 1, 1])
    said = neighbours.judged(np.array([1.0, 2.0, 1.0, 2.0]), us, shape)
    assert said == "0.7071 of the fastest (geometric mean), least 0.500, 1 under 0.9"
