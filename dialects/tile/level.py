"""Tiles of equal height for groups of rows.

    tile.level_mma   acc[:,:n] = (accumulate ? acc[:,:n] : 0) + a[M,K] * b[:n,K]^T, n >= count

Rows of groups are columns of the sums (`tiling{swap=true}`).
"""

from typing import Any

from ..mlir import ext, ir
from ..sm.types import SHARED, verify_pointer
from ..tile_types import AccumulatorType, Tile, moved_bytes
from ..verify import refuse, verify_boxes_swizzle
from .boxes import BoxRowsOp, LoadBoxesOp
from .loads import TmaLoadOp
from .program import MmaOp

LEAST_ROWS = 64
"""MMAs have at least so many columns, and loads as many rows, as far as the tile has them."""


class LevelMmaOp(MmaOp, name="level_mma"):
    """Like `tile.mma`, but computes at least `count` columns, rounded up to a multiple of `unit`.
    The contents of further columns are unspecified."""

    count: ext.Operand[ir.IndexType]
    unit: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        if not MmaOp.verify_invariants(self):
            return False
        unit, n = self.unit.value, self.acc.type.shape[1]
        if unit >= 1 and n % unit == 0:
            return True
        return refuse(self, f"unit must divide the {n} columns of the sums, got {unit}")


class NarrowMmaOp(MmaOp, name="narrow_mma"):
    """Like `tile.mma`, but computes the first `columns` of the accumulator. The lowering makes
    one for each width of a `tile.level_mma`."""

    columns: ir.IntegerAttr


class TakeColumnsOp(Tile.Operation, name="take_columns"):
    """`acc[:,:columns] = own[:,:columns]`, and 0 elsewhere, once the MMAs that add to `own` are
    done. The lowering makes it after the MMAs of each width."""

    acc: ext.Operand[AccumulatorType]
    own: ext.Operand[AccumulatorType]
    columns: ir.IntegerAttr


class LevelLoadOp(TmaLoadOp, name="level_load"):
    """Like `tile.tma_load`, but loads only the boxes that contain the first `count` rows of a
    tile."""

    count: ext.Operand[ir.IndexType]

    def verify_invariants(self) -> bool:
        return verify_level_boxes(self)

    @property
    def missing_rows(self) -> int:
        """What no box brings no MMA reads."""
        return 0

    @property
    def counts_rows(self) -> bool:
        """Always: the rows of a group are known only when the kernel runs."""
        return True


class LevelBoxesOp(LoadBoxesOp, name="level_boxes"):
    """`tile.level_load`, whose bytes `barrier` counts."""

    count: ext.Operand[ir.IndexType]

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "barrier", SHARED) and verify_level_boxes(self)

    @property
    def bytes(self) -> int:
        """Those of a row."""
        layout = self.tile.type.layout
        return moved_bytes(self.tile.type.element, layout.span_bytes)

    @property
    def most_rows(self) -> int:
        return self.tile.type.layout.rows


class LevelRowsOp(BoxRowsOp, name="level_rows"):
    """Like `tile.box_rows`, rounded up to whole boxes of `unit` rows."""

    unit: ir.IntegerAttr


def verify_level_boxes(op: Any) -> bool:
    """Whether some boxes are a K-major tile of one chunk."""
    layout, box = op.tile.type.layout, op.map.type.box
    if layout.major == "k" and layout.chunks == 1 and len(box) == 2 and box[0] == layout.span:
        if layout.rows % box[1] == 0:
            return verify_boxes_swizzle(op)
    return refuse(op, f"boxes must be of rows that divide the tile's {layout.rows}, got {box}")
