"""Constraints on tiles of groups of rows: their columns, ring and order."""

from __future__ import annotations

from ....dialects.mma_units import WGMMA
from ....dialects.target import Target
from ..problem import Problem, Schedule

GROUP_COLUMNS = 256  # of 64 rows of one of several tiles of a group
GROUP_STAGES = 4
MMA_ROWS = 64  # of the smaller MMA of a tensor memory
LEVEL_ROWS, LEVEL_K = range(256, 769), 5120
"""Average rows per group and least K for which tiles of equal height are chosen. An H200 took 1 to
11 % less for ragged groups of 256 and 512 rows than with other tiles, and 1 to 3 % more for groups
of 1024 rows and more. With K from 2048 to 3072 it took from 4 % less to 2 % more, and with even
groups up to 9 % more."""
LEVEL_TILE, LEVEL_BYTES = (256, 128), 128
"""Columns of C, rows of a group, and bytes of K of such a tile."""
LEVEL = Schedule(
    tile=(*LEVEL_TILE, 0),
    stages=4,
    scheduler="static",
    order="grouped",
    staging=(32, 2),
    swap=True,
    level=True,
)


def group_columns(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Among tiles of 64 rows of which groups have several, those with fewer than 256 columns took
    up to 18 % longer on an H100."""
    m, n, _ = schedule.tile
    least = min(GROUP_COLUMNS, problem.n)
    plain = not problem.adds_products and problem.products == 1 and target.issuers_store
    if not (plain and problem.cut and m == MMA_ROWS and n < least):
        return None
    return f"tiles of {m}x{n} of groups were slower than those of {least} columns on an H100"


def group_ring(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """For groups of few rows, ping-pong tiles of 64x256 took up to 5 % less with four stages than
    with five, on an H100 and an H200: DRAM is the limit, and reading further ahead only occupies
    more of L2."""
    m, n, _ = schedule.tile
    few = problem.cut and schedule.ping_pong and m == MMA_ROWS and n >= GROUP_COLUMNS
    if not few or schedule.stages <= GROUP_STAGES:
        return None
    return f"{schedule.stages} stages of {m}x{n} in turns were slower than {GROUP_STAGES} of groups"


def group_height(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A band of tiles as high as the grid equals the order along M, unless bands begin anew with
    each group."""
    rows, _ = problem.grid(schedule)
    if schedule.order != "grouped" or schedule.group < rows or problem.grouped == "m":
        return None
    return f"a group of {schedule.group} is no less than the {rows} tiles along M"


def group_order(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """The matrices of groups are read once if tiles are computed group by group."""
    if problem.grouped != "m" or schedule.scheduler != "static" or schedule.order == "grouped":
        return None
    return f"tiles {schedule.raster} are not computed group by group"


def level_schedule(problem: Problem) -> Schedule:
    """The single candidate with tiles of equal height: 256 columns of C, and rows of a group in
    steps of 8."""
    return LEVEL.but(tile=(*LEVEL_TILE, LEVEL_BYTES // problem.element_bytes))


def level_tiles(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Tiles of equal height exist for groups of rows with wgmma. They pay if a group has few tiles
    that each take long, and are chosen with the outputs and epilogues that were measured."""
    if not schedule.level:
        return None
    several = problem.products > 1 or problem.adds_products or problem.gathered
    outputs = problem.further_bytes or problem.quantized or problem.c_bytes != 2
    if target.mma.name != WGMMA.name or problem.grouped != "m" or several:
        return "tiles of equal height are of wgmma, and of groups of plain products of rows"
    if outputs or problem.beside or problem.beside_columns or problem.beside_rows:
        return "tiles of equal height have one output of 16 bits, and read nothing beside the sums"
    if problem.element_bytes != 2 or not all(map(problem.by_tma, "abc")):
        return "tiles of equal height are of operands of 16 bits that TMA addresses, as C is"
    if problem.a_major != "k" or problem.m not in LEVEL_ROWS or problem.k < LEVEL_K:
        where = f"{LEVEL_ROWS[0]} to {LEVEL_ROWS[-1]} rows a group and a K of {LEVEL_K} and more"
        return f"tiles of equal height gained with {where}, got {problem.m} and {problem.k}"
    return None
