"""Fits the estimate's figures of an H200 to measured times, and says how well it then chooses.

    python benchmarks/estimate/fit_estimate.py [--table CSV] [--folds 5] [--sweeps 8]
    python benchmarks/estimate/fit_estimate.py --target h100       those in which an H100 differs
    python benchmarks/estimate/fit_estimate.py --add RESULTS.json  rows of `tilewright tune measure`

The table has the times of some twenty schedules for each of many shapes that were drawn at random:

    tilewright tune all --shapes "$(python benchmarks/shape_lists.py 160 11)" --rounds 3 \
        --count 10 --drawn 6 --results build/times.json -o build/sm_90a.json
    python benchmarks/estimate/fit_estimate.py --add build/times.json

Its last 1,148 rows, of 60 shapes with few tiles and a long K, with a short K and a large C, or at
which cuBLAS was faster, are with `--count 6 --kinds 9 --drawn 4`, `--count 8 --kinds 6 --drawn 3`
and `--count 9 --kinds 11 --drawn 4`.

A figure is moved as long as that lowers the loss: of every shape the expected slowdown of what the
estimate takes (a soft minimum over its schedules, slow choices counted more than in proportion) and
a little of the estimate's error. Shapes that a fold leaves out are judged by what the others teach:
each fit begins with `START`, which knows them already, so that folds say too much. Of an H100
they begin with those of an H200, and a step away from them must be worth a little.

In the column `released` is how many of a cluster's two meetings, the last and the first, were by a
release when a row was measured. Of those in clusters so much less counts as that took longer, where
they are not any more.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from tilewright.compiler.schedule.chips import chip_figures
from tilewright.compiler.schedule.chips.chip_figures import ChipFigures
from tilewright.compiler.schedule.estimates.estimate import estimate
from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.schedule.rules.rules import broken_rule
from tilewright.compiler.schedule.schedule import PLAIN
from tilewright.compiler.schedule.search.candidates import Rank, rank
from tilewright.compiler.spec import MatmulSpec
from tilewright.dialects.target import Target, find_target
from tilewright.runtime.atomic import write_file
from tilewright.tools.tuning.results import read_results

CHIP, H100 = "sm_90a", "h100"
TABLE = Path(__file__).parent / "h200_times.csv"
TABLES = {CHIP: TABLE, H100: TABLE.with_name("h100_times.csv")}
START = {
    "l2_total_rate": 6070, "outside_share": 0.13, "shared_twice": 101, "shared_row": 0.74,
    "tma_latency": 2050, "cluster_start": 340, "cluster_doubled": 83, "split_l2_rate": 6000,
    "split_first_rate": 2490, "split_share": 0.24, "split_multicast": 1, "split_start": 816,
    "split_rate": 14.7, "split_store": 3.7, "answered_together": 0.446, "parts_write": 6.7,
    "parts_meet": 2500,
}  # fmt: skip
"""Where a fit begins: near where a search of all at once (CMA-ES) had ended, of these times, of
times of gradients of weights, and of pairs of schedules that two versions chose.

The other figures are as fitted before clusters met without a release: an H100 shares some, and
those that decide between the tiles of groups were held to times of groups."""
POSITIVE = {"cluster_start", "cluster_doubled"}
"""What is never tried as 0, from where steps are too small to lead away."""
DIFFERING = (
    "l2_total_rate", "answered_together", "answered_apart", "second_line", "tma_latency",
    "split_first_rate", "split_l2_rate", "split_start", "split_multicast", "split_rate",
    "cluster_start", "cluster_doubled", "dram_rate", "second_share", "outside_share",
    "unaligned_line", "shared_row", "shared_twice", "dram_share", "step_least", "next_tile",
)  # fmt: skip
"""Those of an H100: with them alone a fit chooses on shapes not in it as well as with all."""
NEAR = {
    "l2_total_rate": 5000, "answered_together": 0.6, "answered_apart": 0.7, "second_line": 0.037,
    "tma_latency": 2360, "unaligned_line": 3.7, "shared_row": 0.6, "cluster_start": 300,
    "cluster_doubled": 340, "split_start": 1500, "split_first_rate": 1700, "dram_rate": 3.35e6,
    "next_tile": 250, "split_l2_rate": 9300, "split_multicast": 0.875, "split_rate": 20,
}  # fmt: skip
"""Where a fit of those begins elsewhere than an H200's: near where one to fewer shapes ended. From
an H200's own it ends in figures of a larger loss, by steps of one figure at a time."""
MOST = {"dram_rate": 3.35e6}
"""Of an H100: no more than its data sheet has."""
RELEASED_US = {CHIP: (0.15, 0.29), H100: (0.55, 0.74)}
"""What releases at the first of these meetings and at the last took longer, medians: of 26 and of
12 kernels on an H100; on an H200 of 39 kernels both, and of 3 that split K the first, each less
what 22 kernels without clusters differed by in the same run from their times in the table."""
STEP_COST = 0.002
"""What a figure of an H100 that is e times an H200's must lower the loss by."""
SHARES = {
    "answered_together", "second_share", "first_wave", "dram_share", "split_multicast",
    "split_share",
}  # fmt: skip
WIDTH = 0.3
"""Of the first steps, as a logarithm."""
FIRST = 1.0
"""What a figure that is 0 is first tried as."""
SOFTNESS, CURVATURE, ERROR_SHARE, LAUNCH_US = 0.03, 6.0, 0.15, 2.1
"""Of the loss: what of an estimate's logarithm is no difference, how much worse than in proportion
a slow choice is, what the estimate's error counts, and what a launch and the small kernel take."""

