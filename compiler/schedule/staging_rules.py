"""Rules of stores through shared memory: what a piece of C is, and what comes ahead of it."""

from __future__ import annotations

from ...dialects import legality
from ...dialects.dtypes import SCALE_ATOM_BLOCKS
from ...dialects.target import Target
from .added_costs import ATOM_ROWS
from .problem import Problem, Schedule

STAGED_COLUMNS_MIN = 32  # where they divide the tile: each piece is two barriers and a store


def staged_store(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A staged store needs C's rows to be whole units of TMA, whole pieces within a swizzle, and
    128 rows a CTA of a pair."""
    if schedule.staging is None:
        return "threads would scatter the columns of C" if problem.swapped else None
    if schedule.split_k * schedule.split_grid > 1:
        return "threads store the sums of a split K"
    columns, _ = schedule.staging
    m, n, _ = schedule.tile
    n //= problem.products
    if problem.swapped and columns > n:
        return f"tile N {n} has fewer columns than a piece of {columns}"
    broken = (
        legality.stored_rows(problem.row_bytes(problem.contiguous("c")))
        or legality.row_pitch(target, *problem.pitch_bytes("c"))
        or legality.stack_pitch(target, problem.step_bytes("c"))
        or _staged_piece(problem, target, (m, n), columns)
        or (legality.staged_pair(m) if schedule.pair else None)
    )
    if broken:
        return broken
    least, whole = STAGED_COLUMNS_MIN, schedule.tile[1]
    if problem.quantized:  # whose scales are words
        least, whole = SCALE_ATOM_BLOCKS * problem.quantized.block, n
    roomy = not (problem.adds_products and m > 2 * ATOM_ROWS)  # else the ring has none left
    if columns < least and whole % least == 0 and roomy:
        return f"tile N {schedule.tile[1]} has wider pieces than {columns} columns"
    return None


def pieces_ahead(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """TMA brings other operands to one output's staged store, whose rows are of one matrix."""
    if not schedule.ahead:
        return None
    if problem.grouped:
        return "rows of groups are read by threads"
    if problem.further_bytes:
        return f"pieces are for the store of one output, got {1 + len(problem.further_bytes)}"
    rows, columns = problem.m, problem.n // problem.products
    pitches = (legality.row_pitch(target, columns * each, rows) for each in problem.beside)
    return next(filter(None, pitches), None)


def _staged_piece(
    problem: Problem, target: Target, tile: tuple[int, int], columns: int
) -> str | None:
    """Why so many columns are no piece of a tile of C."""
    (m, n), piece_bytes = tile, problem.row_bytes(columns)
    if problem.quantized:
        block = problem.quantized.block
        return legality.staged_quantized(target, m, n, piece_bytes, problem.c_bits, block)
    broken = legality.staged_piece(m, n, columns, problem.c_bytes)
    return broken or legality.staged_rows(target, m, piece_bytes)
