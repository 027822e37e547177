"""The schedules that are chosen for many problems which differ in their rows.

    rows    8   16   24   32   40   48   56   64   72   80   …
            └────── floors of tile shapes ──────┘ └───── …

Most of a search is spent on lower bounds of tile shapes of which none is looked at again. More rows
take no less time in any of them, so the bounds found for the fewest rows of several problems serve
all of these (`floors_of_rows`). Each search still finds the exact bounds of the shapes that it
looks at, and chooses what it would choose alone.

Nothing here imports MLIR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....dialects.target import Target
from ..problem import Problem, Schedule
from ..search.choice import schedule_of
from ..search.search import floors_of_rows

TOGETHER = 8
"""How many problems have floors in common. With more of them the floors are lower, and more tile
shapes are looked at."""


def chosen_schedules(problems: Sequence[Problem], target: Target) -> list[Schedule]:
    """The schedule of each problem, as `choose_schedule` takes it."""
    alike: dict[Problem, list[Problem]] = {}
    for problem in problems:
        alike.setdefault(replace(problem, m=1, most_m=0), []).append(problem)
    found: dict[Problem, Schedule] = {}
    for several in alike.values():
        several.sort(key=lambda problem: problem.m)
        for start in range(0, len(several), TOGETHER):
            together = several[start : start + TOGETHER]
            first, last = together[0], together[-1]
            floors = floors_of_rows(first, last.m, target) if first.m < last.m else None
            found |= {each: schedule_of(each, target, floors) for each in together}
    return [found[problem] for problem in problems]
