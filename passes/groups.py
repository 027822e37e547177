"""Rows of one group, seen through to the view or tensor map that holds all (`tile.group_rows`).

Likewise what a group has of K (`tile.group_columns`).
"""

from __future__ import annotations

from ..dialects.mlir import ir
from ..dialects.tile import KernelOp
from ..dialects.tile.grouped_products import GroupScalesOp
from ..dialects.tile.groups import (
    GatheredRowsOp,
    GroupColumnsOp,
    GroupOp,
    GroupRowsOp,
    GroupStartsOp,
    tiles_of_groups,
)
from ..dialects.tile_types import DYNAMIC, integer
from .base import walk
from .build import i32

SCALES_ATTRIBUTE = "scales_of_group"
BY_GROUPS = "grouped"  # the order of tiles whose bands begin anew with each group


def rows_of_group(value: ir.Value) -> GroupRowsOp | None:
    """The op that takes a group's rows; None where the value is no part of one."""
    if isinstance(value.owner, ir.Block) or not isinstance(value.owner.opview, GroupRowsOp):
        return None
    return value.owner.opview


def gathered_of(value: ir.Value) -> GatheredRowsOp | None:
    """The op that takes rows by their numbers; None where the value is no such part."""
    part = rows_of_group(value)
    return part if isinstance(part, GatheredRowsOp) else None


def form_of_scales(value: ir.Value) -> str:
    """What the lines of a group's scales are, also of a view or map that was lowered; "" where the
    value is no such part."""
    if isinstance(value.owner, ir.Block):
        return ""
    if isinstance(value.owner.opview, GroupScalesOp):
        return value.owner.opview.form.value
    attributes = value.owner.attributes
    return (
        ir.StringAttr(attributes[SCALES_ATTRIBUTE]).value if SCALES_ATTRIBUTE in attributes else ""
    )


def columns_of_group(value: ir.Value) -> GroupColumnsOp | None:
    """The op that takes a group's part of K; None where the value is no part of one."""
    if isinstance(value.owner, ir.Block) or not isinstance(value.owner.opview, GroupColumnsOp):
        return None
    return value.owner.opview


def part_of_group(value: ir.Value) -> GroupRowsOp | GroupColumnsOp | None:
    """The op that takes what a group has of a view or tensor map."""
    return rows_of_group(value) or columns_of_group(value)


def group_of(kernel: KernelOp) -> GroupOp | None:
    """What says which group a tile belongs to, one of possibly several alike; None without."""
    return next(iter(walk(kernel, GroupOp)), None)


LEVEL_ATTRIBUTE = "tile.level"


def is_level(kernel: KernelOp) -> bool:
    """Whether the tiles of a group are equally high, but for one row; else all but its last are
    whole."""
    return LEVEL_ATTRIBUTE in kernel.operation.attributes


def starts_of(op: GroupOp) -> GroupStartsOp:
    """Where the groups of each lane of a warp begin, cut as by an op; emitted here."""
    how = {name: getattr(op, name) for name in ("offsets", "tile", "together", "extent")}
    return GroupStartsOp(**how, row=i32(), place=i32(), count=i32())


def places_of(op: GroupOp) -> int:
    """Places along M that the kernel must have for it; as many as a launch says where it says the
    rows."""
    extent, tile, together = (each.value for each in (op.extent, op.tile, op.together))
    if extent == DYNAMIC:
        return DYNAMIC
    return tiles_of_groups(extent, op.offsets.type.shape[0], tile, together)


def spare_rows(op: GroupOp) -> int:
    """Rows that places have beyond those of all groups, at most: what each but one of them may
    leave of its last place, so that all rows and these are enough for any groups."""
    return (op.offsets.type.shape[0] - 1) * (op.tile.value * op.together.value - 1)


def whole_groups(op: GroupOp, together: int) -> int:
    """Let each group have whole clusters along M; the places that are then enough."""
    op.operation.attributes["together"] = integer(together)
    return places_of(op)
