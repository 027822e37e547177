"""Checks of loads of tiles that extend past a view.

count    it is what tile.edge_rows says of the tile that is loaded, by the view's rows and the boxes
         of `end`
end      its map shows the view that the whole boxes are of
whole    the loop along K counts from 0 by 1, and fills every slot with whole boxes first, whose
         zeros stay
"""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir, scf
from ....dialects.tile import KernelOp, PairMmaOp, TensorMapOp
from ....dialects.tile.edges import (
    EDGES,
    EdgeLoadOp,
    EdgeMulticastBoxesOp,
    EdgeMulticastOp,
    EdgeRowsOp,
)
from ....dialects.tile_types import extent_of
from ...base import defining_op, refused, walk
from ...batches import matrix_of, view_of_map
from ...clone import constant_of
from .operands import check_map

CURE = "leave edge-boxes out"


def check_edges(kernel: KernelOp) -> None:
    """Refuse, at the op, boxes that leave out rows of a view, or zeros after them."""
    loads = walk(kernel, EDGES)
    if loads and walk(kernel, PairMmaOp):
        rule = "edges: a CTA must load for its own MMAs, got 2-CTA MMAs"
        raise refused(loads[0], f"{rule}; {CURE}")
    for load in loads:
        _check_end(load)
        _check_count(load)
        if isinstance(load, EdgeLoadOp | EdgeMulticastOp):
            _check_first(load)


def _check_end(load: Any) -> None:
    views = [_view_of(each) for each in (load.map, load.end)]
    if any(each is None for each in views) or views[0] != views[1]:
        rule = "edges: map and end must be maps of one view that is no part of groups"
        raise refused(load, f"{rule}, got others; {CURE}")
    check_map(load, load.end, load.tile.type)


def _view_of(map_: ir.Value) -> Any:
    """The view that a map shows by itself, or the stack of the matrix that all loads are of."""
    matrix = matrix_of(map_)
    made = map_.owner if matrix is None else matrix.stack.owner
    if isinstance(made, ir.Block) or not isinstance(made.opview, TensorMapOp):
        return None
    return made.opview.view


def _check_count(load: Any) -> None:
    made = load.count.owner
    rows = None if isinstance(made, ir.Block) else made.opview
    extent, tile = extent_of(view_of_map(load.map), 0), load.tile.type.layout.rows
    several, box = isinstance(load, EdgeMulticastOp | EdgeMulticastBoxesOp), load.end.type.box[1]
    if not several and extent % tile not in (0, box):
        rule = f"edges: a box of end must have the {extent % tile} rows of the last tile"
        raise refused(load, f"{rule}, got {box}; {CURE}")
    wanted = (extent, tile, box if several else 1)
    if isinstance(rows, EdgeRowsOp) and rows.i == load.i:
        got = tuple(each.value for each in (rows.extent, rows.rows, rows.unit))
        if got == wanted:
            return
        got = f"extent, rows and unit of {', '.join(map(str, got))}"
    else:
        got = "another value"
    rule = "edges: count must be a tile.edge_rows of the tile that is loaded, of extent, rows, unit"
    raise refused(load, f"{rule} {', '.join(map(str, wanted))}, got {got}; {CURE}")


def _check_first(load: EdgeLoadOp | EdgeMulticastOp) -> None:
    rows, loop = defining_op(load.count), load.operation.parent.opview
    counts = isinstance(loop, scf.ForOp) and rows.step == loop.induction_variable
    if not counts or (constant_of(loop.lowerBound), constant_of(loop.step)) != (0, 1):
        rule = "edges: step must be the counter of the loop around, which counts from 0 by 1"
        raise refused(load, f"{rule}, got another; count so")
    slots = defining_op(defining_op(load.tile).slot).ring.type.stages
    if rows.first.value < slots:
        rule = f"edges: whole boxes must fill all {slots} slots first"
        raise refused(load, f"{rule}, got {rows.first.value}; take {slots}")
