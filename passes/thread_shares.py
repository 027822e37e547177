"""The part of an accumulator that each thread holds, on CUDA cores."""

from __future__ import annotations

from ..dialects.mlir import ir
from ..dialects.thread_tiles import ThreadTile
from ..dialects.tile import KernelOp, MmaOp
from ..dialects.tile.sums import DualLaneMmaOp, LaneMmaOp, ViewMmaOp
from ..dialects.tile_types import AccumulatorType, element_bytes

MMAS = MmaOp | ViewMmaOp


def share_of(kernel: KernelOp, acc: ir.Value[AccumulatorType]) -> ThreadTile:
    """How the threads of a kernel share an accumulator, in the groups that its MMAs read."""
    users = (use.owner.opview for use in acc.uses)
    mma = next(op for op in users if isinstance(op, MMAS))
    if isinstance(mma, LaneMmaOp):
        return share_of_lanes(kernel, mma)
    share = ThreadTile.of(*acc.type.shape, kernel.threads.value)
    assert share is not None  # check_shares lets no other tile through
    if isinstance(mma, ViewMmaOp):
        return share
    a, b = mma.a.type.layout, mma.b.type.layout
    return share.grouped(a.major, b.major, element_bytes(mma.a.type.element))


def share_of_lanes(kernel: KernelOp, mma: LaneMmaOp) -> ThreadTile:
    """The same where lanes share elements."""
    products = 2 if isinstance(mma, DualLaneMmaOp) else 1
    threads, lanes = kernel.threads.value, mma.lanes.value
    return ThreadTile.of_lanes(*mma.acc.type.shape, threads, lanes, products)
