"""Reading an accumulator from tensor memory into registers."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects import sm
from ...dialects.mlir import ir
from ...dialects.tile_types import AccumulatorType
from . import build as b
from .frame import Frame

REGISTERS = 32
MATRIX_LANES = 16


@dataclass(frozen=True)
class Fragment:
    """How one tcgen05.ld spreads an MMA's accumulator over a warp's threads.

    Layout D (128 rows; PTX ISA, data path layouts): lane i is row i, so .32x32b gives thread t row
    t of the warp's 32. Layout F (64 rows): each warp has 16 rows, so .16x32bx2 gives threads 0-15
    the first and 16-31 the second half of the columns. Layout B (64 rows a CTA of a pair): warps 0
    and 1 have the rows' first half of N, 2 and 3 the second. A thread gets `registers` columns of
    one row.
    """

    layout: str
    registers: int

    @staticmethod
    def of(atom_m: int, n: int, pair: bool) -> Fragment:
        """For an MMA of `atom_m` rows a CTA that is read in pieces that divide `n` columns."""
        layout = "D" if atom_m == 128 else "B" if pair else "F"
        halves = 2 if layout == "F" else 1
        registers = REGISTERS
        while n % (registers * halves):
            registers //= 2
        return Fragment(layout, registers)

    @property
    def atom_m(self) -> int:
        """Rows of the MMA in this CTA."""
        return 128 if self.layout == "D" else 64

    @property
    def columns(self) -> int:
        """Columns of the accumulator that one load covers."""
        return self.registers * (2 if self.layout == "F" else 1)

    def parts(self, n: int) -> int:
        """Columns of tensor memory that hold `n` columns of the accumulator."""
        return n // 2 if self.layout == "B" else n


def store_fragment(accumulator: AccumulatorType, pair: bool) -> Fragment:
    """How an accumulator that goes straight to global memory is read."""
    m, n = accumulator.shape
    atom_m = 128 if m % 128 == 0 else 64
    return Fragment.of(atom_m, n // 2 if pair and atom_m == 64 else n, pair)


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
    def of(frame: Frame, fragment: Fragment, n: int) -> Place:
        """For an accumulator of `n` columns."""
        warp, lane = b.div(frame.team.thread, 32), frame.lane
        lanes = b.mul(warp, 32 << 16)
        if fragment.layout == "D":
            return Place(b.add(b.mul(warp, 32), lane), None, lanes)
        if fragment.layout == "B":
            row = b.add(b.mul(b.rem(warp, 2), 32), lane)
            return Place(row, b.mul(b.div(warp, 2), n // 2), lanes)
        row = b.add(b.mul(warp, 16), b.rem(lane, 16))
        return Place(row, b.mul(b.div(lane, 16), fragment.registers), lanes)


def read_fragment(fragment: Fragment, element: ir.Type, address: ir.Value) -> ir.Value:
    """`registers` sums of one row; the data is in registers when this returns."""
    type_ = ir.VectorType.get([fragment.registers], element)
    if fragment.layout != "F":
        return _load("32x32b", type_, address)
    return _load("16x32bx2", type_, address, fragment.registers)


def read_matrices(columns: int, element: ir.Type, address: ir.Value) -> ir.Value:
    """`columns` of 16 rows as 8x8 matrices: four sums a thread for every 8 columns."""
    type_ = ir.VectorType.get([columns // 2], element)
    return _load("16x256b", type_, address)


def _load(shape: str, type_: ir.VectorType, address: ir.Value, offset: int = 0) -> ir.Value:
    words = ir.VectorType.get(type_.shape, b.i32())
    loaded = sm.TmemLoadOp.of(address, shape=shape, offset=offset, words=words).words
    return sm.TmemWaitOp.of(loaded, values=type_).values
