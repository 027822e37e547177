"""How kernels share ranges of sizes: the steps of sizes, the schedules to keep, and the schedule
for a step.

Nothing here imports MLIR.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from ....dialects.target import Target
from ....runtime.bundles.several import KERNELS_MAX
from ...spec import ROWS_MOST, MatmulSpec
from ..problem import Problem, Schedule

if TYPE_CHECKING:
    import numpy as np

    from .vectorized import Problems

LOSS = 0.02
TIE = 0.005  # a kernel goes on to serve fewer rows where another is faster by no more than this
OTHERS_MAX = 16
"""The most kernels of an M-contiguous A for those M that TMA cannot address: there, threads copy
A."""
WORST = 4  # the power of a loss by which schedules are missed: the largest loss counts most

Range = tuple[int, ...]
"""The least and the most rows, or matrices; in bands of matrices followed by the fewest and the
most matrices."""


def steps(*parts: tuple[int, int]) -> list[int]:
    """Numbers up to each end in that end's step, each part starting where the one before ended."""
    found, start = [], 0
    for end, step in parts:
        found += range(start + step, end + 1, step)
        start = end
    return found


def for_rows(spec: MatmulSpec, rows: int, most: int = 0) -> MatmulSpec:
    """The spec of a kernel for up to `rows` rows, which counts them at each launch; for any batch
    size or any K, the spec for so many matrices or that K."""
    if spec.dynamic_k:
        return replace(spec, k=rows)
    if not spec.dynamic_m:
        return replace(spec, batch=rows)
    return replace(spec, m=rows, dynamic_m=True, least_m=1, most_m=most or rows)


def problems_of(
    spec: MatmulSpec, sizes: Iterable[tuple[int, int]], target: Target
) -> list[Problem]:
    """The problem of `for_rows` for each pair of a size and the most rows.

    A spec is checked, and its problem found, for the first pair alone: the others differ from it in
    their sizes.
    """
    found: list[Problem] = []
    for rows, most in sizes:
        if not found:
            found.append(Problem.of(for_rows(spec, rows, most), target))
        elif spec.dynamic_k:
            found.append(_with_sizes(found[0], k=rows))
        elif not spec.dynamic_m:
            found.append(_with_sizes(found[0], batch=rows))
        else:
            of_group = -(-rows // (max(1, spec.groups) if spec.group_axis == "m" else 1))
            found.append(_with_sizes(found[0], m=of_group, most_m=most or rows))
    return found


def _with_sizes(problem: Problem, **sizes: int) -> Problem:
    """The same problem with other values of some sizes: `replace`, twenty times as fast."""
    known, changed = problem.__dict__, object.__new__(Problem)
    changed.__dict__.update({name: known[name] for name in Problem.__match_args__} | sizes)
    return changed


def kernels_of(spec: MatmulSpec) -> int:
    """The most kernels of a bundle; where it has kernels for multiples of M, these are most of
    them."""
    if spec.multiple_m:
        return KERNELS_MAX - OTHERS_MAX
    return OTHERS_MAX if spec.is_long_as_m else KERNELS_MAX


def times_where(
    taken: Iterable[bool], schedule: Schedule, problems: Problems, target: Target
) -> np.ndarray:
    """The estimated microseconds of a schedule for each problem that is taken; infinite for the
    others."""
    import numpy as np

    from .vectorized import times_of  # here: it imports numpy

    taken = np.array([*taken])
    return np.where(taken, times_of(problems, schedule, target, np.flatnonzero(taken)), np.inf)


def needed(losses: np.ndarray, most: int = KERNELS_MAX, loss: float = LOSS) -> list[int]:
    """The indices of the schedules that are left, at most `most`, when the ones that are missed
    least are left out one by one.

    losses: how many times as long as the best one each takes, a row for each schedule. loss: by
        how much some size must take longer without a schedule for it to be needed.
    """
    import numpy as np  # here: a kernel of one M is compiled without it, a sixth sooner

    kept = np.arange(len(losses))
    while len(kept) > 1:
        here = losses[kept]
        best = here.argmin(0)
        least_two = np.partition(here, 1, axis=0)
        missed = np.where(best == np.arange(len(kept))[:, None], least_two[1], least_two[0])
        cost, needless = ((missed - 1) ** WORST).sum(1), missed.max(1) <= 1 + loss
        if len(kept) <= most:
            if not needless.any():
                break
            cost = np.where(needless, cost, np.inf)
        kept = np.delete(kept, int(cost.argmin()))
    return [int(each) for each in kept]


def served(losses: np.ndarray, judged: Sequence[int]) -> dict[int, list[Range]]:
    """The ranges of each schedule, by its index; a range extends downwards as long as others tie.

    losses: of each schedule in the step up to each of the `judged` numbers.
    """
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


def cut_ranges(ranges: Sequence[Range], rows: range) -> tuple[list[Range], list[Range]]:
    """The part of the ranges that lies within other rows, and the part that does not."""
    if not rows:
        return [], list(ranges)
    inside, outside = [], []
    for least, most, *bands in ranges:
        first, last = max(least, rows[0]), min(most, rows[-1])
        if first > last:
            outside.append((least, most, *bands))
            continue
        inside.append((first, last, *bands))
        around = (least, first - 1), (last + 1, most)
        outside += [(*each, *bands) for each in around if each[0] <= each[1]]
    return inside, outside
