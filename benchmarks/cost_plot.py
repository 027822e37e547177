"""An SVG of seconds against work, both axes logarithmic; dotted: proportional to the work."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

WIDTH, HEIGHT = 640, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 30, 60
LINE_HEIGHT = 15
COLORS = ("#1f77b4", "#2ca02c", "#d62728")
Point = tuple[float, float]
Series = tuple[str, Sequence[Point]]


class LogScale:
    """Maps [low, high] to pixels from `start` to `end` by the logarithm."""

    def __init__(self, values: Sequence[float], start: float, end: float):
        self.low = 10 ** math.floor(math.log10(min(values)))
        self.high = 10 ** math.ceil(math.log10(max(values)))
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self._start + share * (self._end - self._start)

    def decades(self) -> list[float]:
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


def draw(title: str, x_label: str, y_label: str, series: Sequence[Series]) -> str:
    """The text of an SVG; each series is a name and its (x, y) points, all above 0."""
    points = [point for _, line in series for point in line]
    x = LogScale([point[0] for point in points], LEFT, WIDTH - RIGHT)
    y = LogScale([point[1] for point in points], HEIGHT - BOTTOM, TOP)
    parts = [*_axes(x, y), *_labels(title, x_label, y_label)]
    for (_, line), color in zip(series, COLORS, strict=False):
        parts += _line(line, x, y, color)
    parts += _names(series, x, y)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n{body}\n</svg>\n'
    )


def _axes(x: LogScale, y: LogScale) -> Iterator[str]:
    for value in x.decades():
        yield _segment(x(value), TOP, x(value), HEIGHT - BOTTOM)
        yield _text(x(value), HEIGHT - BOTTOM + 18, _power(value), "middle")
    for value in y.decades():
        yield _segment(LEFT, y(value), WIDTH - RIGHT, y(value))
        yield _text(LEFT - 8, y(value) + 4, f"{value:g}", "end")


def _labels(title: str, x_label: str, y_label: str) -> Iterator[str]:
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield _text(middle, 18, title, "middle")
    yield _text(middle, HEIGHT - 16, x_label, "middle")
    turned = f'transform="rotate(-90 18 {HEIGHT / 2})"'
    yield f'<text x="18" y="{HEIGHT / 2}" text-anchor="middle" {turned}>{y_label}</text>'


def _names(series: Sequence[Series], x: LogScale, y: LogScale) -> Iterator[str]:
    """The name of each series behind its last point, moved up where two would meet."""
    ends = [(y(line[-1][1]), x(line[-1][0]), name) for name, line in series]
    above = HEIGHT
    for (down, across, name), color in sorted(zip(ends, COLORS, strict=False), reverse=True):
        above = min(down + 4, above - LINE_HEIGHT)
        yield _text(across + 8, above, name, "start", color)


def _line(line: Sequence[Point], x: LogScale, y: LogScale, color: str) -> Iterator[str]:
    places = [(x(work), y(seconds)) for work, seconds in line]
    path = " ".join(f"{across:.1f},{down:.1f}" for across, down in places)
    yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>'
    for across, down in places:
        yield f'<circle cx="{across:.1f}" cy="{down:.1f}" r="3" fill="{color}"/>'
    yield from _linear(line, x, y, color)


def _linear(line: Sequence[Point], x: LogScale, y: LogScale, color: str) -> Iterator[str]:
    """What the last point costs, were the cost proportional to the work."""
    work, seconds = line[-1]
    first = max(line[0][0], work * y.low / seconds)
    ends = (x(first), y(seconds * first / work), x(work), y(seconds))
    yield _segment(*ends, f'stroke="{color}" stroke-dasharray="3 4"')


def _segment(x0: float, y0: float, x1: float, y1: float, style: str = 'stroke="#ddd"') -> str:
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" {style}/>'


def _text(x: float, y: float, text: str, anchor: str, color: str = "black") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{text}</text>'


def _power(value: float) -> str:
    digits = str(round(math.log10(value))).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}"
