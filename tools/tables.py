"""Tables for people, drawn with rich."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

PLAIN_WIDTH = 110


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], stream: TextIO | None = None
) -> None:
    """Print rows under `columns`; a column whose name ends in a unit in brackets is flush right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    file = stream or sys.stdout
    table = Table(box=box.SIMPLE, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column.endswith("]") else "left")
    for row in rows:
        table.add_row(*row)
    width = None if file.isatty() else PLAIN_WIDTH
    Console(file=file, width=width, markup=False, highlight=False).print(table)
