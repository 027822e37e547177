"""Rows of operand tiles that no copy fills: zero from the start, so that MMAs may read them.

A view with fewer rows than a tile is copied in boxes of its own rows (`load_map_type`). TMA would
fill the others with zeros in every step, at the cost of the rows it copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dialects.mlir import arith, ir, llvm, nvvm
from ...dialects.tile import TmaLoadOp
from ..base import walk
from . import build as b

if TYPE_CHECKING:  # it calls this
    from .frame import Frame

UNIT_BYTES = 16
WORDS = 4


def clear_missing_rows(frame: Frame) -> None:
    """All threads write zeros; the async proxy sees them after the barrier that must follow."""
    tiles = {_place(load): load for load in walk(frame.kernel, TmaLoadOp) if load.missing_rows}
    for (ring, index), load in tiles.items():
        _clear(frame, ring, index, load.missing_rows)
    if tiles:
        nvvm.fence_proxy(nvvm.ProxyKind.async_shared, space=nvvm.SharedSpace.shared_cta)


def _place(load: TmaLoadOp) -> tuple[ir.Value, int]:
    """The ring and the number of the payload tile that a load fills."""
    part = load.tile.owner.opview
    return part.slot.owner.opview.ring, part.index.value


def _clear(frame: Frame, ring: ir.Value, index: int, missing: int) -> None:
    """The last rows of every chunk of every slot."""
    plan = frame.plan.rings[ring]
    layout, start = plan.layouts[index], plan.tiles[index]
    units = missing * layout.span_bytes // UNIT_BYTES
    first = start + (layout.rows - missing) * layout.span_bytes
    type_ = ir.VectorType.get([WORDS], b.i32())
    zero = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(b.i32(), 0))
    zeros = arith.ConstantOp(type_, zero).result
    every = plan.stages * layout.chunks * units
    with b.loop(frame.team.thread, every, frame.team.threads) as unit:
        piece, within = b.div(unit, units), b.mul(b.rem(unit, units), UNIT_BYTES)
        slot = b.mul(b.div(piece, layout.chunks), layout.slot_bytes)
        chunk = b.mul(b.rem(piece, layout.chunks), layout.chunk_bytes)
        offset = b.add(b.add(b.add(slot, chunk), within), first)
        llvm.store(zeros, frame.shared_at(offset), alignment=UNIT_BYTES)
