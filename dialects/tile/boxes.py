"""TMA loads with their barrier, as `pipes-to-barriers` makes them."""

from typing import Any

from ..integer_types import I16, I32
from ..mlir import ext, ir
from ..sm.types import SHARED, verify_pointer
from ..tile_types import SmemType, TensorMapType, Tile, has_own_rows, moved_bytes
from ..verify import refuse, verify_boxes, verify_gather, verify_parts

BOX_MAX = 256


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
        """What its boxes bring; of each row where a launch says how many rows they have."""
        layout = self.tile.type.layout
        if layout.is_of_scales:
            return layout.size_bytes
        rows = 1 if self.most_rows else self.map.type.box[1]
        return moved_bytes(self.tile.type.element, rows * layout.span_bytes * layout.chunks)

    @property
    def most_rows(self) -> int:
        """Rows of its boxes at most, where a launch says how many; else 0."""
        return self.tile.type.layout.rows if has_own_rows(self.map.type) else 0


class BoxRowsOp(Tile.Operation, name="box_rows"):
    """`count = min(rows, most)`: the rows of the boxes of a view with `rows` rows."""

    rows: ext.Operand[ir.IndexType]
    most: ir.IntegerAttr
    count: ext.Result[I32]

    def verify_invariants(self) -> bool:
        most = self.most.value
        return 1 <= most <= BOX_MAX or refuse(self, f"most must be 1 to {BOX_MAX}, got {most}")


class PrefetchBoxesOp(Tile.Operation, name="prefetch_boxes"):
    """Prefetches into L2 what a load of tile (i, j) of a view will read, without waiting for it.

    `tile` is the type of the destination. With an `axis`, it is this CTA's part, one of `parts`
    along the axis.
    """

    map: ext.Operand[TensorMapType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    tile: ir.TypeAttr
    axis: ir.StringAttr
    parts: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        tile, axis, parts = self.tile.value, self.axis.value, self.parts.value
        if not isinstance(tile, SmemType) or tile.layout.is_of_scales:
            return refuse(self, f"tile must be one of operands, got {tile}")
        if axis not in ("", "m", "n") or parts < 1 or (not axis and parts != 1):
            return refuse(self, f"must be one part, or some along 'm' or 'n', got {parts} {axis!r}")
        rows = tile.layout.rows
        return rows % parts == 0 or refuse(self, f"parts must divide {rows} rows, got {parts}")


class GatherBoxesOp(Tile.Operation, name="gather_boxes"):
    """`tile.tma_gather`, whose bytes `barrier` counts."""

    map: ext.Operand[TensorMapType]
    tile: ext.Operand[SmemType]
    barrier: ext.Operand[Any]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "barrier", SHARED) and verify_gather(self)

    @property
    def bytes(self) -> int:
        """What the boxes of all threads bring."""
        return self.tile.type.layout.size_bytes

    @property
    def most_rows(self) -> int:
        """No launch says how many there are."""
        return 0


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

    @property
    def most_rows(self) -> int:
        """No launch says how many there are."""
        return 0
