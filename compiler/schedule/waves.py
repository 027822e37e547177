"""Waves of tiles: how many CTAs run at once, and which tiles form a wave."""

from __future__ import annotations

import math
from functools import cache

from ...dialects.target import Target
from .chips.chip_figures import figures
from .chips.figure_sets import ChipFigures
from .elementwise import larger, smaller
from .problem import Problem, Schedule

CURVE_SPREAD = 1.5
"""Rows times columns that consecutive tiles on a Hilbert curve touch, divided by their number: the
mean over windows of 66 to 148 tiles in grids of 32×16 to 128×64 is 1.47 to 1.53."""
TALL_BAND = 16  # rows of tiles


def tile_rounds(problem: Problem, schedule: Schedule, target: Target) -> int:
    """The number of tiles that the busiest multiprocessor computes, one CTA at a time (waves)."""
    slots = resident_ctas(schedule, target)
    return -(-problem.ctas(schedule) // slots)


def resident_ctas(schedule: Schedule, target: Target) -> int:
    """The number of CTAs that run at once: one per multiprocessor, in whole clusters that find
    room."""
    return resident_in_clusters(schedule.cluster_size * schedule.split_k, target)


def resident_in_clusters(size: int, target: Target) -> int:
    """The number of CTAs that run at once in clusters of `size` CTAs."""
    counted = figures(target).clusters_at_once.get(size)
    return size * (int(counted) if counted else target.multiprocessors // size)


def ctas_at_fullest(ctas: int, size: int, chip: ChipFigures) -> int:
    """CTAs that run at once, in clusters of `size`, as if all GPCs had as many as the fullest.

    The CTAs of a GPC share its way to L2, and a cluster runs on one. Of nine clusters of eight two
    run on the same GPC, for which the others wait.
    """
    gpcs = tuple((room, int(number)) for room, number in chip.gpcs.items())
    return max(ctas, sum(number for _, number in gpcs) * _on_fullest(ctas, size, gpcs))


@cache
def _on_fullest(ctas: int, size: int, gpcs: tuple[tuple[int, int], ...]) -> int:
    """The fewest CTAs of a GPC with which all find room."""
    most = max((room for room, _ in gpcs), default=0)
    enough = (
        each
        for each in range(size, most, size)
        if sum(number * min(each, room) for room, number in gpcs) >= ctas
    )
    return next(enough, most)


def wave_shape(problem: Problem, schedule: Schedule, target: Target) -> tuple[int, int]:
    """Rows and columns of tiles that the CTAs of one wave touch, by raster order."""
    grid_m, grid_n = problem.grid(schedule)
    slots = smaller(resident_ctas(schedule, target), grid_m * grid_n)
    if schedule.order == "n":
        columns = smaller(grid_n, slots)
        return -(-slots // columns), columns
    if schedule.order == "hilbert":
        return _curve_shape(grid_m, grid_n, math.ceil(CURVE_SPREAD * slots))
    grouped = larger(schedule.group, -(-slots // grid_n))
    rows = smaller(grid_m, grouped if schedule.order == "grouped" else slots)
    return rows, smaller(grid_n, -(-slots // rows))


def band_of(problem: Problem, schedule: Schedule, target: Target) -> int:
    """The rows of tiles of a band.

    132 tiles in bands of 8 rows touch 17 columns, in bands of 16 rows 9 columns. Where a tile is
    wider than it is high, a wave in the taller bands therefore touches fewer rows of A and B in
    total. On an H200 such tiles take 0.99 of the time in tall bands; with a residual they take as
    long, or longer with ping-pong consumers. Others were not measured.
    """
    m, n, _ = schedule.tile
    plain = not (problem.grouped or problem.beside)
    known = target.issuers_store and schedule.cluster_size == 1
    return TALL_BAND if n > m and plain and known else schedule.group


def _curve_shape(grid_m: int, grid_n: int, area: int) -> tuple[int, int]:
    """A square of `area` tiles, or a longer rectangle where the grid is narrow."""
    rows = min(grid_m, max(math.ceil(math.sqrt(area)), -(-area // grid_n)))
    return rows, min(grid_n, -(-area // rows))
