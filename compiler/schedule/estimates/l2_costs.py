"""Cycles until L2 has delivered what CTAs request.

    alone       a multiprocessor's rate, and several requests for each row that starts in a sector;
                rows of boxes one after the other where some are narrower than a line
    together    what L2 gives to all: bytes, or requests where rows go on in a second line

Nothing here imports MLIR.
"""

from __future__ import annotations

import math

from ....dialects.target import Target
from ..chips.chip_figures import figures, split_figures
from ..chips.figure_sets import ChipFigures, SplitFigures
from ..elementwise import larger, smaller
from ..problem import LINE_BYTES, Problem, Schedule
from ..waves import resident_ctas
from .costs import few_columns

APART_ON_A_CURVE = 2
"""CTAs of a Hilbert curve that share a tile are about so far apart."""


def l2_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles until a step's operands are there.

    Rows arrive at the rate of one multiprocessor, or at its share of what L2 gives to all. Rows
    that start inside a sector take one multiprocessor several requests. Rows that start inside a
    line go on in a second one, and L2 has a limit of such rows for all, which multicast divides.
    Rows outside, which TMA fills with zeros, keep it busy too.
    """
    chip = figures(target)
    rows = loaded_rows(problem, schedule, chip.multicast)
    own = chip.unaligned_line * _unaligned_rows(problem, schedule)
    k_bytes = schedule.tile[2] * problem.element_bytes
    narrow = narrow_cycles(problem, schedule, target)
    alone = larger(k_bytes * rows / chip.l2_rate, larger(k_bytes / LINE_BYTES * own, narrow))
    cycles = larger(alone, _l2_cycles_of_all(problem, schedule, target))
    return cycles + (chip.shared_twice if min(schedule.cluster) > 1 else 0)


def _l2_cycles_of_all(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles of L2 for a step of all CTAs at work: of several waves those that are on average."""
    chip, grid = figures(target), problem.matrix_grid(schedule)
    tiles, parts = math.prod(problem.grid(schedule)), schedule.split_k * schedule.split_grid
    at_once = resident_ctas(schedule, target)
    at_work = min(tiles * parts, at_once) if parts > 1 else tiles / -(-tiles // at_once)
    part = at_work / tiles
    beyond, outside = _rows_of_all(problem, schedule, grid)
    requested = part * beyond * chip.second_line / LINE_BYTES
    if parts > 1:
        rows = at_work * loaded_rows(problem, schedule, split_figures(target).multicast)
        first = problem.batch * part * (problem.m + problem.n)
        first *= few_columns(problem, schedule, target)
        arriving = parted_arriving(rows, first, requested, split_figures(target))
    else:
        asked = at_work * asked_rows(problem, schedule, target)
        arriving = larger(asked / chip.l2_total_rate, requested)
    zeros = part * outside * chip.outside_share / LINE_BYTES
    return schedule.tile[2] * problem.element_bytes * (arriving + zeros)


def asked_rows(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Rows of A and B that L2 is asked for by each CTA, for a byte of K.

    Multicast divides them. CTAs alone ask for the rows of a tile that they share at the same time,
    and L2 answers many of them together (`answered_shares`).
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
    """The shares of the rows of A and of B that L2 answers together with those of other CTAs.

    CTAs that start one after the other ask at the same time as long as they run; the more there are
    between two that share a tile, the fewer of their requests meet.
    """
    of_m, of_n = tiles
    most, power = chip.answered_together, -chip.answered_apart
    if not power:
        return most * (of_n > 1), most * (of_m > 1)
    a_apart, b_apart = _ctas_apart(tiles, schedule)
    return most * a_apart**power * (of_n > 1), most * b_apart**power * (of_m > 1)


def _ctas_apart(tiles: tuple[int, int], schedule: Schedule) -> tuple[int, int]:
    """From a CTA to the next one with the same tile of A, and of B."""
    of_m, of_n = tiles
    if schedule.order == "hilbert":
        return APART_ON_A_CURVE, APART_ON_A_CURVE
    if schedule.order == "n":
        return 1, of_n
    return min(of_m, schedule.group) if schedule.order == "grouped" else of_m, 1


def most_answered(
    tiles: tuple[int, int], rows: tuple[int, int], group: int, chip: ChipFigures
) -> float:
    """The most rows of so many of A and of B that L2 answers so in any order of tiles: those of A
    along N, those of B along M or in groups of rows, or both on a curve."""
    of_m, of_n = tiles
    a, b = rows[0] * (of_n > 1), rows[1] * (of_m > 1)
    most, power = chip.answered_together, -chip.answered_apart
    if not power:
        return most * (a + b)
    along_n, grouped = a + b * of_n**power, a * min(of_m, group) ** power + b
    return most * max(along_n, grouped, (a + b) * APART_ON_A_CURVE**power)


def parted_arriving(rows: float, first: float, requested: float, split: SplitFigures) -> float:
    """Cycles until a byte of K of so many rows of all parts is there, `first` of which no other CTA
    asks for at that time: those come from DRAM, and the more parts there are the more of them. L2
    gives them all, or what is `requested`, and works in part while DRAM does. No less for more."""
    slower, faster = first / split.first_rate, rows / split.l2_rate
    if requested > faster:
        faster = requested
    if faster > slower:
        slower, faster = faster, slower
    return slower + split.share * faster


def _rows_of_all(
    problem: Problem, schedule: Schedule, grid: tuple[int, int]
) -> tuple[float, float]:
    """Rows that all CTAs ask L2 for in a step: those that go on in a second line, those outside.

    Multicast divides both. A single tile along an axis has boxes of the rows that there are, if
    it isn't multicast.
    """
    beyond = outside = 0.0
    lines_beyond = problem.lines_beyond
    for axis, (name, extent) in enumerate((("a", problem.m), ("b", problem.n))):
        peers = schedule.cluster[1 - axis]
        times, past = grid[1 - axis] / peers, grid[axis] * schedule.tile[axis] - extent
        beyond += times * extent * lines_beyond.get(name, 0)
        if past and (peers > 1 or extent > schedule.tile[axis]) and problem.by_tma(name):
            outside += times * past
    return problem.batch * beyond, problem.batch * outside


def loaded_rows(problem: Problem, schedule: Schedule, saved: float) -> float:
    """Rows of A and B that arrive for one CTA, no more than there are.

    Multicast divides A by N-peers, B by M-peers, and saves a share of that.
    """
    m, n, _ = schedule.tile
    cluster_m, cluster_n = schedule.cluster
    a = smaller(m, problem.m) * (1 - saved * (1 - 1 / cluster_n))
    return a + smaller(n, problem.n) * (1 - saved * (1 - 1 / cluster_m))


def narrow_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles in which rows of boxes arrive one after the other where some are narrower than a
    line."""
    return figures(target).narrow_row * _rows_of_narrow_boxes(problem, schedule)


def _rows_of_narrow_boxes(problem: Problem, schedule: Schedule) -> float:
    """Rows of boxes that lie in a CTA's shared memory for a step, whoever asks for them; 0 where
    those of MN-major tiles fill lines, as bytes are what counts then."""
    layouts = problem.layouts(schedule)
    turned = problem.a_major != "k", problem.b_major != "k"
    widths = [each.span_bytes for each, mn in zip(layouts, turned, strict=True) if mn]
    if min(widths, default=LINE_BYTES) >= LINE_BYTES:
        return 0
    tiles = problem.a_tile_bytes(schedule), problem.b_tile_bytes(schedule)
    return sum(size / each.span_bytes for size, each in zip(tiles, layouts, strict=True))


def _unaligned_rows(problem: Problem, schedule: Schedule) -> float:
    """Rows that one CTA asks L2 for which start inside a sector: each is several requests."""
    (m, n, _), (cluster_m, cluster_n) = schedule.tile, schedule.cluster
    a = smaller(m, problem.m) / cluster_n * ("a" in problem.unaligned)
    return a + smaller(n, problem.n) / cluster_m * ("b" in problem.unaligned)
