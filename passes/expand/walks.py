"""The group of a tile, which the lanes of a warp search together.

                                       %row, %place, %count = tile.group_starts %offsets
    scf.for %number = … {         →    scf.for %number = … {
      %g, … = tile.group %i, %offsets    %g, … = tile.group_at %i, %offsets, %row, %place
    }                                  }

A walk by one thread from the first group on would take as long as there are groups, for every tile
anew. `tile.group_starts` stands in front of the program, once for all agents.

Where tiles are handed out in bands along M, `tile.group_place` says where a number is: no band has
tiles of two groups, whose matrices of B differ. It has found the group then, and what follows it
need not walk again.
"""

from __future__ import annotations

from ...dialects.mlir import ir
from ...dialects.tile import KernelOp
from ...dialects.tile.groups import GroupAtOp, GroupOp, GroupStartsOp
from ...dialects.tile.place import CountedPlaceOp, GroupPlaceOp
from ..base import walk
from ..dynamic_rows import has_launched_groups
from ..groups import BY_GROUPS, starts_of


def expand_walks(kernel: KernelOp) -> None:
    """Let each op find its group from where those of each lane begin."""
    groups = walk(kernel, GroupOp)
    if not groups:
        return
    starts = next(iter(walk(kernel, GroupStartsOp)), None)
    if starts is None:
        with ir.InsertionPoint(_outermost(kernel, groups[0])), kernel.location:
            starts = starts_of(groups[0])
    for place in [] if has_launched_groups(kernel) else walk(kernel, CountedPlaceOp):
        if place.order.value == BY_GROUPS and any(list(each.uses) for each in (place.i, place.j)):
            _place_by_groups(place, starts)
    for op in groups:
        _expand(op, starts)


def _place_by_groups(place: CountedPlaceOp, starts: GroupStartsOp) -> None:
    """Let the tiles of a group come one after the other."""
    names = "number", "tiles", "order", "group", "counted"
    values = {name: getattr(place, name) for name in names}
    values |= {name: getattr(starts, name) for name in ("offsets", "tile", "together", "extent")}
    index = ir.IndexType.get()
    with ir.InsertionPoint(place), place.location:
        made = GroupPlaceOp(**values, at_row=starts.row, at_place=starts.place, i=index, j=index)
    for name in ("i", "j"):
        getattr(place, name).replace_all_uses_with(getattr(made, name))
    place.operation.erase()


def _outermost(kernel: KernelOp, op: GroupOp) -> ir.Operation:
    """What stands in the kernel itself of the ops around one."""
    found = op.operation
    while found.parent != kernel.operation:
        found = found.parent
    return found


def _expand(op: GroupOp, starts: GroupStartsOp) -> None:
    values = {name: getattr(op, name) for name in ("i", "offsets", "tile", "together", "extent")}
    found = {name: ir.IndexType.get() for name in ("group", "row", "first", "count")}
    with ir.InsertionPoint(op), op.location:
        made = GroupAtOp(**values, at_row=starts.row, at_place=starts.place, **found)
    for name in found:
        getattr(op, name).replace_all_uses_with(getattr(made, name))
    op.operation.erase()
