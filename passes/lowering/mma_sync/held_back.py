"""Operands of mma.sync that a warp holds back from one step of K to the next.

They are kept in stack slots after those of the sums, which LLVM's mem2reg makes registers of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ....dialects import llvm
from ....dialects.dtypes import operand_dtype
from ....dialects.fragments import find_fragment
from ....dialects.mlir import ir
from ....dialects.target import Target
from ....dialects.tile import AccumulatorOp, MmaOp
from ....dialects.tile.sums import FinishSumsOp
from ... import build
from ...warp_grids import warp_tile
from ..operands.fragment_loads import fragments_along
from ..registers.warp_accumulator import ATOM_M, ATOM_N, WarpSums
from ..scope.scope import Scope, lowered_parts

Words = list[list[ir.Value]]


def steps_of(op: MmaOp, target: Target) -> Iterator[tuple[int, int]]:
    """(k, K of the MMA) over the tile: as much as one takes, and half where no more is left."""
    dtype = operand_dtype(str(op.a.type.element), target.mma.name)
    assert dtype is not None  # tiling has seen to it
    whole, k = dtype.k_per_mma, 0
    while k < op.a.type.layout.k:
        k_atom = whole if k + whole <= op.a.type.layout.k else whole // 2
        yield k, k_atom
        k += k_atom


class HeldBack(NamedTuple):
    """A slot for each vector of registers of A, then of B, that `mma` multiplies last."""

    mma: MmaOp
    target: Target
    slots: list[list[ir.Value]]
    types: list[ir.Type]

    @staticmethod
    def of(scope: Scope, held: WarpSums, acc: Any) -> HeldBack | None:
        """What is held back of an accumulator, or None."""
        tile = held.tile
        rows, columns = tile.m // ATOM_M, tile.n // ATOM_N
        slots = lowered_parts(acc)[rows * columns :]
        if not slots:
            return None
        (mma, *_) = _mmas(acc)
        if type(mma) is not MmaOp:  # what lies there is of others
            return None
        types = _types(mma, scope.target)
        return HeldBack(mma, scope.target, [slots[:rows], slots[rows:]], types)

    @property
    def k_atom(self) -> int:
        """K of the MMAs of what is held back."""
        return list(steps_of(self.mma, self.target))[-1][1]

    def clear(self) -> None:
        """Hold back zeros, which add nothing."""
        zeros = [llvm.zero(type_) for type_ in self.types]
        self.store([[zero] * len(own) for zero, own in zip(zeros, self.slots, strict=True)])

    def load(self) -> Words:
        """What is held back of A, and of B."""
        pairs = zip(self.types, self.slots, strict=True)
        return [[llvm.load(type_, slot) for slot in own] for type_, own in pairs]

    def store(self, words: Words) -> None:
        """Hold these back."""
        for own, values in zip(self.slots, words, strict=True):
            for slot, value in zip(own, values, strict=True):
                llvm.store(value, slot)


def new_held_back(scope: Scope, op: AccumulatorOp) -> list[ir.Value]:
    """Slots at the insertion point, where `tile.finish_sums` says that operands are held back."""
    if not any(isinstance(use.owner.opview, FinishSumsOp) for use in op.acc.uses):
        return []
    tile = warp_tile(scope.kernel, op.acc.type, scope.target)
    counts = (tile.m // ATOM_M, tile.n // ATOM_N)
    each = zip(_types(_mmas(op.acc)[0], scope.target), counts, strict=True)
    return [
        llvm.alloca(build.pointer(), build.constant(1), type_)
        for type_, count in each
        for _ in range(count)
    ]


def _mmas(acc: Any) -> list[MmaOp]:
    users = (use.owner.opview for use in acc.uses)
    return [user for user in users if isinstance(user, MmaOp)]


def _types(mma: MmaOp, target: Target) -> list[ir.Type]:
    """The vector of registers of what an MMA takes of A, and of B."""
    bits, k_atom = 8 * mma.a.type.layout.element_bytes, list(steps_of(mma, target))[-1][1]
    registers = [
        sum(
            find_fragment(f"m16n8k{k}", name, bits).registers for k in fragments_along(k_atom, bits)
        )
        for name in ("a", "b")
    ]
    return [ir.VectorType.get([count], build.i32()) for count in registers]
