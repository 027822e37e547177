"""Cycles until L2 has delivered what CTAs request.

    alone       the rate of one multiprocessor, several requests for each row that starts inside a
                sector, and boxes row by row where some rows are narrower than a line
    together    what L2 gives to all CTAs: bytes, or requests where rows continue in a second line

Nothing here imports MLIR.
"""

from __future__ import annotations

import math

from ....dialects.target import Target
from ..chips.chip_figures import figures, split_figures
from ..chips.figure_sets import ChipFigures, SplitFigures
from ..edge_boxes import whole_boxes
from ..elementwise import exceeds, larger, smaller
from ..problem import LINE_BYTES, Problem, Schedule
from ..waves import ctas_at_fullest, resident_ctas
from .costs import few_columns

APART_ON_A_CURVE = 2
"""The approximate distance of CTAs that share a tile on a Hilbert curve."""


def l2_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles until the operands of a step have arrived.

    Rows arrive at the rate of one multiprocessor, or at its share of what L2 gives to all. Rows
    that start inside a sector take one multiprocessor several requests. Rows that start inside a
    line continue in a second one; L2 has a limit on such rows for all CTAs, which multicast
    divides. Out-of-bounds rows, which TMA fills with zeros, keep L2 busy, too.
    """
    chip = figures(target)
    rows = loaded_rows(problem, schedule, chip.multicast)
    own = chip.unaligned_line * _unaligned_rows(problem, schedule)
    k_bytes = schedule.tile[2] * problem.element_bytes
    narrow = narrow_cycles(problem, schedule, target)
    alone = larger(k_bytes * rows / chip.l2_rate, larger(k_bytes / LINE_BYTES * own, narrow))
    return larger(alone, _l2_cycles_of_all(problem, schedule, target))


def _l2_cycles_of_all(problem: Problem, schedule: Schedule, target: Target) -> float:
    """L2 cycles for a step of all CTAs at work; with several waves, of their average number."""
    chip, grid = figures(target), problem.matrix_grid(schedule)
    tiles, parts = math.prod(problem.grid(schedule)), schedule.split_k * schedule.split_grid
    at_once = resident_ctas(schedule, target)
    at_work = min(tiles * parts, at_once) if parts > 1 else tiles / -(-tiles // at_once)
    part = at_work / tiles
    whole = whole_boxes(problem, schedule, target)
    beyond, outside = _rows_of_all(problem, schedule, grid, whole)
    requested = part * beyond * chip.second_line / LINE_BYTES
    if parts > 1:
        size = schedule.cluster_size * schedule.split_k
        fullest = ctas_at_fullest(int(at_work), size, chip)
        rows = fullest * loaded_rows(problem, schedule, split_figures(target).multicast)
        first = problem.batch * part * (problem.m + problem.n)
        first *= few_columns(problem, schedule, target)
        arriving = parted_arriving(rows, first, requested, split_figures(target))
    else:
        asked = at_work * asked_rows(problem, schedule, target)
        arriving = larger(asked / chip.l2_total_rate, requested)
    zeros = part * outside * chip.outside_share / LINE_BYTES
    return schedule.tile[2] * problem.element_bytes * (arriving + zeros)


def asked_rows(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Rows of A and B that each CTA requests from L2 per byte of K.

    Multicast divides them. CTAs without clusters request the rows of a shared tile at the same
    time, and L2 answers many of these requests together (`answered_shares`).
    """
    (m, n, _), (cluster_m, cluster_n) = schedule.tile, schedule.cluster
    a, b = smaller(m, problem.m) / cluster_n, smaller(n, problem.n) / cluster_m
    if schedule.cluster_size > 1:
        return a + b
    of_a, of_b = answered_shares(problem.tiles(schedule), schedule, figures(target))
    return a * (1 - of_a) + b * (1 - of_b)


def answered_shares(
    tiles: tuple[int, int], schedule: Schedule, chip: ChipFigures
) -> tuple[float, float]:
    """The shares of the rows of A and of B that L2 answers together with requests of other CTAs.

    CTAs that start one after the other make their requests at the same time as long as they run.
    The more CTAs lie between two that share a tile, the fewer of their requests meet.
    """
    of_m, of_n = tiles
    most, power = chip.answered_together, -chip.answered_apart
    if not power:
        return most * exceeds(of_n, 1), most * exceeds(of_m, 1)
    a_distance, b_distance = _cta_distances(tiles, schedule)
    a, b = most * a_distance**power, most * b_distance**power
    return a * exceeds(of_n, 1), b * exceeds(of_m, 1)


