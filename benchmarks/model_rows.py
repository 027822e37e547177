"""The rows of benchmarks/models.py: kept in a file from one call to the next, and as a table."""

from __future__ import annotations

import json
import math
import os
import statistics
from pathlib import Path
from typing import Any

Row = dict[str, Any]
OURS = ("ours", "both")
DIED = "the process ended while it was measured, twice"
DEADLY = 2


class Kept:
    """Rows by the model's name, in a JSON file if one is named.

    A row of other columns than those that are asked for counts as not measured. The file also names
    the model and the column that are being measured, and how often a process ended with each: the
    next call measures the model again, without a column that ended it twice. What a call had of a
    model when it ended stays until then.

    interrupted: the last process was ended from outside, which is no fault of what it measured.
    """

    def __init__(self, path: str | None, columns: list[str], interrupted: bool = False):
        self.path = Path(path) if path else None
        self.columns, self.rows = columns, dict[str, Row]()
        self._others: list[Row] = []
        self._ended: dict[str, int] = {}
        if self.path is None or not self.path.exists():
            return
        found = json.loads(self.path.read_text())
        self._ended = found.get("ended", {})
        if found.get("begun") and not interrupted:
            self._ended[found["begun"]] = self._ended.get(found["begun"], 0) + 1
        for row in found["rows"]:
            if row["columns"] == columns:
                self.rows[row["name"]] = row
            else:
                self._others.append(row)
        self._write("")

    def __contains__(self, name: str) -> bool:
        """Whether a model is measured with all columns."""
        return name in self.rows and not self.rows[name].get("unfinished")

    def __getitem__(self, name: str) -> Row:
        return self.rows[name]

    def begin(self, name: str, part: str) -> None:
        """Say what of a model is being measured."""
        self._write(f"{name}, {part}")

    def is_deadly(self, name: str, part: str) -> bool:
        """Whether processes ended during a part of a model, twice."""
        return self._ended.get(f"{name}, {part}", 0) >= DEADLY

    def enter(self, row: Row, finished: bool = True) -> None:
        """Keep a model's figures."""
        self.rows[row["name"]] = {**row, "columns": self.columns}
        if not finished:
            self.rows[row["name"]]["unfinished"] = True
        self._write("")

    def _write(self, begun: str) -> None:
        if self.path is None:
            return
        rows = [*self._others, *self.rows.values()]
        found = {"begun": begun, "ended": self._ended, "rows": rows}
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(found, indent=1))
        os.replace(beside, self.path)


def headings(columns: list[str]) -> str:
    """What stands above the columns of `line_of` behind the times."""
    ours = [name for name in OURS if name in columns]
    each = "".join(f"{'best/' + name:>11}{'matmul':>8}{'error':>8}" for name in ours)
    return f"{each}  compile s ({', '.join(columns)})"


def us_of(row: Row, column: str) -> float:
    """A column's time; NaN where it has none."""
    found = row["us"].get(column)
    return found if isinstance(found, float) else math.nan


def speedup(row: Row, ours: str = "ours") -> float:
    """The best time of the others over ours; NaN where one is missing."""
    others = [us_of(row, name) for name in row["us"] if name not in OURS]
    return min((us for us in others if us > 0), default=math.nan) / us_of(row, ours)


def matmul_ratio(row: Row, ours: str) -> float:
    """The products' time by Inductor over that with ours."""
    theirs, mine = row.get("matmul", {}).get(ours, (0, 0))
    return theirs / mine if mine else math.nan


def line_of(row: Row, columns: list[str]) -> str:
    """A model's figures, those of a call that ended before all are there as well."""
    if "why" in row:
        return f"{row['name']:24} not measured: {row['why']}"
    times = [row["us"].get(name, math.nan) for name in columns]
    texts = [f"{each:14.1f}" if isinstance(each, float) else f"  [{each}]" for each in times]
    figures = ""
    for name in (name for name in OURS if name in columns):
        error = row["error"].get(name, math.nan) / (row["error"].get("eager") or math.nan)
        figures += f"{speedup(row, name):11.3f}{matmul_ratio(row, name):8.3f}{error:8.3f}"
    spent = ", ".join(_seconds(row, name) for name in columns)
    parts = [f"{row['name']:24}{''.join(texts)}{figures}  {spent}"]
    if row.get("attention"):
        parts.append(f"attention is not fused: {row['attention']}")
    if row.get("unfinished"):
        parts.append("the call ended here")
    return "; ".join(parts)


def _seconds(row: Row, column: str) -> str:
    """The seconds of a column's compilation, with what regions took of them."""
    whole = f"{row['compile_s'].get(column, math.nan):.1f}"
    spent = row.get("spent", {}).get(column, {})
    parts = ", ".join(f"{name} {each:.1f}" for name, each in spent.items())
    return f"{whole} ({parts})" if parts else whole


def summary(found: list[Row], columns: list[str]) -> None:
    """For both of ours: geometric means over the models of each other column's time over it, of the
    best other's, of the products' and of compilation."""
    rows = [row for row in found if "why" not in row]
    for ours in (name for name in OURS if name in columns):
        parts = []
        for name in (name for name in columns if name not in OURS):
            ratios = [us_of(row, name) / us_of(row, ours) for row in rows]
            parts += _mean(f"{name}/{ours}", ratios)
        parts += _mean(f"best other/{ours}", [speedup(row, ours) for row in rows])
        parts += _mean("matmul", [matmul_ratio(row, ours) for row in rows])
        if "autotune" in columns:
            seconds = [
                [row["compile_s"].get(e, math.nan) for e in ("autotune", ours)] for row in rows
            ]
            parts += _mean("compile, autotune's", [theirs / mine for theirs, mine in seconds])
        print(f"geometric means, {ours}: " + ("; ".join(parts) or "nothing was timed"))


def _mean(name: str, ratios: list[float]) -> list[str]:
    known = [each for each in ratios if not math.isnan(each)]
    if not known:
        return []
    mean = statistics.geometric_mean(known)
    return [f"{name} {mean:.3f} (of {len(known)}, least {min(known):.3f})"]
