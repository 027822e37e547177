"""Speed relative to cuBLAS against the work of a matmul, one dot a shape.

    python benchmarks/plots/page_plots.py     draws it with the others

The numbers are those of the tables in docs/appendix/shapes.md, which `gpu.py` has printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from tilewright.tools.drawing.log_plot import COLORS, Frame, LogScale, segment, words

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 130, 30, 60
FRAME = Frame(WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM)
RATIOS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.6, 2.0)
Dot = tuple[float, float]  # floating-point operations, ratio


class RatioScale(LogScale):
    """Ratios from the line below the least to the line above the most."""

    def __init__(self, values: Sequence[float], start: float, end: float):
        self.low = max([each for each in RATIOS if each <= min(values)], default=RATIOS[0])
        self.high = min([each for each in RATIOS if each >= max(values)], default=RATIOS[-1])
        self._start, self._end = start, end

    def lines(self) -> list[float]:
        """The ratios that have a line."""
        return [each for each in RATIOS if self.low <= each <= self.high]


def dots(table: Sequence[Mapping[str, str]], column: str) -> list[Dot]:
    """Work and ratio of each row of a table that gpu.py has printed."""
    works = (2.0 * math.prod(map(int, row["M×N×K"].split("×"))) for row in table)
    return [(work, float(row[column])) for work, row in zip(works, table, strict=True)]


def draw(title: str, series: dict[str, list[Dot]]) -> str:
    """The text of an SVG; ratios beyond the outer lines are drawn on them."""
    every = [dot for each in series.values() for dot in each]
    x = LogScale([work for work, _ in every], LEFT, WIDTH - RIGHT)
    y = RatioScale([ratio for _, ratio in every], HEIGHT - BOTTOM, TOP)
    parts = [*_axes(x, y), *FRAME.labels(title, "floating-point operations", "cuBLAS = 1")]
    for number, (name, each) in enumerate(series.items()):
        color = COLORS[number % len(COLORS)]
        parts += [_dot(x(work), y(min(max(ratio, y.low), y.high)), color) for work, ratio in each]
        parts.append(words(WIDTH - RIGHT + 12, TOP + 16 * (number + 1), name, "start", color))
    return FRAME.svg(parts)


def _axes(x: LogScale, y: RatioScale) -> Iterator[str]:
    low, end = HEIGHT - BOTTOM, WIDTH - RIGHT
    for work in x.decades():
        yield segment(x(work), TOP, x(work), low)
        yield words(x(work), low + 18, f"{work:.0e}".replace("e+", "e"), "middle")
    for ratio in y.lines():
        style = 'stroke="#444"' if ratio == 1 else 'stroke="#ddd"'
        yield segment(LEFT, y(ratio), end, y(ratio), style)
        yield words(LEFT - 8, y(ratio) + 4, f"{ratio:g}", "end")


def _dot(x: float, y: float, color: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}" fill-opacity="0.75"/>'
