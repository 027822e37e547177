"""The rows of benchmarks/models.py: kept in a file from one call to the next, and as a table."""

from __future__ import annotations

import json
import math
import os
import statistics
from pathlib import Path
from typing import Any

Row = dict[str, Any]
DIED = "the process died while it was measured"


class Kept:
    """Rows by the model's name, in a JSON file if one is named.

    A row of other columns than those that are asked for counts as not measured. The file also names
    the model that is being measured, so that the next call knows which one a process died of.
    """

    def __init__(self, path: str | None, columns: list[str]):
        self.path = Path(path) if path else None
        self.columns, self.rows = columns, dict[str, Row]()
        self._others: list[Row] = []
        if self.path is None or not self.path.exists():
            return
        found = json.loads(self.path.read_text())
        if found.get("begun"):
            found["rows"].append({"name": found["begun"], "columns": columns, "why": DIED})
        for row in found["rows"]:
            if row["columns"] == columns:
                self.rows[row["name"]] = row
            else:
                self._others.append(row)
        self._write("")

    def __contains__(self, name: str) -> bool:
        return name in self.rows

    def __getitem__(self, name: str) -> Row:
        return self.rows[name]

    def begin(self, name: str) -> None:
        """Say that a model is being measured."""
        self._write(name)

    def enter(self, row: Row) -> None:
        """Keep a model's figures."""
        self.rows[row["name"]] = {**row, "columns": self.columns}
        self._write("")

    def _write(self, begun: str) -> None:
        if self.path is None:
            return
        found = {"begun": begun, "rows": [*self._others, *self.rows.values()]}
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(found, indent=1))
        os.replace(beside, self.path)


def headings(columns: list[str]) -> str:
    return f"{'best other/ours':>18}{'matmul':>9}{'error':>9}  compile s ({', '.join(columns)})"


def speedup(row: Row, ours: str = "ours") -> float:
    """The best time of the others over ours; NaN where one is missing."""
    times = {name: us for name, us in row["us"].items() if isinstance(us, float)}
    others = [us for name, us in times.items() if name not in ("ours", "both")]
    return min(others, default=math.nan) / times.get(ours, math.nan)


def line_of(row: Row, columns: list[str]) -> str:
    if "why" in row:
        return f"{row['name']:24} not measured: {row['why']}"
    times = [row["us"].get(name, math.nan) for name in columns]
    texts = [f"{each:14.1f}" if isinstance(each, float) else f"  [{each}]" for each in times]
    theirs, ours = row.get("matmul", (0, 0))
    matmul = theirs / ours if ours else math.nan
    error = row["error"].get("ours", math.nan) / (row["error"].get("eager") or math.nan)
    spent = ", ".join(f"{row['compile_s'].get(name, math.nan):.1f}" for name in columns)
    parts = ", ".join(f"{name} {each:.1f}" for name, each in row.get("spent", {}).items())
    figures = f"{speedup(row):18.3f}{matmul:9.3f}{error:9.3f}"
    return f"{row['name']:24}{''.join(texts)}{figures}  {spent}" + (f" ({parts})" if parts else "")


def summary(found: list[Row], columns: list[str]) -> None:
    """Geometric means over the models of each column over ours, of the matmul time and of ours."""
    rows = [row for row in found if "why" not in row]
    parts = []
    for name in columns:
        pairs = [(row["us"].get(name), row["us"].get("ours")) for row in rows]
        ratios = [a / b for a, b in pairs if isinstance(a, float) and isinstance(b, float)]
        if ratios and name != "ours":
            parts.append(f"{name}/ours {statistics.geometric_mean(ratios):.3f}")
    best = [each for each in map(speedup, rows) if not math.isnan(each)]
    if best:
        mean = statistics.geometric_mean(best)
        parts.append(f"best other/ours {mean:.3f} (least {min(best):.3f})")
    sums = [row["matmul"] for row in rows if row.get("matmul", (0, 0))[1]]
    if sums:
        matmul = statistics.geometric_mean(theirs / ours for theirs, ours in sums)
        parts.append(f"matmul {matmul:.3f}")
    print(f"geometric means of {len(best)}: " + (", ".join(parts) or "nothing was timed"))
