"""Ops of `tile` on sums of which each thread has elements of its own (`thread_tiles`).

tile.view_mma       acc[M,N] = (accumulate ? acc : 0) + a[i*M+r, k*K+l] * b[j*N+c, k*K+l]
tile.clear_sums     acc[M,N] = 0
tile.sums_place     (row, column): the first element that this thread has, counted in the tile
tile.has_sums       whether this thread has any
tile.sums_row       what this thread has of one of its rows
"""

from typing import Any

from .integer_types import I1, I32
from .mlir import ext, ir
from .tile_types import AccumulatorType, Tile
from .verify import refuse


class ViewMmaOp(Tile.Operation, name="view_mma"):
    """`acc[M,N] = (accumulate ? acc : 0) + a[i*M+r, k*K+l] * b[j*N+c, k*K+l]`, l below K.

    Threads read the views as they multiply, without shared memory; K is `depth`. What lies outside
    the views counts as zero.
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


class ClearSumsOp(Tile.Operation, name="clear_sums"):
    """`acc[M,N] = 0`: what this thread has of it."""

    acc: ext.Operand[AccumulatorType]


class FinishSumsOp(Tile.Operation, name="finish_sums"):
    """From here on the sums are complete: products that a thread holds back are added.

    Where it stands behind a loop of `tile.mma`, each may leave its last products to the next.
    """

    acc: ext.Operand[AccumulatorType]


class SumsPlaceOp(Tile.Operation, name="sums_place"):
    """`(row, column)`: the first element that this thread has, counted in the tile."""

    acc: ext.Operand[AccumulatorType]
    row: ext.Result[I32] = ext.infer_result()
    column: ext.Result[I32] = ext.infer_result()


class HasSumsOp(Tile.Operation, name="has_sums"):
    """`has`: whether this thread has any; those beyond the grid of the tile have none."""

    acc: ext.Operand[AccumulatorType]
    has: ext.Result[I1] = ext.infer_result()


class SumsRowOp(Tile.Operation, name="sums_row"):
    """`values`: what this thread has of the `number`-th of its rows."""

    acc: ext.Operand[AccumulatorType]
    number: ir.IntegerAttr
    values: ext.Result[Any]

    def verify_invariants(self) -> bool:
        type_, element = self.values.type, self.acc.type.element
        if not isinstance(type_, ir.VectorType) or ir.VectorType(type_).element_type != element:
            return refuse(self, f"must give a vector of {element}, got {type_}")
        number = self.number.value
        return number >= 0 or refuse(self, f"number must be at least 0, got {number}")
