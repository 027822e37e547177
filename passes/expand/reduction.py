"""`tile.reduced_store`: a cluster's accumulators → their sum → epilogue → global memory.

    write    each thread its part of this CTA's sums to this CTA's shared memory
    meet     all threads of the cluster, those of the other roles once their work is done
    add      rows of this CTA's rank modulo the CTAs: the same 16 bytes of every CTA, rank 0 first;
             a thread asks for several units before it adds one, since each takes long to come

Where rows of the tile are columns of C (`tile.transposed`), sums are written so that a row of them
is one of C, and the rest is as for any tile: `_transpose_back` gives the store C as it lies.

The cluster meets once more where the kernel ends, so that no CTA's memory goes while it is read.

`tile.gathered_store`: the same of the parts of a grid, which meet in global memory.

    write    each thread its part of this CTA's sums to the rows of its part
    count    the team meets, and one thread of it counts the CTA in
    claim    where all CTAs run at once it waits a while for the others, and claims a share of the
             rows; whoever comes last to that also has the shares that nobody has claimed
    add      of its shares, or in the CTA that came last of all rows, the same 16 bytes of every
             part, part 0 first
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from ...dialects import llvm, sm
from ...dialects.layout import UNIT_BYTES
from ...dialects.mlir import arith, ir
from ...dialects.record import record
from ...dialects.sm.barriers import CLAIMED_MOST
from ...dialects.sm.threads import ConvergeOp
from ...dialects.sm.types import attribute_of
from ...dialects.target import Target
from ...dialects.tile import (
    AwaitMmaOp,
    ElementOp,
    GatheredStoreOp,
    KernelOp,
    ReducedStoreOp,
)
from ...dialects.tile.threads import (
    GLOBAL_POINTER,
    SHARED_POINTER,
    PartialOp,
    ThreadRowOp,
    WritePartialOp,
)
from ...dialects.tile_types import integers_of
from ...dialects.verify import products_of, summed_extents
from ..base import defining_op, walk
from ..batches import transposed_of
from ..build import as_i32, both, constant, less, loop, when
from ..dynamic_rows import rows_of
from ..places import PAIR, PAIR_EVERY
from ..team import Team
from ..tiling.swap import EXCHANGED
from ..whole import lies_inside
from .duals import joined, starts_of
from .rows import Columns, held_atoms, held_rows, runs, thread_pair, write_row

UNIT_COLUMNS = UNIT_BYTES // 4
WIDE, WIDE_SHARE = 4, 120 / 132  # CTAs of a cluster for which not all multiprocessors have room
POLLS = 16  # of some 700 cycles, until a CTA waits no longer for other parts
LOADS_MAX = 16  # of a thread under way: 64 registers
CLUSTER_POINTER = "!llvm.ptr<7>"


@record
class Partials:
    """Where this CTA has its sums, from a row on, and which rows of them are rows of C.

    `extents` are those of a tile of C as it lies, which is `transposed` where rows of sums are
    columns.
    """

    kernel: KernelOp
    store: ReducedStoreOp | GatheredStoreOp
    memory: ir.Value
    whole: bool
    extents: tuple[int, int]
    transposed: bool
    first: ir.Value | None = None

    @staticmethod
    def of(kernel: KernelOp, store: Any, memory: ir.Value) -> Partials:
        """The partial sums of a store, which gets C as it is stored."""
        transposed = transposed_of(store.view) is not None
        rows, columns = summed_extents(store)
        extents = rows, columns // products_of(store)
        whole = lies_inside(kernel, store, "j" if transposed else "i")
        if transposed:
            _transpose_back(store)
        return Partials(kernel, store, memory, whole, extents, transposed)

    def of_part(self) -> Partials:
        """In the rows of its part."""
        part = sm.SpecialRegisterOp.of(register="ctaid.z").value
        return replace(self, first=part * self.extents[0])

    def row_of_c(self, row: ir.Value) -> ir.Value:
        """The row of C that a row of the tile is."""
        return as_i32(self.store.i) * self.extents[0] + row

    def inside(self, row: ir.Value) -> ir.Value | None:
        """Whether a row of the tile is one of C; None where all are."""
        return None if self.whole else less(self.row_of_c(row), rows_of(self.store.view))

    def any_inside(self) -> ir.Value | None:
        """Whether the tile has a row of C; None where each has.

        CTAs that fill up a cluster may have a tile past the last row, of which nobody writes.
        """
        fills_up = any(size > 1 for size in integers_of(self.kernel.cluster)[:2])
        return self.inside(constant(0)) if fills_up else None

    def write(
        self, values: ir.Value, row: ir.Value, column: ir.Value, neighbours: int, every: int
    ) -> None:
        """What this thread has of a row of sums, where that is one of C."""
        if self.transposed:
            self._write_column(values, row, column, neighbours, every)
            return
        width = min(neighbours, UNIT_COLUMNS)
        (count,) = ir.VectorType(values.type).shape
        with when(self.inside(row)):
            row = row if self.first is None else self.first + row
            for first, behind in runs(count, neighbours, every, width):
                part = {"first": first, "behind": behind, "width": width}
                numbers = {name: attribute_of(each) for name, each in part.items()}
                WritePartialOp(values=values, memory=self.memory, row=row, column=column, **numbers)

    def _write_column(
        self, values: ir.Value, row: ir.Value, column: ir.Value, neighbours: int, every: int
    ) -> None:
        """Each value to a row of its own; lanes with neighbouring rows write neighbours."""
        (count,) = ir.VectorType(values.type).shape
        start = column if self.first is None else self.first + column
        for first, behind in runs(count, neighbours, every, 1):
            numbers = {"first": first, "behind": 0, "width": 1}
            where = {"memory": self.memory, "row": start + behind, "column": row}
            how = {name: attribute_of(each) for name, each in numbers.items()}
            WritePartialOp(values=values, **where, **how)


def _transpose_back(store: Any) -> None:
    """Let a store name C as it lies, and its epilogue what it reads."""
    transposed: Any = transposed_of(store.view)
    *_, view, i, j = range(len(store.operation.operands))
    made = {view: transposed.view, i: store.j, j: store.i}
    for number, value in made.items():
        store.operation.operands[number] = value
    for element in walk(store, ElementOp):
        axes = EXCHANGED[element.axes.value]
        element.operation.attributes["axes"] = ir.StringAttr.get(axes)
        if (transposed := transposed_of(element.source)) is not None:
            element.operation.operands[0] = transposed.view


def expand_reduced_store(kernel: KernelOp, store: ReducedStoreOp, target: Target) -> None:
    """Write out one store."""
    with ir.InsertionPoint(store), store.location:
        partials = Partials.of(kernel, store, defining_op(store.partials).memory)
        _write(partials, target)
        ConvergeOp()
        sm.ClusterBarrierOp.of(releases=True)
        split = integers_of(kernel.cluster)[2]
        rank = sm.SpecialRegisterOp.of(register="cluster_ctaid.z").value
        read = partial(_read, partials, _place_in_plane(kernel))
        _store_sums(partials, Share(split, read, split, rank))
    store.operation.erase()


def expand_gathered_store(kernel: KernelOp, store: GatheredStoreOp, target: Target) -> None:
    """Write out one store."""
    with ir.InsertionPoint(store), store.location:
        parts, team = store.parts, Team.of(store)
        partials = Partials.of(kernel, store, store.partials).of_part()
        _write(partials, target)
        where = {"memory": store.arrivals, "row": constant(0), "column": constant(0)}
        word = PartialOp(**where, pointer=ir.Type.parse(GLOBAL_POINTER)).pointer
        team.meet()
        if _all_at_once(kernel, parts, target):
            _store_shares(partials, team, word, parts)
        else:
            last = sm.CountArrivalOp.of(word, team.leader, parts=parts).last
            ConvergeOp()
            with when(both(team.any(last), partials.any_inside())):
                _store_sums(partials, Share(parts, partial(_read_parts, partials, parts)))
    store.operation.erase()


def _all_at_once(kernel: KernelOp, parts: int, target: Target) -> bool:
    """Whether all CTAs of the grid run together on a GPU that runs nothing else, so that those of a
    tile may wait a while for each other. An H200 has room for 30 clusters of four, 15 of eight."""
    grid, wide = integers_of(kernel.grid), math.prod(integers_of(kernel.cluster)) >= WIDE
    known = min(grid) > 0 and parts <= CLAIMED_MOST
    room = target.multiprocessors * (WIDE_SHARE if wide else 1)
    return known and math.prod(grid) <= room


def _store_shares(partials: Partials, team: Team, word: ir.Value, parts: int) -> None:
    """Each CTA adds up some rows, and the last one also those of CTAs that did not wait for all."""
    claimed = sm.ClaimPartsOp.of(word, team.leader, parts=parts, polls=POLLS)
    ConvergeOp()
    first, end = (_broadcast(team, each, parts) for each in (claimed.first, claimed.end))
    read = partial(_read_parts, partials, parts)
    with when(partials.any_inside()), loop(first, end, 1) as share:
        _store_sums(partials, Share(parts, read, parts, share))


def _broadcast(team: Team, number: ir.Value, most: int) -> ir.Value:
    """What the leader has, up to `most`: a bit at a time, as barriers tell no more."""
    bits = []
    for bit in range(most.bit_length()):
        odd = less(constant(0), number // (1 << bit) % 2)
        broadcast = team.any(arith.andi(odd, team.leader))
        bits.append(arith.select(broadcast, constant(1 << bit), constant(0)))
    return reduce(arith.addi, bits)


def _write(partials: Partials, target: Target) -> None:
    """This CTA's sums, where others find them."""
    if target.has_tensor_memory:
        _write_columns(partials)
    else:
        _write_pairs(partials, target)


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


