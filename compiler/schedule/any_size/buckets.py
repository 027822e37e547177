"""Which kernels share all M, and which rows each serves.

    M  16   32   64   96   128   192   256   384   512   …   4096   …   more
       └─ 1 ─┘ └─ 2 ─┘ └─ 3 ─────┘ └ 4 ┘ └─ 3 ─┘ └─── 5 ────┘ └─ 4 ─────────┘

At the numbers of `SEARCHED` a schedule is chosen as for that M alone. The numbers of `JUDGED` end
steps: up to 1024 rows those of tiles, whose rows are multiples of 8. The time of each schedule is
estimated at the first and the last number of each step, and the larger loss counts, since one row
of a further tile may cost as much as all of its rows do. Then the schedule is left out that is
missed least, over and over, until each one left is needed: without it some M would take over `LOSS`
longer. At most `KERNELS_MAX` are left. The fastest of them serves a number of rows, so that a
kernel may serve several ranges: one of 128×256 where the last wave of its tiles is nearly full, and
another one in between.

Rows in groups are shared likewise, by how many a group has on average.

At the numbers that the entry of a measured schedule is for, all others count as `LESS_KNOWN` slower
at least.

Kernels for any batch share the numbers of matrices in the same way, at `STACKS_SEARCHED` and
`STACKS_JUDGED`. None of them knows which it is for. How kernels for any M and any batch share both
is said in `bands.py`.

Kernels for any K share its numbers, at `DEPTHS_SEARCHED` and `DEPTHS_JUDGED`: the longer K is, the
more parts of it are worth their sum. Each of them gives the product of any K.

Nothing here imports MLIR.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from ....dialects import legality
from ....dialects.dtypes import DTYPES
from ....dialects.record import record
from ....dialects.target import Target
from ....runtime.group_sizes import FAR
from ...spec import MANY_ROWS, ROWS_MOST, MatmulSpec
from ..k_rotation import rotation_of_rows
from ..kinds.lane_schedule import ROWS_MOST as ROWS_MOST_BY_LANES
from ..kinds.lane_schedule import is_by_lanes, lane_schedule
from ..problem import Problem, Schedule
from ..rules.rules import broken_rule
from ..search.choice import measured_schedule
from ..short_steps import passes_of
from .bands import shared_in_bands
from .chosen import chosen_schedules
from .sharing import (
    Range,
    cut_ranges,
    for_rows,
    kernels_of,
    needed,
    problems_of,
    served,
    steps,
    times_where,
)

if TYPE_CHECKING:
    import numpy as np

    from .vectorized import Problems


SEARCHED = steps(
    (512, 8), (1024, 16), (2048, 64), (4096, 128), (8192, 512), (16384, 1024), (32768, 8192)
)
"""Numbers of rows for which a schedule is chosen."""
JUDGED = steps((1024, 8), (2048, 16), (8192, 64), (16384, 128), (32768, 256))
"""The last numbers of rows of steps, at which schedules are compared and a kernel's range may
end."""
STACKS_SEARCHED = steps((8, 1), (16, 2), (64, 8), (256, 32), (1024, 256))
"""Numbers of matrices for which a schedule is chosen."""
STACKS_JUDGED = steps((16, 1), (32, 2), (64, 4), (128, 8), (256, 16), (512, 32), (1024, 64))
"""The last numbers of matrices of steps, at which schedules are compared."""
DEPTHS_SEARCHED = [2**each for each in range(6, 18)]
"""Values of K for which a schedule is chosen."""
DEPTHS_JUDGED = sorted([*DEPTHS_SEARCHED, *(3 * each // 2 for each in DEPTHS_SEARCHED)])
"""The last values of K of steps, at which schedules are compared."""
DEPTH_KERNELS = 4
"""The most kernels that share K: all of them are compiled where a graph has a symbol for it."""
LESS_KNOWN = 0.12
NEAR = 1.3
"""A schedule is compared where a step begins, too, if it is no slower than this factor where the
step ends."""
ALL_ROWS: Range = (1, ROWS_MOST)


@record
class Bucket:
    """A kernel for a range of rows: its passes, and the ranges that it serves, with the least and
    the most rows of each; in bands of matrices also with the fewest and the most matrices.

    spec: of all rows from the first range to the last one. named: whether the caller named the
        passes, so that no others may replace them.
    """

    spec: MatmulSpec
    pipeline: str
    ranges: tuple[Range, ...] = (ALL_ROWS,)
    named: bool = False


def buckets_of(spec: MatmulSpec, target: Target) -> list[Bucket]:
    """The kernels for tensor cores, ordered by the fewest rows of each.

    If A is M-contiguous, the first kernels are for those M whose rows in memory TMA can address,
    and the others for all other M.
    """
    if spec.multiple_m or not spec.is_long_as_m or legality.tma(target):
        return _buckets_of(spec, target)
    unit = target.tma_alignment_bytes // DTYPES[spec.a_dtype].bytes
    return [*_buckets_of(replace(spec, multiple_m=unit), target), *_buckets_of(spec, target)]


def _buckets_of(spec: MatmulSpec, target: Target) -> list[Bucket]:
    """The kernels for any M, or for its multiples."""
    problem, shared = Problem.of(spec, target), shared_schedules(spec, target)
    if not spec.dynamic_m:
        return [
            Bucket(_of_size(spec, ranges), passes_of(problem, schedule, target), tuple(ranges))
            for schedule, ranges in shared
        ]
    found: list[Bucket] = []
    room = kernels_of(spec) - _rows_by_lanes(spec, target) - len(shared)
    for schedule, ranges in shared:
        ways = _by_rotation(problem, schedule, ranges, target)
        ways = ways if len(ways) - 1 <= room else {"": ranges}
        room -= len(ways) - 1
        passes = passes_of(problem, schedule, target)
        found += [_of_rows(spec, passes + more, own) for more, own in ways.items()]
    if not spec.dynamic_batch:  # whose bands come first
        found.sort(key=lambda each: each.ranges[0])
    return _with_lanes(spec, target, found)


def _of_size(spec: MatmulSpec, ranges: list[Range]) -> MatmulSpec:
    """The kernels for any batch size or any K, none of which knows for which it is."""
    return spec if spec.dynamic_k else replace(spec, batch=ranges[0][0])


def _of_rows(spec: MatmulSpec, passes: str, ranges: list[Range]) -> Bucket:
    least, most = min(each[0] for each in ranges), max(each[1] for each in ranges)
    m = most if most < ROWS_MOST else max(least, _many_rows(spec))
    own = replace(spec, m=m, dynamic_m=True, least_m=least, most_m=most)
    return Bucket(own, passes, tuple(ranges))


def _by_rotation(
    problem: Problem, schedule: Schedule, ranges: list[Range], target: Target
) -> dict[str, list[Range]]:
    """The ranges of a schedule, separated by the pass that follows its passes: with few rows, CTAs
    may start at different K steps."""
    passes, rows = rotation_of_rows(problem, schedule, target)
    inside, outside = cut_ranges(ranges, rows)
    return {more: own for more, own in ((f",{passes}", inside), ("", outside)) if own}


def _with_lanes(spec: MatmulSpec, target: Target, found: list[Bucket]) -> list[Bucket]:
    """The kernels for any M, preceded by GEMV kernels for each of the first numbers of rows for
    which these are faster: a kernel for two rows takes up to 14 % longer with one row."""
    rows = _rows_by_lanes(spec, target)
    if not rows:
        return found
    first = [_by_lanes(spec, each, target) for each in range(1, rows + 1)]
    return [*first, *filter(None, (_behind(each, rows) for each in found))]


def _by_lanes(spec: MatmulSpec, rows: int, target: Target) -> Bucket:
    passes = lane_schedule(spec.of_rows(rows), target).pipeline()
    return Bucket(replace(spec, m=rows, least_m=rows, most_m=rows), passes, ((rows, rows),))


def _rows_by_lanes(spec: MatmulSpec, target: Target) -> int:
    """How many of the first numbers of rows have GEMV kernels."""
    if spec.dynamic_batch or not spec.dynamic_m or spec.multiple_m:
        return 0
    each = range(1, ROWS_MOST_BY_LANES + 1)
    return sum(1 for _ in takewhile(lambda m: is_by_lanes(spec.of_rows(m), target), each))


def _behind(bucket: Bucket, rows: int) -> Bucket | None:
    """What a kernel serves above that number of rows; None if nothing."""
    ranges = tuple((max(least, rows + 1), most) for least, most in bucket.ranges if most > rows)
    if not ranges:
        return None
    least = min(least for least, _ in ranges)
    return replace(bucket, spec=replace(bucket.spec, least_m=least), ranges=ranges)


def shared_schedules(spec: MatmulSpec, target: Target) -> list[tuple[Schedule, list[Range]]]:
    """The schedule of each kernel with its ranges, ordered by the fewest rows of each; for any M
    and batch size ordered by their ranges."""
    if spec.dynamic_m and spec.dynamic_batch:
        return shared_in_bands(spec, target)
    pool, losses = losses_of(spec, target)
    most = DEPTH_KERNELS if spec.dynamic_k else kernels_of(spec) - _rows_by_lanes(spec, target)
    kept = needed(losses, most)
    by_number = served(losses[kept], _numbers(spec)[1])
    found = [(pool[kept[number]], ranges) for number, ranges in by_number.items()]
    return sorted(found, key=lambda each: each[1][0])


def _numbers(spec: MatmulSpec) -> tuple[list[int], list[int]]:
    """The sizes for which schedules are chosen, and those at which they are compared; for groups of
    rows, the average rows of a group."""
    if spec.dynamic_k:
        return DEPTHS_SEARCHED, DEPTHS_JUDGED
    if not spec.dynamic_m:
        return STACKS_SEARCHED, STACKS_JUDGED
    each = max(1, spec.groups)
    multiple, most = max(1, spec.multiple_m), FAR if spec.groups else ROWS_MOST
    searched, judged = (
        [rows * each for rows in numbers if rows * each < most and rows % multiple == 0]
        for numbers in (SEARCHED, JUDGED)
    )
    return searched, judged


def _many_rows(spec: MatmulSpec) -> int:
    """The number that stands for many rows, or for many rows per group."""
    return min(MANY_ROWS * max(1, spec.groups), ROWS_MOST)


@functools.lru_cache(16)
def losses_of(spec: MatmulSpec, target: Target) -> tuple[list[Schedule], np.ndarray]:
    """The schedules that are chosen for some numbers of rows, and how many times as long as the
    best one each takes in each step of `JUDGED`; infinite where it breaks a rule."""
    import numpy as np  # here: a kernel of one M is compiled without it, a sixth sooner

    from .vectorized import Problems

    searched, judged = _numbers(spec)
    problems = Problems(problems_of(spec, [(rows, 0) for rows in judged], target))
    pairs = zip([0, *judged], judged, strict=False)
    begun = Problems(problems_of(spec, [(rows + 1, most) for rows, most in pairs], target))
    chosen = chosen_schedules(problems_of(spec, [(rows, 0) for rows in searched], target), target)
    measured = [measured_schedule(problem, target) for problem in problems]
    pool = list(dict.fromkeys([*chosen, *(each.schedule for each in measured if each)]))
    many = Problem.of(for_rows(spec, _many_rows(spec), ROWS_MOST), target)
    ends = np.array([_times(each, problems, many, target) for each in pool])
    near = ends <= NEAR * ends.min(0)
    pairs = zip(pool, near, strict=True)
    begins = np.array([times_where(taken, each, begun, target) for each, taken in pairs])
    losses = ends / ends.min(0)
    np.maximum(losses, begins / begins.min(0), out=losses, where=near)
    losses /= losses.min(0)  # no schedule may be the best one at both ends of a step
    for column, entry in enumerate(measured):
        if entry is not None:
            losses[:, column] = np.maximum(losses[:, column], 1 + LESS_KNOWN)
            losses[pool.index(entry.schedule), column] = 1
    return pool, losses


def _times(schedule: Schedule, ended: Problems, many: Problem, target: Target) -> np.ndarray:
    """The microseconds where each step ends; infinite where that exceeds what the schedule takes,
    or where the last step needs any number of rows and the schedule has a limit. A kernel for any K
    takes all of them."""
    from .vectorized import kept_by  # here: it imports numpy

    of_any = many.dynamic_k or broken_rule(many, schedule, target) is None
    taken = [True] * len(ended) if of_any else kept_by(ended, schedule, target)
    return times_where([*taken[:-1], of_any], schedule, ended, target)
