"""Writes of a piece of the tile to its staging buffer.

    write = "rows"        for 32 columns of the thread's row: %values = tile.read_row %sums
                            for 16 bytes of them: %outputs = tile.apply_epilogue %values
                                                  tile.write_unit %outputs, %buffer, row, column
    write = "matrices"    for 16 rows of the warp's: %values = tile.read_fragment %sums
                            for each pair of them: %pair = tile.apply_epilogue %values
                            for 16 columns: tile.write_matrices %buffer, row, four pairs
                            what f reads of pieces of 16 bits comes as such matrices, too

Sums that threads hold are fragments in both, whose rows `tile.write_pairs` writes. Where warps hold
columns of their own, each writes those of the piece, if it has some.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any

from ...dialects.mlir import ir
from ...dialects.mma_units import WARP
from ...dialects.record import record
from ...dialects.sm.types import attribute_of
from ...dialects.target import WARP_THREADS, Target
from ...dialects.tile import KernelOp, StagedStoreOp
from ...dialects.tile.pieces import (
    PAIR,
    STORED,
    ApplyEpilogueOp,
    ReadFragmentOp,
    WriteMatricesOp,
    WritePairsOp,
    WriteUnitOp,
)
from ...dialects.tile.staged_quantized import StagedQuantizedOp
from ...dialects.tile.threads import ReadRowOp, ThreadColumnOp, ThreadLanesOp, ThreadRowOp
from ...dialects.tile_types import AccumulatorType, SmemType, integers, stored_element
from ...dialects.verify import products_of, tile_of_c
from ..build import constant, equal, when
from ..clone import Mapping, constant_of, copy_region, replace_in
from ..copy_width import UNIT_BYTES
from ..places import ATOM_M, COLUMNS, behind, column_in, held_row, row_in
from ..plan import cluster_of
from ..team import Team
from ..tmem_reads import MATRIX_LANES, TmemRead
from ..warp_grids import warp_tile
from .duals import joined, starts_of
from .matrix_loads import load_matrices
from .quantized_pieces import write_quantized

WARP_ATOM_M = 16  # rows of an mma.sync


@record
class Piece:
    """A piece at hand: `start` is its first column in the tile.

    `beside` are those of other operands, by the rings that they came through. `read` are the sums
    of tensor memory that other pieces of the same columns have read before, by where they lie.
    """

    kernel: KernelOp
    target: Target
    store: StagedStoreOp
    sums: ir.Value[AccumulatorType]
    buffer: ir.Value[SmemType]
    start: ir.Value
    beside: Mapping = field(default_factory=dict)
    read: dict[Any, ir.Value] = field(default_factory=dict)

    def write(self) -> None:
        """Write it in the way that the store says."""
        if isinstance(self.store, StagedQuantizedOp):
            write_quantized(self, _atom_m(self))
            return
        if self.target.has_tensor_memory:
            (_write_rows if self.store.write.value == "rows" else _write_matrices)(self)
        elif self.target.mma.issuer == WARP:
            _write_warps(self)
        else:
            _write_registers(self)

    @property
    def team(self) -> Team:
        """The threads that write it."""
        return Team.of(self.store)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the tile of C."""
        return tile_of_c(self.store)

    @property
    def columns(self) -> int:
        """Columns of the piece."""
        return self.buffer.type.layout.k

    def read_fragment(self, start: ir.Value, row: int, columns: int, apart: int) -> ir.Value:
        """Sums of 16 rows of the warp's and of some columns, those of a second product `apart`."""
        values = ir.VectorType.get([columns // 2], self.sums.type.element)
        where = {"sums": self.sums, "row": attribute_of(row), "values": values}
        starts = starts_of(self.store, start, apart)
        return joined([ReadFragmentOp(start=at, **where).values for at in starts])

    def once(self, where: Any, read: Callable[[], ir.Value]) -> ir.Value:
        """Sums of tensor memory that outputs stored together need: the first of them reads."""
        if where not in self.read:
            self.read[where] = read()
        return self.read[where]

    def apply(
        self, values: ir.Value, row: ir.Value, column: ir.Value, first: int, count: int
    ) -> ApplyEpilogueOp:
        """The epilogue of some of the values, the first of which is at (row, column)."""
        store = self.store
        made = ApplyEpilogueOp(
            values=values,
            to=store.to,
            i=store.i,
            j=store.j,
            start=self.start,
            row=row,
            column=column,
            first=attribute_of(first),
            behind=integers([0, 0]),
            extents=integers(list(self.shape)),
            whole=attribute_of("none"),
            outputs=ir.VectorType.get([count], stored_element(store.to.type)),
        )
        copy_region(store.epilogue, made.epilogue)
        replace_in(made.epilogue.blocks[0], self.beside)
        return made

    def apply_to_pairs(self, values: ir.Value, row: ir.Value, column: ir.Value) -> list[Any]:
        """The epilogue of each pair of a fragment, whose first is at (row, column)."""
        count = ir.VectorType(values.type).shape[0] // products_of(self.store)
        whole = self.apply(values, row, column, 0, PAIR)
        made = [whole.operation, *(whole.operation.clone() for _ in range(PAIR, count, PAIR))]
        for number, op in enumerate(made):
            op.attributes["first"] = attribute_of(PAIR * number)
            op.attributes["behind"] = integers(list(behind(PAIR * number)))
        return [op.results[0] for op in made]

    def write_fragment(self, values: ir.Value, first: ir.Value, start: int = 0) -> None:
        """Write 16 rows of the warp, from `first` and a column of the piece on."""
        lane, matrices = self.team.lane, STORED // PAIR
        row, column = first + row_in(COLUMNS, lane=lane), column_in(COLUMNS, lane=lane) + start
        pairs = self.apply_to_pairs(values, row, column)
        write = WritePairsOp if self.store.write.value == "rows" else WriteMatricesOp
        for number in range(0, len(pairs), matrices):
            _, columns = behind(PAIR * number)
            at = {"row": first, "column": attribute_of(start + columns)}
            together = pairs[number : number + matrices]
            if write is WriteMatricesOp:
                load_matrices([pair.owner.opview for pair in together], at)
            write(buffer=self.buffer, outputs=together, **at)


def _write_rows(piece: Piece) -> None:
    """Every thread has a row of tensor memory, and writes it in 16-byte units."""
    sums, (m, _), columns = piece.sums, piece.shape, piece.columns
    form = TmemRead.of(_atom_m(piece), columns, cluster_of(piece.kernel).pair)
    lanes, row, column = ThreadLanesOp().lanes, ThreadRowOp(sums=sums).row, None
    if form.layout != "D":  # there a thread has all columns
        neighbours = attribute_of(form.registers)
        column = ThreadColumnOp(sums=sums, neighbours=neighbours).column
    values = ir.VectorType.get([form.registers], sums.type.element)
    for first in range(0, m, form.atom_m):
        at_row = row + first
        for chunk in range(0, columns, form.columns):
            where = {"sums": sums, "lanes": lanes, "row": attribute_of(first), "values": values}
            read = partial(_read_columns, piece, where, chunk)
            part = piece.once(("rows", first, chunk), read)
            at = constant(chunk) if column is None else column + chunk
            _write_units(piece, part, at_row, at)


def _read_columns(piece: Piece, where: dict[str, Any], chunk: int) -> ir.Value:
    """Read the accumulators of each product from a column of the piece on."""
    starts = starts_of(piece.store, piece.start + chunk)
    return joined([ReadRowOp(start=start, **where).values for start in starts])


def _write_units(piece: Piece, values: ir.Value, row: ir.Value, column: ir.Value) -> None:
    """Neighbours of a row, 16 bytes at a time."""
    width = UNIT_BYTES // piece.buffer.type.layout.element_bytes
    count = ir.VectorType(values.type).shape[0] // products_of(piece.store)
    for start in range(0, count, width):
        at = column + start
        outputs = piece.apply(values, row, at, start, width).outputs
        WriteUnitOp(outputs=outputs, buffer=piece.buffer, row=row, column=at)


def _write_matrices(piece: Piece) -> None:
    """Every warp reads 16 lanes of tensor memory at a time."""
    (m, n), atom_m = piece.shape, _atom_m(piece)
    thread, warp_rows = piece.team.thread, atom_m // 4
    warp = thread // WARP_THREADS
    for atom in range(0, m, atom_m):
        for half in range(0, warp_rows, MATRIX_LANES):
            row = atom + half
            read = partial(piece.read_fragment, piece.start, row, piece.columns, n)
            values = piece.once(("matrices", row), read)
            first = warp * warp_rows + row
            piece.write_fragment(values, first)


def _write_registers(piece: Piece) -> None:
    """Every warp of a warpgroup has 16 rows of each MMA."""
    m, n = piece.shape
    warpgroups = piece.target.mma_warpgroups(*piece.sums.type.shape) or 1
    thread, rows = piece.team.thread, m // warpgroups
    own = held_row(thread, m, rows, piece.target.adds_from_tensor_memory)
    for atom in range(0, rows, ATOM_M):
        values = piece.read_fragment(piece.start, atom, piece.columns, n)
        piece.write_fragment(values, own + atom)


def _write_warps(piece: Piece) -> None:
    """By the columns of warps that have some of the piece."""
    tile, start = warp_tile(piece.kernel, piece.sums.type, piece.target), constant_of(piece.start)
    assert start is not None  # pieces of sums in registers are written out one by one
    thread, (_, along_n) = piece.team.thread, tile.grid
    warp, columns = thread // WARP_THREADS, tile.n // products_of(piece.store)
    for number in range(along_n):
        first, end = number * columns, min(start + piece.columns, (number + 1) * columns)
        begin = max(start, first)
        if begin >= end:
            continue
        has = None if along_n == 1 else equal(warp % along_n, number)
        with when(has):
            own = warp // along_n * tile.m
            for row in range(0, tile.m, WARP_ATOM_M):
                at, width = constant(begin - first), end - begin
                values = piece.read_fragment(at, row, width, columns)
                piece.write_fragment(values, own + row, begin - start)


def _atom_m(piece: Piece) -> int:
    rows = piece.target.mma_rows(piece.shape[0])
    assert rows is not None  # check_operands lets no other tile through
    return rows
