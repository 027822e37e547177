"""Ops of `tile` that TMA loads are once their barrier is known: `pipes-to-barriers` makes them."""

from typing import Any

from .integer_types import I16
from .mlir import ext, ir
from .sm_types import SHARED, verify_pointer
from .tile_types import SmemType, TensorMapType, Tile, moved_bytes
from .verify import verify_boxes, verify_parts


class LoadBoxesOp(Tile.Operation, name="load_boxes"):
    """`tile.tma_load` in boxes, whose bytes `barrier` counts."""

    map: ext.Operand[TensorMapType]
    tile: ext.Operand[SmemType]
    barrier: ext.Operand[Any]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "barrier", SHARED) and verify_boxes(self)

    @property
    def bytes(self) -> int:
        """What its boxes bring."""
        layout = self.tile.type.layout
        if layout.is_of_scales:
            return layout.size_bytes
        filled = self.map.type.box[1] * layout.span_bytes * layout.chunks
        return moved_bytes(self.tile.type.element, filled)


class MulticastBoxesOp(Tile.Operation, name="multicast_boxes"):
    """`tile.tma_multicast` in boxes, whose bytes the barriers at the place of `barrier` count.

    There is one in each CTA of `mask`, the peers along `axis`, or in the leader CTA of its pair.
    """

    map: ext.Operand[TensorMapType]
    tile: ext.Operand[SmemType]
    barrier: ext.Operand[Any]
    mask: ext.Operand[I16]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    axis: ir.StringAttr
    parts: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "barrier", SHARED) and verify_parts(self)

    @property
    def bytes(self) -> int:
        """What its boxes bring to each CTA."""
        size = self.tile.type.layout.size_bytes // self.parts.value
        return moved_bytes(self.tile.type.element, size)
