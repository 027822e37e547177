"""Rows of operand tiles that no copy fills: zero from the start, so that MMAs may read them.

A view with fewer rows than a tile is copied in boxes of its own rows (`load_map_type`). TMA would
fill the others with zeros in every step, at the cost of the rows it copies.
"""

from __future__ import annotations

from ...dialects.legality import UNIT_BYTES
from ...dialects.mlir import arith, ir, llvm
from ...dialects.tile import TmaLoadOp
from ..base import walk
from . import build as b
from .frame import Frame

WORDS = 4


def clear_missing_rows(frame: Frame) -> None:
    """All threads write zeros; the async proxy sees them after the barrier that must follow."""
    tiles = {_place(load): load for load in walk(frame.kernel, TmaLoadOp) if load.missing_rows}
    for (ring, index), load in tiles.items():
        _clear(frame, ring, index, load.missing_rows)
    if tiles:
        b.fence("async_shared")


def _place(load: TmaLoadOp) -> tuple[ir.Value, int]:
    """The ring and the number of the payload tile that a load fills."""
    part = load.tile.owner.opview
    return part.slot.owner.opview.ring, part.index.value


def _clear(frame: Frame, ring: ir.Value, index: int, missing: int) -> None:
    """The last rows of every chunk of every slot; threads side by side, no division in the loop."""
    plan = frame.plan.rings[ring]
    layout, start = plan.layouts[index], plan.tiles[index]
    units = missing * layout.span_bytes // UNIT_BYTES
    first = start + (layout.rows - missing) * layout.span_bytes
    zeros = _zero_unit()
    with (
        b.loop(frame.team.thread, units, frame.team.threads) as unit,
        b.loop(b.constant(0), plan.stages, 1) as slot,
    ):
        place = b.add(b.mul(slot, layout.slot_bytes), b.mul(unit, UNIT_BYTES))
        for chunk in range(layout.chunks):
            offset = b.add(place, first + chunk * layout.chunk_bytes)
            llvm.store(zeros, b.shared_at(offset), alignment=UNIT_BYTES)


def _zero_unit() -> ir.Value:
    type_ = ir.VectorType.get([WORDS], b.i32())
    zero = ir.IntegerAttr.get(b.i32(), 0)
    return arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, zero)).result