Row = tuple[Schedule, float]
Shapes = dict[Problem, list[Row]]


def main() -> None:
    options = parse_options()
    if options.add:
        add_rows(options.table, read_results(options.add).rows)
    target = find_target(options.target)
    shapes = legal_rows(read_table(options.table, options.target), target)
    print(f"today: {as_words(ratios(shapes, shapes, target))}")
    for fold in range(options.folds):
        left_out = [each for number, each in enumerate(shapes) if number % options.folds == fold]
        taught = {each: rows for each, rows in shapes.items() if each not in left_out}
        with_figures(fit(taught, options.sweeps, fold, target), target)
        print(f"fold {fold}: {as_words(ratios(shapes, left_out, target))} on shapes not in the fit")
        with_figures({}, target)
    found = fit(shapes, options.sweeps, 0, target)
    with_figures(found, target)
    print(f"fitted to all: {as_words(ratios(shapes, shapes, target))}")
    print(f"loss {loss(shapes, target):.4f}")
    print("\n".join(f"{name:18} {value:.4g}" for name, value in found.items()))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", choices=TABLES, default=CHIP, help="an H200 or an H100")
    parser.add_argument("--table", type=Path, help="times (default those of the GPU)")
    parser.add_argument("--add", type=Path, metavar="RESULTS", help="first add the rows of these")
    parser.add_argument(
        "--folds", type=int, default=5, help="parts of the shapes, each left out once"
    )
    parser.add_argument("--sweeps", type=int, default=8, help="over all figures (default 8)")
    options = parser.parse_args()
    options.table = options.table or TABLES[options.target]
    return options


# -- the table ---------------------------------------------------------------------------------

SCHEDULE = [each.name for each in fields(Schedule)]
RELEASED = "released"
MAJORS = {"a_major": "m", "b_major": "n"}  # of a spec, where an operand is not K-major
COLUMNS = ("m", "n", "k", "us", RELEASED, *SCHEDULE, *MAJORS)


def add_rows(path: Path, rows: Iterable[Any]) -> None:
    """One line more for each schedule, of bf16, in the columns of today."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    for earlier in _lines(path) if path.exists() else []:
        table.writerow(
            _cells({RELEASED: 0, **asdict(PLAIN), **dict.fromkeys(MAJORS, "k")}) | earlier
        )
    for row in rows:
        if row.schedule is None:  # of lanes, which have an estimate of their own
            continue
        told = {name: getattr(row.problem, name) for name in "mnk"}
        told |= {
            name: "k" if getattr(row.problem, name) == "k" else other
            for name, other in MAJORS.items()
        }
        found = {**told, "us": f"{row.us:.2f}", RELEASED: 0, **asdict(row.schedule)}
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


def read_table(path: Path, gpu: str = H100) -> Shapes:
    """The schedules and their microseconds, by problem; a column that is not there is the default.

    Those in clusters are of `gpu`, as if all meetings had been without releases.

    Raises ValueError for a column that no schedule has.
    """
    shapes: Shapes = {}
    for row in _lines(path):
        spec = MatmulSpec.of_type(*(int(row[name]) for name in "mnk"), "bf16")
        spec = replace(spec, **{name: row.get(name) or "k" for name in MAJORS})
        problem = Problem.of(spec, find_target(CHIP))
        schedule = Schedule(**{name: _from_cell(row[name]) for name in SCHEDULE if name in row})
        us = float(row["us"]) - _released_us(row.get(RELEASED) or "0", schedule, gpu)
        shapes.setdefault(problem, []).append((schedule, us))
    return shapes


def _released_us(meetings: str, schedule: Schedule, gpu: str) -> float:
    """What releases at so many meetings took longer that are not made any more: parts of K end with
    one."""
    if schedule.cluster_size * schedule.split_k == 1:
        return 0.0
    first_us, last_us = RELEASED_US[gpu]
    last = last_us if schedule.split_k == 1 and meetings != "0" else 0.0
    return last + (first_us if meetings == "2" else 0.0)


def _from_cell(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value


def legal_rows(shapes: Shapes, target: Target) -> Shapes:
    """Without what breaks a rule by now: the choice never sees it."""
    kept = {
        problem: [row for row in rows if not broken_rule(problem, row[0], target)]
        for problem, rows in shapes.items()
    }
    return {problem: rows for problem, rows in kept.items() if rows}


# -- the figures -------------------------------------------------------------------------------

ORIGINAL = {CHIP: chip_figures.FIGURES[CHIP], H100: chip_figures.OF_GPUS[H100]}


def _names(kind: type) -> list[str]:
    return [each.name for each in fields(kind)]


def with_figures(values: dict[str, float], target: Target) -> None:
    """Let the estimate use these in place of the GPU's own."""
    original, known = ORIGINAL[target.gpu or CHIP], chip_figures.FIGURES
    changed: dict[str, Any] = {
        name: value for name, value in values.items() if name in _names(ChipFigures)
    }
    for kind in ("split", "parts"):
        of_kind = {
            name.removeprefix(f"{kind}_"): value
            for name, value in values.items()
            if name.startswith(f"{kind}_")
        }
        changed[kind] = replace(getattr(original, kind), **of_kind)
    known = chip_figures.OF_GPUS if target.gpu else known
    known[target.gpu or CHIP] = replace(original, **changed)


