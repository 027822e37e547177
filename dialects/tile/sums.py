"""Accumulators of which each thread computes its own elements (`thread_tiles`).

tile.view_mma       acc[M,N] = (accumulate ? acc : 0) + a[i*M+r, k*K+l] * b[j*N+c, k*K+l]
tile.lane_mma       the same, where each element has `lanes` threads, side by side, with parts of K
tile.dual_lane_mma  the same of two products of one A
tile.clear_sums     acc[M,N] = 0
tile.add_lanes      the first of an element's lanes has the sum of what each had of it
tile.sums_place     (row, column): the first element that this thread has, counted in the tile
tile.has_sums       whether this thread has any
tile.sums_row       what this thread has of one of its rows
"""

from typing import Any

from ..integer_types import I1, I32
from ..mlir import ext, ir
from ..sm.lanes import LANE_BITS
from ..tile_types import AccumulatorType, SmemType, Tile
from ..verify import refuse

WARP_LANES, LANES_MAX = 32, 1024
LANES = (*(2 * bit for bit in LANE_BITS[:-1]), *range(WARP_LANES, LANES_MAX + 1, WARP_LANES))
"""Threads that may share an element: some of a warp, or whole warps."""
LANES_TEXT = f"2, 4, 8, 16 or a multiple of {WARP_LANES} up to {LANES_MAX}"


class ViewMmaOp(Tile.Operation, name="view_mma"):
    """`acc[M,N] = (accumulate ? acc : 0) + a[i*M+r, k*K+l] * b[j*N+c, k*K+l]`, l below K.

    Threads read the views while they multiply, without shared memory; K is `depth`. Elements
    outside the views count as zero.
    """

    acc: ext.Operand[AccumulatorType]
    a: ext.Operand[ir.MemRefType]
    b: ext.Operand[ir.MemRefType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    k: ext.Operand[ir.IndexType]
    accumulate: ext.Operand[I1]
    depth: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        if self.depth.value < 1:
            return refuse(self, f"depth must be at least 1, got {self.depth.value}")
        a, b = self.a.type, self.b.type
        if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[1]:
            return refuse(self, f"a and b must have the same K, got {a} and {b}")
        return True


class LaneMmaOp(ViewMmaOp, name="lane_mma"):
    """`acc[M,N] = (accumulate ? acc : 0) + a[i*M+r, k*K+l] * b[j*N+c, k*K+l]`, l below K.

    Like `tile.view_mma`, but `lanes` adjacent threads share an element. Each multiplies contiguous
    parts of K in turn, and `tile.add_lanes` adds up their partial sums.
    """

    lanes: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        lanes, depth = self.lanes.value, self.depth.value
        if lanes not in LANES:
            return refuse(self, f"lanes must be {LANES_TEXT}, got {lanes}")
        if depth % lanes:
            return refuse(self, f"depth must be a multiple of {lanes} lanes, got {depth}")
        return ViewMmaOp.verify_invariants(self)


class DualLaneMmaOp(LaneMmaOp, name="dual_lane_mma"):
    """Like `tile.lane_mma`, and for N/2 further columns the same with b2; b and b2 each have N/2 of
    a tile's N columns."""

    b2: ext.Operand[ir.MemRefType]

    def verify_invariants(self) -> bool:
        b, b2, columns = self.b.type, self.b2.type, self.acc.type.shape[1]
        if list(b.shape) != list(b2.shape) or b.element_type != b2.element_type:
            return refuse(self, f"b2 must be as b, got {b} and {b2}")
        if columns % 2:
            return refuse(self, f"acc must have as many columns of b2 as of b, got {columns}")
        return LaneMmaOp.verify_invariants(self)


class AddLanesOp(Tile.Operation, name="add_lanes"):
    """Adds up the partial sums of the `lanes` of each element, in the first of these lanes.

    It comes after the loop of `tile.lane_mma`. All threads run it together. Lanes of several warps
    meet in `parts`, which has a row per warp and a column per element of a thread.
    """

    acc: ext.Operand[AccumulatorType]
    lanes: ir.IntegerAttr
    parts: ext.Operand[SmemType] | None = None


class ClearSumsOp(Tile.Operation, name="clear_sums"):
    """`acc[M,N] = 0`, for the elements of this thread."""

    acc: ext.Operand[AccumulatorType]


class FinishSumsOp(Tile.Operation, name="finish_sums"):
    """From here on the accumulator is complete: products that a thread still holds back are added.

    After a loop of `tile.mma`, each step may leave its last products to the next one.
    """

    acc: ext.Operand[AccumulatorType]


class SumsPlaceOp(Tile.Operation, name="sums_place"):
    """`(row, column)`: the place in the tile of this thread's first element."""

    acc: ext.Operand[AccumulatorType]
    row: ext.Result[I32] = ext.infer_result()
    column: ext.Result[I32] = ext.infer_result()


class HasSumsOp(Tile.Operation, name="has_sums"):
    """`has`: whether this thread has any elements to store.

    Threads beyond the grid of the tile have none; of lanes that share elements, the first has all.
    """

    acc: ext.Operand[AccumulatorType]
    has: ext.Result[I1] = ext.infer_result()


class SumsRowOp(Tile.Operation, name="sums_row"):
    """`values`: this thread's elements of the `number`-th of its rows."""

    acc: ext.Operand[AccumulatorType]
    number: ir.IntegerAttr
    values: ext.Result[Any]

    def verify_invariants(self) -> bool:
        type_, element = self.values.type, self.acc.type.element
        if not isinstance(type_, ir.VectorType) or ir.VectorType(type_).element_type != element:
            return refuse(self, f"must give a vector of {element}, got {type_}")
        number = self.number.value
        return number >= 0 or refuse(self, f"number must be at least 0, got {number}")
