"""Stores by threads: loops over the columns that a thread reads and writes at a time.

    tile.store %acc, %c, %i, %j     %sums = tile.await_sums %acc
                                    %row  = %i * M + tile.thread_row %sums
                              →     for start = 0 .. columns step registers
                                      %values = tile.read_row %sums, start
                                      if %row < rows of c
                                        for neighbours, up to 32 bytes:
                                          tile.write_row %values, %c, %row, %j * N + start

All threads read together, so that only the write stands in the `if`. Sums that threads hold are
read all at once, two rows of each MMA.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...dialects import sm
from ...dialects.mlir import ir
from ...dialects.mma_units import WARP
from ...dialects.pipe import TileOp
from ...dialects.sm.types import attribute_of
from ...dialects.target import Target
from ...dialects.tile import (
    STORES,
    AwaitMmaOp,
    GatheredStoreOp,
    KernelOp,
    ReducedStoreOp,
    StagedStoreOp,
    StoreOp,
)
from ...dialects.tile.outputs import StoreGroupsOp
from ...dialects.tile.quantized import StoreQuantizedOp
from ...dialects.tile.stores import AwaitSumsOp
from ...dialects.tile.threads import (
    ReadRowOp,
    ReadRowsOp,
    ThreadColumnOp,
    ThreadLanesOp,
    ThreadRowOp,
    WriteRowOp,
)
from ...dialects.tile_types import AccumulatorType, element_bytes, integers_of
from ...dialects.verify import products_of, tile_of_c
from ..base import defining_op
from ..batches import column_pitch, row_pitch, step_bytes
from ..build import as_i32, constant, less, loop, when
from ..clone import copy_region
from ..dynamic_rows import rows_of
from ..groups import rows_of_group
from ..places import ATOM_M, PAIR, PAIR_EVERY, ROW_DISTANCE
from ..plan import cluster_of
from ..tmem_reads import TmemRead, store_read
from ..warp_grids import warp_tile
from ..whole import lies_inside, view_of
from .duals import joined, moved

VECTOR_BYTES = 32


class Columns(NamedTuple):
    """What reads sums of tensor memory: a row a thread, `fragment.registers` columns at a time.

    What is stored is read of each product, whose columns are so far `apart`; parts of sums that
    are added up first are read as they are.
    """

    sums: ir.Value[AccumulatorType]
    fragment: TmemRead
    lanes: ir.Value
    row: ir.Value
    column: ir.Value | None
    apart: list[int]

    @staticmethod
    def of(kernel: KernelOp, store: Any) -> Columns:
        """Wait for the sums of a store; where this thread stands in each MMA's."""
        sums = awaited(store)
        by_product = isinstance(store, StoreOp | StoreGroupsOp | StoreQuantizedOp)
        shape = tile_of_c(store) if by_product else sums.type.shape
        fragment = store_read(shape, cluster_of(kernel).pair)
        lanes, row = ThreadLanesOp().lanes, ThreadRowOp(sums=sums).row
        column = None
        if fragment.layout != "D":  # there a thread has all columns
            neighbours = attribute_of(fragment.registers)
            column = ThreadColumnOp(sums=sums, neighbours=neighbours).column
        apart = [number * shape[1] for number in range(sums.type.shape[1] // shape[1])]
        return Columns(sums, fragment, lanes, row, column, apart)

    def atoms(self) -> range:
        """The first rows of the MMAs."""
        return range(0, self.sums.type.shape[0], self.fragment.atom_m)

    def chunks(self) -> tuple[ir.Value, int, int]:
        """The loop over a product's columns in tensor memory: first, end and step."""
        n = self.sums.type.shape[1] // len(self.apart)
        return constant(0), self.fragment.parts(n), self.fragment.columns

    def read(self, first: int, start: ir.Value) -> ir.Value:
        """The sums from column `start` on, of each product, of the MMA whose rows begin so."""
        values = ir.VectorType.get([self.fragment.registers], self.sums.type.element)
        where = {"sums": self.sums, "lanes": self.lanes, "row": attribute_of(first)}
        starts = [moved(start, columns) for columns in self.apart]
        return joined([ReadRowOp(start=at, values=values, **where).values for at in starts])

    def own(self, column: ir.Value) -> ir.Value:
        """A column moved on to the first that this thread has."""
        return column if self.column is None else column + self.column


Height = int | ir.Value | None
StoreTensorMemory = Callable[[KernelOp, StoreOp, Height], None]


def expand_store(
    kernel: KernelOp, store: StoreOp, target: Target, store_tensor_memory: StoreTensorMemory
) -> None:
    """Write out one store; sums of tensor memory in the way that is given."""
    with ir.InsertionPoint(store), store.location:
        height = rows_of_store(kernel, store)
        if target.has_tensor_memory:
            store_tensor_memory(kernel, store, height)
            hand_back(store)
        else:
            _store_pairs(kernel, store, target, height)
    store.operation.erase()


def rows_of_store(kernel: KernelOp, store: StoreOp | StagedStoreOp) -> Height:
    """Rows of C that a tile may lie outside of, those of its group if it has one; None for none."""
    view = view_of(store)
    rows = rows_of_group(view)
    if rows is not None:
        return as_i32(rows.count)
    return None if lies_inside(kernel, store, "i") else rows_of(view)


def store_columns(kernel: KernelOp, store: StoreOp, height: Height) -> None:
    """A row a thread; height: rows of C that a tile may lie outside of, None where none does."""
    columns, (m, n) = Columns.of(kernel, store), tile_of_c(store)
    for first in columns.atoms():
        row = as_i32(store.i) * m + (columns.row + first)
        inside = None if height is None else less(row, height)
        start_of_tile = as_i32(store.j) * n
        with loop(*columns.chunks()) as chunk:
            values = columns.read(first, chunk)
            column = columns.own(start_of_tile + chunk)
            with when(inside):
                write_row(store, values, row, column)


def _store_pairs(kernel: KernelOp, store: StoreOp, target: Target, height: Height) -> None:
    m, n = tile_of_c(store)
    if target.awaits_mmas:
        AwaitMmaOp(pending=attribute_of(0))
    row = ThreadRowOp(sums=store.acc).row
    row = as_i32(store.i) * m + row
    start_of_tile = as_i32(store.j) * n
    column = start_of_tile + thread_pair(store.acc)
    atoms, width = held_atoms(kernel, store.acc, target)
    for first in atoms:
        for behind, values in held_rows(store.acc, first, width):
            at_row = row + (first + behind)
            with when(None if height is None else less(at_row, height)):
                write_row(store, values, at_row, column, PAIR, PAIR_EVERY)


def awaited(store: Any) -> ir.Value[AccumulatorType]:
    """The sums of a store once they may be read; the first of several stores of them waits."""
    users = [use.owner.opview for use in store.acc.uses]
    waits = [op for op in users if isinstance(op, AwaitSumsOp)]
    if waits:
        return waits[0].sums
    stores = [op.operation for op in users if isinstance(op, STORES)]
    block = [op.operation for op in store.operation.block.operations]
    first = min(stores, key=block.index)
    with ir.InsertionPoint(first):
        return AwaitSumsOp(acc=store.acc, sums=store.acc.type).sums


def thread_pair(sums: ir.Value[AccumulatorType]) -> ir.Value:
    """The first column of a thread's pairs."""
    return ThreadColumnOp(sums=sums, neighbours=attribute_of(PAIR)).column


def held_atoms(
    kernel: KernelOp, sums: ir.Value[AccumulatorType], target: Target
) -> tuple[range, int]:
    """The first row of each MMA that a warpgroup, or a warp, holds, after the first of all; the
    columns that it has of them."""
    m, n = sums.type.shape
    if target.mma.issuer == WARP:
        part = warp_tile(kernel, sums.type, target)
        return range(0, part.m, target.mma.m[0]), part.n
    return range(0, m // (target.mma_warpgroups(m, n) or 1), ATOM_M), n


def held_rows(
    sums: ir.Value[AccumulatorType], first: int, columns: int
) -> list[tuple[int, ir.Value]]:
    """(row after the thread's first, values) of its two rows of an MMA with so many columns."""
    half = ir.VectorType.get([columns // 4], sums.type.element)
    read = ReadRowsOp(sums=sums, row=attribute_of(first), upper=half, lower=half)
    return [(0, read.upper), (ROW_DISTANCE, read.lower)]


def write_row(
    store: StoreOp | ReducedStoreOp | GatheredStoreOp,
    values: ir.Value,
    row: ir.Value,
    column: ir.Value,
    neighbours: int = 0,
    every: int = 0,
) -> None:
    """The epilogue of values and their stores, as wide as fits; all are neighbours unless told."""
    count = ir.VectorType(values.type).shape[0] // products_of(store)
    near, width = neighbours or count, vector_width(store.view, neighbours or count)
    made = WriteRowOp(
        values=values,
        view=store.view,
        row=row,
        column=column,
        first=attribute_of(0),
        behind=attribute_of(0),
        width=attribute_of(width),
        whole=attribute_of("none"),
    )
    copy_region(store.epilogue, made.epilogue)
    for first, behind in runs(count, near, every or count, width)[1:]:
        attributes = made.operation.clone().attributes
        attributes["first"], attributes["behind"] = attribute_of(first), attribute_of(behind)


def runs(count: int, neighbours: int, every: int, width: int) -> list[tuple[int, int]]:
    """(number of the first value, columns after the first) of each `width` neighbours of values.

    Those are groups of `neighbours`, each `every` columns after the one before.
    """
    return [
        (start + within, start // neighbours * every + within)
        for start in range(0, count, neighbours)
        for within in range(0, neighbours, width)
    ]


def vector_width(view: ir.Value[ir.MemRefType], neighbours: int) -> int:
    """Elements of one store: up to 32 bytes, of which a row and the way to the next are whole
    numbers."""
    if column_pitch(view) != 1:
        return 1
    element = element_bytes(view.type.element_type)
    width = min(neighbours, VECTOR_BYTES // element)
    lengths = view.type.shape[1] * element, row_pitch(view) * element, step_bytes(view)
    while any(length % (width * element) for length in lengths):
        width //= 2
    return width


def hand_back(store: Any) -> None:
    """Before the next tile's MMAs overwrite an accumulator that no pipe guards, all meet."""
    guarded = isinstance(defining_op(store.acc), TileOp)
    kernel = store.operation.parent.opview
    if guarded or isinstance(kernel, KernelOp):
        return
    while not isinstance(kernel, KernelOp):
        kernel = kernel.operation.parent.opview
    sm.FenceOp.of(kind="tcgen05_before")
    alone = integers_of(kernel.cluster) == [1, 1, 1]
    sm.CtaBarrierOp.of() if alone else sm.ClusterBarrierOp.of(releases=True)
    sm.FenceOp.of(kind="tcgen05_after")
