"""An SVG of seconds against work, both axes logarithmic; dotted: proportional to the work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.tools.drawing.log_plot import COLORS, Frame, LogScale, segment, words

WIDTH, HEIGHT = 640, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 30, 60
LINE_HEIGHT = 15
FRAME = Frame(WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM)
Point = tuple[float, float]
Series = tuple[str, Sequence[Point]]


def draw(title: str, x_label: str, y_label: str, series: Sequence[Series]) -> str:
    """The text of an SVG; each series is a name and its (x, y) points, all above 0."""
    points = [point for _, line in series for point in line]
    x = LogScale([point[0] for point in points], LEFT, WIDTH - RIGHT)
    y = LogScale([point[1] for point in points], HEIGHT - BOTTOM, TOP)
    parts = [*FRAME.axes(x, y), *FRAME.labels(title, x_label, y_label)]
    for (_, line), color in zip(series, COLORS, strict=False):
        parts += _line(line, x, y, color)
    return FRAME.svg([*parts, *_names(series, x, y)])


def _names(series: Sequence[Series], x: LogScale, y: LogScale) -> Iterator[str]:
    """The name of each series behind its last point, moved up where two would meet."""
    ends = [(y(line[-1][1]), x(line[-1][0]), name) for name, line in series]
    above = HEIGHT
    for (down, across, name), color in sorted(zip(ends, COLORS, strict=False), reverse=True):
        above = min(down + 4, above - LINE_HEIGHT)
        yield words(across + 8, above, name, "start", color)


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
    yield segment(*ends, f'stroke="{color}" stroke-dasharray="3 4"')
