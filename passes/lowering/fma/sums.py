"""Accumulators in registers of which each thread has its own elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....dialects import llvm, sm
from ....dialects.mlir import arith, ir
from ....dialects.thread_tiles import WARP_COLUMNS, WARP_ROWS, ThreadTile
from ....dialects.tile import AccumulatorOp, KernelOp
from ....dialects.tile.sums import (
    WARP_LANES,
    AddLanesOp,
    ClearSumsOp,
    HasSumsOp,
    SumsPlaceOp,
    SumsRowOp,
)
from ....dialects.tile_types import AccumulatorType
from ... import build
from ...base import refused
from ...team import Team, team_op
from ...thread_shares import share_of
from ..registers.elements import joined
from ..scope.scope import Scope, lowered_as, lowered_parts, place_of

FLOAT_BYTES = 4


class ThreadSums(NamedTuple):
    """What one thread holds of an accumulator: a stack slot for each element, row by row.

    LLVM's mem2reg turns the slots into registers. `row` and `column` are the thread's place in the
    grid of threads; those beyond the grid compute what its last row has, and store nothing. Lanes
    that share elements have one place.
    """

    share: ThreadTile
    element: ir.Type
    row: ir.Value
    column: ir.Value
    slots: list[ir.Value]

    @staticmethod
    def of(scope: Scope, acc: ir.Value[AccumulatorType]) -> ThreadSums:
        """What `hold_sums` made of an accumulator."""
        row, column, *slots = lowered_parts(acc)
        return ThreadSums(share_of(scope.kernel, acc), acc.type.element, row, column, slots)

    def load(self) -> list[ir.Value]:
        """The sums, row by row."""
        return [llvm.load(self.element, slot) for slot in self.slots]

    def store(self, values: Sequence[ir.Value]) -> None:
        for value, slot in zip(values, self.slots, strict=True):
            llvm.store(value, slot)


def hold_sums(scope: Scope, op: AccumulatorOp) -> ir.Value:
    """Stack slots at the start of the kernel: only those of its first block become registers."""
    share = share_of(scope.kernel, op.acc)
    element = op.acc.type.element
    with ir.InsertionPoint.after(team_op(scope.kernel)):
        slots = [
            llvm.alloca(build.pointer(), build.constant(1), element)
            for _ in range(share.m * share.n)
        ]
    row, column = thread_place(Team.of(op).thread // share.lanes, share)
    if share.threads < scope.kernel.threads.value:
        row = arith.minui(row, build.constant(share.rows - 1))
    return lowered_as([row, column, *slots], op.acc.type)


def thread_place(thread: ir.Value, share: ThreadTile) -> tuple[ir.Value, ir.Value]:
    """A thread's row and column in the grid of threads.

    A warp is a block of 4x8 threads where the grid is of such blocks. In a block, bits 0 and 3 of
    the lane count rows and the others columns, so that of any two neighbours in a load of 16 bytes
    a lane, one pair reads the same of A and another the same of B.
    """
    if not share.is_warps:
        return thread // share.columns, thread % share.columns
    lane, warp = thread % 32, thread // 32
    row = lane % 2 + lane // 8 % 2 * 2
    column = lane // 2 % 4 + lane // 16 * 4
    across = share.columns // WARP_COLUMNS
    return warp // across * WARP_ROWS + row, warp % across * WARP_COLUMNS + column


def lower_clear_sums(scope: Scope, op: ClearSumsOp) -> None:
    sums = ThreadSums.of(scope, op.acc)
    zero = arith.ConstantOp(sums.element, ir.FloatAttr.get(sums.element, 0.0)).result
    sums.store([zero] * len(sums.slots))


def lower_sums_place(scope: Scope, op: SumsPlaceOp) -> list[ir.Value]:
    sums = ThreadSums.of(scope, op.acc)
    return [sums.row * sums.share.m_group, sums.column * sums.share.n_group]


def lower_has_sums(scope: Scope, op: HasSumsOp) -> ir.Value:
    share, thread = share_of(scope.kernel, op.acc), Team.of(op).thread
    every = share.threads == scope.kernel.threads.value
    has = None if every else build.less(thread, share.threads)
    first = build.equal(thread % share.lanes, 0) if share.lanes > 1 else None
    both = build.both(has, first)
    assert both is not None  # nobody asks where all threads have some
    return both


def lower_add_lanes(scope: Scope, op: AddLanesOp) -> None:
    """Lanes of a warp exchange what they have with those whose number differs by a bit, bit after
    bit. Of several warps the first lane of each then writes that down, and those of the first warp
    add it up."""
    sums, lanes = ThreadSums.of(scope, op.acc), op.lanes.value
    values, apart = sums.load(), 1
    while apart < min(lanes, WARP_LANES):
        others = [sm.ShuffleOp.of(value=each, apart=apart, result=each.type) for each in values]
        values = [arith.addf(one, other.result) for one, other in zip(values, others, strict=True)]
        apart *= 2
    sums.store(values)
    if op.parts is None:
        return
    team, row = Team.of(op), op.parts.type.layout.span_bytes
    warp, first = team.thread // WARP_LANES, place_of(op.parts)
    with build.when(build.equal(team.lane, 0)):
        for at, value in enumerate(values):
            llvm.store(value, build.shared_at(first + warp * row + at * FLOAT_BYTES))
    team.meet()
    with build.when(build.less(team.thread % lanes, WARP_LANES)):
        for at, start in enumerate(values):
            total = start
            for other in range(1, lanes // WARP_LANES):
                place = first + warp * row + (other * row + at * FLOAT_BYTES)
                part = llvm.load(sums.element, build.shared_at(place))
                total = arith.addf(total, part)
            llvm.store(total, sums.slots[at])
    if not isinstance(op.operation.parent.opview, KernelOp):  # the next tile's are written there
        team.meet()


def lower_sums_row(scope: Scope, op: SumsRowOp) -> ir.Value:
    sums = ThreadSums.of(scope, op.acc)
    if op.number.value >= sums.share.m:
        rule = f"sums: number must be below the {sums.share.m} rows that a thread has"
        raise refused(op, f"{rule}, got {op.number.value}; read one of them")
    first = op.number.value * sums.share.n
    slots = sums.slots[first : first + sums.share.n]
    return joined([llvm.load(sums.element, slot) for slot in slots])
