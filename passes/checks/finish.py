"""Rules on what makes sums whole: `tile.finish_sums`, which adds what MMAs have left to each other,
and `tile.add_lanes`, which adds what lanes have of them.

finish      it comes after all MMAs into its sums, outside of their loops, and before who reads
            the sums
lanes       sums of `tile.lane_mma`, and no others, have one `tile.add_lanes`, of as many lanes
"""

from __future__ import annotations

from typing import Any

from ...dialects.layout import LINEAR
from ...dialects.mlir import ir
from ...dialects.tile import MMAS, KernelOp, MmaOp, PairMmaOp
from ...dialects.tile.sums import (
    WARP_LANES,
    AddLanesOp,
    ClearSumsOp,
    FinishSumsOp,
    LaneMmaOp,
    ViewMmaOp,
)
from ...dialects.tile_types import SmemType
from ..base import refused, walk
from ..clone import constant_of
from ..thread_shares import share_of

ENDS = FinishSumsOp | AddLanesOp


def check_finish(kernel: KernelOp) -> None:
    """Refuse one that adds a product twice, or too late, and lanes that nothing adds up."""
    for op in walk(kernel, ENDS):
        _check(op)
        if isinstance(op, AddLanesOp) and not _users(op.acc, LaneMmaOp):
            raise refused(op, "lanes: must be those of tile.lane_mma, got other sums; drop it")
        if isinstance(op, AddLanesOp) and op.parts is not None:
            _check_parts(kernel, op, op.parts.type)
    for mma in walk(kernel, LaneMmaOp):
        added = [each.lanes.value for each in _users(mma.acc, AddLanesOp)]
        if added != [mma.lanes.value]:
            rule = f"lanes: one tile.add_lanes of {mma.lanes.value} must end the sums"
            raise refused(mma, f"{rule}, got {added}; put it after the loop")


def _check_parts(kernel: KernelOp, op: AddLanesOp, parts: SmemType) -> None:
    """Whether the warps that share elements have room for what they add up."""
    share, layout = share_of(kernel, op.acc), parts.layout
    wanted = kernel.threads.value // WARP_LANES, share.m * share.n
    got = layout.mn, layout.k
    plain = (layout.major, layout.swizzle) == ("k", LINEAR)
    if got != wanted or not plain or parts.element != op.acc.type.element:
        rows, columns = wanted
        rule = f"lanes: parts must be {rows} rows of {columns} sums, K-major and linear"
        raise refused(op, f"{rule}, got {parts}; plan memory anew")


def _users(acc: ir.Value, kind: Any) -> list[Any]:
    return [use.owner.opview for use in acc.uses if isinstance(use.owner.opview, kind)]


def _check(op: FinishSumsOp | AddLanesOp) -> None:
    block = [each.operation for each in op.operation.block.operations]
    at = block.index(op.operation)
    for use in op.acc.uses:
        user = use.owner.opview
        if isinstance(user, ENDS | ClearSumsOp):
            continue
        place = _place_in(block, user.operation)
        is_mma = isinstance(user, (*MMAS, ViewMmaOp))
        if is_mma and (place is None or place > at or _is_of_a_step(user, block)):
            rule = "finish: must stand after the MMAs into its sums, and outside of their loop"
            raise refused(op, f"{rule}, got it elsewhere; move it")
        if not is_mma and place is not None and place < at:
            raise refused(op, "finish: must stand before the sums are read, got it after; move it")


def _place_in(block: list[ir.Operation], op: ir.Operation) -> int | None:
    """The place in a block of an op, or of the one around it that stands there."""
    while op is not None and op not in block:
        op = op.parent
    return None if op is None else block.index(op)


def _is_of_a_step(mma: MmaOp | PairMmaOp | ViewMmaOp, block: list[ir.Operation]) -> bool:
    """Whether it stands in the block itself, and adds in some of its rounds alone."""
    return mma.operation in block and constant_of(mma.accumulate) is None
