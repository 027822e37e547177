"""Which group a tile is of, in a loop over tiles: each thread walks on from where it was.

    scf.for %number = … {                        %group, %row, %place = sm.tally
      %i, %j = tile.place %number           →    scf.for %number = … {
      %g, … = tile.group %i, %offsets              %i, %j = tile.place %number
    }                                              %g, … = tile.group_onward %i, %offsets, %group, …
                                                 }

A walk from the first group on would take as long as there are groups, for every tile anew.
"""

from __future__ import annotations

from typing import Any

from ...dialects.mlir import ir, scf
from ...dialects.sm_positions import TallyOp, TallyType
from ...dialects.sm_types import attribute_of
from ...dialects.tile import KernelOp
from ...dialects.tile_groups import GroupOnwardOp, GroupOp
from ...dialects.tile_place import PlaceOp
from ...dialects.tile_types import integers_of
from ..base import walk
from ..team import team_op

TALLIES = ("group", "row", "place")


def expand_walks(kernel: KernelOp) -> None:
    """Let each agent with a loop over numbers of tiles go on where it was."""
    for op in walk(kernel, GroupOp):
        if _is_in_loop(op):
            _expand(kernel, op)


def _is_in_loop(op: GroupOp) -> bool:
    around: Any = op.operation.parent
    place = op.i.owner
    is_loop = isinstance(around.opview, scf.ForOp)
    return is_loop and not isinstance(place, ir.Block) and isinstance(place.opview, PlaceOp)


def _expand(kernel: KernelOp, op: GroupOp) -> None:
    # LLVM keeps in registers what the first block asks for, which loops end.
    with ir.InsertionPoint.after(team_op(kernel)), kernel.location:
        tallies = [TallyOp.of(label=f"at.{each}", tally=TallyType.get()).tally for each in TALLIES]
    values = {name: getattr(op, name) for name in ("i", "offsets", "tile", "together", "extent")}
    at = dict(zip((f"at_{each}" for each in TALLIES), tallies, strict=True))
    found = {name: ir.IndexType.get() for name in ("group", "row", "first", "count")}
    with ir.InsertionPoint(op), op.location:
        back = attribute_of(_way_back(kernel, op.i.owner))
        made = GroupOnwardOp(**values, **at, back=back, **found)
    for name in found:
        getattr(op, name).replace_all_uses_with(getattr(made, name))
    op.operation.erase()


def _way_back(kernel: KernelOp, owner: Any) -> int:
    """How many places a later tile may lie before one: those of a group of the order."""
    place = owner.opview
    clusters = place.group.value if place.order.value == "grouped" else 1
    return clusters * integers_of(kernel.cluster)[0] - 1
