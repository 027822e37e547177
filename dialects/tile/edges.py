"""Loads of tiles at the end of a view, with boxes limited to the rows in bounds."""

from typing import Any

from ..mlir import ext, ir
from ..tile_types import TensorMapType, Tile, moved_bytes
from ..verify import NUMBER_MAX, boxes_swizzle, refuse
from .boxes import BOX_MAX, BoxRowsOp, LoadBoxesOp, MulticastBoxesOp
from .loads import TmaLoadOp, TmaMulticastOp

STEP = 8
"""Rows of a box that begins in a swizzled tile are a multiple."""


class EdgeRowsOp(Tile.Operation, name="edge_rows"):
    """`count = step < first ? rows : min(rows, extent - i*rows)`: the rows of tile `i` in bounds of
    a view with `extent` rows, rounded up to a multiple of `unit`."""

    i: ext.Operand[ir.IndexType]
    step: ext.Operand[ir.IndexType]
    extent: ir.IntegerAttr
    rows: ir.IntegerAttr
    unit: ir.IntegerAttr
    first: ir.IntegerAttr
    count: ext.Result[ir.IndexType]

    def verify_invariants(self) -> bool:
        for name, most in (("extent", NUMBER_MAX), ("rows", BOX_MAX), ("first", NUMBER_MAX)):
            value = getattr(self, name).value
            if not 1 <= value <= most:
                return refuse(self, f"{name} must be 1 to {most}, got {value}")
        unit, rows = self.unit.value, self.rows.value
        return rows % max(unit, 1) == 0 or refuse(self, f"unit must divide {rows} rows, got {unit}")


class EdgeLoadOp(TmaLoadOp, name="edge_load"):
    """Like `tile.tma_load`, but loads only the first `count` rows of a tile; the others keep their
    contents.

    A whole tile is loaded by boxes of `map`, and a shorter one by a box of `end` for each chunk,
    which has exactly that many rows.
    """

    count: ext.Operand[ir.IndexType]
    end: ext.Operand[TensorMapType]

    def verify_invariants(self) -> bool:
        return TmaLoadOp.verify_invariants(self) and verify_end(self, 1)

    @property
    def counts_rows(self) -> bool:
        """Always: which rows are in bounds is known only when the kernel runs."""
        return True


class EdgeMulticastOp(TmaMulticastOp, name="edge_multicast"):
    """Like `tile.tma_multicast`, but loads only the first `count` rows of a tile; the others keep
    their contents.

    A part with fewer rows in bounds is loaded by boxes of `end`, at least one, so that no CTA gets
    ahead of the others.
    """

    count: ext.Operand[ir.IndexType]
    end: ext.Operand[TensorMapType]

    def verify_invariants(self) -> bool:
        return TmaMulticastOp.verify_invariants(self) and verify_end(self, STEP)

    @property
    def counts_rows(self) -> bool:
        """Always: which rows are in bounds is known only when the kernel runs."""
        return True


class EdgeBoxRowsOp(BoxRowsOp, name="edge_box_rows"):
    """`count`: the rows that boxes load of the first `rows` of a tile of `most`, cut into `parts`:
    these rows, and `unit` rows for each part that has none."""

    unit: ir.IntegerAttr
    parts: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        parts, most = self.parts.value, self.most.value
        if parts < 1 or most % parts:
            return refuse(self, f"parts must divide {most} rows, got {parts}")
        return BoxRowsOp.verify_invariants(self) and _verify_unit(self, self.unit.value, most)


class EdgeBoxesOp(LoadBoxesOp, name="edge_boxes"):
    """`tile.edge_load`, whose bytes `barrier` counts."""

    count: ext.Operand[ir.IndexType]
    end: ext.Operand[TensorMapType]

    def verify_invariants(self) -> bool:
        return LoadBoxesOp.verify_invariants(self) and verify_end(self, 1)

    @property
    def bytes(self) -> int:
        """Those of a row."""
        return _row_bytes(self)

    @property
    def most_rows(self) -> int:
        return self.tile.type.layout.rows


class EdgeMulticastBoxesOp(MulticastBoxesOp, name="edge_multicast_boxes"):
    """`tile.edge_multicast`, whose bytes barriers count."""

    count: ext.Operand[ir.IndexType]
    end: ext.Operand[TensorMapType]

    def verify_invariants(self) -> bool:
        return MulticastBoxesOp.verify_invariants(self) and verify_end(self, STEP)

    @property
    def bytes(self) -> int:
        """Those of a row, shared by the CTAs that bring a part each."""
        return _row_bytes(self) // self.parts.value

    @property
    def most_rows(self) -> int:
        """Rows of the tile, of which each CTA brings some."""
        return self.tile.type.layout.rows


EDGES = EdgeLoadOp | EdgeMulticastOp | EdgeBoxesOp | EdgeMulticastBoxesOp


def part_rows(op: Any) -> int:
    """Rows of a tile that one CTA loads."""
    multicast = isinstance(op, TmaMulticastOp | MulticastBoxesOp)
    return op.tile.type.layout.rows // (op.parts.value if multicast else 1)


def verify_end(op: Any, step: int) -> bool:
    """Whether boxes of `end` are rows of a K-major tile; those of several a CTA divide its part."""
    layout, end, rows = op.tile.type.layout, op.end.type, part_rows(op)
    if layout.is_of_scales or layout.major != "k" or end.dims[1] < layout.rows:
        return refuse(op, "tiles must be K-major, of views with as many rows, got another")
    if len(end.box) != 2 or end.box[0] != layout.span or end.swizzle != boxes_swizzle(layout):
        wanted = f"rows of {layout.span} elements, swizzled {boxes_swizzle(layout)}"
        return refuse(op, f"boxes of end must be {wanted}, got {end.box}, {end.swizzle}")
    if step == 1:
        few = 1 <= end.box[1] <= rows
        return few or refuse(op, f"boxes of end must have 1 to {rows} rows, got {end.box[1]}")
    return _verify_unit(op, end.box[1], rows)


def _verify_unit(op: Any, unit: int, rows: int) -> bool:
    if unit >= 1 and unit % STEP == 0 and rows % unit == 0:
        return True
    return refuse(op, f"unit must be a multiple of {STEP} that divides {rows} rows, got {unit}")


def _row_bytes(op: Any) -> int:
    """What a row of all chunks of a tile has."""
    layout = op.tile.type.layout
    return moved_bytes(op.tile.type.element, layout.span_bytes * layout.chunks)
