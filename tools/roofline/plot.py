"""A roofline as an SVG: operations a second against operations a byte, both logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...compiler.schedule.chips.ceilings import HBM, L2, LEVELS, SHARED, TENSOR_MEMORY
from ..drawing.log_plot import COLORS, Frame, LogScale, segment, words
from .model import Roofline

FRAME = Frame(width=860, height=480, left=80, right=250, top=30, bottom=60)
LINE_HEIGHT, SIZE = 17, 5
ROOF, PEAK = 'stroke="#888888" stroke-dasharray="5 4"', 'stroke="#444444" stroke-width="1.5"'
SHAPES = {
    HBM: "M-1,0a1,1 0 1,0 2,0a1,1 0 1,0 -2,0z",
    L2: "M-0.9,-0.9h1.8v1.8h-1.8z",
    SHARED: "M0,-1.25l1.25,1.25l-1.25,1.25l-1.25,-1.25z",
    TENSOR_MEMORY: "M0,-1.15l1.1,2h-2.2z",
}
TERA = 1e12


def draw(title: str, kernels: list[Roofline]) -> str:
    """The text of an SVG of kernels on one chip.

    A mark for each level lies at the kernel's intensity there: below the roof of the level, or at
    the measured speed where that is known.
    """
    marks = [
        (each.intensity(level), height / TERA)
        for each in kernels
        for level in each.levels
        for height in (each.attainable(level), each.measured_rate or each.peak)
    ]
    ridges = [each.peak / each.ceilings.memory[level] for each in kernels for level in each.levels]
    across = [*(intensity for intensity, _ in marks), *ridges]
    x = LogScale(across, FRAME.left, FRAME.width - FRAME.right)
    y = LogScale([height for _, height in marks], FRAME.height - FRAME.bottom, FRAME.top)
    labels = ("operations a byte that a level moves", "10¹² operations a second")
    parts = [*FRAME.axes(x, y), *FRAME.labels(title, *labels), *_roofs(kernels, x, y)]
    for number, kernel in enumerate(kernels):
        parts += _marks(kernel, x, y, COLORS[number % len(COLORS)])
    return FRAME.svg([*parts, *_legend(kernels)])


def _roofs(kernels: list[Roofline], x: LogScale, y: LogScale) -> Iterator[str]:
    """The ceilings of the units, and from the highest of them the roof of each level."""
    units = {each.unit: each.peak for each in kernels}
    rates = {level: each.ceilings.memory[level] for each in kernels for level in each.levels}
    highest = max(units.values())
    for (unit, type_), peak in units.items():
        first = min(peak / rate for rate in rates.values())
        yield segment(x(first), y(peak / TERA), x(x.high), y(peak / TERA), PEAK)
        name = f"{unit} {type_}: {peak / TERA:.4g}"
        yield words(x(x.high) - 4, y(peak / TERA) - 5, name, "end", "#444444")
    for level, rate in rates.items():
        yield from _roof(level, float(rate), highest, x, y)


def _roof(level: str, rate: float, peak: float, x: LogScale, y: LogScale) -> Iterator[str]:
    first = max(x.low, y.low * TERA / rate)
    ends = x(first), y(first * rate / TERA), x(peak / rate), y(peak / TERA)
    yield segment(*ends, ROOF)
    turn = math.degrees(math.atan2(ends[3] - ends[1], ends[2] - ends[0]))
    place = f"translate({ends[0] + 8:.1f} {ends[1] - 12:.1f}) rotate({turn:.1f})"
    yield f'<text transform="{place}" fill="#666666">{level} {rate / TERA:.3g} TB/s</text>'


def _marks(kernel: Roofline, x: LogScale, y: LogScale, color: str) -> Iterator[str]:
    places = []
    for level in kernel.levels:
        height = kernel.measured_rate or kernel.attainable(level)
        places.append((x(kernel.intensity(level)), y(height / TERA), level))
    if kernel.measured_rate:
        (left, down, _), (right, _, _) = min(places), max(places)
        yield segment(left, down, right, down, f'stroke="{color}"')
    for across, down, level in places:
        yield _mark(across, down, level, color)


def _mark(across: float, down: float, level: str, color: str) -> str:
    place = f"translate({across:.1f} {down:.1f}) scale({SIZE})"
    style = f'fill="{color}" fill-opacity="0.75" stroke="{color}" stroke-width="0.2"'
    return f'<path d="{SHAPES[level]}" transform="{place}" {style}/>'


def _legend(kernels: list[Roofline]) -> Iterator[str]:
    left, top = FRAME.width - FRAME.right + 24, FRAME.top + 12
    shown = [level for level in LEVELS if any(level in each.levels for each in kernels)]
    for row, level in enumerate(shown):
        yield _mark(left, top + row * LINE_HEIGHT - 4, level, "#555555")
        yield words(left + 14, top + row * LINE_HEIGHT, level, "start")
    top += (len(shown) + 1) * LINE_HEIGHT
    for row, kernel in enumerate(kernels):
        color, down = COLORS[row % len(COLORS)], top + row * LINE_HEIGHT
        yield words(left - 6, down, _words(kernel), "start", color)


def _words(kernel: Roofline) -> str:
    bound = f"{kernel.counts.name}: ≥ {kernel.at_least_us:.3g} µs, {kernel.limit}"
    return bound if kernel.measured_us is None else f"{bound}; {kernel.measured_us:.4g} µs"
