"""Checks of groups of rows: to which group a tile belongs.

groups      all tiles of a kernel are cut into groups alike, by the offsets that the kernel takes;
            each group has whole clusters, its own rows of a and c, and its own matrix of b
"""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir
from ....dialects.tile import KernelOp
from ....dialects.tile.batches import BatchOp, MatrixOp
from ....dialects.tile.grouped_products import GroupScalesOp
from ....dialects.tile.groups import GatheredRowsOp, GroupOp, GroupRowsOp
from ....dialects.tile.loads import TensorMapOp
from ....dialects.tile.place import CountedPlaceOp, GroupPlaceOp
from ....dialects.tile_types import DYNAMIC, TensorMapType, extent_of, integers_of
from ...base import refused, walk
from ...dynamic_rows import counted_axis
from ...groups import places_of
from ...indices import known_part, linear_form, place_of, span
from .group_scales import check_group_scales, check_taken_by_group

CUT = ("tile", "together", "extent")


def check_groups(kernel: KernelOp) -> None:
    """What all ops together say."""
    arguments, groups = list(kernel.body.blocks[0].arguments), walk(kernel, GroupOp)
    ranks = [ir.MemRefType(arguments[number].type).rank for number in (0, 1, -1)]
    if ranks != [2, 3, 2]:
        rule = "groups: a and c must be matrices and b a stack"
        raise refused(groups[0], f"{rule}, got ranks {ranks}; take tile.group out")
    for stray in walk(kernel, BatchOp):
        raise refused(stray, "groups: a kernel of groups must have no batches, got one; drop it")
    for op in groups:
        _check_group(kernel, op, groups[0])
    for op in walk(kernel, GroupPlaceOp):
        _check_cut(op, groups[0])
        if integers_of(op.tiles)[counted_axis(kernel)] != DYNAMIC:
            rule = f"groups: tiles must be counted along {'MN'[counted_axis(kernel)]}"
            raise refused(op, f"{rule}, got {integers_of(op.tiles)}; put -1 there")
    for op in walk(kernel, GroupRowsOp):
        _check_rows(kernel, op)
    check_taken_by_group(kernel)
    for op in walk(kernel, MatrixOp):
        _check_matrix(kernel, op)


def _check_group(kernel: KernelOp, op: GroupOp, first: GroupOp) -> None:
    """Which tiles are those of a group."""
    axis = counted_axis(kernel)
    size = integers_of(kernel.cluster)[axis]
    form = linear_form(op.i)
    if form is None or not form.is_just(op.i) or place_of(op.i) != axis or _is_row(op.i):
        rule = f"groups: must take the {'MN'[axis]} place of a tile"
        raise refused(op, f"{rule}, got another index; take what tile.cta_tile gives")
    reach = places_of(op)  # of places that are counted when the kernel runs, or by its launch
    if not _is_counted(op.i) and form == known_part(kernel, form):
        reach = (span(kernel, form) or (0, 0))[1] + 1
    if reach < places_of(op) or op.together.value % size:
        raise refused(
            op,
            f"groups: {places_of(op)} places by whole clusters of {size} must be among the {reach} "
            f"along {'MN'[axis]}, "
            f"got {op.together.value} together; launch more CTAs, or change together",
        )
    arguments = list(kernel.body.blocks[0].arguments)
    c = ir.MemRefType(arguments[-1].type)
    rows = extent_of(c, 0)
    if op.offsets not in arguments[2:-1] or op.extent.value != rows:
        rule = f"groups: must cut the {rows} rows of c by offsets that the kernel takes"
        raise refused(op, f"{rule}, got {op.extent.value}; say how many rows c has")
    _check_cut(op, first)


def _check_cut(op: GroupOp | GroupPlaceOp, first: GroupOp) -> None:
    if op.offsets != first.offsets or any(getattr(op, n) != getattr(first, n) for n in CUT):
        raise refused(op, "groups: all agents must cut tiles alike, got another way; give them one")


def _is_counted(place: ir.Value) -> bool:
    """Whether it is of as many tiles as the offsets say."""
    op = None if isinstance(place.owner, ir.Block) else place.owner.opview
    return isinstance(op, CountedPlaceOp)


def _is_row(index: ir.Value) -> bool:
    return not isinstance(index.owner, ir.Block) and isinstance(index.owner.opview, GroupOp)


def _group(value: ir.Value) -> Any:
    op = None if isinstance(value.owner, ir.Block) else value.owner.opview
    return op if isinstance(op, GroupOp) else None


def _check_rows(kernel: KernelOp, op: GroupRowsOp) -> None:
    """The rows that are taken are those of the tile's group."""
    group = _group(op.count if isinstance(op, GroupScalesOp) else op.first)
    if group is not None and isinstance(op, GroupScalesOp):
        check_group_scales(kernel, op, group)
        return
    if group is None or op.first != group.first or op.count != group.count:
        raise refused(
            op,
            "groups: must take the rows of a tile.group, got others; take its results",
        )
    whole: Any = op.whole
    by_map = isinstance(whole.type, TensorMapType)
    view = whole.owner.opview.view if by_map and _is_map(whole) else whole
    arguments = list(kernel.body.blocks[0].arguments)
    if isinstance(op, GatheredRowsOp):
        _check_gathered(kernel, op, view, group.extent.value)
    elif view not in arguments or extent_of(view.type, 0) != group.extent.value:
        rule = f"groups: must take rows of a view of {group.extent.value}, or of its tensor map"
        raise refused(op, f"{rule}, got {whole.type}; take them of such a view")


def _check_gathered(kernel: KernelOp, op: GatheredRowsOp, view: ir.Value, extent: int) -> None:
    """They are rows of a, as many numbers of which the kernel takes as c has rows."""
    a, *arguments = kernel.body.blocks[0].arguments
    if view != a:
        raise refused(
            op, f"groups: must gather rows of a, got those of {view.type}; take the view of a"
        )
    if op.rows not in arguments[1:-1] or extent_of(op.rows.type, 0) != extent:
        rule = f"groups: must gather by {extent} numbers that the kernel takes"
        raise refused(op, f"{rule}, got {op.rows.type}; take the argument that has them")


def _is_map(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and isinstance(value.owner.opview, TensorMapOp)


def _check_matrix(kernel: KernelOp, op: MatrixOp) -> None:
    """The matrix that is taken is that of the tile's group."""
    group, stack = _group(op.batch), op.stack
    if group is None or op.batch != group.group:
        raise refused(
            op,
            "groups: must take the group of a tile.group, got another index; take its first result",
        )
    by_map = isinstance(stack.type, TensorMapType)
    if not (_is_map(stack) if by_map else stack in list(kernel.body.blocks[0].arguments)):
        rule = "stack must be an argument of the kernel or its tensor map"
        raise refused(op, f"groups: {rule}, got another value; take one of them")
    count = stack.type.dims[-1] if by_map else ir.MemRefType(stack.type).shape[0]
    groups = group.offsets.type.shape[0]
    if count != groups:
        raise refused(
            op,
            f"groups: the stack must have {groups} matrices, "
            f"got {count}; give b one for each group",
        )
