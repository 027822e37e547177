"""`tilewright tune rank`: how well the estimate ranks what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..command_line.tables import print_table

if TYPE_CHECKING:
    from ...compiler.schedule.problem import Problem, Schedule
    from .results import Measured

COLUMNS = ("shape", "estimated fastest", "[us]", "measured fastest", "[us]", "of it", "rank")


@dataclass(frozen=True)
class Ranked:
    """One problem's candidates: those that are estimated and measured fastest.

    `rank` is how many were measured faster than what the estimate takes, of `count`; times are
    microseconds.
    """

    shape: str
    taken: Schedule
    taken_us: float
    fastest: Schedule
    fastest_us: float
    rank: int
    count: int

    @property
    def ratio(self) -> float:
        """The least time over that of what the estimate takes: 1 where it is right."""
        return self.fastest_us / self.taken_us


def ranked(rows: Iterable[Measured]) -> list[Ranked]:
    """Every problem of a measurement, in its order; the estimate's own ties go to the first.

    Of tiles of a tensor core: other kinds have estimates of their own.
    """
    groups: dict[tuple[Problem, str], list[tuple[Schedule, float]]] = {}
    for row in rows:
        if row.problem is None or row.schedule is None:
            continue
        groups.setdefault((row.problem, row.chip), []).append((row.schedule, row.us))
    return [_rank(problem, chip, measured) for (problem, chip), measured in groups.items()]


def _rank(problem: Problem, chip: str, measured: Sequence[tuple[Schedule, float]]) -> Ranked:
    from ...compiler.schedule.estimates.estimate import estimate
    from ...compiler.schedule.rules.rules import broken_rule
    from ...dialects.target import find_target

    target = find_target(chip)
    legal = [pair for pair in measured if not broken_rule(problem, pair[0], target)]
    taken = min(legal or measured, key=lambda pair: estimate(problem, pair[0], target).total_us)
    fastest = min(measured, key=lambda pair: pair[1])
    faster = sum(us < taken[1] for _, us in measured)
    shape = f"{problem.m}x{problem.n}x{problem.k}"
    return Ranked(shape, *taken, *fastest, faster, len(measured))


def print_ranked(found: Sequence[Ranked]) -> None:
    """A table, then the mean and the worst of all problems."""
    rows = [
        (
            each.shape,
            each.taken.label(),
            f"{each.taken_us:.1f}",
            each.fastest.label(),
            f"{each.fastest_us:.1f}",
            f"{each.ratio:.3f}",
            f"{each.rank} of {each.count}",
        )
        for each in found
    ]
    print_table(COLUMNS, rows, width=200)
    mean, least = summary(found)
    print(f"geometric mean {mean:.3f}, least {least:.3f} of the fastest that was measured")


def summary(found: Sequence[Ranked]) -> tuple[float, float]:
    """Geometric mean and least of the ratios."""
    ratios = [each.ratio for each in found]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)), min(ratios)
