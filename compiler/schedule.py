"""Chooses a schedule: lists candidates, drops those that break a rule, takes the fastest.

    candidates(problem)  →  broken_rule?  →  estimate  →  the least microseconds, then the simplest

Nothing here imports MLIR.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from ..dialects.errors import CompileError
from ..dialects.target import Target
from .schedule_estimate import Estimate, estimate
from .schedule_problem import Problem, Schedule
from .schedule_rules import (
    BARRIER_BYTES,
    K_TILES,
    M_TILES,
    N_TILES,
    RULES,
    broken_rule,
    wasted_tile,
)

if TYPE_CHECKING:  # it imports MLIR
    from .spec import MatmulSpec

# (CTAs along M and N, 2-CTA MMA), the simplest first.
CLUSTERS = (
    ((1, 1), False),
    ((2, 1), True),
    ((2, 1), False),
    ((1, 2), False),
    ((2, 2), False),
    ((2, 2), True),
    ((4, 1), True),
)
# (scheduler, raster order), the simplest first.
SCHEDULERS = (
    ("none", "m"),
    ("static", "m"),
    ("static", "n"),
    ("static", "grouped"),
    ("clc", "grouped"),
)
STAGINGS = (None, (32, 2), (64, 2))  # (columns, buffers)
STAGES = (2, 4)  # and the deepest that fits
STAGES_MAX = 12
LONG_K_TILES = (64, 128)  # one and two rows of a 128-byte swizzle for 16-bit types


@dataclass(frozen=True)
class Rejected:
    """A candidate that was not taken: the rule it breaks, or "estimate"; `reason` has the units."""

    schedule: Schedule
    rule: str
    reason: str
    estimate: Estimate | None = None


@dataclass(frozen=True)
class Choice:
    """The schedule taken, what it is expected to take, and every other candidate."""

    schedule: Schedule
    estimate: Estimate
    rejected: tuple[Rejected, ...]


def choose_schedule(spec: MatmulSpec, target: Target) -> Schedule:
    """The schedule for a `MatmulSpec`; `CompileError` when no candidate keeps the rules."""
    return explain_schedule(spec, target).schedule


def explain_schedule(spec: MatmulSpec, target: Target) -> Choice:
    """The choice with every rejected candidate and why; `CompileError` when none is left."""
    problem = Problem.of(spec, target)
    broken, legal = [], []
    for candidate in candidates(problem, target):
        found = broken_rule(problem, candidate, target)
        if found:
            broken.append(Rejected(candidate, *found))
        else:
            legal.append((estimate(problem, candidate, target), candidate))
    if not legal:
        example = max(broken, key=lambda rejected: list(RULES).index(rejected.rule))
        raise CompileError(
            f"schedule: one of {len(broken)} candidates must keep every rule, got none for "
            f"{problem.m}x{problem.n}x{problem.k}; {example.rule}: {example.reason}"
        )
    legal.sort(key=lambda pair: (pair[0].total_us, _complexity(pair[1])))
    taken, *others = legal
    slower = [_slower(taken, other) for other in others]
    return Choice(taken[1], taken[0], tuple(slower + broken))


def candidates(problem: Problem, target: Target) -> Iterator[Schedule]:
    """Every schedule that is looked at, each once; a wasteful tile only in its plainest form."""
    for tile in product(M_TILES, N_TILES, _k_tiles(problem)):
        plain = Schedule(tile)
        if wasted_tile(problem, plain, target):
            yield plain
            continue
        for base in _variants(plain):
            base = replace(base, box=_box(problem, base))
            for stages in sorted({*STAGES, _deepest(problem, base, target)}):
                yield replace(base, stages=stages)


def _variants(plain: Schedule) -> Iterator[Schedule]:
    for (cluster, pair), (scheduler, order), staging in product(CLUSTERS, SCHEDULERS, STAGINGS):
        yield replace(
            plain, cluster=cluster, pair=pair, scheduler=scheduler, order=order, staging=staging
        )


def _k_tiles(problem: Problem) -> tuple[int, ...]:
    """Long tiles, or the one short tile that covers a short K."""
    covering = next((k for k in K_TILES if k >= problem.k), K_TILES[-1])
    return tuple(sorted({covering, *LONG_K_TILES}))


def _deepest(problem: Problem, schedule: Schedule, target: Target) -> int:
    """The most stages that fit beside the staging buffers and that K can fill."""
    room = target.shared_bytes - BARRIER_BYTES - problem.staging_bytes(schedule)
    fitting = room // problem.stage_bytes(schedule)
    steps = problem.k_tiles(schedule)
    return max(1, min(fitting, steps, STAGES_MAX))


def _box(problem: Problem, schedule: Schedule) -> str:
    """Rank 3 where one copy then brings a tile of several chunks."""
    layouts = problem.layouts(schedule)
    several = any(layout.chunks > 1 for layout in layouts)
    whole = all(
        problem.by_tma(name) and problem.contiguous(name) % layout.span == 0
        for name, layout in zip("ab", layouts, strict=True)
    )
    return "3d" if several and whole else "2d"


def _complexity(schedule: Schedule) -> tuple[int, ...]:
    """Sorts equally fast schedules: fewer agents first, then a deeper ring."""
    return (
        SCHEDULERS.index((schedule.scheduler, schedule.order)),
        CLUSTERS.index((schedule.cluster, schedule.pair)),
        STAGINGS.index(schedule.staging),
        -schedule.stages,
        schedule.tile[2],
    )


def _slower(taken: tuple[Estimate, Schedule], other: tuple[Estimate, Schedule]) -> Rejected:
    found, schedule = other
    more = found.total_us - taken[0].total_us
    reason = (
        f"{found.total_us:.2f} us, {more:.2f} us more, bound by {found.bound}"
        if more > 0
        else f"{found.total_us:.2f} us, no faster and less simple"
    )
    return Rejected(schedule, "estimate", reason, found)
