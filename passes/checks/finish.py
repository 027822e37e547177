"""Rules of expanded kernels on `tile.finish_sums`, which adds what MMAs have left to each other.

finish      it stands behind all MMAs into its sums, outside of their loops, and before who reads
            the sums
"""

from __future__ import annotations

from ...dialects.mlir import ir
from ...dialects.tile import KernelOp, MmaOp
from ...dialects.tile_sums import ClearSumsOp, FinishSumsOp
from ..base import refused, walk
from ..clone import constant_of


def check_finish(kernel: KernelOp) -> None:
    """Refuse one that adds a product twice, or too late."""
    for op in walk(kernel, FinishSumsOp):
        _check(op)


def _check(op: FinishSumsOp) -> None:
    block = [each.operation for each in op.operation.block.operations]
    at = block.index(op.operation)
    for use in op.acc.uses:
        user = use.owner.opview
        if isinstance(user, FinishSumsOp | ClearSumsOp):
            continue
        place = _place_in(block, user.operation)
        is_mma = isinstance(user, MmaOp)
        if is_mma and (place is None or place > at or _is_of_a_step(user, block)):
            rule = "finish: must stand behind the MMAs into its sums, and outside of their loop"
            raise refused(op, f"{rule}, got it elsewhere; move it")
        if not is_mma and place is not None and place < at:
            raise refused(op, "finish: must stand before the sums are read, got it behind; move it")


def _place_in(block: list[ir.Operation], op: ir.Operation) -> int | None:
    """The place in a block of an op, or of the one around it that stands there."""
    while op is not None and op not in block:
        op = op.parent
    return None if op is None else block.index(op)


def _is_of_a_step(mma: MmaOp, block: list[ir.Operation]) -> bool:
    """Whether it stands in the block itself, and adds in some of its rounds alone."""
    return mma.operation in block and constant_of(mma.accumulate) is None
