"""Times of schedules of many shapes, as CSV files in this folder keep them.

    python benchmarks/estimate/measured_times.py RESULTS.json [--target h100]

adds rows of `tilewright tune measure`. A table has the times of some twenty schedules for each of
many shapes that were drawn at random:

    tilewright tune all --shapes "$(python benchmarks/shape_lists.py 160 11)" --rounds 3 \\
        --count 10 --drawn 6 --results build/times.json -o build/sm_90a.json
    python benchmarks/estimate/measured_times.py build/times.json

Of an H200 401 rows are of 30 random shapes, with `--count 4 --kinds 5 --drawn 1`, and of
five slow ones, with `--count 9 --kinds 9 --drawn 3`. The 102 before them, of six shapes at which
what was chosen was slow, are with `--count 5 --kinds 9 --drawn 3`. Those of the 40 shapes with the
worst choices were timed anew, with the pass `edge-boxes`; after them are 529 that were not timed
before, of the 54 worst shapes and of few tiles and a long K, 21 of copies by threads, and 1,800
of 127 new shapes. The 1,148 before all of these, of 60
shapes with few tiles and a long K, with a short K and a large C, or at which cuBLAS was faster, are
with `--count 6 --kinds 9 --drawn 4`, `--count 8 --kinds 6 --drawn 3` and `--count 9 --kinds 11
--drawn 4`.

In the column `released` is how many of a cluster's two meetings, the last and the first, were by a
release when a row was measured. Of those in clusters so much less counts as that took longer, where
they are not any more. In the column `whole` is whether boxes had the rows past the last ones, where
the pass `edge-boxes` leaves them out by now: such kernels are estimated as they were.
"""

from __future__ import annotations

import argparse
import csv
import functools
import io
import json
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.schedule.rules.rules import broken_rule
from tilewright.compiler.schedule.schedule import PLAIN
from tilewright.compiler.schedule.search.stagings import fitting_stages
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import Target, find_target
from tilewright.runtime.atomic import write_file
from tilewright.tools.tuning.results import read_results

CHIP, H100 = "sm_90a", "h100"
TABLE = Path(__file__).parent / "h200_times.csv"
TABLES = {CHIP: TABLE, H100: TABLE.with_name("h100_times.csv")}
RELEASED_US = {CHIP: (0.15, 0.29), H100: (0.55, 0.74)}
"""What releases at the first of these meetings and at the last took longer, medians: of 26 and of
12 kernels on an H100; on an H200 of 39 kernels both, and of 3 that split K the first, each less
what 22 kernels without clusters differed by in the same run from their times in the table."""


class Row(NamedTuple):
    """A schedule and its microseconds; `whole` boxes had rows that `edge-boxes` leaves out now."""

    schedule: Schedule
    us: float
    whole: bool = False


Times = dict[Problem, list[Row]]

SCHEDULE = [each.name for each in fields(Schedule)]
RELEASED, WHOLE = "released", "whole"
MAJORS = {"a_major": "m", "b_major": "n"}  # of a spec, where an operand is not K-major
COLUMNS = ("m", "n", "k", "us", RELEASED, WHOLE, *SCHEDULE, *MAJORS)
MADE = {RELEASED: 0, WHOLE: False}
"""What is told of a kernel as it is made today."""


def add_rows(path: Path, rows: Iterable[Any]) -> None:
    """One line more for each schedule, of bf16, in the columns of today."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    for earlier in _lines(path) if path.exists() else []:
        table.writerow(_cells({**MADE, **asdict(PLAIN), **dict.fromkeys(MAJORS, "k")}) | earlier)
    for row in rows:
        if row.schedule is None:  # of lanes, which have an estimate of their own
            continue
        told = {name: getattr(row.problem, name) for name in "mnk"}
        told |= {
            name: "k" if getattr(row.problem, name) == "k" else other
            for name, other in MAJORS.items()
        }
        found = {**told, "us": f"{row.us:.2f}", **MADE, **asdict(row.schedule)}
        table.writerow(_cells(found))
    write_file(path, text.getvalue().encode())


def _lines(path: Path) -> list[dict[str, str]]:
    """The lines of a table; ValueError for a column that is not one of COLUMNS."""
    with path.open(newline="") as file:
        table = csv.DictReader(file)
        unknown = set(table.fieldnames or ()) - set(COLUMNS)
        if unknown:
            raise ValueError(f"{path}: columns must be {', '.join(COLUMNS)}, got {unknown}")
        return list(table)


def _cells(values: dict[str, Any]) -> dict[str, str]:
    return {name: _as_cell(value) for name, value in values.items()}


def _as_cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value).replace(" ", "")


def read_table(path: Path, gpu: str) -> Times:
    """The schedules and their microseconds, by problem; a column that is not there is the default.

    Those in clusters are of `gpu`, as if all meetings had been without releases.

    Raises ValueError for a column that no schedule has.
    """
    shapes: Times = {}
    for row in _lines(path):
        problem = _problem(
            *(row[name] for name in "mnk"), *(row.get(name) or "k" for name in MAJORS)
        )
        schedule = Schedule(**{name: _from_cell(row[name]) for name in SCHEDULE if name in row})
        us = float(row["us"]) - _released_us(row.get(RELEASED) or "0", schedule, gpu)
        whole = row.get(WHOLE) == "true"
        shapes.setdefault(problem, []).append(Row(schedule, us, whole))
    return shapes


@functools.cache
def _problem(m: str, n: str, k: str, *majors: str) -> Problem:
    spec = MatmulSpec.of_type(int(m), int(n), int(k), "bf16")
    spec = replace(spec, **dict(zip(MAJORS, majors, strict=True)))
    return Problem.of(spec, find_target(CHIP))


def _released_us(meetings: str, schedule: Schedule, gpu: str) -> float:
    """What releases at so many meetings took longer that are not made any more: parts of K end with
    one."""
    if schedule.cluster_size * schedule.split_k == 1:
        return 0.0
    first_us, last_us = RELEASED_US[gpu]
    last = last_us if schedule.split_k == 1 and meetings != "0" else 0.0
    return last + (first_us if meetings == "2" else 0.0)


@functools.cache
def _from_cell(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value


def legal_rows(shapes: Times, target: Target) -> Times:
    """Without what breaks a rule by now, or leaves L1 no room for what threads copy: the choice
    never sees it."""
    kept = {
        problem: [
            row
            for row in rows
            if not broken_rule(problem, row[0], target)
            and row[0].stages <= fitting_stages(problem.seen_by(row[0]), row[0], target)
        ]
        for problem, rows in shapes.items()
    }
    return {problem: rows for problem, rows in kept.items() if rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, help="as `tilewright tune measure` writes them")
    parser.add_argument("--target", choices=TABLES, default=CHIP, help="an H200 or an H100")
    options = parser.parse_args()
    add_rows(TABLES[options.target], read_results(options.results).rows)


if __name__ == "__main__":
    main()