@record
class Unit:
    """A unit to be added up: its place in the tile, and whether this thread has it."""

    row: ir.Value
    column: ir.Value
    valid: ir.Value | None

    @property
    def row_to_read(self) -> ir.Value:
        """The unit's row, or one that every CTA has written."""
        return self.row if self.valid is None else arith.select(self.valid, self.row, constant(0))


@record
class Share:
    """What a CTA adds up: of `parts` sums, which `read` gives, each `every`-th row from its
    `rank`."""

    parts: int
    read: Callable[[Unit], list[ir.Value]]
    every: int = 1
    rank: ir.Value | None = None

    def row(self, number: ir.Value) -> ir.Value:
        """The row of the tile that its `number`-th is."""
        return number if self.rank is None else number * self.every + self.rank


def _store_sums(partials: Partials, share: Share) -> None:
    """This CTA's rows, a unit a thread at a time."""
    (m, n), team = partials.extents, Team.of(partials.store)
    threads = team.threads
    count = -(-m // share.every) * (n // UNIT_COLUMNS)
    batch = max(1, min(-(-count // threads), LOADS_MAX // share.parts))
    whole = count % (batch * threads) == 0
    with loop(team.thread, count, batch * threads) as first:
        numbers = [first + index * threads for index in range(batch)]
        units = [_unit_at(partials, number, share, None if whole else count) for number in numbers]
        values = [_read_products(partials, unit, share) for unit in units]
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


def _unit_at(partials: Partials, number: ir.Value, share: Share, count: int | None) -> Unit:
    """Unit `number` of this CTA; at and past `count`, where one is given, there is none."""
    m, n = partials.extents
    in_row = n // UNIT_COLUMNS
    row = share.row(number // in_row)
    valid = both(None if m % share.every == 0 else less(row, m), partials.inside(row))
    valid = both(valid, None if count is None else less(number, count))
    return Unit(row, number % in_row * UNIT_COLUMNS, valid)


def _read_products(partials: Partials, unit: Unit, share: Share) -> list[list[ir.Value]]:
    """The unit of each product's sums, of every CTA in the order of ranks."""
    columns = starts_of(partials.store, unit.column)
    return [share.read(replace(unit, column=column)) for column in columns]


def _read(partials: Partials, place: ir.Value | None, unit: Unit) -> list[ir.Value]:
    """The unit of every CTA, in the order of ranks."""
    pointer, remote = (ir.Type.parse(text) for text in (SHARED_POINTER, CLUSTER_POINTER))
    type_ = ir.VectorType.get([UNIT_COLUMNS], partials.store.acc.type.element)
    where = {"row": unit.row_to_read, "column": unit.column}
    own = PartialOp(memory=partials.memory, **where, pointer=pointer).pointer
    return [
        llvm.load(type_, sm.MapaOp.of(own, rank, remote=remote).remote, alignment=UNIT_BYTES)
        for rank in _ranks(partials.kernel, place)
    ]


def _read_parts(partials: Partials, parts: int, unit: Unit) -> list[ir.Value]:
    """The unit of every part, in their order."""
    store: Any = partials.store
    pointer, rows = ir.Type.parse(GLOBAL_POINTER), partials.extents[0]
    type_ = ir.VectorType.get([UNIT_COLUMNS], store.acc.type.element)
    places = [
        PartialOp(memory=partials.memory, row=row, column=unit.column, pointer=pointer).pointer
        for row in (unit.row_to_read + part * rows for part in range(parts))
    ]
    return [llvm.load(type_, place, alignment=UNIT_BYTES) for place in places]


def _store_sum(partials: Partials, unit: Unit, values: list[list[ir.Value]]) -> None:
    """Add up a unit's values in order, and store what the epilogue makes of the sums."""
    store = partials.store
    element = store.acc.type.element
    add = arith.addi if isinstance(element, ir.IntegerType) else arith.addf
    total = joined([reduce(add, parts) for parts in values])
    with when(unit.valid):
        column = as_i32(store.j) * partials.extents[1] + unit.column
        write_row(store, total, partials.row_of_c(unit.row), column)
