"""Constraints on persistent kernels and ping-pong consumers."""

from __future__ import annotations

from ....dialects import legality
from ....dialects.target import Target
from ..problem import Problem, Schedule
from ..waves import resident_ctas
from .group_rules import MMA_ROWS

GROUP_ROWS_HIGH = 256  # of a group on average, from which on tiles in turns have 128
PING_PONG_N = 128  # as narrow as the tile of one of two consumers may be, if C is wider
WIDE_CLUSTER = 4  # CTAs


def launch_control(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Cluster launch control needs a chip that has it."""
    return legality.launch_control(target) if schedule.scheduler == "clc" else None


def one_wave(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Persistence needs more tiles than CTAs run at once. Then groups must be persistent, and wide
    clusters may not be.

    The next cluster of four CTAs waits until that many places of one GPC are free: on an H200 each
    of 43 such schedules was slower than others of its problem, by 5 to 112 %. CTAs with one tile
    each were slower by 14 to 39 % for groups of 64 and 128 rows, and by 11 and 17 % for groups a
    third of which had no rows: CTAs without a row multiply all the same.
    """
    ctas, slots = problem.ctas(schedule), resident_ctas(schedule, target)
    if schedule.scheduler == "none":
        if not target.issuers_store or ctas <= slots:
            return None
        wide = schedule.cluster_size >= WIDE_CLUSTER
        if wide or problem.grouped == "m":
            what = f"in clusters of {schedule.cluster_size}" if wide else "of groups"
            return f"{ctas} CTAs {what} are more than the {slots} at once"
        return None
    if ctas > slots:
        return None
    return f"{ctas} tiles run at once on {slots} multiprocessors, there is no next tile"


def resident_clusters(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Clusters that take a static share of the tiles must all run at once."""
    size = schedule.cluster_size
    launched, resident = target.multiprocessors // size, resident_ctas(schedule, target) // size
    if schedule.scheduler != "static" or launched <= resident:
        return None
    return f"{launched} clusters of {size} share the tiles, {resident} run at once"


def alternating_consumers(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Two consumers alternate in a loop over tiles, each of which a single warpgroup can hold."""
    m, n, _ = schedule.tile
    if not schedule.ping_pong:
        return None
    if problem.adds_products:
        return "consumers take turns with the tensor core, which waits for one that adds products"
    broken = legality.alternating_consumers(target)
    if broken:
        return broken
    if schedule.scheduler == "none":
        return "consumers take turns where a CTA has several tiles, got scheduler none"
    broken = legality.consumer_warpgroups(m, n, target.mma_warpgroups(m, n) or 0)
    if broken:
        return broken
    if n < min(PING_PONG_N, problem.n):
        return f"tiles of {n} columns were slower than 128x{PING_PONG_N} in turns on an H200"
    if problem.cut and m == MMA_ROWS and problem.m >= GROUP_ROWS_HIGH:
        return (
            f"tiles of {m} rows of groups of {problem.m} were slower than 128 in turns on both GPUs"
        )
    return None
