"""Whether the kernel of a schedule skips MMAs of zeros past the end of K."""

from __future__ import annotations

from ...dialects.short_legality import short_steps
from ...dialects.target import Target
from .edge_boxes import EDGE_BOXES, cuts_edges
from .extents import round_up
from .k_rotation import rotation_of
from .problem import Problem, Schedule
from .schedule_target import target_of_schedule
from .slot_reuse import reuses_slots, with_own_slots
from .warpgroup_stores import stores_by_warpgroup

SKIP_ZEROS, SLOT_REUSE = "skip-zeros", "slot-reuse"
LEAST_SHARE = 0.01
"""The least share of MMAs along K that would multiply only zeros. Among twelve shapes with 0.4 to
15 % of them, an H200 ran none slower without these MMAs, and the one with 0.4 % no faster."""


def passes_of(problem: Problem, schedule: Schedule, target: Target) -> str:
    """The pipeline of a schedule for a problem."""
    target = target_of_schedule(schedule, target)
    reuses = reuses_slots(problem, schedule, target)
    schedule = with_own_slots(problem, schedule, target) if reuses else schedule
    passes = schedule.pipeline(stores_by_warpgroup(problem, schedule, target))
    passes += f",{SLOT_REUSE}" if reuses else ""
    if _has_zeros(problem, schedule, target):
        passes += f",{SKIP_ZEROS}"
    elif rotation := rotation_of(problem, schedule, target):
        passes += f",{rotation}"
    return f"{passes},{EDGE_BOXES}" if cuts_edges(problem, schedule, target) else passes


def _has_zeros(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Whether enough MMAs of the last K step would multiply only zeros, in kernels of the kind that
    was measured."""
    by_tma = problem.by_tma("a") and problem.by_tma("b")
    in_parts = schedule.split_k * schedule.split_grid > 1
    known = not (problem.grouped or problem.dynamic_k)
    if short_steps(target) or in_parts or not by_tma or not known or problem.products > 1:
        return False
    whole = round_up(problem.k, schedule.tile[2])
    return whole - round_up(problem.k, problem.k_per_mma) >= LEAST_SHARE * whole
