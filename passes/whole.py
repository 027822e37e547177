"""Which tiles of an op lie inside its view: `whole` names those of its indices i and j.

    whole = "ij"      no tile hangs over the view's last row, and none over its last column
    whole = "i"       none hangs over the last row; "j": over the last column; "none": over either

`expand-loops` writes it down, and what copies or stores then checks no row or column of such an
index. A module that comes in is held to it (`check_loops`).
"""

from __future__ import annotations

from typing import Any

from ..dialects.mlir import ir
from ..dialects.tile import CopyOp, KernelOp, ReducedStoreOp, StoreOp
from ..dialects.tile_stores import WritePieceOp
from .indices import linear_form, span

WHOLE = "whole"
INDICES = ("i", "j")
WHOLE_OPS = CopyOp | StoreOp | ReducedStoreOp | WritePieceOp


def whole_of(kernel: KernelOp, op: Any) -> ir.StringAttr:
    """The attribute that is true of an op, as far as its indices tell."""
    names = [name for name in INDICES if lies_inside(kernel, op, name)]
    return ir.StringAttr.get("".join(names) or "none")


def is_whole(op: Any, name: str) -> bool:
    """Whether tiles of the index of that name all lie inside the view, as the op says."""
    return name in said(op).value


def said(op: Any) -> ir.StringAttr:
    """What the op says."""
    return op.operation.attributes[WHOLE]


def lies_inside(kernel: KernelOp, op: Any, name: str) -> bool:
    """Whether tiles of an index are known to lie inside the view: none hangs over its edge.

    Clusters are whole, so the last one may hang over by more than a tile. Of an extent that is no
    number of whole tiles, one always does.
    """
    extent, tile = extents_of(op)[INDICES.index(name)]
    form = linear_form(getattr(op, name))
    ends = None if form is None or extent % tile else span(kernel, form)
    return ends is not None and ends[0] >= 0 and (ends[1] + 1) * tile <= extent


def extents_of(op: Any) -> list[tuple[int, int]]:
    """(extent of the view, extent of a tile) along each of the two indices."""
    if isinstance(op, CopyOp):
        layout = op.tile.type.layout
        view, tile = op.view.type.shape, (layout.mn, layout.k)
    elif isinstance(op, WritePieceOp):
        view, tile = op.map.type.dims[1::-1], op.sums.type.shape
    else:
        view, tile = op.view.type.shape, op.acc.type.shape
    return list(zip(view, tile, strict=True))
