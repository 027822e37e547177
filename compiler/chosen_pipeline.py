"""The passes of a product for which nobody names any: measured ones, or those of a chosen schedule.

Products of tensor cores, of warps, of threads, of lanes, of narrow weights and of block scales have
kinds of schedules of their own (`compiler/schedule/kinds/`). Which kind a product takes is here.
"""

from __future__ import annotations

import functools

from ..dialects.target import find_target
from .schedule.kinds.lane_schedule import is_by_lanes, lane_schedule
from .schedule.kinds.thread_schedule import is_by_threads, thread_schedule
from .schedule.kinds.warp_schedule import is_by_warps, warp_schedule
from .schedule.problem import Problem
from .schedule.search.choice import choose_schedule, in_order, target_for
from .schedule.short_steps import passes_of
from .schedule.tuned_pipelines import tuned_pipeline
from .spec import MatmulSpec


@functools.lru_cache(4096)
def choose_pipeline(spec: MatmulSpec, target: str, by_lanes: bool = True) -> str:
    """The pipeline of the schedule that was measured, or that the estimates favour (`tilewright
    explain schedule`).

    by_lanes: whether threads may multiply by themselves, where a tensor core could.
    """
    measured = tuned_pipeline(spec, find_target(target)) if by_lanes else None
    if measured is not None:
        return measured.pipeline()
    if spec.is_scaled:
        from .schedule.kinds.scaled_schedule import scaled_schedule  # here: few kernels need it

        return scaled_schedule(spec, find_target(target)).pipeline()
    if is_by_threads(spec):
        return thread_schedule(spec, find_target(target)).pipeline()
    used = target_for(spec, target)
    if spec.has_weights:
        from .schedule.kinds.weight_schedule import weight_schedule

        return weight_schedule(spec, used).pipeline()
    if is_by_warps(used):
        return warp_schedule(spec, used).pipeline()
    if by_lanes and is_by_lanes(spec, used):
        return lane_schedule(spec, used).pipeline()
    schedule = choose_schedule(spec, used)
    ordered = in_order(schedule, used) if spec.ordered else schedule
    return passes_of(Problem.of(spec, used), ordered, used)
