"""How kernels for any M share the numbers of rows: from where on another schedule is better.

    M  16   32   64   96   128   192   256   384   512   768   …   4096   more
        └───────────┘ └─────┘ └─────────┘ └─────────┘ └─────────┘  └──────────┘   one kernel each

At each of these numbers a schedule is chosen. Going down from the largest, a kernel goes on to
serve fewer rows as long as its schedule is the one that is chosen there, or is estimated to take at
most `LOSS` longer. Schedules that were measured are not compared with estimated ones.

Nothing here imports MLIR.
"""

from __future__ import annotations

from dataclasses import replace

from ...dialects.target import Target
from ..spec import MANY_ROWS, ROWS_MOST, MatmulSpec
from .choice import choose_schedule, measured_schedule
from .estimate import estimate
from .problem import Problem

STEPS = (16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
"""Rows at which a kernel may end, and for which its schedule is chosen."""
LOSS = 0.02


def buckets_of(spec: MatmulSpec, target: Target) -> list[MatmulSpec]:
    """The spec for each kernel, from the fewest rows on; tensor cores multiply tiles."""
    current, found = _bucket(spec, MANY_ROWS, ROWS_MOST), []
    for rows in reversed(STEPS):
        own = _bucket(spec, rows, rows)
        if not _serves(current, own, target):
            found.append(replace(current, least_m=rows + 1))
            current = own
    return [current, *reversed(found)]


def _bucket(spec: MatmulSpec, rows: int, most: int) -> MatmulSpec:
    return replace(spec, m=rows, dynamic_m=True, least_m=1, most_m=most)


def _serves(larger: MatmulSpec, own: MatmulSpec, target: Target) -> bool:
    """Whether the kernel for more rows does well for these, too."""
    taken, best = (choose_schedule(each, target) for each in (larger, own))
    if taken == best:
        return True
    problem = Problem.of(own, target)
    if measured_schedule(problem, target) or measured_schedule(Problem.of(larger, target), target):
        return False
    times = [estimate(problem, each, target).total_us for each in (taken, best)]
    return times[0] <= (1 + LOSS) * times[1]