def start_of(target: Target) -> dict[str, float]:
    """Where a fit begins: for a GPU that is not the chip's usual one, with the figures of that."""
    if not target.gpu:
        return dict(START)
    usual = chip_figures.figure_table(find_target(CHIP))
    return {name: NEAR.get(name) or float(usual[name]) for name in DIFFERING}


def fit(shapes: Shapes, sweeps: int, seed: int, target: Target) -> dict[str, float]:
    """Figures of the least loss that is found by moving one at a time, in random order."""
    values = start_of(target)
    start, order = dict(values), random.Random(seed)

    def loss_with(tried: dict[str, float]) -> float:
        with_figures(tried, target)
        return loss(shapes, target) + (_steps_cost(tried, start) if target.gpu else 0)

    least, widths = loss_with(values), dict.fromkeys(values, WIDTH)
    for _ in range(sweeps):
        for name in order.sample(list(values), len(values)):
            before = values[name]
            for tried in _neighbours(name, before, widths[name], target):
                if (found := loss_with({**values, name: tried})) < least - 1e-6:
                    least, values[name] = found, tried
            widths[name] *= 0.6 if values[name] == before else 1.2
    return values


def _neighbours(name: str, value: float, width: float, target: Target) -> list[float]:
    """What a figure is tried as. Those of an H100 stay away from 0, from which there is no way back
    to an H200's."""
    tried = [value * math.exp(width), value * math.exp(-width)] if value else [FIRST]
    if value and not target.gpu and name not in POSITIVE:
        tried.append(0.0)
    known = MOST.get(name, math.inf) if target.gpu else math.inf
    most = 1.0 if name in SHARES else known
    return [min(each, most) for each in tried]


def _steps_cost(values: dict[str, float], start: dict[str, float]) -> float:
    return STEP_COST * sum(abs(math.log(values[name] / start[name])) for name in values)


def loss(shapes: Shapes, target: Target) -> float:
    """Of all shapes the mean: slowdown of the choice, and a little of the estimate's error."""
    return statistics.mean(_loss_of(problem, rows, target) for problem, rows in shapes.items())


def _loss_of(problem: Problem, rows: Sequence[Row], target: Target) -> float:
    try:
        found = [estimate(problem, schedule, target).total_us for schedule, _ in rows]
    except ZeroDivisionError:  # a rate of nothing
        return math.inf
    least, fastest = min(found), min(us for _, us in rows)
    weights = [(least / each) ** (1 / SOFTNESS) for each in found]
    slower = [math.log(us / fastest) for _, us in rows]
    chosen = sum(w * (d + CURVATURE * d * d) for w, d in zip(weights, slower, strict=True))
    errors = [
        min(abs(math.log((each + LAUNCH_US) / us)), 0.5)
        for each, (_, us) in zip(found, rows, strict=True)
    ]
    return chosen / sum(weights) + ERROR_SHARE * statistics.mean(errors)


# -- how well it chooses -----------------------------------------------------------------------


def ratios(shapes: Shapes, of: Iterable[Problem], target: Target) -> list[float]:
    """Of each problem the fastest time over that of what the estimate takes."""
    return [
        min(us for _, us in shapes[problem])
        / min(shapes[problem], key=lambda row: taken(problem, row[0], target))[1]
        for problem in of
    ]


def taken(problem: Problem, schedule: Schedule, target: Target) -> Rank:
    """What the choice goes by, which of equal estimates takes the simpler schedule."""
    return rank(estimate(problem, schedule, target).total_us, schedule)


def as_words(found: Sequence[float]) -> str:
    mean = statistics.geometric_mean(found)
    return f"{mean:.3f} of the fastest schedule (geometric mean), least {min(found):.3f}"


if __name__ == "__main__":
    main()
