"""Whether loads of tiles that extend past A or B skip out-of-bounds rows (`edge-boxes`).

Nothing here imports MLIR.
"""

from __future__ import annotations

from ...dialects.legality import RESERVED_BYTES
from ...dialects.mma_units import WGMMA
from ...dialects.target import Target
from .problem import Problem, Schedule
from .slot_reuse import reuses_slots

STEP = 8
"""The unit in rows of a box: the part of a tile that a CTA loads is a multiple of it."""
EDGE_BOXES = "edge-boxes"
WHOLE = 1.0, 1.0
FAR = 0.33
"""The least share of a tile past the last row for which parts of K take such boxes."""


def cuts_edges(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Whether loads skip out-of-bounds rows: a tile must extend past A or B, and slots must be
    filled again after the first boxes, which are whole.

    Each CTA must have one tile, since an H200 has timed no other such kernels. Where K is split, at
    least `FAR` of a tile must be out of bounds: 17 such kernels took 0.92 to 1.005 of the time, 24
    others 0.97 to 1.13.
    """
    if not may_cut(problem, target) or schedule.scheduler != "none":
        return False
    if reuses_slots(problem, schedule, target):  # whose load role has a second loop
        return False
    seen = problem.seen_by(schedule)
    return seen.k_tiles(schedule) > schedule.stages and _hangs(seen, schedule)


def whole_boxes(problem: Problem, schedule: Schedule, target: Target) -> tuple[float, float]:
    """The shares of a CTA's steps that load rows past the last one of A, and of B: those that fill
    slots for the first time, as many as fit, or all where boxes are not cut.

    Of schedules that differ only in stages, what they store through or what is beside C they are
    the same, so that a search knows them of all of them.
    """
    if problem.beside or not may_cut(problem, target) or schedule.scheduler != "none":
        return WHOLE
    beyond, parts = _beyond_both(problem, schedule), schedule.split_k * schedule.split_grid
    if max(beyond) <= (FAR if parts > 1 else 0):
        return WHOLE
    first = min(1.0, parts * first_fills(problem, schedule.tile, target))
    return first if beyond[0] else 1.0, first if beyond[1] else 1.0


def first_fills(problem: Problem, tile: tuple[int, int, int], target: Target) -> float:
    """The share of a CTA's steps with all of K that fill slots for the first time, in the deepest
    ring of such tiles."""
    m, n, k = tile
    slots = (target.shared_bytes - RESERVED_BYTES) // ((m + n) * k * problem.element_bytes)
    steps = -(-problem.k // k)
    return slots / steps if slots < steps else 1.0


def may_cut(problem: Problem, target: Target) -> bool:
    """Whether it does for some schedules of a problem."""
    return target.mma.name == WGMMA.name and _is_plain(problem)


def _is_plain(problem: Problem) -> bool:
    """Whether the problem is a single product whose sizes are all known."""
    open_sizes = problem.dynamic_m or problem.dynamic_batch or problem.dynamic_k
    one = problem.products == problem.batch == 1 and not (problem.grouped or problem.quantized)
    return one and not open_sizes and problem.by_tma("a") and problem.by_tma("b")


def _hangs(seen: Problem, schedule: Schedule) -> bool:
    """Whether some tile of A or B extends past the last row; if K is split, by at least `FAR` of
    its rows."""
    least = FAR if schedule.split_k * schedule.split_grid > 1 else 0
    return max(_beyond_both(seen, schedule)) > least


def _beyond_both(seen: Problem, schedule: Schedule) -> tuple[float, float]:
    """`_beyond` of the last tiles of A and of B, 0 of those that are not K-major."""
    (m, n, _), (along_m, along_n) = schedule.tile, schedule.cluster
    a = _beyond(seen.m, m, along_m, along_n) if seen.a_major == "k" else 0
    b = _beyond(seen.n, n, along_n, along_m) if seen.b_major == "k" else 0
    return a, b


def _beyond(extent: int, tile: int, along: int, parts: int) -> float:
    """The share of the last tile that lies past the last row, where each CTA of a cluster loads one
    of `parts` parts of the tile."""
    if extent < tile or tile // parts % STEP:
        return 0
    tiles = -(-extent // tile)
    return 1 if tiles % along else tiles - extent / tile
