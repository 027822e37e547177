"""`tile.reduced_store`: a cluster's accumulators → their sum → epilogue → global memory.

    write    each thread its part of this CTA's sums to this CTA's shared memory
    meet     all threads of the cluster, those of the other roles once their work is done
    add      rows of this CTA's rank modulo the CTAs: the same 16 bytes of every CTA, rank 0 first;
             a thread asks for several units before it adds one, since each takes long to come

The cluster meets once more where the kernel ends, so that no CTA's memory goes while it is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from ..dialects import sm
from ..dialects.layout import UNIT_BYTES
from ..dialects.mlir import arith, ir, llvm
from ..dialects.sm_threads import ConvergeOp
from ..dialects.sm_types import attribute_of
from ..dialects.target import Target
from ..dialects.tile import AwaitMmaOp, KernelOp, ReducedStoreOp
from ..dialects.tile_threads import SHARED_POINTER, PartialOp, ThreadRowOp, WritePartialOp
from ..dialects.tile_types import integers_of
from ..dialects.verify import tile_of_c
from .base import defining_op
from .build import as_i32, both, constant, less, loop, when
from .dynamic_rows import rows_of
from .expand_duals import joined, starts_of
from .expand_rows import Columns, held_atoms, held_rows, runs, thread_pair, write_row
from .places import PAIR, PAIR_EVERY
from .team import Team
from .whole import lies_inside

UNIT_COLUMNS = UNIT_BYTES // 4
LOADS_MAX = 16  # of a thread under way: 64 registers
CLUSTER_POINTER = "!llvm.ptr<7>"


@dataclass(frozen=True)
class Partials:
    """Where every CTA of the cluster has its sums, and which rows of them are rows of C."""

    kernel: KernelOp
    store: ReducedStoreOp
    memory: ir.Value
    whole: bool

    @staticmethod
    def of(kernel: KernelOp, store: ReducedStoreOp) -> Partials:
        memory = defining_op(store.partials).memory
        return Partials(kernel, store, memory, lies_inside(kernel, store, "i"))

    def row_of_c(self, row: ir.Value) -> ir.Value:
        """The row of C that a row of the tile is."""
        return as_i32(self.store.i) * self.store.acc.type.shape[0] + row

    def inside(self, row: ir.Value) -> ir.Value | None:
        """Whether a row of the tile is one of C; None where all are."""
        return None if self.whole else less(self.row_of_c(row), rows_of(self.store.view))

    def write(
        self, values: ir.Value, row: ir.Value, column: ir.Value, neighbours: int, every: int
    ) -> None:
        """What this thread has of a row, where the row is one of C."""
        width = min(neighbours, UNIT_COLUMNS)
        (count,) = ir.VectorType(values.type).shape
        with when(self.inside(row)):
            for first, behind in runs(count, neighbours, every, width):
                part = {"first": first, "behind": behind, "width": width}
                numbers = {name: attribute_of(each) for name, each in part.items()}
                WritePartialOp(values=values, memory=self.memory, row=row, column=column, **numbers)


def expand_reduced_store(kernel: KernelOp, store: ReducedStoreOp, target: Target) -> None:
    """Write out one store."""
    with ir.InsertionPoint(store), store.location:
        partials = Partials.of(kernel, store)
        if target.has_tensor_memory:
            _write_columns(partials)
        else:
            _write_pairs(partials, target)
        ConvergeOp()
        sm.ClusterBarrierOp.of()
        _store_sums(partials)
    store.operation.erase()


def _write_columns(partials: Partials) -> None:
    columns = Columns.of(partials.kernel, partials.store)
    registers = columns.fragment.registers
    for first in columns.atoms():
        row = columns.row + first
        with loop(*columns.chunks()) as chunk:
            values = columns.read(first, chunk)
            partials.write(values, row, columns.own(chunk), registers, registers)


def _write_pairs(partials: Partials, target: Target) -> None:
    acc = partials.store.acc
    AwaitMmaOp(pending=attribute_of(0))
    row = ThreadRowOp(sums=acc).row
    atoms, width = held_atoms(partials.kernel, acc, target)
    for first in atoms:
        first_row, rows = row + first, held_rows(acc, first, width)
        column = thread_pair(acc)
        for behind, values in rows:
            partials.write(values, first_row + behind, column, PAIR, PAIR_EVERY)


@dataclass(frozen=True)
class Unit:
    """A unit to be added up: its place in the tile, and whether this thread has it."""

    row: ir.Value
    column: ir.Value
    valid: ir.Value | None

    @property
    def row_to_read(self) -> ir.Value:
        """The unit's row, or one that every CTA has written."""
        return self.row if self.valid is None else arith.select(self.valid, self.row, constant(0))


