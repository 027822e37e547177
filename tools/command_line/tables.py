"""Tables for terminals: drawn with rich, or one line per row if there are thousands."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

PLAIN_WIDTH = 110


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    stream: TextIO | None = None,
    width: int = PLAIN_WIDTH,
) -> None:
    """Print rows under `columns`; a column whose name ends in a unit in brackets is flush right.

    The first column names the rows and is never cut. `width` is in characters, where the stream is
    no terminal.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    class Paper(Console):
        def on_broken_pipe(self) -> None:  # rich would exit here with status 1
            raise BrokenPipeError

    file = stream or sys.stdout
    table = Table(box=box.SIMPLE, pad_edge=False)
    for number, column in enumerate(columns):
        justify = "right" if column.endswith("]") else "left"
        table.add_column(column, justify=justify, no_wrap=number == 0)
    for row in rows:
        table.add_row(*row)
    shown = None if file.isatty() else width
    Paper(file=file, width=shown, markup=False, highlight=False).print(table)


def print_lines(rows: Sequence[Sequence[str]]) -> None:
    """Print each row on a line of its own, however long; rich takes 1.5 ms a row, and breaks it."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
