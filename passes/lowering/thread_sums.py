"""Sums of which each thread has elements of its own, in registers."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.mlir import arith, ir, llvm
from ...dialects.thread_tiles import WARP_COLUMNS, WARP_ROWS, ThreadTile
from ...dialects.tile import AccumulatorOp
from ...dialects.tile_sums import ClearSumsOp, HasSumsOp, SumsPlaceOp, SumsRowOp
from .. import build
from ..thread_sums import share_of
from .elements import joined
from .frame import Frame


@dataclass(frozen=True)
class ThreadSums:
    """What one thread holds of an accumulator: a stack slot for each element, row by row.

    LLVM's mem2reg turns the slots into registers. `row` and `column` are the thread's place in the
    grid of threads; those beyond the grid compute what its last row has, and store nothing.
    """

    share: ThreadTile
    element: ir.Type
    slots: tuple[ir.Value, ...]
    row: ir.Value
    column: ir.Value

    def load(self) -> list[ir.Value]:
        """The sums, row by row."""
        return [llvm.load(self.element, slot) for slot in self.slots]

    def store(self, values: list[ir.Value]) -> None:
        for value, slot in zip(values, self.slots, strict=True):
            llvm.store(value, slot)


def hold_sums(frame: Frame, op: AccumulatorOp) -> None:
    """Stack slots at the start of the kernel: only those of its first block become registers."""
    share = share_of(frame.kernel, op.acc)
    element = op.acc.type.element
    with ir.InsertionPoint.at_block_begin(frame.kernel.body.blocks[0]):
        slots = [
            llvm.alloca(build.pointer(), build.constant(1), element)
            for _ in range(share.m * share.n)
        ]
    row, column = thread_place(frame.team.thread, share)
    if share.threads < frame.kernel.threads.value:
        row = arith.minui(row, build.constant(share.rows - 1))
    frame.thread_sums[op.acc] = ThreadSums(share, element, tuple(slots), row, column)


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


def lower_clear_sums(frame: Frame, op: ClearSumsOp) -> None:
    sums = frame.thread_sums[op.acc]
    zero = arith.ConstantOp(sums.element, ir.FloatAttr.get(sums.element, 0.0)).result
    sums.store([zero] * len(sums.slots))


def lower_sums_place(frame: Frame, op: SumsPlaceOp) -> list[ir.Value]:
    sums = frame.thread_sums[op.acc]
    return [sums.row * sums.share.m_group, sums.column * sums.share.n_group]


def lower_has_sums(frame: Frame, op: HasSumsOp) -> ir.Value:
    share = frame.thread_sums[op.acc].share
    return build.less(frame.team.thread, share.threads)


def lower_sums_row(frame: Frame, op: SumsRowOp) -> ir.Value:
    sums, first = frame.thread_sums[op.acc], op.number.value * frame.thread_sums[op.acc].share.n
    slots = sums.slots[first : first + sums.share.n]
    return joined([llvm.load(sums.element, slot) for slot in slots])
