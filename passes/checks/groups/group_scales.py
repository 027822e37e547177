"""Checks of the scales of groups of rows.

groups      scales of a are those of the tile's group, in lines of the form that their view has, and
            every load of a and of its scales is of that group's
"""

from __future__ import annotations

from typing import Any

from ....dialects.layout import SCALE_ATOM_ROWS
from ....dialects.mlir import ir
from ....dialects.tile import CopyOp, KernelOp, LoadOp, TmaGatherOp, TmaLoadOp, TmaMulticastOp
from ....dialects.tile.blockwise import BLOCKWISE_MMAS
from ....dialects.tile.grouped_products import (
    BY_ATOMS,
    BY_COLUMNS,
    BY_ROWS,
    GroupAtomsOp,
    GroupScalesOp,
)
from ....dialects.tile.groups import GroupOp, rows_of_atoms
from ....dialects.tile_types import TensorMapType
from ...base import refused, walk
from ...batches import argument_of, matrix_of
from ...groups import form_of_scales, rows_of_group

LOADS = LoadOp | CopyOp | TmaLoadOp | TmaGatherOp | TmaMulticastOp
OF_ROWS, OF_GROUPS = (0, 2), (1, 2, 3)
"""The arguments of a kernel that have a line for each row, a and its scales, or a matrix for each
group: b, and its scales or the second b."""


def check_group_scales(kernel: KernelOp, op: GroupScalesOp, group: GroupOp) -> None:
    """The scales that are taken are those of the rows of `group`."""
    view, blockwise = _view_of(op), bool(walk(kernel, BLOCKWISE_MMAS))
    arguments = list(kernel.body.blocks[0].arguments)
    if view != arguments[2] or _names(kernel)[2] != "a_scales":
        rule = "groups: must take scales of a_scales, or of its tensor map"
        raise refused(op, f"{rule}, got {op.whole.type}; take them")
    lines = BY_ATOMS if ir.MemRefType(view.type).rank == 5 else BY_ROWS
    wanted = BY_COLUMNS if blockwise else lines
    _check_atoms(op, ir.MemRefType(view.type), group)
    if op.form.value != wanted:
        rule = f"groups: lines of {view.type} must be '{wanted}'"
        raise refused(op, f"{rule}, got '{op.form.value}'; say that")
    first = _first_of(op, group, wanted)
    if first is None or op.first != first or op.count != group.count:
        raise refused(
            op,
            "groups: must take the scales of a tile.group, got others; take its results",
        )


def _check_atoms(op: GroupScalesOp, view: ir.MemRefType, group: GroupOp) -> None:
    """There are atoms for any offsets."""
    extent, groups = group.extent.value, group.offsets.type.shape[0]
    wanted = rows_of_atoms(extent, groups) // SCALE_ATOM_ROWS
    if view.rank == 5 and view.shape[0] != wanted:
        rule = f"groups: a_scales must have {wanted} rows of atoms, enough for any {groups} groups"
        raise refused(op, f"{rule} of {extent}, got {view.shape[0]}; give it as many")


def check_taken_by_group(kernel: KernelOp) -> None:
    """No load is of all rows of a, or of all their scales."""
    arguments, names = list(kernel.body.blocks[0].arguments), _names(kernel)
    of_rows = [arguments[at] for at in OF_ROWS if names[at] in ("a", "a_scales")]
    taken: list[tuple[Any, Any]] = [
        (op, op.view if isinstance(op, LoadOp | CopyOp) else op.map) for op in walk(kernel, LOADS)
    ]
    views = [
        (op, each) for op in walk(kernel, BLOCKWISE_MMAS) for each in (op.a_scales, op.b_scales)
    ]
    taken += [(op, each) for op, each in views if isinstance(each.type, ir.MemRefType)]
    of_groups = [arguments[at] for at in OF_GROUPS if names[at] in ("b", "b2", "b_scales")]
    for op, value in taken:
        if _argument(value) in of_groups and matrix_of(value) is None:
            rule = "groups: must load from the matrix of the tile's group"
            raise refused(op, f"{rule}, got the stack; take it by tile.matrix")
        if _argument(value) in of_rows and rows_of_group(value) is None:
            rule = "groups: must load what the tile's group has of a and of its scales"
            raise refused(op, f"{rule}, got all of it; take it by tile.group_rows or group_scales")
        if not isinstance(op, BLOCKWISE_MMAS) and form_of_scales(value) == BY_COLUMNS:
            rule = "groups: threads must read scales of 128 elements from their view"
            raise refused(op, f"{rule}, got a load of them; give the MMA the view")


def _first_of(op: GroupScalesOp, group: GroupOp, form: str) -> ir.Value | None:
    """The line where the scales of the group begin: of atoms counted by an op of its own."""
    if form != BY_ATOMS:
        return group.first
    atoms = None if isinstance(op.first.owner, ir.Block) else op.first.owner.opview
    if not isinstance(atoms, GroupAtomsOp) or atoms.group != group.group:
        return None
    agrees = atoms.offsets == group.offsets and atoms.extent == group.extent
    return atoms.first if agrees else None


def _view_of(op: GroupScalesOp) -> Any:
    whole: Any = op.whole
    return _argument(whole) if isinstance(whole.type, TensorMapType) else whole


def _argument(value: Any) -> Any:
    """The argument of the kernel that a view, or the view of a map, is a part of."""
    whole = argument_of(value)
    if isinstance(whole.type, TensorMapType) and not isinstance(whole.owner, ir.Block):
        return getattr(whole.owner.opview, "view", None)
    return whole


def _names(kernel: KernelOp) -> list[str]:
    return [ir.StringAttr(name).value for name in kernel.arg_names]
