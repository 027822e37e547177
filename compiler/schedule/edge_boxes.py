"""Whether loads of tiles that extend past A or B skip out-of-bounds rows (`edge-boxes`).

Nothing here imports MLIR.
"""

from __future__ import annotations

from ...dialects.mma_units import WGMMA
from ...dialects.target import Target
from .problem import Problem, Schedule
from .slot_reuse import reuses_slots

STEP = 8
"""The unit in rows of a box: the part of a tile that a CTA loads is a multiple of it."""
EDGE_BOXES = "edge-boxes"
FAR = 0.33
"""The least share of a tile past the last row for which parts of K take such boxes."""


def cuts_edges(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Whether loads skip out-of-bounds rows: a tile must extend past A or B, and slots must be
    filled again after the first boxes, which are whole.

    Each CTA must have one tile, since an H200 has timed no other such kernels. Where K is split, at
    least `FAR` of a tile must be out of bounds: 17 such kernels took 0.92 to 1.005 of the time, 24
    others 0.97 to 1.13.
    """
    one_tile = schedule.scheduler == "none"
    if target.mma.name != WGMMA.name or not _is_plain(problem) or not one_tile:
        return False
    if reuses_slots(problem, schedule, target):  # whose load role has a second loop
        return False
    seen = problem.seen_by(schedule)
    return seen.k_tiles(schedule) > schedule.stages and _hangs(seen, schedule)


def _is_plain(problem: Problem) -> bool:
    """Whether the problem is a single product whose sizes are all known."""
    open_sizes = problem.dynamic_m or problem.dynamic_batch or problem.dynamic_k
    one = problem.products == problem.batch == 1 and not (problem.grouped or problem.quantized)
    return one and not open_sizes and problem.by_tma("a") and problem.by_tma("b")


def _hangs(seen: Problem, schedule: Schedule) -> bool:
    """Whether some tile of A or B extends past the last row; if K is split, by at least `FAR` of
    its rows."""
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
    """The share of the last tile that lies past the last row, where each CTA of a cluster loads one
    of `parts` parts of the tile."""
    if extent < tile or tile // parts % STEP:
        return 0
    tiles = -(-extent // tile)
    return 1 if tiles % along else tiles - extent / tile
