"""Whether loads of tiles that extend past A or B skip out-of-bounds rows (`edge-boxes`).

Nothing here imports MLIR.
"""

from __future__ import annotations

from ...dialects.mma_units import WGMMA
from ...dialects.target import Target
from .left_slots import reuses_slots
from .problem import Problem, Schedule

STEP = 8
"""Rows of a box: a part of a tile that a CTA loads has a multiple of them."""
EDGE_BOXES = "edge-boxes"
FAR = 0.33
"""The share of a tile that lies past the last row."""


def cuts_edges(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Whether it does: where a tile hangs over, and slots are filled again after whole boxes.

    Each CTA has one tile, as far as an H200 has timed such kernels. Where K is in parts, a tile
    hangs `FAR` over: 17 such kernels took 0.92 to 1.005 of the time, 24 others 0.97 to 1.13.
    """
    one_tile = schedule.scheduler == "none"
    if target.mma.name != WGMMA.name or not _is_plain(problem) or not one_tile:
        return False
    if reuses_slots(problem, schedule, target):  # whose load role has a second loop
        return False
    seen = problem.seen_by(schedule)
    return seen.k_tiles(schedule) > schedule.stages and _hangs(seen, schedule)


def _is_plain(problem: Problem) -> bool:
    """Whether it is one product of known sizes."""
    open_sizes = problem.dynamic_m or problem.dynamic_batch or problem.dynamic_k
    one = problem.products == problem.batch == 1 and not (problem.grouped or problem.quantized)
    return one and not open_sizes and problem.by_tma("a") and problem.by_tma("b")


def _hangs(seen: Problem, schedule: Schedule) -> bool:
    """Whether some tile of A or B has rows past the last one, of parts of K a third of it."""
    least = FAR if schedule.split_k * schedule.split_grid > 1 else 0
    shared_by = schedule.cluster[::-1]  # CTAs along N share a tile of A
    operands = zip(
        (seen.m, seen.n),
        (seen.a_major, seen.b_major),
        schedule.tile,
        schedule.cluster,
        shared_by,
        strict=False,
    )
    return any(
        major == "k" and _beyond(extent, tile, along, parts) > least
        for extent, major, tile, along, parts in operands
    )


def _beyond(extent: int, tile: int, along: int, parts: int) -> float:
    """Which share of the last tile, of which clusters have so many, lies past the last row; each
    CTA loads one of `parts` of it."""
    if extent < tile or tile // parts % STEP:
        return 0
    tiles = -(-extent // tile)
    return 1 if tiles % along else tiles - extent / tile
