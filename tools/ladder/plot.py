"""The bar chart of a ladder: published and predicted speed of each rung, and of cuBLAS."""

from __future__ import annotations

from collections.abc import Iterator

from ..drawing.log_plot import Frame, segment, words
from .published import Series
from .speeds import Speed, by_ladder

BAR, RUNG, GAP, LETTER = 17, 52, 60, 7
TOP, HEIGHT, LEFT, BOTTOM = 64, 300, 64, 56
PUBLISHED, PREDICTED, CUBLAS = "#1f77b4", "#c5d5e4", "#d62728"
STEPS = (1, 2, 5)
CELLS = 48


def draw(title: str, speeds: list[Speed]) -> str:
    """The text of an SVG: bars from 0 in 10¹² operations a second, a group for each ladder."""
    groups = by_ladder(speeds)
    rungs, rung = sum(len(each) for each in groups.values()), _rung_width(speeds)
    width = LEFT + rungs * rung + len(groups) * GAP
    frame = Frame(width, TOP + HEIGHT + BOTTOM, LEFT, GAP // 2, TOP, BOTTOM)
    top = _highest(groups)
    parts = [*_axis(frame, top), words(width / 2, 20, title, "middle"), *_legend()]
    left = LEFT + 12.0
    for each in groups.values():
        parts += _group(each, left, rung, top)
        left += len(each) * rung + GAP
    return frame.svg(parts)


def _rung_width(speeds: list[Speed]) -> int:
    """Room for two bars, and for the longest name."""
    return max([RUNG, *(LETTER * len(speed.name) + 8 for speed in speeds)])


def _highest(groups: dict[str, list[Speed]]) -> float:
    speeds = [speed for each in groups.values() for speed in each]
    values = [value for speed in speeds for value in _values(speed) if value is not None]
    return 1.05 * max([1.0, *values, *(series.cublas_tflops for series in _series(speeds))])


def _series(speeds: list[Speed]) -> list[Series]:
    """The publications of rungs, each once."""
    return list({each.published.series.name: each.published.series for each in speeds
                 if each.published}.values())  # fmt: skip


def _values(speed: Speed) -> tuple[float | None, float | None]:
    return (None if speed.published is None else speed.published.tflops), speed.predicted_tflops


def _y(value: float, top: float) -> float:
    return TOP + HEIGHT * (1 - value / top)


def _axis(frame: Frame, top: float) -> Iterator[str]:
    step = next(s * 10**p for p in range(6) for s in STEPS if top / (s * 10**p) <= 10)
    for value in range(0, int(top) + 1, step):
        yield segment(LEFT, _y(value, top), frame.width - frame.right, _y(value, top))
        yield words(LEFT - 6, _y(value, top) + 4, str(value), "end")
    yield words(LEFT - 6, TOP - 10, "10¹²/s", "end")


def _legend() -> Iterator[str]:
    left = float(LEFT)
    for color, text in (
        (PUBLISHED, "measured by the source"),
        (PREDICTED, "predicted by the estimate"),
    ):
        yield f'<rect x="{left:.1f}" y="32" width="12" height="12" fill="{color}"/>'
        yield words(left + 18, 42, text, "start")
        left += 175
    yield segment(left, 38, left + 14, 38, f'stroke="{CUBLAS}" stroke-dasharray="4 3"')
    yield words(left + 20, 42, "cuBLAS, measured there", "start", CUBLAS)


def _group(speeds: list[Speed], left: float, rung: int, top: float) -> Iterator[str]:
    for at, speed in enumerate(speeds):
        middle = left + (at + 0.5) * rung
        published, predicted = _values(speed)
        if published is not None:
            yield _bar(middle - BAR, published, PUBLISHED, top)
            yield words(middle - 1, _y(published, top) - 3, _short(published), "end")
        if predicted is not None:
            yield _bar(middle, predicted, PREDICTED, top)
        yield words(middle, TOP + HEIGHT + 18, speed.name, "middle")
    right = left + len(speeds) * rung
    for series in _series(speeds):
        y = _y(series.cublas_tflops, top)
        yield segment(left, y, right, y, f'stroke="{CUBLAS}" stroke-dasharray="4 3"')
        yield words((left + right) / 2, TOP + HEIGHT + 38, _from(series), "middle", "#666666")


def _from(series: Series) -> str:
    return f"{series.name}, {series.gpu}"


def _bar(left: float, value: float, color: str, top: float) -> str:
    y = _y(value, top)
    height = TOP + HEIGHT - y
    return f'<rect x="{left:.1f}" y="{y:.1f}" width="{BAR}" height="{height:.1f}" fill="{color}"/>'


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def lines(speeds: list[Speed]) -> Iterator[str]:
    """The same for a terminal: a bar for what is published, a mark where it is predicted."""
    groups = by_ladder(speeds)
    if not groups:
        return
    scale = CELLS / _highest(groups)
    yield "10¹²/s: █ measured by the source, ░ predicted beyond that, ┊ cuBLAS there"
    for each in groups.values():
        series = {name.name: name for name in _series(each)}
        for speed in each:
            yield f"{speed.name:>14} {_cells(speed, scale)}"
        for one in series.values():
            at = round(one.cublas_tflops * scale)
            yield f"{'cuBLAS':>14} {'┊':>{at}} {one.cublas_tflops:.0f}, {_from(one)}"


def _cells(speed: Speed, scale: float) -> str:
    published, predicted = _values(speed)
    full = 0 if published is None else max(1, round(published * scale))
    light = 0 if predicted is None else max(0, round(predicted * scale) - full)
    numbers = [] if published is None else [_short(published)]
    numbers += [] if predicted is None else [f"predicted {_short(predicted)}"]
    return f"{'█' * full}{'░' * light} {', '.join(numbers)}"
