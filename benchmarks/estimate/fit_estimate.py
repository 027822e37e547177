"""Fits the estimate's figures of an H200 to measured times, and says how well it then chooses.

    python benchmarks/estimate/fit_estimate.py                  an H200's, and those of four folds
    python benchmarks/estimate/fit_estimate.py --target h100    those in which an H100 differs
    python benchmarks/estimate/fit_estimate.py --all            all that times may say
    python benchmarks/estimate/fit_estimate.py --today          only how well it chooses now

Takes two minutes on two cores, and needs `cma`, of the extra `fit`. All figures move at once, by
CMA-ES, so as to lower the loss: of every shape the expected slowdown of what the estimate takes (a
soft minimum over its schedules, slow choices counted more than in proportion) and a little of the
estimate's error. A fit begins with `ROUGH`, one digit each, so that it owes nothing to shapes that
a fold leaves out: how well it chooses for those is what it says of shapes not in the fit. The same
seed finds the same figures.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import os
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
from measured_times import CHIP, H100, TABLES, legal_rows, read_table
from table_estimate import Array, Rows, Values, rows_of, totals_us, values_of

from tilewright.compiler.schedule.chips.chip_figures import figures
from tilewright.dialects.target import find_target

FITTED = {
    CHIP: (
        "l2_total_rate", "outside_share", "shared_twice", "shared_row", "tma_latency",
        "cluster_start", "cluster_doubled", "split_l2_rate", "split_first_rate", "split_share",
        "split_multicast", "split_start", "split_rate", "split_store", "answered_together",
        "parts_write", "parts_meet",
    ),
    H100: (
        "l2_total_rate", "answered_together", "answered_apart", "second_line", "tma_latency",
        "split_first_rate", "split_l2_rate", "split_start", "split_multicast", "split_rate",
        "cluster_start", "cluster_doubled", "dram_rate", "second_share", "outside_share",
        "unaligned_line", "shared_row", "shared_twice", "dram_share", "step_least", "next_tile",
    ),
}  # fmt: skip
"""Of an H200 those that decide between clusters and parts of K; the others were fitted before to
times of groups, too. Of an H100 those in which it differs: with them alone a fit chooses for shapes
not in it as well as with all."""
ROUGH = {
    "l2_total_rate": 5000, "outside_share": 0.1, "shared_twice": 1000, "shared_row": 0.5,
    "tma_latency": 2000, "cluster_start": 500, "cluster_doubled": 100, "split_l2_rate": 5000,
    "split_first_rate": 2000, "split_share": 0.2, "split_multicast": 1, "split_start": 1000,
    "split_rate": 20, "split_store": 5, "answered_together": 0.5, "answered_apart": 0.5,
    "parts_write": 5, "parts_meet": 2000, "second_line": 0.05, "dram_rate": 3e6,
    "second_share": 0.5, "unaligned_line": 2, "dram_share": 0.2, "step_least": 200,
    "next_tile": 500, "l2_rate": 100, "asked_again": 0.5, "first_wave": 1, "cta_start": 500,
    "direct_store_rate": 2, "tma_store_rate": 50, "store_request": 5, "staged_piece": 50,
    "split_latency": 0.5, "parts_read": 50,
}  # fmt: skip
"""Where a fit begins."""
MOST = {CHIP: {"dram_rate": 4.8e6}, H100: {"dram_rate": 3.35e6}}
"""What a data sheet has."""
SHARES = {
    "answered_together", "second_share", "dram_share", "first_wave", "split_multicast",
    "split_share",
}  # fmt: skip
"""Figures of at most 1."""
SOFTNESS, CURVATURE, ERROR_SHARE, LAUNCH_US = 0.03, 6.0, 0.15, 2.1
"""Of the loss: what of an estimate's logarithm is no difference, how much worse than in proportion
a slow choice is, what the estimate's error counts, and what a launch and the small kernel take."""
ERROR_MOST = 0.5
WIDTH, STEP_COST = 0.3, 1e-4
"""Of the first steps, as a logarithm, and what the square of a whole step from `ROUGH` costs."""


class Task(NamedTuple):
    """A fit: the rows that it knows, of which GPU they are, and the figures that it looks for."""

    rows: Rows
    gpu: str
    names: tuple[str, ...]
    seed: int
    steps: int


def main() -> None:
    options = parse_options()
    target = find_target(options.target)
    rows = rows_of(legal_rows(read_table(TABLES[options.target], options.target), target), target)
    today = values_of(target)
    print(f"{len(rows.us)} times of {rows.problem[-1] + 1} shapes")
    print(f"today            {as_words(rows, today, options.target)}")
    if not options.today:
        report_fit(rows, today, options)


