"""Accumulators of mma.sync in registers of warps: what each thread holds."""

from __future__ import annotations

from typing import NamedTuple

from ....dialects import llvm
from ....dialects.fragments import mma_sync
from ....dialects.mlir import ir
from ....dialects.tile_types import AccumulatorType
from ... import build
from ...duals import arguments_of_b
from ...warp_grids import WarpTile, warp_tile
from ..scope.scope import Scope, lowered_parts
from .register_accumulator import parts, struct_of

FRAGMENT = mma_sync(16, "d", 32)  # the sums of any K
ATOM_M, ATOM_N = FRAGMENT.shape


class WarpSums(NamedTuple):
    """A stack slot for the sums of each MMA of this thread's warp, by its place in the warp tile.

    LLVM's mem2reg makes registers of those in the kernel's first block.
    """

    tile: WarpTile
    products: int
    struct: ir.Type
    slots: tuple[tuple[ir.Value, ...], ...]

    @staticmethod
    def of(scope: Scope, sums: ir.Value[AccumulatorType]) -> WarpSums:
        """The registers of an accumulator that `new_slots` made."""
        tile, slots = warp_tile(scope.kernel, sums.type, scope.target), lowered_parts(sums)
        columns = tile.n // ATOM_N
        count = tile.m // ATOM_M * columns  # after them: operands that are held back
        rows = (slots[start : start + columns] for start in range(0, count, columns))
        products = len(arguments_of_b(scope.kernel))
        return WarpSums(tile, products, _struct(sums.type), tuple(tuple(row) for row in rows))

    def load(self) -> list[list[ir.Value]]:
        """The registers of all MMAs, as structs."""
        return [[llvm.load(self.struct, slot) for slot in row] for row in self.slots]

    def store(self, sums: list[list[ir.Value]]) -> None:
        """Keep the registers of all MMAs."""
        for row, slots in zip(sums, self.slots, strict=True):
            for each, slot in zip(row, slots, strict=True):
                llvm.store(each, slot)

    def rows(self, row: int) -> list[list[ir.Value]]:
        """What this thread has of the two rows of the `row`-th MMAs: pairs in every 8 columns."""
        every = [parts(llvm.load(self.struct, slot)) for slot in self.slots[row]]
        half = FRAGMENT.values // 2
        halves = (slice(0, half), slice(half, None))
        return [[each for sums in every for each in sums[part]] for part in halves]

    def first_row(self, warp: ir.Value) -> ir.Value:
        """The first of the tile's rows that a warp has."""
        return warp // self.tile.grid[1] * self.tile.m

    def first_column(self, warp: ir.Value) -> ir.Value:
        """The first column of C's tile that a warp has: its sums are of as many of each product."""
        if self.tile.grid[1] == 1:
            return build.constant(0)
        return warp % self.tile.grid[1] * (self.tile.n // self.products)


def new_slots(scope: Scope, sums: AccumulatorType) -> list[ir.Value]:
    """Slots for an accumulator at the insertion point; what they hold is undefined."""
    tile, struct = warp_tile(scope.kernel, sums, scope.target), _struct(sums)
    count = tile.m // ATOM_M * (tile.n // ATOM_N)
    return [llvm.alloca(build.pointer(), build.constant(1), struct) for _ in range(count)]


def _struct(sums: AccumulatorType) -> ir.Type:
    return struct_of(sums.element, FRAGMENT.values)
