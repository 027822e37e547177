"""Whether a residual is loaded into free slots of the operand ring (`slot-reuse`).

Nothing here imports MLIR.
"""

from __future__ import annotations

from ...dialects.layout import SLOT_ALIGNMENT
from ...dialects.legality import RESERVED_BYTES
from ...dialects.mma_units import WGMMA
from ...dialects.reused_places import find_reused_place
from ...dialects.target import Target
from .extents import round_up
from .problem import Problem, Schedule

OWN_STAGES_LEAST = 5
"""The least number of stages of a ring beside slots of their own for all pieces. With 5 and 8
stages an H200 took 0.97 to 1.00 of the time in three shapes; with 3 stages instead of 4 it took
0.99 to 1.02 in five."""


def reuses_slots(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Whether the residual is loaded into free slots: wherever the pass accepts the schedule, as
    far as a GPU has timed such kernels.

    In eleven shapes an H200 took 0.92 to 0.99 of the time, and in none of them longer.
    """
    one_tile = schedule.scheduler == "none" and schedule.cluster_size == 1
    split = schedule.split_k * schedule.split_grid > 1
    if not schedule.ahead or not one_tile or split or schedule.swap:
        return False
    if not may_reuse_slots(problem, target):
        return False
    rows, columns, _ = schedule.tile
    bytes_ = problem.pieces(schedule) * round_up(
        rows * (columns // problem.pieces(schedule)) * problem.beside[0], SLOT_ALIGNMENT
    )
    slots = [problem.a_tile_bytes(schedule), problem.b_tile_bytes(schedule)]
    slot_bytes = [round_up(each, SLOT_ALIGNMENT) for each in slots]
    steps = problem.k_tiles(schedule)
    return find_reused_place(slot_bytes, schedule.stages, steps, bytes_) is not None


def with_own_slots(problem: Problem, schedule: Schedule, target: Target) -> Schedule:
    """The schedule with a slot of its own for each piece, and the deepest ring that fits beside
    them. The schedule itself if too few stages or K steps are left to load the pieces in the
    meantime."""
    pieces = problem.pieces(schedule)
    own = schedule.but(ahead=pieces)
    room = target.shared_bytes - RESERVED_BYTES - problem.staging_bytes(own)
    stages = min(room // problem.stage_bytes(own), schedule.stages)
    if stages < OWN_STAGES_LEAST or problem.k_tiles(own) < stages + pieces:
        return schedule
    return own.but(stages=stages)


def may_reuse_slots(problem: Problem, target: Target) -> bool:
    """Whether the problem is a single product of known sizes with one other operand as large as C,
    and TMA loads A and B."""
    if target.mma.name != WGMMA.name or problem.swapped:
        return False
    known = not (problem.dynamic_m or problem.dynamic_batch or problem.dynamic_k)
    one = len(problem.beside) == 1 and problem.products == 1 and not problem.further_bytes
    by_tma = problem.by_tma("a") and problem.by_tma("b")
    return known and one and by_tma and not (problem.grouped or problem.quantized)
