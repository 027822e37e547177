"""Stores by threads that read tensor memory as 8x8 matrices, as mma.sync lays them out.

    tile.store %acc     for start = 0 .. columns step 8 N
                    →     %upper, %lower = tile.read_matrices %sums, start
                          if %row < rows of c:     tile.write_row %upper: pairs in every 8 columns
                          if %row + 8 < rows of c: tile.write_row %lower

A thread has a pair of neighbours in every 8 columns of two rows, so it stores a pair at a time.
That is how "Matrix Multiplication on Blackwell" (part 2, TMEM to registers) reads its sums.
"""

from __future__ import annotations

from ...dialects.fragments import tensor_memory
from ...dialects.mlir import ir
from ...dialects.sm.types import attribute_of
from ...dialects.target import WARP_THREADS
from ...dialects.tile import KernelOp, StoreOp
from ...dialects.tile.threads import ReadMatricesOp, ThreadLanesOp
from ...dialects.tile_types import AccumulatorType
from ...dialects.verify import tile_of_c
from ..build import as_i32, constant, less, loop, when
from ..places import PAIR, PAIR_EVERY, ROW_DISTANCE, column_in, row_in
from ..plan import cluster_of
from ..team import Team
from ..tmem_reads import MATRIX_LANES, TmemRead, store_read
from .duals import joined, starts_of
from .rows import Height, awaited, write_row

LANE = 1 << 16
COLUMNS = (64, 32, 16, 8)  # that one load may cover: up to 32 registers


def store_matrices(kernel: KernelOp, store: StoreOp, height: Height) -> None:
    """Write out one store; height: rows of C that a tile may lie outside of."""
    sums, (m, n) = awaited(store), tile_of_c(store)
    read, lanes = store_read((m, n), cluster_of(kernel).pair), ThreadLanesOp().lanes
    parts = read.parts(n)
    columns = next(each for each in COLUMNS if parts % each == 0)
    row, column = _own(Team.of(store), read, columns, n)
    row, column = as_i32(store.i) * m + row, as_i32(store.j) * n + column
    for first in range(0, m, read.atom_m):
        for half in range(0, read.warp_rows, MATRIX_LANES):
            at_row, at_lanes = row + (first + half), lanes + half * LANE
            with loop(constant(0), parts, columns) as start:
                where = {"lanes": at_lanes, "row": attribute_of(first)}
                starts = starts_of(store, start)
                reads = [_read(sums, columns, where | {"start": each}) for each in starts]
                _store_part(store, reads, at_row, column + start, height)


def _own(team: Team, read: TmemRead, columns: int, n: int) -> tuple[ir.Value, ir.Value]:
    """The first row and column of the tile that this thread has."""
    warp, lane = team.thread // WARP_THREADS, team.lane
    fragment = tensor_memory("16x256b", columns // 8)
    row, column = row_in(fragment, lane=lane), column_in(fragment, lane=lane)
    first_column = read.first_column(warp, n)
    return read.first_row(warp) + row, column if first_column is None else first_column + column


def _read(sums: ir.Value[AccumulatorType], columns: int, where: dict) -> ReadMatricesOp:
    half = ir.VectorType.get([columns // 4], sums.type.element)
    return ReadMatricesOp(sums=sums, upper=half, lower=half, **where)


def _store_part(
    store: StoreOp,
    reads: list[ReadMatricesOp],
    row: ir.Value,
    column: ir.Value,
    height: Height,
) -> None:
    upper: list[ir.Value] = [read.upper for read in reads]
    lower: list[ir.Value] = [read.lower for read in reads]
    for behind, each in ((0, upper), (ROW_DISTANCE, lower)):
        at_row = row + behind
        with when(None if height is None else less(at_row, height)):
            write_row(store, joined(each), at_row, column, PAIR, PAIR_EVERY)