def _cta_distances(tiles: tuple[int, int], schedule: Schedule) -> tuple[int, int]:
    """The distance from a CTA to the next one with the same tile of A, and of B."""
    of_m, of_n = tiles
    if schedule.order == "hilbert":
        return APART_ON_A_CURVE, APART_ON_A_CURVE
    if schedule.order == "n":
        return 1, of_n
    return min(of_m, schedule.group) if schedule.order == "grouped" else of_m, 1


def most_answered(
    tiles: tuple[int, int], rows: tuple[int, int], group: int, chip: ChipFigures
) -> float:
    """The most rows that L2 answers together in any order of tiles: those of A along N, those of B
    along M or in bands, or both on a curve."""
    of_m, of_n = tiles
    a, b = rows[0] * (of_n > 1), rows[1] * (of_m > 1)
    most, power = chip.answered_together, -chip.answered_apart
    if not power:
        return most * (a + b)
    along_n, grouped = a + b * of_n**power, a * min(of_m, group) ** power + b
    return most * max(along_n, grouped, (a + b) * APART_ON_A_CURVE**power)


def parted_arriving(rows: float, first: float, requested: float, split: SplitFigures) -> float:
    """Cycles until a byte of K of `rows` rows of all parts has arrived. `first` of them are
    requested by no other CTA at that time and come from DRAM; the more parts, the more of them. L2
    delivers all rows, or what is `requested`, and works partly while DRAM does. The result does not
    decrease with the number of rows."""
    slower, faster = first / split.first_rate, rows / split.l2_rate
    if requested > faster:
        faster = requested
    if faster > slower:
        slower, faster = faster, slower
    return slower + split.share * faster


def _rows_of_all(
    problem: Problem, schedule: Schedule, grid: tuple[int, int], whole: tuple[float, float]
) -> tuple[float, float]:
    """Rows that all CTAs request from L2 in a step: those that continue in a second line, and
    out-of-bounds rows, which only the `whole` boxes have, so large a share of those of A and of B.

    Multicast divides both. The boxes of a single tile along an axis end with the matrix, unless
    they are multicast.
    """
    beyond = outside = 0.0
    lines_beyond = problem.lines_beyond
    for axis, (name, extent) in enumerate((("a", problem.m), ("b", problem.n))):
        peers = schedule.cluster[1 - axis]
        times, past = grid[1 - axis] / peers, grid[axis] * schedule.tile[axis] - extent
        beyond += times * extent * lines_beyond.get(name, 0)
        if problem.by_tma(name):
            loaded = peers > 1 or exceeds(extent, schedule.tile[axis])
            outside += whole[axis] * times * past * loaded
    return problem.batch * beyond, problem.batch * outside


def loaded_rows(problem: Problem, schedule: Schedule, saved: float) -> float:
    """Rows of A and B that arrive for one CTA, at most those of the matrix.

    Multicast divides A by the CTAs along N and B by the CTAs along M, and saves a share of that.
    """
    m, n, _ = schedule.tile
    cluster_m, cluster_n = schedule.cluster
    a = smaller(m, problem.m) * (1 - saved * (1 - 1 / cluster_n))
    return a + smaller(n, problem.n) * (1 - saved * (1 - 1 / cluster_m))


def narrow_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles in which rows of boxes arrive one after another if some are narrower than a line."""
    return figures(target).narrow_row * _rows_of_narrow_boxes(problem, schedule)


def _rows_of_narrow_boxes(problem: Problem, schedule: Schedule) -> float:
    """Rows of the boxes of a CTA's step, whichever CTA requests them; 0 if the rows of MN-major
    tiles fill lines, since bytes are then what counts."""
    layouts = problem.layouts(schedule)
    transposed = problem.a_major != "k", problem.b_major != "k"
    widths = [each.span_bytes for each, mn in zip(layouts, transposed, strict=True) if mn]
    if min(widths, default=LINE_BYTES) >= LINE_BYTES:
        return 0
    tiles = problem.a_tile_bytes(schedule), problem.b_tile_bytes(schedule)
    return sum(size / each.span_bytes for size, each in zip(tiles, layouts, strict=True))


def _unaligned_rows(problem: Problem, schedule: Schedule) -> float:
    """Rows requested by one CTA that start inside a sector: each takes several requests."""
    (m, n, _), (cluster_m, cluster_n) = schedule.tile, schedule.cluster
    a = smaller(m, problem.m) / cluster_n * ("a" in problem.unaligned)
    return a + smaller(n, problem.n) / cluster_m * ("b" in problem.unaligned)
