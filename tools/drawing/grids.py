"""A table of short texts, some of one colour: as lines of a terminal, or as an SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

CELL_WIDTH, CELL_HEIGHT, MARGIN, TITLE_HEIGHT = 44, 22, 40, 34
# Light, so that black text stands on them; neighbours differ in hue.
COLORS = ("#cfe3f7", "#f9dcc4", "#d5efd0", "#f3d1dc", "#e4dcf1", "#fbf3c4", "#d0eeee", "#e6e6e6")


@dataclass(frozen=True)
class Cell:
    """A cell's text. Those of one `group` have one colour, those that are marked a frame."""

    text: str
    group: int = 0
    marked: bool = False


@dataclass(frozen=True)
class Grid:
    """Rows of cells, with what names the rows and the columns."""

    title: str
    rows: Sequence[Sequence[Cell]]
    row_names: Sequence[str]
    column_names: Sequence[str]

    def lines(self, width: int) -> Iterator[str]:
        """The lines of the grid, with as many columns as fit `width`; the last says how many do
        not."""
        texts = [cell.text + "*" * cell.marked for row in self.rows for cell in row]
        wide = max(map(len, [*texts, *self.column_names])) + 1
        first = max(map(len, self.row_names)) + 1
        fitting = min(len(self.column_names), max(1, (width - first) // wide))
        yield self.title
        yield " " * first + "".join(name.rjust(wide) for name in self.column_names[:fitting])
        for name, row in zip(self.row_names, self.rows, strict=True):
            cells = (cell.text + "*" * cell.marked for cell in row[:fitting])
            yield name.ljust(first) + "".join(text.rjust(wide) for text in cells)
        left = len(self.column_names) - fitting
        if left:
            yield f"({left} more columns; --svg FILE draws all)"

    def svg(self) -> str:
        """The text of an SVG."""
        return _document(self.size, self.body())

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of its drawing."""
        width = MARGIN + CELL_WIDTH * len(self.column_names) + 10
        return width, TITLE_HEIGHT + CELL_HEIGHT * (len(self.rows) + 1) + 10

    def body(self) -> str:
        """The lines of its drawing."""
        return "\n".join([*self._names(), *self._cells()])

    def _names(self) -> Iterator[str]:
        yield f'<text x="10" y="18" font-size="13" text-anchor="start">{escape(self.title)}</text>'
        for number, name in enumerate(self.column_names):
            yield _text(MARGIN + (number + 0.5) * CELL_WIDTH, TITLE_HEIGHT + 12, name)
        for number, name in enumerate(self.row_names):
            yield _text(MARGIN / 2, _top(number) + 15, name)

    def _cells(self) -> Iterator[str]:
        for number, row in enumerate(self.rows):
            for column, cell in enumerate(row):
                x, y = MARGIN + column * CELL_WIDTH, _top(number)
                edge = 'stroke="#b00020" stroke-width="2"' if cell.marked else 'stroke="#888888"'
                yield (
                    f'<rect x="{x}" y="{y}" width="{CELL_WIDTH}" height="{CELL_HEIGHT}" '
                    f'fill="{COLORS[cell.group % len(COLORS)]}" {edge}/>'
                )
                yield _text(x + CELL_WIDTH / 2, y + 15, cell.text)


def stacked(grids: Sequence[Grid]) -> str:
    """The text of an SVG that has one grid under the other."""
    width, height = max(grid.size[0] for grid in grids), 0
    parts = []
    for grid in grids:
        parts.append(f'<g transform="translate(0 {height})">\n{grid.body()}\n</g>')
        height += grid.size[1]
    return _document((width, height), "\n".join(parts))


def _document(size: tuple[int, int], body: str) -> str:
    width, height = size
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="11" text-anchor="middle">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n{body}\n</svg>\n'
    )


def _top(row: int) -> int:
    return TITLE_HEIGHT + CELL_HEIGHT * (row + 1)


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:g}" y="{y:g}">{escape(words)}</text>'
