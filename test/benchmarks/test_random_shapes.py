"""The shapes that benchmarks draw, and the plot of what was measured."""

import importlib
import math
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    """The scripts' folders, as when one of them is run."""
    for folder in (FOLDER, FOLDER / "plots"):
        monkeypatch.syspath_prepend(str(folder))
    yield
    for name in ("shape_lists", "ratio_plot"):
        sys.modules.pop(name, None)


def test_shapes_are_drawn_log_uniformly_and_again_for_the_same_seed():
    drawn = importlib.import_module("shape_lists").drawn
    assert drawn(60, 3) == drawn(60, 3) != drawn(60, 4)
    shapes = [tuple(map(int, shape.split("x"))) for shape in drawn(2000, 3).split(",")]
    assert all(1 <= m <= 8192 and 256 <= min(n, k) and max(n, k) <= 16384 for m, n, k in shapes)
    assert all(n % 8 == k % 8 == 0 for _, n, k in shapes)
    below = sum(m < math.sqrt(8192) for m, _, _ in shapes) / len(shapes)
    assert 0.45 < below < 0.55, "as many M below the geometric middle as above it"


def test_the_plot_has_a_dot_for_each_shape_higher_where_ours_is_faster():
    plot = importlib.import_module("ratio_plot")
    rows = [
        {"M×N×K": f"{m}×512×512", "apart": f"{r}"} for m, r in ((16, 0.8), (512, 1.1), (4096, 1))
    ]
    dots = plot.dots(rows, "apart")
    assert dots[0] == (2.0 * 16 * 512 * 512, 0.8)
    root = ElementTree.fromstring(plot.draw("t", {"random": dots}))
    found = [(float(c.get("cx")), float(c.get("cy"))) for c in root.findall("{*}circle")]
    (x0, y0), (x1, y1), (x2, y2) = found
    assert x0 < x1 < x2 and y1 < y2 < y0
