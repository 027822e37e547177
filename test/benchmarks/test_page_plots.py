"""benchmarks/plots/page_plots.py: the plots in docs/ show the numbers that stand on their pages."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def plots(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "plots"))
    return importlib.import_module("page_plots")


def test_the_plots_of_the_pages_are_drawn_from_their_tables(plots):
    for plot in plots.PLOTS:
        kept = (ROOT / "docs" / plot.file).read_text()
        assert kept == plots.render(plot), "run python benchmarks/plots/page_plots.py"
    kept = (ROOT / "docs" / plots.SHAPES_PLOT).read_text()
    assert kept == plots.render_shapes(), "run python benchmarks/plots/page_plots.py"


def test_the_lengths_of_bars_are_as_their_values(plots):
    picture = plots.draw("speeds", [("slow", 0.5), ("fast", 2.0)])
    lengths = [float(width) for width in re.findall(r'width="([\d.]+)" height="13"', picture)]
    assert lengths[1] == pytest.approx(4 * lengths[0])


def test_only_the_first_table_under_the_heading_is_read(plots):
    head = "| x | y |\n|---|---|\n"
    page = f"# A\n{head}| 1 | 2 |\n\n# B\n{head}| `c` | 4 |\n| d | 5 |\n\n{head}| e | 6 |\n"
    assert plots.first_table(page, "B") == [{"x": "c", "y": "4"}, {"x": "d", "y": "5"}]
