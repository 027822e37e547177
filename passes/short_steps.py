"""The last K step of a tile, and how many elements of K its tiles hold."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..dialects.dtypes import operand_dtype
from ..dialects.mlir import arith, ir
from ..dialects.tile import KernelOp, MmaOp, PairMmaOp, SplitRankOp
from ..dialects.tile.groups import GroupDepthOp
from ..dialects.tile_types import DYNAMIC
from .base import walk
from .clone import constant_of

COUNTED_BY = arith.CmpIPredicate.ne
ORDERLESS = (MmaOp, PairMmaOp)
"""MMAs that do not know which step along K they multiply (`k-rotation`)."""


class LastStep(NamedTuple):
    """The last step along K: its number, and the elements that its MMAs must multiply."""

    number: int
    depth: int


def last_step(kernel: KernelOp, mma: Any) -> LastStep | None:
    """The last step of an MMA's tiles; None if K is split, or known only at launch."""
    if walk(kernel, SplitRankOp | GroupDepthOp):
        return None
    extent = ir.MemRefType(kernel.body.blocks[0].arguments[0].type).shape[-1]
    dtype, k = operand_dtype(str(mma.a.type.element)), mma.a.type.layout.k
    if extent == DYNAMIC or dtype is None:
        return None
    number = -(-extent // k) - 1
    left = extent - number * k
    return LastStep(number, -(-left // dtype.k_per_mma) * dtype.k_per_mma)


def step_of(mma: Any) -> ir.Value | None:
    """The number of an MMA's step along K: what its `accumulate` compares with that of the first.

    None where it says otherwise whether there are sums.
    """
    compare = mma.accumulate.owner
    if isinstance(compare, ir.Block) or compare.name != "arith.cmpi":
        return None
    predicate = ir.IntegerAttr(compare.attributes["predicate"]).value
    number, first = compare.operands
    return number if predicate == COUNTED_BY and constant_of(first) == 0 else None
