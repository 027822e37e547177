"""The position of a tile in a batch, or in groups of rows."""

from __future__ import annotations

from typing import Any

from ...dialects.mlir import ir, memref
from ...dialects.tile import CtaTileOp, ElementOp
from ...dialects.tile.batches import BatchOp, MatrixOp, OrderedBatchOp, view_of_matrix
from ...dialects.tile.grouped_products import BY_ATOMS, GroupAtomsOp, GroupScalesOp
from ...dialects.tile.groups import (
    GatheredRowsOp,
    GroupColumnsOp,
    GroupDepthOp,
    GroupOp,
    GroupRowsOp,
    GroupStepsOp,
    gathered_view,
)
from ...dialects.tile_types import DYNAMIC, extent_of, integer
from ..clone import index_constant
from ..dynamic_rows import DEPTH_MOST


def batch_at(
    cta: CtaTileOp,
    c: ir.MemRefType,
    tile_m: int,
    axis: int,
    most_rows: int,
    order: Any = None,
) -> BatchOp:
    """Which matrix the place of a CTA along M belongs to, of those in an order if there is one;
    tiles are rows of that axis of C, at most so many where a launch says them."""
    rows, count = extent_of(c, axis), extent_of(c, 0)
    tiles = tiles_along(rows, tile_m)
    if rows == DYNAMIC:
        tiles = 1 if most_rows <= tile_m else DYNAMIC
    sizes = {"tiles": integer(tiles), "count": integer(count)}
    index = ir.IndexType.get()
    if order is not None:
        return OrderedBatchOp(i=cta.i, **sizes, batch=index, row=index, order=order)
    return BatchOp(i=cta.i, **sizes, batch=index, row=index)


def matrix_at(view: Any, batch: ir.Value) -> ir.Value[Any]:
    """The view of the tile's matrix; the same for all that read it."""
    users = (use.owner.opview for use in view.uses)
    known = (user for user in users if isinstance(user, MatrixOp) and user.batch == batch)
    found = next(known, None)
    return (found or MatrixOp(stack=view, batch=batch, matrix=view_of_matrix(view.type))).matrix


def group_at(place: ir.Value, offsets: Any, extent: int, tile_rows: int) -> GroupOp:
    """Which group the place of a CTA along the rows of C belongs to."""
    index = ir.IndexType.get()
    sizes = {"tile": tile_rows, "together": 1, "extent": extent}
    how = {name: integer(size) for name, size in sizes.items()}
    found = dict.fromkeys(("group", "row", "first", "count"), index)
    return GroupOp(i=place, offsets=offsets, **how, **found)


def rows_at(view: Any, group: GroupOp) -> ir.Value[Any]:
    """The rows of the tile's group."""
    return GroupRowsOp(whole=view, first=group.first, count=group.count, part=view.type).part


def gathered_at(view: Any, group: GroupOp, rows: Any) -> ir.Value[Any]:
    """The rows of a view that the rows of the tile's group are."""
    part = gathered_view(view.type, rows.type.shape[0])
    return GatheredRowsOp(
        whole=view, first=group.first, count=group.count, part=part, rows=rows
    ).part


def scales_at(view: Any, group: GroupOp, form: str) -> ir.Value[Any]:
    """The scales of the rows of the tile's group, whose lines are of that form."""
    first, name = group.first, ir.StringAttr.get(form)
    if form == BY_ATOMS:
        of_group = {"group": group.group, "offsets": group.offsets, "extent": group.extent}
        first = GroupAtomsOp(**of_group, first=ir.IndexType.get()).first
    return GroupScalesOp(whole=view, first=first, count=group.count, part=view.type, form=name).part


def depth_at(batch: BatchOp, offsets: Any, extent: int) -> GroupDepthOp:
    """What the group of a tile has of K."""
    size = integer(extent)
    index = ir.IndexType.get()
    return GroupDepthOp(group=batch.batch, offsets=offsets, extent=size, first=index, count=index)


def columns_at(view: Any, depth: GroupDepthOp) -> ir.Value[Any]:
    """What the tile's group has of a view."""
    return GroupColumnsOp(whole=view, first=depth.first, count=depth.count, part=view.type).part


def steps_at(depth: GroupDepthOp, tile_k: int) -> ir.Value:
    """How many K tiles the group has; one of zeros where it has nothing."""
    extent = depth.extent.value
    return _steps_of(depth.count, tile_k, DEPTH_MOST if extent == DYNAMIC else extent)


def steps_of_any(view: Any, tile_k: int) -> ir.Value:
    """How many K tiles a view [MN, K] has whose K a launch says."""
    return _steps_of(memref.dim(view, index_constant(1)), tile_k, DEPTH_MOST)


def _steps_of(count: ir.Value, tile_k: int, most: int) -> ir.Value:
    sizes = {"depth": tile_k, "less": 0, "least": 1, "most": tiles_along(most, tile_k)}
    how = {name: integer(size) for name, size in sizes.items()}
    return GroupStepsOp(count=count, **how, steps=ir.IndexType.get()).steps


def tiles_along(extent: int, tile: int) -> int:
    """How many tiles there are along an extent; the last may hang over."""
    return -(-extent // tile)


def read_group(element: ElementOp, view: ir.Value, group: GroupOp) -> None:
    """Let the epilogue read the rows of its group, or what its group has of a stack."""
    axes = element.axes.value
    with ir.InsertionPoint.after(group.operation), element.location:
        if axes.startswith("b"):
            view = matrix_at(view, group.group)
        elif axes.startswith("m"):
            view = rows_at(view, group)
    element.operation.attributes["axes"] = ir.StringAttr.get(axes.removeprefix("b"))
    element.operation.operands[0] = view


def read_view(element: ElementOp, view: ir.Value, batch: BatchOp | None) -> None:
    """Let the epilogue read a view of the kernel, of a stack that of the tile's matrix."""
    if batch is not None and element.axes.value.startswith("b"):
        with ir.InsertionPoint.after(batch.operation), element.location:
            view = matrix_at(view, batch.batch)
        element.operation.attributes["axes"] = ir.StringAttr.get(element.axes.value[1:])
    element.operation.operands[0] = view
