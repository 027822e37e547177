"""The default passes of a product: measured ones, or those of the schedule that is chosen.

Products of tensor cores, of warps, of threads, of lanes, of narrow weights and of block scales have
kinds of schedules of their own (`compiler/schedule/kinds/`). Which kind a product takes is here,
and which schedule comes next where ptxas has no registers for one (`compiler/driver.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..dialects.tables import kept_until_changed
from ..dialects.target import Target, find_target
from .schedule.kinds.lane_schedule import is_by_lanes, lane_candidates
from .schedule.kinds.thread_schedule import is_by_threads, thread_schedule
from .schedule.kinds.warp_schedule import (
    WarpSchedule,
    candidates,
    is_by_warps,
    warp_schedule,
)
from .schedule.problem import Problem
from .schedule.search.choice import in_order, schedules_by_rank, target_for
from .schedule.short_steps import passes_of
from .schedule.tuned_pipelines import tuned_pipeline
from .spec import MatmulSpec

ANY, THREADS, TENSOR_CORE = "any", "threads", "tensor core"
"""What multiplies: whatever is fastest, or what the source names an MMA of."""


@kept_until_changed(4096)
def choose_pipeline(spec: MatmulSpec, target: str, by: str = ANY) -> str:
    """The pipeline of the schedule that was measured, or that the estimates favour (`tilewright
    explain schedule`).

    by: what multiplies, if not whatever is fastest.
    """
    return next(pipelines_by_rank(spec, target, by))


def pipelines_by_rank(spec: MatmulSpec, target: str, by: str = ANY) -> Iterator[str]:
    """The pipeline that is chosen, and those to take in its place, the best first.

    Each has another tile, other warps or other consumers than those before it: where ptxas has too
    few registers for what threads hold, another ring or order of tiles is of no help.
    """
    if by == THREADS:
        yield thread_schedule(spec, find_target(target)).pipeline()
        return
    measured = tuned_pipeline(spec, find_target(target)) if by == ANY else None
    if measured is not None:
        yield measured.pipeline()
    yield from _estimated(spec, target, by)


def _estimated(spec: MatmulSpec, target: str, by: str) -> Iterator[str]:
    if spec.is_scaled:
        from .schedule.kinds.scaled_schedule import estimates  # here: few kernels need it

        yield from _texts(each.schedule for each in estimates(spec, find_target(target)))
        return
    if is_by_threads(spec):
        yield thread_schedule(spec, find_target(target)).pipeline()
        return
    used = target_for(spec, target)
    if spec.has_weights:
        from .schedule.kinds.weight_schedule import estimates as estimates_of_weights

        yield from _texts(each.schedule for each in estimates_of_weights(spec, used))
        return
    if is_by_warps(used):
        yield from _texts(_by_warps(spec, used))
        return
    if by == ANY and is_by_lanes(spec, used):
        yield from _texts(lane_candidates(spec, used))
    yield from _of_tiles(spec, used)


def _by_warps(spec: MatmulSpec, target: Target) -> Iterator[WarpSchedule]:
    yield warp_schedule(spec, target)  # which says why where there is none
    yield from (schedule for schedule, _ in candidates(spec, target))


def _of_tiles(spec: MatmulSpec, target: Target) -> Iterator[str]:
    problem = Problem.of(spec, target)
    for schedule in _of_other_sums(schedules_by_rank(spec, target)):
        ordered = in_order(schedule, target) if spec.ordered else schedule
        yield passes_of(problem, ordered, target)


def _texts(schedules: Iterable[Any]) -> Iterator[str]:
    return (each.pipeline() for each in _of_other_sums(schedules))


def _of_other_sums(schedules: Iterable[Any]) -> Iterator[Any]:
    """Keep the first of the schedules whose threads hold the same accumulators."""
    seen = set()
    for each in schedules:
        shared = (getattr(each, name, None) for name in ("warps", "ping_pong", "lanes"))
        held = each.tile[:2], *shared
        if held not in seen:
            seen.add(held)
            yield each
