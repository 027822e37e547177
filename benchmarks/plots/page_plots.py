"""Draw the plots of docs/performance.md and docs/hopper.md from tables in docs/.

    python benchmarks/plots/page_plots.py

Bars show one column of the first table under a heading, beside a line at 1; dots show the ratio of
each shape in docs/appendix/shapes.md against its work. Run it after the numbers of a page were
edited; a test compares the plots with the pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import ratio_plot
from ratio_plot import dots

DOCS = Path(__file__).parents[2] / "docs"
WIDTH, LABELS, RIGHT, TOP, BOTTOM = 640, 170, 60, 36, 24
ROW_HEIGHT, BAR_HEIGHT = 20, 13
AHEAD, BEHIND = "#1f77b4", "#b0b7bf"


@dataclass(frozen=True)
class Plot:
    page: str
    heading: str
    label: str
    column: str
    title: str
    file: str


PLOTS = (
    Plot(
        "hopper.md",
        "Speed",
        "preset",
        "of cuBLAS",
        "Presets at 4096×4096×4096 on an H200, relative to cuBLAS",
        "hopper.svg",
    ),
)


SHAPES, SHAPES_PLOT = "appendix/shapes.md", "shapes.svg"
SETS = ("Listed shapes", "Layers of language models", "Random shapes")
CLOCK = "apart"


def main() -> None:
    for plot in PLOTS:
        (DOCS / plot.file).write_text(render(plot))
    (DOCS / SHAPES_PLOT).write_text(render_shapes())


def render_shapes() -> str:
    """The text of the SVG with a dot for every shape that was measured in CUDA graphs."""
    page = (DOCS / SHAPES).read_text()
    series = {heading: dots(first_table(page, heading), CLOCK) for heading in SETS}
    return ratio_plot.draw("Speed on an H200, with a small kernel between launches", series)


def render(plot: Plot) -> str:
    """The text of the SVG for the numbers that stand on the page now."""
    table = first_table((DOCS / plot.page).read_text(), plot.heading)
    return draw(plot.title, [(row[plot.label], float(row[plot.column])) for row in table])


def first_table(page: str, heading: str) -> list[dict[str, str]]:
    """The rows of the first table behind a heading, by the names of its columns."""
    lines = page.splitlines()
    start = next(i for i, line in enumerate(lines) if line.lstrip("#").strip() == heading)
    first = next(i for i in range(start, len(lines)) if lines[i].startswith("|"))
    last = next((i for i in range(first, len(lines)) if lines[i][:1] != "|"), len(lines))
    names, _, *rows = [_cells(line) for line in lines[first:last]]
    return [dict(zip(names, row, strict=True)) for row in rows]


def draw(title: str, bars: Sequence[tuple[str, float]]) -> str:
    """Horizontal bars from 0, and a line at 1."""
    height = TOP + ROW_HEIGHT * len(bars) + BOTTOM
    scale = (WIDTH - LABELS - RIGHT) / max(value for _, value in bars)
    parts = [_text(WIDTH / 2, 20, title, "middle")]
    for place, (name, value) in enumerate(bars):
        parts += _bar(TOP + ROW_HEIGHT * place, name, value, scale)
    parts += _line_at_one(LABELS + scale, height)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="12">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n{body}\n</svg>\n'
    )


def _bar(top: float, name: str, value: float, scale: float) -> Iterator[str]:
    color = AHEAD if value >= 1 else BEHIND
    length = value * scale
    yield _text(LABELS - 8, top + 11, name, "end")
    yield (
        f'<rect x="{LABELS}" y="{top}" width="{length:.1f}" height="{BAR_HEIGHT}" fill="{color}"/>'
    )
    yield _text(WIDTH - 8, top + 11, f"{value:.3f}", "end")


def _line_at_one(x: float, height: float) -> Iterator[str]:
    yield (
        f'<line x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{height - BOTTOM + 2}" '
        f'stroke="#d62728" stroke-dasharray="3 3"/>'
    )
    yield _text(x, height - 6, "cuBLAS", "middle", "#d62728")


def _text(x: float, y: float, text: str, anchor: str, color: str = "black") -> str:
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" fill="{color}">{text}</text>'


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]


if __name__ == "__main__":
    main()
