"""Which kernels share all M and all batch sizes, and which sizes each serves.

    matrices       1           2          3 to 4     …    more
    M  to 8       ─ 1 ─       ─ 1 ─       ─ 1 ─          ─ 4 ─
       to 16      ─ 1 ─       ─ 2 ─       ─ 4 ─          ─ 4 ─
       …
       more       ─ 3 ─       ─ 5 ─       ─ 3 ─          ─ 3 ─

What one matrix's rows ask for is wrong for a hundred: few tiles leave multiprocessors without work,
so they are small or share K, and many do not. So numbers of matrices are cut into bands, and each
band has ranges of rows of its own. Schedules are chosen at the sizes of `SEARCHED`, compared there,
and left out until each one left is needed, as `buckets.py` says. What is left is compared in every
band where a step of rows begins, of the fewest matrices, and where it ends, of the most. Bands
whose ranges are the same become one.

Nothing here imports MLIR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, product
from typing import TYPE_CHECKING

from ....dialects.target import Target
from ...spec import MANY_ROWS, ROWS_MOST, MatmulSpec
from ..problem import Problem, Schedule
from ..rules.rules import broken_rule
from .chosen import chosen_schedules
from .sharing import Range, for_rows, kernels_of, needed, served, steps, times_where

if TYPE_CHECKING:
    import numpy as np

    from .vectorized import Problems

_FINE = steps((256, 8), (512, 32), (1024, 128), (4096, 1024))
_COARSE = steps((64, 16), (256, 64), (1024, 256), (4096, 3072))
SEARCHED = sorted({*product(_FINE, (1, 24)), *product(_COARSE, (2, 3, 6, 12, 48, 128))})
"""Numbers of rows, and of matrices, for which a schedule is chosen."""
ROWS = steps((128, 8), (256, 16), (512, 32), (1024, 64), (2048, 256), (8192, 2048))
STACKS = steps((8, 1), (16, 2), (32, 4), (64, 8), (96, 16), (128, 32), (256, 64), (1024, 768))
"""The last numbers of matrices of steps, and of bands, at which schedules are compared."""
LOSS = 0.03
"""By how much some size must take longer without a schedule for it to be needed."""


def shared_in_bands(spec: MatmulSpec, target: Target) -> list[tuple[Schedule, list[Range]]]:
    """The schedule of each kernel with its ranges, of the rows and of the matrices of a band,
    ordered by the first range."""
    pool = kept_schedules(spec, target)
    losses = losses_in_bands(pool, spec, target)
    rows = _multiples(ROWS, spec)
    tables = [served(losses[:, band], rows) for band in range(len(STACKS))]
    found: dict[int, list[Range]] = {}
    fewest = 1
    for table, run in groupby(zip(tables, [*STACKS[:-1], ROWS_MOST], strict=True), lambda e: e[0]):
        most = list(run)[-1][1]
        for number, ranges in sorted(table.items(), key=lambda each: each[1][0]):
            found.setdefault(number, []).extend((*own, fewest, most) for own in ranges)
        fewest = most + 1
    return [(pool[number], ranges) for number, ranges in found.items()]


def kept_schedules(spec: MatmulSpec, target: Target) -> list[Schedule]:
    """The schedules that are needed among those that are chosen at some sizes."""
    import numpy as np  # here: a kernel of one M is compiled without it, a sixth sooner

    from .vectorized import Problems

    rows = _multiples(sorted({rows for rows, _ in SEARCHED}), spec)
    specs = [_spec_of(spec, *sizes) for sizes in SEARCHED if sizes[0] in rows]
    searched = [Problem.of(each, target) for each in specs]
    pool, problems = list(dict.fromkeys(chosen_schedules(searched, target))), Problems(searched)
    takes = _takes(pool, spec, target, rows)
    pairs = zip(pool, takes, strict=True)
    losses = np.array([_times(schedule, problems, taken, target) for schedule, taken in pairs])
    return [pool[number] for number in needed(losses / losses.min(0), kernels_of(spec), LOSS)]


def losses_in_bands(pool: Sequence[Schedule], spec: MatmulSpec, target: Target) -> np.ndarray:
    """How many times as long as the best schedule each one takes, for each band in each step of
    `ROWS`; infinite where it breaks a rule."""
    import numpy as np

    from .vectorized import Problems

    rows = _multiples(ROWS, spec)
    begun = product(
        [1, *(each + 1 for each in STACKS[:-1])], [1, *(each + 1 for each in rows[:-1])]
    )
    sides = list(begun), list(product(STACKS, rows))
    problems = [
        Problems(
            [
                Problem.of(_spec_of(spec, m, matrices, most), target)
                for (matrices, m), (_, most) in zip(side, sides[-1], strict=True)
            ]
        )
        for side in sides
    ]
    takes = _takes(pool, spec, target, rows)
    times = np.array(
        [
            [_times(schedule, side, taken, target) for side in problems]
            for schedule, taken in zip(pool, takes, strict=True)
        ]
    )
    losses = (times / times.min(0)).max(1)
    losses /= losses.min(0)  # no schedule may be the best one at both ends of a step
    return losses.reshape(len(pool), len(STACKS), len(rows))


def _multiples(rows: Sequence[int], spec: MatmulSpec) -> list[int]:
    """The numbers that a launch of the spec may give."""
    return [each for each in rows if each % max(1, spec.multiple_m) == 0]


def _spec_of(spec: MatmulSpec, rows: int, matrices: int, most: int = 0) -> MatmulSpec:
    """The spec of a kernel for up to `rows` rows and this number of matrices."""
    return for_rows(replace(spec, batch=matrices), rows, most)


def _times(schedule: Schedule, problems: Problems, taken: set[int], target: Target) -> np.ndarray:
    """The microseconds of each problem; infinite if it has more rows than the schedule takes."""
    takes = [each.most_m in taken for each in problems]
    return times_where(takes, schedule, problems, target)


def _takes(
    pool: Sequence[Schedule], spec: MatmulSpec, target: Target, rows: Sequence[int]
) -> list[set[int]]:
    """The numbers of rows up to which a kernel of each schedule may serve; the last of `rows`
    stands for any number."""

    def problems(rows: int, most: int) -> list[Problem]:
        """Problems of few matrices and of many, since a rule about the number of tiles may hold for
        some only."""
        specs = (_spec_of(spec, rows, matrices, most) for matrices in (1, STACKS[-1]))
        return [Problem.of(each, target) for each in specs]

    def keeps_rules(schedule: Schedule, problems: list[Problem]) -> bool:
        return any(broken_rule(each, schedule, target) is None for each in problems)

    many, bounded = (
        problems(MANY_ROWS, ROWS_MOST),
        {each: problems(each, each) for each in rows[:-1]},
    )
    return [
        set(rows)
        if keeps_rules(each, many)
        else {most for most, own in bounded.items() if keeps_rules(each, own)}
        for each in pool
    ]
