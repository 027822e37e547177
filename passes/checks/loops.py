"""Checks of expanded loops, while their indices are still known.

whole    an op says of i and j which name tiles that all lie inside its view, and no other
shared   a copy of linear scales says for how many rows and blocks each of them is
tiles    all agents walk the same tiles, by whole clusters
"""

from __future__ import annotations

from typing import Any

from ...dialects.mlir import ir
from ...dialects.tile import CopyOp, KernelOp
from ...dialects.tile.place import PlaceOp
from ...dialects.tile.stores import WHOLES
from ...dialects.tile_types import DYNAMIC, integers_of
from ..base import refused, walk
from ..shared_scales import check_shared
from ..whole import INDICES, WHOLE, WHOLE_OPS, axis_of, is_whole, lies_inside


def check_loops(kernel: KernelOp) -> None:
    """Refuse, at the op, what breaks a rule."""
    for op in walk(kernel, WHOLE_OPS):
        _check_whole(kernel, op)
        if isinstance(op, CopyOp):
            check_shared(kernel, op)
    places = walk(kernel, PlaceOp)
    for place in places:
        _check_place(kernel, place, places[0])


def _check_whole(kernel: KernelOp, op: Any) -> None:
    attributes = op.operation.attributes
    got = attributes[WHOLE] if WHOLE in attributes else None
    said = got.value if isinstance(got, ir.StringAttr) else None
    if said not in WHOLES:
        shown = "none of them" if said is None else repr(said)
        raise refused(op, f"whole: must be one of {WHOLES}, got {shown}")
    for name in INDICES:
        if is_whole(op, name) and not lies_inside(kernel, op, name):
            axis = axis_of(op, name)
            if axis is None:
                rule = f"whole: the place of a tile must begin with index {name} times its extent"
                raise refused(op, f"{rule}, got another; take {name} out")
            raise refused(
                op,
                f"whole: tiles of {axis.tile} by {name} must all lie in the {axis.extent} of the "
                f"view, got {said!r} where one hangs over; take {name} out",
            )


def _check_place(kernel: KernelOp, place: PlaceOp, first: PlaceOp) -> None:
    tiles, cluster = integers_of(place.tiles), integers_of(kernel.cluster)
    pairs = zip(tiles, cluster, strict=False)
    if any(extent % size for extent, size in pairs if extent != DYNAMIC):
        raise refused(
            place,
            f"tiles: must be whole clusters of {cluster[0]}x{cluster[1]}, got {tiles}; round them "
            "up",
        )
    for name in ("tiles", "order", "group"):
        if getattr(place, name) != getattr(first, name):
            raise refused(
                place,
                f"tiles: all roles must walk the same tiles, got another {name} than the first "
                "loop's; give all of them one",
            )
