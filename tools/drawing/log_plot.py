"""Parts of an SVG with logarithmic axes: scales, axes, lines and words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

COLORS = (
    "#1f77b4", "#2ca02c", "#d62728", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#17becf",
    "#7f7f7f", "#bcbd22", "#393b79", "#637939", "#843c39", "#7b4173", "#3182bd", "#31a354",
)  # fmt: skip


class LogScale:
    """Maps the decades around values to pixels from `start` to `end` by the logarithm."""

    def __init__(self, values: Sequence[float], start: float, end: float):
        self.low = 10 ** math.floor(math.log10(min(values)))
        self.high = 10 ** math.ceil(math.log10(max(values)))
        if self.high == self.low:
            self.high = 10 * self.low
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self._start + share * (self._end - self._start)

    def decades(self) -> list[float]:
        """The powers of ten from the first to the last."""
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


@dataclass(frozen=True)
class Frame:
    """Where the plot is in the picture, in pixels from its left and upper edge."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int

    def svg(self, body: Sequence[str]) -> str:
        """The text of the picture."""
        lines = "\n".join(body)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'font-family="sans-serif" font-size="12">\n'
            f'<rect width="{self.width}" height="{self.height}" fill="white"/>\n{lines}\n</svg>\n'
        )

    def axes(self, x: LogScale, y: LogScale) -> Iterator[str]:
        """A line and a number for each decade."""
        low, end = self.height - self.bottom, self.width - self.right
        for value in x.decades():
            yield segment(x(value), self.top, x(value), low)
            yield words(x(value), low + 18, power(value), "middle")
        for value in y.decades():
            yield segment(self.left, y(value), end, y(value))
            yield words(self.left - 8, y(value) + 4, f"{value:g}", "end")

    def labels(self, title: str, x_label: str, y_label: str) -> Iterator[str]:
        """The title above, and what the axes show."""
        middle, half = (self.left + self.width - self.right) / 2, self.height / 2
        yield words(middle, 18, title, "middle")
        yield words(middle, self.height - 16, x_label, "middle")
        rotated = f'transform="rotate(-90 18 {half})"'
        yield f'<text x="18" y="{half}" text-anchor="middle" {rotated}>{escape(y_label)}</text>'


def segment(x0: float, y0: float, x1: float, y1: float, style: str = 'stroke="#ddd"') -> str:
    """A straight line."""
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" {style}/>'


def words(x: float, y: float, text: str, anchor: str, color: str = "black") -> str:
    """A text; anchor: which of its ends is at x."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}"'
    return f"<text {place}>{escape(text)}</text>"


def power(value: float) -> str:
    """A power of ten."""
    digits = str(round(math.log10(value))).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}"
