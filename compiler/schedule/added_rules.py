"""Rules for schedules whose threads add products of tiles: None where one is kept, else why not."""

from __future__ import annotations

from ...dialects.dtypes import BLOCKWISE
from ...dialects.held_registers import beside_scales, of_sums
from ...dialects.target import Target
from .problem import Problem, Schedule

COLUMNS_MIN, STAGES_MIN = 96, 4


def added_columns(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Where threads add products, wide MMAs leave shared memory to loads and to scales."""
    m, n, _ = schedule.tile
    if target.adds_from_tensor_memory:
        return None  # which MMAs of 128 rows read less often
    wide = n >= min(COLUMNS_MIN, problem.n) or (target.mma_warpgroups(m, n) or 1) == 1
    if not problem.adds_products or wide:
        return None
    return f"MMAs of {n} columns read shared memory all the time, those of {COLUMNS_MIN} don't"


def added_cluster(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Where threads add products, clusters that share operands were 1 to 7 % slower on an H200."""
    whole = schedule.split_k * schedule.split_grid == 1
    if not (problem.adds_products and whole and schedule.cluster_size > 1):
        return None
    return "CTAs whose threads add products were slower in clusters on an H200"


def added_ring(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Where threads add products, they hold slots for long: 256x128 took 17 % longer with three."""
    several = (target.mma_warpgroups(*schedule.tile[:2]) or 1) > 1
    short = schedule.stages < min(STAGES_MIN, problem.k_tiles(schedule))
    if not (problem.adds_products and several and short):
        return None
    return f"{schedule.stages} stages were slower than {STAGES_MIN} where threads add products"


def scaled_registers(schedule: Schedule, warpgroups: int) -> str | None:
    """A thread holds sums, what 64 rows of a product take, and scales of its columns: those of a
    step, or of two."""
    m, n, k = schedule.tile
    held = of_sums(m, n, warpgroups) + (n // 4 if k == BLOCKWISE else n // 2)
    most = beside_scales(m, warpgroups)
    if held <= most:
        return None
    return (
        f"{held} registers of sums, products and scales of columns leave a thread of {warpgroups} "
        f"warpgroups too few, {most} don't"
    )
