"""Rules for tiles of groups of rows: their columns, their ring, and their order."""

from __future__ import annotations

from ....dialects.target import Target
from ..problem import Problem, Schedule

GROUP_COLUMNS = 256  # of 64 rows of one of several tiles of a group
GROUP_STAGES = 4
MMA_ROWS = 64  # of the smaller MMA of a tensor memory


def group_columns(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Of tiles of 64 rows, of which groups have several, those of fewer columns than 256 took up to
    18 % longer on an H100."""
    m, n, _ = schedule.tile
    least = min(GROUP_COLUMNS, problem.n)
    plain = not problem.adds_products and problem.products == 1 and target.issuers_store
    if not (plain and problem.cut and m == MMA_ROWS and n < least):
        return None
    return f"tiles of {m}x{n} of groups were slower than those of {least} columns on an H100"


def group_ring(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Of groups of few rows tiles of 64x256 in turns took up to 5 % less with four stages than with
    five, on an H100 and an H200: DRAM is the limit, and reads ahead only keep more of L2."""
    m, n, _ = schedule.tile
    few = problem.cut and schedule.ping_pong and m == MMA_ROWS and n >= GROUP_COLUMNS
    if not few or schedule.stages <= GROUP_STAGES:
        return None
    return f"{schedule.stages} stages of {m}x{n} in turns were slower than {GROUP_STAGES} of groups"


def group_height(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A group as high as the grid is the order along M, but where it begins anew with each of the
    problem's groups."""
    rows, _ = problem.grid(schedule)
    if schedule.order != "grouped" or schedule.group < rows or problem.grouped == "m":
        return None
    return f"a group of {schedule.group} is no less than the {rows} tiles along M"


def group_order(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Matrices of groups are read once where tiles are computed group by group."""
    if problem.grouped != "m" or schedule.scheduler != "static" or schedule.order == "grouped":
        return None
    return f"tiles {schedule.raster} are not computed group by group"
