"""Getting at an accumulator: waiting for it, and reading it from tensor memory into registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...dialects.mlir import ir, llvm, nvvm, vector
from . import build as b
from .frame import Frame
from .plan import is_synchronous, mma_before

REGISTERS = 32


@dataclass(frozen=True)
class Fragment:
    """How one tcgen05.ld spreads an MMA's accumulator over a warp's threads.

    M=128 (PTX ISA, data path layout D): lane i is row i, so .32x32b gives thread t row t of the
    warp's 32. M=64 (layout F): each warp has 16 rows, so .16x32bx2 gives threads 0-15 the first
    and 16-31 the second half of the columns. A thread gets `registers` columns of one row.
    """

    rows_per_warp: int
    registers: int

    @staticmethod
    def of(atom_m: int, n: int) -> Fragment:
        halves = 1 if atom_m == 128 else 2
        registers = REGISTERS
        while n % (registers * halves):
            registers //= 2
        return Fragment(atom_m // 4, registers)

    @property
    def atom_m(self) -> int:
        """M of the MMA."""
        return 4 * self.rows_per_warp

    @property
    def halves(self) -> int:
        return 32 // self.rows_per_warp

    @property
    def columns(self) -> int:
        """Columns of the accumulator that one load covers."""
        return self.registers * self.halves


@dataclass(frozen=True)
class Place:
    """Where a thread stands in an MMA's accumulator.

    `row` is its row, `column` the first of its columns in every load, `lanes` the part of the
    tensor-memory address that names its warp's lanes.
    """

    row: ir.Value
    column: ir.Value | None
    lanes: ir.Value

    @staticmethod
    def of(frame: Frame, fragment: Fragment) -> Place:
        rows = fragment.rows_per_warp
        warp = b.div(frame.team.thread, 32)
        row = frame.lane if fragment.halves == 1 else b.rem(frame.lane, rows)
        half = None
        if fragment.halves == 2:
            half = b.mul(b.div(frame.lane, rows), fragment.registers)
        return Place(b.add(b.mul(warp, rows), row), half, b.mul(warp, 32 << 16))


def await_accumulator(frame: Frame, op: Any) -> None:
    """Wait for the MMAs of an accumulator that came through no pipe and was not waited for."""
    mma = mma_before(op)
    if op.acc in frame.plan.accumulators and not is_synchronous(mma):
        with frame.team.once():
            frame.commit(frame.shared_at(frame.plan.mma_done))
        frame.wait_mma_done()


def hand_back_accumulator(frame: Frame, op: Any) -> None:
    """Before the next tile's MMAs overwrite an accumulator that no pipe guards, all meet."""
    in_loop = op.operation.parent.name != "tile.kernel"
    if op.acc in frame.plan.accumulators and in_loop:
        b.fence_before()
        frame.team.meet()
        b.fence_after()


def read_fragment(fragment: Fragment, address: ir.Value) -> ir.Value:
    """`registers` f32 of one row; the data is in registers when this returns."""
    words = ir.VectorType.get([fragment.registers], b.i32())
    if fragment.halves == 1:
        loaded = nvvm.tcgen05_ld(words, nvvm.Tcgen05LdStShape.SHAPE_32X32B, address)
    else:
        half = b.constant(fragment.registers, b.i64())
        shape = nvvm.Tcgen05LdStShape.SHAPE_16X32BX2
        loaded = nvvm.tcgen05_ld(words, shape, address, offset=half)
    nvvm.tcgen05_wait(nvvm.Tcgen05WaitKind.LOAD)
    loaded = _pin(loaded, fragment.registers)
    return llvm.bitcast(ir.VectorType.get([fragment.registers], ir.F32Type.get()), loaded)


def _pin(words: ir.Value, count: int) -> ir.Value:
    """Keep LLVM from reading the registers before this point.

    Nothing in LLVM's IR ties a tcgen05.ld to its wait; an empty asm that takes and gives every
    register does, and emits no instruction.
    """
    elements = [vector.ExtractOp(words, [], [index]).result for index in range(count)]
    outputs = ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * count)})>")
    ties = ",".join(["=r"] * count + [str(index) for index in range(count)])
    pinned = llvm.inline_asm(outputs, elements, "", ties, has_side_effects=True)
    parts = [llvm.extractvalue(b.i32(), pinned, [index]) for index in range(count)]
    return vector.FromElementsOp(words.type, parts).result
