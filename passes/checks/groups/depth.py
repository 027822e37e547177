"""Checks of groups of K, of a tile's part of its group, and of any K.

depth       all tiles have the K of their group by the offsets that the kernel takes, of both
            operands, or that of a and b which a launch says, and all agents take as many steps;
            of a K in parts each begins where the one before it ends
"""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir
from ....dialects.pipe import RoleOp
from ....dialects.sm.threads import WarpsOp
from ....dialects.tile import (
    MMAS,
    CopyOp,
    KernelOp,
    LoadOp,
    SplitRankOp,
    SplitStartOp,
    TmaLoadOp,
    TmaMulticastOp,
)
from ....dialects.tile.batches import BatchOp, OrderedBatchOp
from ....dialects.tile.groups import GroupColumnsOp, GroupDepthOp, GroupStepsOp
from ....dialects.tile_types import extent_of, integers_of
from ...base import refused, walk
from ...batches import argument_of, map_definition
from ...clone import group_steps_of
from ...dynamic_rows import DEPTH_MOST, has_dynamic_depth, is_said_depth
from ...groups import columns_of_group
from ...indices import linear_form
from ...outputs import outputs_of
from .other_steps import check_other_steps

LOADS = LoadOp | CopyOp | TmaLoadOp | TmaMulticastOp
STEPS = ("depth", "less", "least", "most")


def check_depth(kernel: KernelOp) -> None:
    """What all ops together say."""
    depths = walk(kernel, GroupDepthOp)
    for op in depths:
        _check_offsets(kernel, op, depths[0])
    for part in walk(kernel, GroupColumnsOp):
        _check_columns(kernel, part)
    for load in walk(kernel, LOADS) if depths else ():
        view = load.view if isinstance(load, LoadOp | CopyOp) else load.map
        if columns_of_group(view) is None:
            rule = "depth: both operands must have the K of the tile's group"
            raise refused(load, f"{rule}, got all of it; take it by tile.group_columns")
    limits = walk(kernel, GroupStepsOp)
    if has_dynamic_depth(kernel) and not limits:
        rule = "depth: loops over a K that a launch says must end with it"
        raise refused(kernel, f"{rule}, got numbers; bound them by tile.group_steps")
    for limit in limits:
        _check_steps(kernel, limit, limits[0])
    if limits:
        check_other_steps(kernel)
    _check_parts(kernel, limits)


def _check_offsets(kernel: KernelOp, op: GroupDepthOp, first: GroupDepthOp) -> None:
    batch: Any = None if isinstance(op.group.owner, ir.Block) else op.group.owner.opview
    if not isinstance(batch, BatchOp) or op.group != batch.batch:
        raise refused(
            op, "depth: must take the batch of a tile.batch, got another index; take its result"
        )
    arguments = list(kernel.body.blocks[0].arguments)
    groups, depth = outputs_of(kernel)[0].type.shape[0], extent_of(arguments[0].type, 1)
    got = op.offsets.type.shape[0], op.extent.value
    if op.offsets not in arguments[2:-1] or got != (groups, depth):
        rule = f"depth: must cut the {depth} along K into {groups} groups by offsets of the kernel"
        raise refused(op, f"{rule}, got {got[1]} into {got[0]}; take the argument that has them")
    order = batch.order if isinstance(batch, OrderedBatchOp) else None
    if order is not None and (order not in arguments[2:-1] or order.type.shape[0] != groups):
        rule = f"depth: must take {groups} groups in an order that the kernel takes"
        raise refused(op, f"{rule}, got {order.type}; take the argument that has it")
    if op.offsets != first.offsets:
        raise refused(op, "depth: all agents must cut K alike, got another way; give them one")


def _depth_of(value: ir.Value) -> Any:
    op = None if isinstance(value.owner, ir.Block) else value.owner.opview
    return op if isinstance(op, GroupDepthOp) else None


def _check_columns(kernel: KernelOp, op: GroupColumnsOp) -> None:
    """The part that is taken is that of the tile's group."""
    depth, whole = _depth_of(op.first), op.whole
    if depth is None or op.first != depth.first or op.count != depth.count:
        raise refused(
            op, "depth: must take the part of a tile.group_depth, got another; take its result"
        )
    view = whole if isinstance(whole.type, ir.MemRefType) else map_definition(op.part).view
    if argument_of(view) not in list(kernel.body.blocks[0].arguments)[:2]:
        raise refused(
            op, f"depth: must take a part of a or b, got {whole.type}; take the view of one of them"
        )


def _extent_of(kernel: KernelOp, op: GroupStepsOp) -> int:
    """The most along K that steps may have to cover: of a group, or of a launch that says it."""
    of_any = has_dynamic_depth(kernel)
    if of_any and not walk(kernel, GroupDepthOp):
        if is_said_depth(kernel, op.count):
            return DEPTH_MOST
        raise refused(
            op, "depth: must count the K of a or b, got another size; take the dim of one of them"
        )
    depth = _depth_of(op.count)
    if depth is None or op.count != depth.count:
        raise refused(
            op, "depth: must count the part of a tile.group_depth, got another; take its result"
        )
    return DEPTH_MOST if of_any else depth.extent.value


def _check_steps(kernel: KernelOp, op: GroupStepsOp, first: GroupStepsOp) -> None:
    extent = _extent_of(kernel, op)
    tile = walk(kernel, MMAS)[0].a.type.layout.k * integers_of(kernel.grid)[2]
    if op.depth.value != tile or (op.most.value + op.less.value) * tile < extent:
        got = f"{op.most.value + op.less.value} of {op.depth.value}"
        rule = f"depth: steps of {tile} must cover the {extent} along K"
        raise refused(op, f"{rule}, got {got}; take more")
    agents = walk(kernel, RoleOp | WarpsOp)
    if len(agents) > 1 and any(getattr(op, name) != getattr(first, name) for name in STEPS):
        rule = "depth: all agents must take as many steps"
        raise refused(op, f"{rule}, got others than the first; give them one end")


def _check_parts(kernel: KernelOp, limits: list[GroupStepsOp]) -> None:
    """Each part takes so many steps as lie between its first and that of the next one."""
    starts = walk(kernel, SplitStartOp)
    taken = max((each.less.value + each.least.value for each in limits), default=1)
    for op in starts:
        steps = group_steps_of(op.steps)
        if not has_dynamic_depth(kernel) or walk(kernel, GroupDepthOp):
            rule = "depth: parts of K are counted where a launch says K, of one product"
            raise refused(op, f"{rule}, got another; multiply the rank by a number")
        if isinstance(op.rank.owner, ir.Block) or not isinstance(op.rank.owner.opview, SplitRankOp):
            raise refused(
                op, "depth: must begin by a tile.split_rank, got another index; take its result"
            )
        if steps is None or steps.less.value or steps.least.value < taken:
            rule = f"depth: parts must be apart by the {taken} steps or more that loops take"
            got = "no tile.group_steps" if steps is None else f"{steps.least.value} at least"
            raise refused(op, f"{rule}, got {got}; count them so")
    if has_dynamic_depth(kernel) and integers_of(kernel.grid)[2] > 1:
        for load in walk(kernel, LOADS):
            _check_part_of(load)


def _check_part_of(load: Any) -> None:
    """A load's step along K is one of its own part."""
    form = linear_form(load.j)
    factors = {} if form is None else form.factors
    began = [n for each, n in factors.items() if _is_start(each)]
    if began != [1]:
        rule = "depth: loads must begin with the first step of their part of K"
        raise refused(load, f"{rule}, got another; add tile.split_start to the step")


def _is_start(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and isinstance(value.owner.opview, SplitStartOp)
