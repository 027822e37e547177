"""How tcgen05.ld spreads accumulators of tensor memory over threads."""

from __future__ import annotations

from typing import NamedTuple

from ..dialects.fragments import Fragment, tensor_memory
from ..dialects.mlir import ir

REGISTERS, MATRIX_LANES = 32, 16


class TmemRead(NamedTuple):
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
    def of(atom_m: int, n: int, pair: bool) -> TmemRead:
        """For an MMA of `atom_m` rows a CTA that is read in pieces that divide `n` columns."""
        layout = TmemRead.layout_of(atom_m, pair)
        halves = 2 if layout == "F" else 1
        registers = REGISTERS
        while n % (registers * halves):
            registers //= 2
        return TmemRead(layout, registers)

    @staticmethod
    def layout_of(atom_m: int, pair: bool) -> str:
        """The data path layout of an MMA with that many rows a CTA."""
        return "D" if atom_m == 128 else "B" if pair else "F"

    @property
    def atom_m(self) -> int:
        """Rows of the MMA in this CTA."""
        return 128 if self.layout == "D" else 64

    @property
    def shape(self) -> str:
        """The shape of the tcgen05.ld."""
        return "16x32bx2" if self.layout == "F" else "32x32b"

    @property
    def fragment(self) -> Fragment:
        """What one load gives a warp, of the lanes and columns that it covers."""
        return tensor_memory(self.shape, self.registers)

    @property
    def columns(self) -> int:
        """Columns of the accumulator that one load covers."""
        return self.registers * (2 if self.layout == "F" else 1)

    @property
    def warp_rows(self) -> int:
        """Rows of an MMA that one warp has in its lanes of tensor memory."""
        return 16 if self.layout == "F" else 32

    def first_row(self, warp: ir.Value) -> ir.Value:
        """The first of a warp's rows."""
        return (warp % 2 if self.layout == "B" else warp) * self.warp_rows

    def first_column(self, warp: ir.Value, n: int) -> ir.Value | None:
        """The first of a warp's columns, of `n`; None where every warp has all."""
        return warp // 2 * (n // 2) if self.layout == "B" else None

    def parts(self, n: int) -> int:
        """Columns of tensor memory that hold `n` columns of the accumulator."""
        return n // 2 if self.layout == "B" else n


def store_read(tile: tuple[int, int], pair: bool) -> TmemRead:
    """How the sums of a tile of C that goes straight to global memory are read."""
    m, n = tile
    atom_m = 128 if m % 128 == 0 else 64
    return TmemRead.of(atom_m, n // 2 if pair and atom_m == 64 else n, pair)
