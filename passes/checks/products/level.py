"""The rules of `check_kernel` on tiles of groups that are equally high: that MMAs and loads go by
the rows of their own tile.

count       it is what a tile.group gives, and no other one reaches as far
load        the rows that it takes are those of that group
sums        who reads or stores them is where that group reaches, too
"""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir
from ....dialects.mma_units import WGMMA
from ....dialects.target import Target
from ....dialects.tile import KernelOp
from ....dialects.tile.groups import GroupOp
from ....dialects.tile.level import LevelLoadOp, LevelMmaOp, NarrowMmaOp
from ...base import is_swapped, refused, walk
from ...groups import LEVEL_ATTRIBUTE, group_of, rows_of_group

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
    groups = walk(kernel, GroupOp) if ops else []
    for group in groups:
        _check_alone(group, groups)
    for op in ops:
        if target.mma.name != WGMMA.name:
            rule = "level: MMAs must be wgmma.mma_async"
            raise refused(op, f"{rule}, got {target.mma.name}; {CURE}")
        _check_count(op)
        if isinstance(op, LevelLoadOp):
            _check_rows(op)
        else:
            _check_sums(op, groups)


def _check_alone(group: GroupOp, groups: list[GroupOp]) -> None:
    """Groups take the place of a tile (`groups`): a second one is of another tile, or of none."""
    around = _blocks_around(group)
    if any(each != group and each.operation.block in around for each in groups):
        rule = "level: a tile must have one tile.group"
        raise refused(group, f"{rule}, got one more where another reaches; take that")


def _check_rows(load: LevelLoadOp) -> None:
    part = rows_of_group(load.map)
    if part is None or part.count != load.count:
        rule = "level: loads must be of as many rows as the group has whose rows they take"
        raise refused(load, f"{rule}, got those of another; take its count")


def _check_sums(mma: LevelMmaOp, groups: list[GroupOp]) -> None:
    """Sums that leave the loop over tiles would be stored to the rows of another group."""
    for use in mma.acc.uses:
        around = _blocks_around(use.owner)
        if not any(mma.count == each.count for each in groups if each.operation.block in around):
            rule = "level: sums must be read where the tile.group of their MMAs reaches"
            raise refused(use.owner.opview, f"{rule}, got them elsewhere; move it")


def _blocks_around(op: Any) -> list[ir.Block]:
    """The blocks that an op stands in, from its own on."""
    found, op = [], op.operation
    while op.name != KernelOp.OPERATION_NAME:
        found.append(op.block)
        op = op.parent.operation
    return found


def _check_count(op: Any) -> None:
    made = op.count.owner
    group = None if isinstance(made, ir.Block) else made.opview
    if not isinstance(group, GroupOp) or op.count != group.count:
        rule = "level: count must be the rows of the group of the tile, as tile.group gives them"
        raise refused(op, f"{rule}, got another value; take them")
