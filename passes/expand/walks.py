"""Which group a tile is of: the lanes of a warp find it together.

                                       %row, %place, %count = tile.group_starts %offsets
    scf.for %number = … {         →    scf.for %number = … {
      %g, … = tile.group %i, %offsets    %g, … = tile.group_at %i, %offsets, %row, %place
    }                                  }

A walk by one thread from the first group on would take as long as there are groups, for every tile
anew. `tile.group_starts` stands in front of the program, once for all agents.
"""

from __future__ import annotations

from ...dialects.mlir import ir
from ...dialects.tile import KernelOp
from ...dialects.tile_groups import GroupAtOp, GroupOp, GroupStartsOp
from ..base import walk
from ..groups import starts_of


def expand_walks(kernel: KernelOp) -> None:
    """Let each op find its group from where those of each lane begin."""
    groups = walk(kernel, GroupOp)
    if not groups:
        return
    starts = next(iter(walk(kernel, GroupStartsOp)), None)
    if starts is None:
        with ir.InsertionPoint(_outermost(kernel, groups[0])), kernel.location:
            starts = starts_of(groups[0])
    for op in groups:
        _expand(op, starts)


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
