"""`tile.reduced_store`: a cluster's accumulators → their sum → epilogue → global memory.

    write    each thread its part of this CTA's accumulator to this CTA's shared memory
    meet     all threads of the cluster, those of the other roles once their work is done
    add      rows of this CTA's rank modulo the CTAs: the same 16 bytes of every CTA, rank 0 first;
             a thread asks for several units before it adds one, since each takes long to come

The cluster meets once more where the kernel ends, so that no CTA's memory goes while it is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.layout import TileLayout
from ...dialects.mlir import arith, ir, llvm
from ...dialects.tile import ReducedStoreOp
from ..whole import is_whole
from . import build as b
from .accumulator import Fragment, Place, read_fragment, store_fragment
from .elements import slice_of
from .frame import Frame, Slot
from .operands import UNIT_BYTES, unit_offset
from .register_accumulator import ATOM_M, PAIR, RegisterAccumulator, parts, pinned
from .register_stores import ROWS_APART, first_row_of, pairs_of
from .store import write_row

UNIT_COLUMNS = UNIT_BYTES // 4
LOADS_MAX = 16  # of a thread under way: 64 registers


@dataclass(frozen=True)
class Partials:
    """Where every CTA of the cluster has its accumulator: byte `buffer` of its memory."""

    frame: Frame
    op: ReducedStoreOp
    buffer: ir.Value

    @staticmethod
    def of(frame: Frame, op: ReducedStoreOp) -> Partials:
        return Partials(frame, op, frame.tile_in(Slot(op.partials, 0), 0))

    @property
    def layout(self) -> TileLayout:
        return self.op.partials.type.tiles[0].layout

    def pointer(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """This CTA's element of the tile."""
        unit = unit_offset(self.layout, row, b.div(column, UNIT_COLUMNS))
        within = b.mul(b.rem(column, UNIT_COLUMNS), self.layout.element_bytes)
        return b.shared_at(b.add(b.add(unit, within), self.buffer))

    def inside(self, row: ir.Value) -> ir.Value | None:
        """Whether a row of the tile is one of C."""
        if is_whole(self.op, "i"):
            return None
        return b.less(self.output_row(row), self.op.view.type.shape[0])

    def output_row(self, row: ir.Value) -> ir.Value:
        """The row of C that a row of the tile is."""
        return b.add(b.mul(self.frame.index(self.op.i), self.op.acc.type.shape[0]), row)

    def write(self, values: ir.Value, row: ir.Value, column: ir.Value) -> None:
        """Neighbouring elements of a row, up to a unit of them."""
        width = ir.VectorType(values.type).shape[0]
        alignment = width * self.layout.element_bytes
        llvm.store(values, self.pointer(row, column), alignment=alignment)

    def read(self, row: ir.Value, column: ir.Value) -> list[ir.Value]:
        """A unit of every CTA of the cluster, in the order of ranks."""
        own = self.pointer(row, column)
        type_ = ir.VectorType.get([UNIT_COLUMNS], self.op.acc.type.element)
        cluster, place = self.frame.cluster, self.frame.rank_in_plane(*self.frame.place)
        ranks = [b.add_any(place, part * cluster.plane) for part in range(cluster.split)]
        return [llvm.load(type_, b.in_cta(own, b.as_value(rank)), alignment=16) for rank in ranks]


@dataclass(frozen=True)
class Unit:
    """A unit to be added up: its place in the tile, and whether this thread has it."""

    row: ir.Value
    column: ir.Value
    valid: ir.Value | None


