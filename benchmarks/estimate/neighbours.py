"""How much better the estimate would choose with what schedules like each other have in common.

    python benchmarks/estimate/neighbours.py [--target h100] [--widths 0.3,0.5,0.8]

Each schedule's estimate is corrected by how far off those of other shapes are that are like it: by
their mean, weighed by a normal density of the distance in `features`. Times of its own shape count
nothing. So no formula is assumed, and what this does not find, no other weight of these features
will. Prints the ratio of the fastest time to that of what is chosen, of shapes with five schedules
and more. Takes half a minute.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from measured_times import CHIP, TABLES, legal_rows, read_table

from tilewright.compiler.schedule.estimates.estimate import Estimate, estimate, step_cycles
from tilewright.compiler.schedule.problem import Problem, Schedule
from tilewright.compiler.schedule.search.candidates import margin
from tilewright.dialects.target import Target, find_target

LAUNCH_US, LEAST, CHUNK = 2.1, 5, 500
PRIOR = 1.0
"""So many schedules that are not off at all stand beside the others."""

Array = np.ndarray[Any, np.dtype[np.float64]]
Numbers = np.ndarray[Any, np.dtype[np.int_]]


def main() -> None:
    options = parse_options()
    target = find_target(options.target)
    times = legal_rows(read_table(TABLES[options.target], options.target), target)
    times = {problem: rows for problem, rows in times.items() if len(rows) >= LEAST}
    rows = [(problem, *row[:2]) for problem, found in times.items() for row in found]
    found = [estimate(problem, schedule, target) for problem, schedule, _ in rows]
    us = np.array([measured for *_, measured in rows])
    shape = np.repeat(np.arange(len(times)), [len(each) for each in times.values()])
    known = np.array([each.total_us for each in found])
    off = np.log(us / (known + LAUNCH_US))
    margins = np.array([margin(schedule) for _, schedule, _ in rows])
    places = np.array(
        [features(*row[:2], each, target) for row, each in zip(rows, found, strict=True)]
    )
    print(f"{len(us)} times of {len(times)} shapes")
    print(f"today      {judged(known * margins, us, shape)}")
    for width in options.widths:
        more = corrections(places, off, shape, width)
        print(f"width {width:<4} {judged(known * margins * np.exp(more), us, shape)}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", choices=TABLES, default=CHIP, help="an H200 or an H100")
    parser.add_argument(
        "--widths",
        type=lambda text: [float(each) for each in text.split(",")],
        default=[0.3, 0.5, 0.8, 1.2],
        metavar="W,…",
        help="of the density (default 0.3,0.5,0.8,1.2)",
    )
    return parser.parse_args()


def features(problem: Problem, schedule: Schedule, found: Estimate, target: Target) -> list[float]:
    """Where a schedule lies: about 1 is a difference that may matter."""
    seen, (m, n, k) = problem.seen_by(schedule), schedule.tile
    busy, log = step_cycles(seen, schedule, target), np.log2
    shares = (found.dram_us, found.epilogue_us, found.main_loop_us)
    return [
        *(0.35 * log([problem.m, problem.n, 1.4 * problem.k])),
        *(m / 64, log(n), 0.7 * log(k), 0.5 * log(schedule.stages)),
        *(log(schedule.cluster[0]), log(schedule.cluster[1])),
        *(log(schedule.split_k), log(schedule.split_grid)),
        *(1.5 * (schedule.scheduler != "none"), 1.5 * schedule.ping_pong),
        *(0.7 * schedule.swap, 0.5 * (schedule.order == "n"), schedule.staging is None),
        *(min(found.rounds, 4), seen.ctas(schedule) / target.multiprocessors),
        *(2 * share / found.total_us for share in shares),
        1.5 * busy["L2"] / max(busy.values()),
    ]


def corrections(places: Array, off: Array, shape: Numbers, width: float) -> Array:
    """What schedules of other shapes say that each estimate's logarithm is off by."""
    found, squares = np.zeros(len(off)), (places**2).sum(1)
    for begin in range(0, len(off), CHUNK):
        part = slice(begin, begin + CHUNK)
        apart = squares[part, None] + squares - 2 * places[part] @ places.T
        weights = np.exp(-apart / (2 * width**2)) * (shape[part, None] != shape)
        found[part] = weights @ off / (weights.sum(1) + PRIOR)
    return found


def judged(compared: Array, us: Array, shape: Numbers) -> str:
    """How well one chooses by these numbers."""
    ratios = []
    for number in range(shape[-1] + 1):
        own = shape == number
        ratios.append(us[own].min() / us[own][compared[own].argmin()])
    mean, under = np.exp(np.log(ratios).mean()), int(np.sum(np.array(ratios) < 0.9))
    return f"{mean:.4f} of the fastest (geometric mean), least {min(ratios):.3f}, {under} under 0.9"


if __name__ == "__main__":
    main()
