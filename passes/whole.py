"""Which tiles of an op are in bounds: `whole` names those of its indices i and j.

    whole = "ij"      no tile hangs over the view's last row, and none over its last column
    whole = "i"       none hangs over the last row; "j": over the last column; "none": over either

`expand-loops` writes it down, and what copies or stores then checks no row or column of such an
index. A module that comes in is held to it (`check_loops`).
"""

from __future__ import annotations

from typing import Any

from ..dialects.mlir import ir
from ..dialects.record import record
from ..dialects.tile import CopyOp, KernelOp
from ..dialects.tile.pieces import ApplyEpilogueOp
from ..dialects.tile.threads import WriteRowOp
from ..dialects.tile_types import DYNAMIC, TensorMapType, extent_of, integers_of, stored_extents
from ..dialects.verify import tile_of_c
from .base import is_swapped, kernel_around, walk
from .batches import transposed_of
from .clone import constant_of
from .dynamic_rows import has_dynamic_depth, has_dynamic_rows, has_dynamic_stack, row_bounds
from .groups import columns_of_group, rows_of_group
from .indices import linear_form, span

WHOLE = "whole"
INDICES = ("i", "j")
CAST = "arith.index_cast"
WHOLE_OPS = CopyOp | ApplyEpilogueOp | WriteRowOp


def say_whole(kernel: KernelOp) -> None:
    """Give each op the attribute that is true of it, as far as its indices tell."""
    known: dict[Axis, bool] = {}
    first: dict[tuple[Any, ...], ir.Attribute] = {}  # what the first op of a place says
    for op in walk(kernel, WHOLE_OPS):
        place = _place(op)
        if place in first:
            op.operation.attributes[WHOLE] = first[place]
            continue
        names = ""
        for name in INDICES:
            axis = axis_of(op, name)
            if axis is not None and axis not in known:
                known[axis] = _axis_lies_inside(kernel, axis)
            names += name if axis is not None and known[axis] else ""
        op.operation.attributes[WHOLE] = ir.StringAttr.get(names or "none")
        if place is not None:
            first[place] = said(op)


def _place(op: Any) -> tuple[Any, ...] | None:
    """What the many stores of a row, and of the pieces of a tile, have in common; None for one."""
    if isinstance(op, WriteRowOp):
        return op.column, op.view
    return (op.to, op.i, op.j, op.extents) if isinstance(op, ApplyEpilogueOp) else None


def is_whole(op: Any, name: str) -> bool:
    """Whether tiles of the index of that name all lie inside the view, as the op says."""
    return name in said(op).value


def said(op: Any) -> ir.StringAttr:
    """What the op says."""
    return op.operation.attributes[WHOLE]


def lies_inside(kernel: KernelOp, op: Any, name: str) -> bool:
    """Whether tiles of an index are known to lie inside the view: none hangs over its edge.

    Clusters are whole, so the last one may hang over by more than a tile. Of an extent that is no
    number of whole tiles, one always does. Of rows that a launch says there are the fewest at
    least.
    """
    found = axis_of(op, name)
    return found is not None and _axis_lies_inside(kernel, found)


def _axis_lies_inside(kernel: KernelOp, found: Axis) -> bool:
    form = linear_form(found.index)
    extent = _fewest_rows(kernel) if found.extent == DYNAMIC else found.extent
    if form is None or extent == DYNAMIC or found.tile < 1 or extent % found.tile:
        return False
    ends = span(kernel, form)
    return ends is not None and ends[0] >= 0 and (ends[1] + 1) * found.tile <= extent


def _fewest_rows(kernel: KernelOp) -> int:
    """The fewest rows of C of a launch, where nothing else has an extent that a launch says."""
    others = has_dynamic_stack(kernel) or has_dynamic_depth(kernel)
    return row_bounds(kernel)[0] if has_dynamic_rows(kernel) and not others else DYNAMIC


@record
class Axis:
    """One axis of a view: its extent, that of a tile, and which tile of them is meant."""

    index: ir.Value
    extent: int
    tile: int


def axis_of(op: Any, name: str) -> Axis | None:
    """What an op says along the index of that name; None where it cannot be told.

    That is so of the rows of a group, or of its K, whose number is known when the kernel runs.
    """
    number = INDICES.index(name)
    if number == _axis_of_group(op):
        return None
    if number == 1 and isinstance(op, CopyOp) and columns_of_group(op.view) is not None:
        return None
    if isinstance(op, WriteRowOp):
        return _columns_of(op) if name == "j" else None
    if isinstance(op, CopyOp):
        layout = op.tile.type.layout
        if layout.is_of_scales:  # of atoms each is compared
            return None
        view, tile = _extents(op.view), (layout.mn, layout.k)
    elif isinstance(op, ApplyEpilogueOp):
        view, tile = extents_of_store(op, op.to.type), integers_of(op.extents)
    else:
        view, tile = extents_of_store(op, view_of(op).type), tile_of_c(op)
    return Axis(getattr(op, name), view[number], tile[number])


def extents_of_store(op: Any, to: ir.Type) -> tuple[int, int]:
    """Rows and columns, as the sums have them, of the view or the map that an op stores to.

    A transposed view has them so, its map lies as C does.
    """
    rows, columns = stored_extents(to)
    transposed = isinstance(to, TensorMapType) and is_swapped(kernel_around(op))
    return (columns, rows) if transposed else (rows, columns)


def _extents(view: ir.Value) -> tuple[int, int]:
    return extent_of(view.type, 0), extent_of(view.type, 1)


def _axis_of_group(op: Any) -> int | None:
    """The index of an op that is of the rows of a group, if one is: of a turned view columns."""
    view = view_of(op)
    transposed = transposed_of(view)
    if rows_of_group(view if transposed is None else transposed.view) is None:
        return None
    by_map = isinstance(view.type, TensorMapType) and is_swapped(kernel_around(op))
    return int(transposed is not None or by_map)


def view_of(op: Any) -> ir.Value:
    """The view, or the map of it, that an op copies from or stores to."""
    return op.to if hasattr(op, "to") else op.view


def _columns_of(op: WriteRowOp) -> Axis | None:
    """From the column of the view: %j * tile, and what lies in the tile added to it."""
    column: Any = op.column
    while not isinstance(column.owner, ir.Block) and column.owner.name == "arith.addi":
        column = column.owner.operands[0]
    if isinstance(column.owner, ir.Block) or column.owner.name != "arith.muli":
        return None
    index, tile = column.owner.operands
    extent = constant_of(tile)
    if extent is None or isinstance(index.owner, ir.Block) or index.owner.name != CAST:
        return None
    return Axis(index.owner.operands[0], extent_of(op.view.type, 1), extent)
