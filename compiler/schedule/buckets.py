"""How kernels for any M share the numbers of rows: which schedules there are, and which rows each
serves.

    M  16   32   64   96   128   192   256   384   512   …   4096   …   more
       └─ 1 ─┘ └─ 2 ─┘ └─ 3 ─────┘ └ 4 ┘ └─ 3 ─┘ └─── 5 ────┘ └─ 4 ─────────┘

At the numbers of `SEARCHED` a schedule is chosen as for that M alone. The numbers of `JUDGED` end
steps: up to 512 rows those of tiles, whose rows are multiples of 8. The time of each schedule is
estimated at the first and the last number of each step, and the larger loss counts, since one row
of a further tile may cost as much as all of its rows do. Then the schedule is left out that is
missed least, over and over, until each one left is needed: without it some M would take over `LOSS`
longer. At most `KERNELS_MAX` are left. The fastest of them serves a number of rows, so that a
kernel may serve several ranges: one of 128×256 where the last wave of its tiles is nearly full, and
another one in between.

At the numbers that the entry of a measured schedule is for, all others count as `LESS_KNOWN` slower
at least.

Kernels for any batch share the numbers of matrices in the same way, at `STACKS_SEARCHED` and
`STACKS_JUDGED`. None of them knows which it is for. Kernels for any M and any batch share the
numbers of rows, for as many matrices as are usual.

Nothing here imports MLIR.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from ...dialects.target import Target
from ...runtime.bundles.several import KERNELS_MAX
from ..spec import MANY_ROWS, ROWS_MOST, MatmulSpec
from .choice import choose_schedule, measured_schedule
from .estimate import estimate
from .problem import Problem, Schedule
from .rules import broken_rule
from .short_steps import passes_of

if TYPE_CHECKING:
    import numpy as np


def _steps(*parts: tuple[int, int]) -> list[int]:
    """Numbers up to each end in steps of its own, each part from where the one before ended."""
    found, start = [], 0
    for end, step in parts:
        found += range(start + step, end + 1, step)
        start = end
    return found


SEARCHED = _steps((512, 8), (1024, 32), (4096, 128), (8192, 512), (16384, 1024), (32768, 8192))
"""Rows for which a schedule is chosen."""
JUDGED = _steps((512, 8), (2048, 32), (8192, 64), (16384, 128), (32768, 256))
"""Rows up to which a kernel may serve: the last ones of steps, in which schedules are compared."""
STACKS_SEARCHED = _steps((8, 1), (16, 2), (64, 8), (256, 32), (1024, 256))
"""Matrices of a stack for which a schedule is chosen."""
STACKS_JUDGED = _steps((16, 1), (32, 2), (64, 4), (128, 8), (256, 16), (512, 32), (1024, 64))
"""The last ones of steps, in which schedules are compared."""
LOSS = 0.03
LESS_KNOWN = 0.12
TIE = 0.005  # a kernel goes on to serve fewer rows where another is faster by no more than this
WORST = 4  # the power of a loss by which schedules are missed: the largest loss counts most

Range = tuple[int, int]
ALL_ROWS: Range = (1, ROWS_MOST)


@dataclass(frozen=True)
class Bucket:
    """A kernel for some rows: its passes, and the ranges, least and most, that it serves.

    spec: of all rows from the first range to the last one.
    """

    spec: MatmulSpec
    pipeline: str
    ranges: tuple[Range, ...] = (ALL_ROWS,)


def buckets_of(spec: MatmulSpec, target: Target) -> list[Bucket]:
    """The kernels, in the order of the fewest rows of each; tensor cores multiply tiles."""
    found, problem = [], Problem.of(spec, target)
    for schedule, ranges in shared_schedules(spec, target):
        if not spec.dynamic_m:
            own = replace(spec, batch=ranges[0][0])
            found.append(Bucket(own, passes_of(problem, schedule, target), tuple(ranges)))
            continue
        least, most = ranges[0][0], ranges[-1][1]
        m = most if most < ROWS_MOST else max(least, MANY_ROWS)
        own = replace(spec, m=m, dynamic_m=True, least_m=least, most_m=most)
        found.append(Bucket(own, passes_of(problem, schedule, target), tuple(ranges)))
    return found


def shared_schedules(spec: MatmulSpec, target: Target) -> list[tuple[Schedule, list[Range]]]:
    """The schedule of each kernel and its ranges, in the order of the fewest rows of each."""
    pool, losses = losses_of(spec, target)
    kept = _needed(losses)
    served = _served(losses[kept], _numbers(spec)[1])
    found = [(pool[kept[number]], ranges) for number, ranges in served.items()]
    return sorted(found, key=lambda each: each[1][0])


def _numbers(spec: MatmulSpec) -> tuple[list[int], list[int]]:
    """The sizes for which schedules are chosen, and at which they are compared."""
    return (SEARCHED, JUDGED) if spec.dynamic_m else (STACKS_SEARCHED, STACKS_JUDGED)


def for_rows(spec: MatmulSpec, rows: int, most: int = 0) -> MatmulSpec:
    """The spec of a kernel for up to so many rows, which counts them at each launch; of any batch
    that of so many matrices."""
    if not spec.dynamic_m:
        return replace(spec, batch=rows)
    return replace(spec, m=rows, dynamic_m=True, least_m=1, most_m=most or rows)


@functools.lru_cache(16)
def losses_of(spec: MatmulSpec, target: Target) -> tuple[list[Schedule], np.ndarray]:
    """The schedules that are chosen at some rows, and how many times as long as the best one each
    takes in each step of `JUDGED`; infinite where it is against a rule."""
    import numpy as np  # here: a kernel of one M is compiled without it, a sixth sooner

    searched, judged = _numbers(spec)
    problems = [Problem.of(for_rows(spec, rows), target) for rows in judged]
    begun = [
        Problem.of(for_rows(spec, rows + 1, most), target)
        for rows, most in zip([0, *judged], judged, strict=False)
    ]
    chosen = [choose_schedule(for_rows(spec, rows), target) for rows in searched]
    measured = [measured_schedule(problem, target) for problem in problems]
    pool = list(dict.fromkeys([*chosen, *(each.schedule for each in measured if each)]))
    many = Problem.of(for_rows(spec, MANY_ROWS, ROWS_MOST), target)
    times = np.array([_times(each, begun, problems, many, target) for each in pool])
    losses = (times / times.min(0)).max(1)
    losses /= losses.min(0)  # no schedule may be the best one at both ends of a step
    for column, entry in enumerate(measured):
        if entry is not None:
            losses[:, column] = np.maximum(losses[:, column], 1 + LESS_KNOWN)
            losses[pool.index(entry.schedule), column] = 1
    return pool, losses


def _times(
    schedule: Schedule, begun: list[Problem], ended: list[Problem], many: Problem, target: Target
) -> list[list[float]]:
    """Microseconds where each step begins and where it ends; infinite if it ends with more than the
    schedule takes, as the last one does where not any number of rows will do."""
    of_any = broken_rule(many, schedule, target) is None
    last = ended[-1]
    taken = [
        of_any or (each is not last and broken_rule(each, schedule, target) is None)
        for each in ended
    ]
    return [
        [
            estimate(each, schedule, target).total_us if takes else math.inf
            for each, takes in zip(side, taken, strict=True)
        ]
        for side in (begun, ended)
    ]


def _needed(losses: np.ndarray) -> list[int]:
    """The numbers of the schedules that are left when the least missed ones are left out."""
    kept = list(range(len(losses)))
    while len(kept) > 1:
        missed = [losses[[each for each in kept if each != one]].min(0) for one in kept]
        costs = [((each - 1) ** WORST).sum() for each in missed]
        least = min(range(len(kept)), key=costs.__getitem__)
        if len(kept) <= KERNELS_MAX and missed[least].max() > 1 + LOSS:
            break
        del kept[least]
    return kept


def _served(losses: np.ndarray, judged: list[int]) -> dict[int, list[Range]]:
    """The ranges of each schedule, by its number; a range goes down as long as others tie."""
    taken: list[int] = []
    for column in reversed(range(len(judged))):
        best = losses[:, column].argmin()
        goes_on = taken and losses[taken[-1], column] <= losses[best, column] + TIE
        taken.append(taken[-1] if goes_on else int(best))
    found: dict[int, list[Range]] = {}
    least = 1
    pairs = list(zip(taken[::-1], [*judged[:-1], ROWS_MOST], strict=True))
    for number, run in groupby(pairs, key=lambda pair: pair[0]):
        most = list(run)[-1][1]
        found.setdefault(number, []).append((least, most))
        least = most + 1
    return found