def lower_reduced_store(frame: Frame, op: ReducedStoreOp) -> None:
    """Add up what tensor memory has."""
    partials = Partials.of(frame, op)
    m, n = op.acc.type.shape
    fragment = store_fragment(op.acc.type, pair=False)
    place = Place.of(frame, fragment, n)
    for row in range(0, m, fragment.atom_m):
        column = b.plus(frame.columns[op.acc], row // fragment.atom_m * n)
        _write_atom(partials, fragment, place, row, column)
    _store_sums(partials)


def _write_atom(
    partials: Partials, fragment: Fragment, place: Place, row: int, column: ir.Value | int
) -> None:
    """One MMA's rows, a thread each."""
    frame, n = partials.frame, partials.op.acc.type.shape[1]
    at_row = b.add(place.row, row)
    with b.loop(b.constant(0), n, fragment.columns) as chunk:
        address = frame.tmem_address(b.add(b.add(place.lanes, chunk), column))
        values = read_fragment(fragment, partials.op.acc.type.element, address)
        first = chunk if place.column is None else b.add(chunk, place.column)
        with b.when(partials.inside(at_row)):
            for start in range(0, fragment.registers, UNIT_COLUMNS):
                unit = slice_of(values, start, UNIT_COLUMNS)
                partials.write(unit, at_row, b.add(first, start))


def reduce_registers(frame: Frame, op: ReducedStoreOp) -> None:
    """Add up what threads hold."""
    held, partials = frame.registers[op.acc], Partials.of(frame, op)
    first = b.add(first_row_of(frame, held), b.div(frame.lane, 4))
    for atom in range(len(held.atoms)):
        _write_registers(partials, held, atom, b.add(first, atom * ATOM_M))
    _store_sums(partials)


def _write_registers(
    partials: Partials, held: RegisterAccumulator, atom: int, first: ir.Value
) -> None:
    """A thread's pairs of two rows of an MMA."""
    values = parts(pinned(held.load(atom)))
    column = b.mul(b.rem(partials.frame.lane, 4), PAIR)
    for half in range(2):
        row = b.add(first, half * ROWS_APART)
        with b.when(partials.inside(row)):
            for start, pair in pairs_of(values, half):
                partials.write(pair, row, b.add(column, start))


def _store_sums(partials: Partials) -> None:
    """Meet the cluster, then store this CTA's rows, a unit a thread at a time."""
    partials.frame.meet_cluster()
    frame, (m, n) = partials.frame, partials.op.acc.type.shape
    split, threads = frame.cluster.split, frame.team.threads
    count = -(-m // split) * (n // UNIT_COLUMNS)
    batch = max(1, min(-(-count // threads), LOADS_MAX // split))
    rank = b.special("cluster_ctaid.z")
    with b.loop(frame.team.thread, count, batch * threads) as first:
        numbers = [b.add(first, index * threads) for index in range(batch)]
        whole = count % (batch * threads) == 0
        units = [_unit_at(partials, number, rank, None if whole else count) for number in numbers]
        values = [partials.read(_row_to_read(unit), unit.column) for unit in units]
        for unit, parts_of_unit in zip(units, values, strict=True):
            _store_sum(partials, unit, parts_of_unit)


def _unit_at(partials: Partials, number: ir.Value, rank: ir.Value, count: int | None) -> Unit:
    """Unit `number` of this CTA; at and past `count`, where one is given, there is none."""
    (m, n), split = partials.op.acc.type.shape, partials.frame.cluster.split
    in_row = n // UNIT_COLUMNS
    row = b.add(b.mul(b.div(number, in_row), split), rank)
    valid = b.both(None if m % split == 0 else b.less(row, m), partials.inside(row))
    valid = b.both(valid, None if count is None else b.less(number, count))
    return Unit(row, b.mul(b.rem(number, in_row), UNIT_COLUMNS), valid)


def _row_to_read(unit: Unit) -> ir.Value:
    """The unit's row, or one that every CTA has written."""
    if unit.valid is None:
        return unit.row
    return arith.select(unit.valid, unit.row, b.constant(0))


def _store_sum(partials: Partials, unit: Unit, values: list[ir.Value]) -> None:
    """Add up a unit's values in order, and store what the epilogue makes of the sum."""
    frame, op = partials.frame, partials.op
    total, *rest = values
    add = arith.addi if isinstance(op.acc.type.element, ir.IntegerType) else arith.addf
    for value in rest:
        total = add(total, value)
    with b.when(unit.valid):
        column = b.add(b.mul(frame.index(op.j), op.acc.type.shape[1]), unit.column)
        write_row(frame, op, total, partials.output_row(unit.row), column)