def _store_sums(partials: Partials) -> None:
    """This CTA's rows, a unit a thread at a time."""
    (m, n), team = tile_of_c(partials.store), Team.of(partials.store)
    threads = team.threads
    split = integers_of(partials.kernel.cluster)[2]
    count = -(-m // split) * (n // UNIT_COLUMNS)
    batch = max(1, min(-(-count // threads), LOADS_MAX // split))
    rank = sm.SpecialRegisterOp.of(register="cluster_ctaid.z").value
    place = _place_in_plane(partials.kernel)
    whole = count % (batch * threads) == 0
    with loop(team.thread, count, batch * threads) as first:
        numbers = [first + index * threads for index in range(batch)]
        units = [_unit_at(partials, number, rank, None if whole else count) for number in numbers]
        values = [_read_products(partials, unit, place) for unit in units]
        for unit, parts in zip(units, values, strict=True):
            _store_sum(partials, unit, parts)


def _place_in_plane(kernel: KernelOp) -> ir.Value | None:
    """This CTA's rank among those with the same part of K; None where it is the only one."""
    m, n, _ = integers_of(kernel.cluster)
    places = []
    if m > 1:
        places.append(sm.SpecialRegisterOp.of(register="cluster_ctaid.x").value)
    if n > 1:
        places.append(sm.SpecialRegisterOp.of(register="cluster_ctaid.y").value * m)
    return reduce(arith.addi, places) if places else None


def _ranks(kernel: KernelOp, place: ir.Value | None) -> list[ir.Value]:
    """The ranks of the CTAs that share this CTA's tile, in order (PTX ISA, %cluster_ctarank)."""
    m, n, split = integers_of(kernel.cluster)
    behind = [part * m * n for part in range(split)]
    return [constant(each) if place is None else place + each for each in behind]


def _unit_at(partials: Partials, number: ir.Value, rank: ir.Value, count: int | None) -> Unit:
    """Unit `number` of this CTA; at and past `count`, where one is given, there is none."""
    (m, n), split = tile_of_c(partials.store), integers_of(partials.kernel.cluster)[2]
    in_row = n // UNIT_COLUMNS
    row = number // in_row * split + rank
    valid = both(None if m % split == 0 else less(row, m), partials.inside(row))
    valid = both(valid, None if count is None else less(number, count))
    return Unit(row, number % in_row * UNIT_COLUMNS, valid)


def _read_products(partials: Partials, unit: Unit, place: ir.Value | None) -> list[list[ir.Value]]:
    """The unit of each product's sums, of every CTA in the order of ranks."""
    columns = starts_of(partials.store, unit.column)
    return [_read(partials, replace(unit, column=column), place) for column in columns]


def _read(partials: Partials, unit: Unit, place: ir.Value | None) -> list[ir.Value]:
    """The unit of every CTA, in the order of ranks."""
    pointer, remote = (ir.Type.parse(text) for text in (SHARED_POINTER, CLUSTER_POINTER))
    type_ = ir.VectorType.get([UNIT_COLUMNS], partials.store.acc.type.element)
    where = {"row": unit.row_to_read, "column": unit.column}
    own = PartialOp(memory=partials.memory, **where, pointer=pointer).pointer
    return [
        llvm.load(type_, sm.MapaOp.of(own, rank, remote=remote).remote, alignment=UNIT_BYTES)
        for rank in _ranks(partials.kernel, place)
    ]


def _store_sum(partials: Partials, unit: Unit, values: list[list[ir.Value]]) -> None:
    """Add up a unit's values in order, and store what the epilogue makes of the sums."""
    store = partials.store
    element = store.acc.type.element
    add = arith.addi if isinstance(element, ir.IntegerType) else arith.addf
    total = joined([reduce(add, parts) for parts in values])
    with when(unit.valid):
        column = as_i32(store.j) * tile_of_c(store)[1] + unit.column
        write_row(store, total, partials.row_of_c(unit.row), column)
