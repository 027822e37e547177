"""The rules of `check_kernel` on tiles of groups that are equally high: that MMAs and loads go by
the rows of their own tile."""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir
from ....dialects.mma_units import WGMMA
from ....dialects.target import Target
from ....dialects.tile import KernelOp
from ....dialects.tile.groups import GroupOp
from ....dialects.tile.level import LevelLoadOp, LevelMmaOp, NarrowMmaOp
from ...base import is_swapped, refused, walk
from ...groups import LEVEL_ATTRIBUTE, group_of

CURE = "leave level-groups out"


def check_level(kernel: KernelOp, target: Target) -> None:
    """Whether equal heights are those of exchanged groups, and counts those of the tile."""
    attributes = kernel.operation.attributes
    ops = walk(kernel, (LevelMmaOp, LevelLoadOp))
    for narrow in walk(kernel, NarrowMmaOp):
        rule = "level: MMAs must be of all columns, or as wide as tile.level_mma says"
        raise refused(narrow, f"{rule}, got {narrow.columns.value} columns; write that instead")
    if LEVEL_ATTRIBUTE in attributes:
        attribute = attributes[LEVEL_ATTRIBUTE]
        if not isinstance(attribute, ir.UnitAttr):
            rule = f"level: {LEVEL_ATTRIBUTE} must be a unit attribute"
            raise refused(kernel, f"{rule}, got {attribute}; leave its value out")
        if group_of(kernel) is None or not is_swapped(kernel):
            rule = "level: tiles must be of groups of rows whose A and B are exchanged"
            raise refused(kernel, f"{rule}, got others; {CURE}")
    elif ops:
        rule = f"level: a kernel of {ops[0].operation.name} must have {LEVEL_ATTRIBUTE}"
        raise refused(kernel, f"{rule}, got none; add it")
    for op in ops:
        if target.mma.name != WGMMA.name:
            rule = "level: MMAs must be wgmma.mma_async"
            raise refused(op, f"{rule}, got {target.mma.name}; {CURE}")
        _check_count(op)


def _check_count(op: Any) -> None:
    """Groups take the place of a tile (`groups`), and each loop over tiles has one place."""
    made = op.count.owner
    group = None if isinstance(made, ir.Block) else made.opview
    if not isinstance(group, GroupOp) or op.count != group.count:
        rule = "level: count must be the rows of the group of the tile, as tile.group gives them"
        raise refused(op, f"{rule}, got another value; take them")
