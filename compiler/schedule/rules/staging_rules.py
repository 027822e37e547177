"""Constraints on stores through shared memory: pieces of C, and prefetched operands."""

from __future__ import annotations

from ....dialects import legality, store_legality
from ....dialects.dtypes import SCALE_ATOM_BLOCKS
from ....dialects.held_registers import ATOM_ROWS
from ....dialects.layout import CORE_ROWS
from ....dialects.target import Target
from ....dialects.transposed_pieces import transposed_piece
from ..cached import asked_once
from ..problem import Problem, Schedule

USUAL_STEP = 16  # columns that every tile is a multiple of, but few of exchanged operands
PARTS = (3, 5, 7)  # of such a tile that is wide, pieces of 24 to 72 columns
WIDE = 64
WHOLE_SECTORS = 4
"""The bytes of an element of C with which the eight lanes that have one column of an MMA store 32
bytes together. With scales of rows, which exchanging A and B gives, an H200 then took 12 and 23 %
less."""
GROUP_ROWS_MIN = 8  # of a group on average, that are not stored by threads
GROUP_PIECES = (16, 32, 64)  # columns
STAGED_COLUMNS_MIN = 32  # where they divide the tile: each piece is two barriers and a store


def staged_store(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A staged store needs rows of C that are whole TMA units, whole pieces within a swizzle, and
    128 rows per CTA of a pair."""
    if schedule.staging is None:
        split = schedule.split_k * schedule.split_grid > 1
        scattered = (
            "threads would scatter the columns of C"
            if scatters_columns(problem) and not split
            else None
        )
        return scattered or _rows_of_groups(problem, schedule, target)
    if schedule.split_k * schedule.split_grid > 1:
        return "threads store the sums of a split K"
    columns, _ = schedule.staging
    m, n, _ = schedule.tile
    n //= problem.products
    broken = (
        stored_by_tma(problem, target)
        or _staged_piece(problem, target, (m, n), columns)
        or (store_legality.staged_pair(m) if schedule.pair else None)
    )
    if broken or schedule.staging == own_staging(problem, schedule):
        return broken
    least, whole = STAGED_COLUMNS_MIN, schedule.tile[1]
    if problem.quantized:  # whose scales are words
        least, whole = SCALE_ATOM_BLOCKS * problem.quantized.block, n
    roomy = not (problem.adds_products and m > 2 * ATOM_ROWS)  # else the ring has none left
    if columns < least and whole % least == 0 and roomy:
        return f"tile N {schedule.tile[1]} has wider pieces than {columns} columns"
    return None


def scatters_columns(problem: Problem) -> bool:
    """Whether threads that store a column-major C write parts of sectors."""
    scales = problem.row_scales and not problem.column_scales
    return problem.swapped and not (scales and problem.c_bytes == WHOLE_SECTORS)


def _rows_of_groups(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """If groups have several rows, TMA stores them where it can: with threads an H100 took 1 %
    longer for 8 rows on average, and up to 70 % longer from 64 rows on."""
    plain = problem.grouped == "m" and not problem.further_bytes and problem.quantized is None
    if not (plain and target.issuers_store and problem.m >= GROUP_ROWS_MIN):
        return None
    m, n, _ = schedule.tile
    tile = m, n // problem.products
    pieces = (_staged_piece(problem, target, tile, columns) for columns in GROUP_PIECES)
    if stored_by_tma(problem, target) is not None or all(broken is not None for broken in pieces):
        return None
    return f"threads would store the {problem.m} rows that a group has on average"


@asked_once
def stored_by_tma(problem: Problem, target: Target) -> str | None:
    """TMA stores rows of whole units whose distance a tensor map can express."""
    return (
        store_legality.stored_rows(problem.row_bytes(problem.contiguous("c")))
        or legality.row_pitch(target, *problem.pitch_bytes("c"))
        or legality.stack_pitch(target, problem.step_bytes("c"))
    )


def own_staging(problem: Problem, schedule: Schedule) -> tuple[int, int] | None:
    """The staging of a tile of exchanged operands that the usual pieces do not divide.

    Its pieces are as many columns as divide it, or all of them in a single buffer.
    """
    n = schedule.tile[1]
    if not problem.swapped or n % USUAL_STEP == 0:
        return None
    parts = next((each for each in PARTS if n > WIDE and n % (each * CORE_ROWS) == 0), 1)
    consumers = 2 if schedule.ping_pong else 1
    return n // parts, consumers * min(2, parts)


def pieces_ahead(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """TMA prefetches other operands for staged stores that are stored together, from rows of one
    matrix."""
    if not schedule.ahead:
        scattered = problem.swapped and problem.beside and schedule.staging
        return "threads would read columns of what is as large as C" if scattered else None
    if problem.grouped:
        return "rows of groups are read by threads"
    if not problem.stored_together(schedule):
        return f"pieces are for stores that go together, got {1 + len(problem.further_bytes)}"
    return pitches_ahead(problem, target)


@asked_once
def pitches_ahead(problem: Problem, target: Target) -> str | None:
    """TMA addresses operands as large as C by rows of whole units."""
    rows, columns = problem.m, problem.n // problem.products
    rows, columns = (columns, rows) if problem.swapped else (rows, columns)
    pitches = (legality.row_pitch(target, columns * each, rows) for each in problem.beside)
    return next(filter(None, pitches), None)


def _staged_piece(
    problem: Problem, target: Target, tile: tuple[int, int], columns: int
) -> str | None:
    """Why that many columns are not a valid piece of a tile of C; None if they are."""
    (m, n), piece_bytes = tile, problem.row_bytes(columns)
    if problem.quantized:
        block = problem.quantized.block
        return store_legality.staged_quantized(target, m, n, piece_bytes, problem.c_bits, block)
    if problem.swapped:
        return transposed_piece(target, n, columns, problem.c_bytes)
    odd = store_legality.odd_pieces(target)
    broken = store_legality.staged_piece(m, n, columns, problem.c_bytes, odd)
    return broken or store_legality.staged_rows(target, m, piece_bytes)
