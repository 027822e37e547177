"""Maximum widths of tiles whose products threads accumulate from tensor memory.

A thread reads a product piece by piece, and holds its sums, scales and what an epilogue reads. With
more columns than given here ptxas spilled.
"""

from __future__ import annotations

from typing import NamedTuple

from ....dialects.held_registers import ATOM_ROWS
from ....dialects.target import Target
from ..problem import Problem, Schedule
from .two_level_rules import STAGED_BYTES, are_copied

NO_SCALES, OF_ROWS, OF_COLUMNS = range(3)


class MostColumns(NamedTuple):
    """The most columns of tiles of 128 rows whose products come from tensor memory: in general, for
    groups of rows, beside threads that copy, and for groups with a 32-bit C."""

    alone: int
    of_groups: int
    beside_copies: int
    of_32_bits: int


ADDED_COLUMNS = {
    NO_SCALES: MostColumns(256, 256, 256, 256),
    OF_ROWS: MostColumns(256, 192, 176, 144),
    OF_COLUMNS: MostColumns(176, 144, 128, 128),
}
"""The limits without scales, with a scale per 128 columns, and with a scale per column."""
COLUMNS_BESIDE = {
    NO_SCALES: MostColumns(208, 160, 192, 160),
    OF_ROWS: MostColumns(192, 160, 160, 128),
    OF_COLUMNS: MostColumns(160, 112, 112, 96),
}
"""The limits if threads also read vectors or matrices, or store other outputs."""
VECTORS_OF_GROUPS = 128
"""The limit for groups without scales that read vectors."""


def added_scales(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Threads that add products from tensor memory also hold scales and what an epilogue reads:
    ptxas spilled with more columns than `ADDED_COLUMNS` and `COLUMNS_BESIDE`."""
    if not (target.adds_from_tensor_memory and problem.adds_products):
        return None
    scales = OF_ROWS if problem.row_scales else NO_SCALES
    scales = OF_COLUMNS if problem.column_scales else scales
    most = _most_columns(ADDED_COLUMNS[scales], problem, target)
    m, columns, _ = schedule.tile
    reads = problem.beside or problem.beside_columns or problem.beside_rows
    if m > ATOM_ROWS and (reads or problem.further_bytes):
        most = min(most, _most_columns(COLUMNS_BESIDE[scales], problem, target))
        vectors = problem.beside_columns or problem.beside_rows
        if problem.grouped and vectors and scales == NO_SCALES:
            most = min(most, VECTORS_OF_GROUPS)
    if columns <= most:
        return None
    return f"{columns} columns leave a thread too few registers beside its sums, {most} don't"


def _most_columns(most: MostColumns, problem: Problem, target: Target) -> int:
    found = most.of_groups if problem.grouped else most.alone
    if problem.grouped and problem.c_bytes > STAGED_BYTES:
        found = most.of_32_bits
    return min(found, most.beside_copies) if are_copied(problem, target) else found