def report_fit(rows: Rows, today: Values, options: argparse.Namespace) -> None:
    """Fits to all shapes and to those of all folds but one, and prints what comes of it."""
    if importlib.util.find_spec("cma") is None:
        raise SystemExit("fit_estimate: error: cma is not installed; pip install '.[fit]'")
    gpu, names = (
        options.target,
        used_figures(today, rows) if options.all else FITTED[options.target],
    )
    fold_of = np.random.default_rng(options.seed).permutation(rows.problem[-1] + 1) % options.folds
    left_out = [fold_of[rows.problem] == fold for fold in range(options.folds)]
    known = [rows, *(rows.of(~each) for each in left_out)]
    tasks = [Task(each, gpu, names, options.seed, options.steps) for each in known]
    with ProcessPoolExecutor(options.jobs) as pool:
        found, *of_folds = pool.map(fitted, tasks)
    print(f"fitted to all    {as_words(rows, found, gpu)}")
    folds = [rows.of(each) for each in left_out]
    judged = [
        ratios(each, estimated(each, of, gpu)) for each, of in zip(folds, of_folds, strict=True)
    ]
    print(f"not in the fit   {summary(np.concatenate(judged))}")
    for name in names:
        print(f"{name:18} {found[name]:10.4g}   today {today[name]:10.4g}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", choices=TABLES, default=CHIP, help="an H200 or an H100")
    parser.add_argument(
        "--folds",
        type=int,
        default=4,
        choices=range(2, 11),
        metavar="N",
        help="parts of the shapes, each left out (default 4)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of folds and search (default 1)")
    parser.add_argument("--steps", type=int, default=250, help="of a search (default 250)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="fits at the same time")
    parser.add_argument("--all", action="store_true", help="fit every figure that is used")
    parser.add_argument("--today", action="store_true", help="judge today's figures, fit none")
    return parser.parse_args()


# -- a fit -------------------------------------------------------------------------------------


def used_figures(today: Values, rows: Rows) -> tuple[str, ...]:
    """All but those that nothing estimates this GPU by, or that no measured kernel tells of."""
    parted = bool((rows.split_grid > 1).any())
    return tuple(
        name for name, value in today.items() if value and (parted or "parts_" not in name)
    )


def fitted(task: Task) -> Values:
    """Figures of the least loss that CMA-ES finds, and the GPU's own where they are not fitted."""
    cma = importlib.import_module("cma")  # of an extra, and only for this
    own = values_of(find_target(task.gpu))

    def cost(logarithms: Array) -> float:
        values = own | moved(task.names, logarithms, task.gpu)
        moves = STEP_COST * float(np.square(logarithms).sum())
        return loss(task.rows, estimated(task.rows, values, task.gpu)) + moves

    search = cma.CMAEvolutionStrategy(
        [0.0] * len(task.names), WIDTH, {"seed": task.seed, "maxiter": task.steps, "verbose": -9}
    )
    search.optimize(cost)
    return own | moved(task.names, search.result.xbest, task.gpu)


def moved(names: tuple[str, ...], logarithms: Array, gpu: str) -> Values:
    """The figures at so many logarithms from where a fit begins, no more than they may be."""
    most = dict.fromkeys(SHARES, 1.0) | MOST[gpu]
    return {
        name: min(ROUGH[name] * math.exp(each), most.get(name, math.inf))
        for name, each in zip(names, logarithms, strict=True)
    }


def estimated(rows: Rows, values: Values, gpu: str) -> Array:
    """Microseconds of all rows."""
    return totals_us(rows, values, float(figures(find_target(gpu)).clock))


def loss(rows: Rows, found_us: Array) -> float:
    """Of all shapes the mean: slowdown of the choice, and a little of the estimate's error."""
    compared, fastest = found_us * rows.margin, _least(rows, rows.us)
    weights = (_least(rows, compared)[rows.problem] / compared) ** (1 / SOFTNESS)
    slower = np.log(rows.us / fastest[rows.problem])
    chosen = _sums(rows, weights * (slower + CURVATURE * slower**2)) / _sums(rows, weights)
    errors = np.minimum(np.abs(np.log((found_us + LAUNCH_US) / rows.us)), ERROR_MOST)
    errors = _sums(rows, errors) / _sums(rows, np.ones_like(errors))
    return float((chosen + ERROR_SHARE * errors).mean())


# -- how well it chooses -----------------------------------------------------------------------


def ratios(rows: Rows, found_us: Array) -> Array:
    """Of each shape the fastest time over that of what the estimate takes."""
    chosen = np.lexsort((rows.simplicity, found_us * rows.margin, rows.problem))[_starts(rows)]
    return _least(rows, rows.us) / rows.us[chosen]


def _starts(rows: Rows) -> Array:
    """Where the rows of each shape begin, which stand together."""
    return np.searchsorted(rows.problem, np.arange(rows.problem[-1] + 1))


def _least(rows: Rows, of_rows: Array) -> Array:
    return np.minimum.reduceat(of_rows, _starts(rows))


def _sums(rows: Rows, of_rows: Array) -> Array:
    return np.add.reduceat(of_rows, _starts(rows))


def as_words(rows: Rows, values: Values, gpu: str) -> str:
    found_us = estimated(rows, values, gpu)
    return f"{summary(ratios(rows, found_us))}, loss {loss(rows, found_us):.4f}"


def summary(found: Array) -> str:
    mean = float(np.exp(np.log(found).mean()))
    few = int((found < 0.9).sum())
    return f"{mean:.4f} of the fastest (geometric mean), least {found.min():.3f}, {few} under 0.9"


if __name__ == "__main__":
    main()
