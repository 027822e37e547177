"""Batches: running the program for one matrix on each matrix of a batch.

    %batch, %row = tile.batch %i {tiles, count}     %i = batch * tiles + row
    %batch, %row = tile.ordered_batch %i, %order    %i = place * tiles + row, batch = order[place]
    %a_of = tile.matrix %a[%batch]                   a view, or a tensor map, of one matrix
    %batch, %row = tile.counted_batch %i, %each     %i = batch * each + row
    %tiles = tile.stack_tiles %matrices, %each      matrices * each, of any number of them

Everything else of a kernel names a tile by its row and column within the matrix.
"""

from typing import Any

from ..integer_types import I32
from ..mlir import ext, ir
from ..tile_types import DYNAMIC, TensorMapType, Tile
from ..verify import refuse


class BatchOp(Tile.Operation, name="batch"):
    """`(batch, row)`: the matrix, and the M tile in it, that the place `i` along M stands for.

    There are `count` matrices with `tiles` M tiles each: i = batch * tiles + row. A `count` or
    `tiles` of -1 is known only at launch; if `tiles` is -1, for matrices with any number of rows,
    the launch gives both.
    """

    i: ext.Operand[ir.IndexType]
    tiles: ir.IntegerAttr
    count: ir.IntegerAttr
    batch: ext.Result[ir.IndexType]
    row: ext.Result[ir.IndexType]

    def verify_invariants(self) -> bool:
        tiles, count = self.tiles.value, self.count.value
        if tiles == count == DYNAMIC:
            return True
        if tiles < 1 or (count < 1 and count != DYNAMIC):
            return refuse(self, f"tiles and count must be at least 1, got {tiles} and {count}")
        return True


class CountedBatchOp(BatchOp, name="counted_batch"):
    """Like `tile.batch`, for a number of tiles `each` that is known only at launch."""

    each: ext.Operand[I32]

    def verify_invariants(self) -> bool:
        tiles, count = self.tiles.value, self.count.value
        if (tiles, count) != (DYNAMIC, DYNAMIC):
            return refuse(self, f"tiles and count must be -1, got {tiles} and {count}")
        return True


class OrderedBatchOp(BatchOp, name="ordered_batch"):
    """Like `tile.batch`, with the matrices in the order of indices in global memory.

    i = place * tiles + row, and the matrix is `order[place]`. An index out of range
    counts as the last matrix; a matrix whose index is left out is not computed.
    """

    order: ext.Operand[ir.MemRefType]

    def verify_invariants(self) -> bool:
        order, i32 = self.order.type, ir.IntegerType.get_signless(32)
        if order.rank != 1 or order.element_type != i32:
            return refuse(self, f"order must be a vector of i32, got {order}")
        if self.count.value == DYNAMIC:
            return refuse(self, "matrices in an order must be of a known number, got -1")
        return BatchOp.verify_invariants(self)


class MatrixOp(Tile.Operation, name="matrix"):
    """`matrix`: the `batch`-th part of `stack` along its outermost dim.

    That is the first dim of a view, and the last of a tensor map.
    """

    stack: ext.Operand[Any]
    batch: ext.Operand[ir.IndexType]
    matrix: ext.Result[Any]

    def verify_invariants(self) -> bool:
        stack: Any = self.stack.type
        if not isinstance(stack, TensorMapType | ir.MemRefType):
            return refuse(self, f"the stack must be a view or a tensor map, got {stack}")
        of_map = isinstance(stack, TensorMapType)
        rank, least = (len(stack.dims), 2) if of_map else (stack.rank, 1)
        if rank < least:
            return refuse(self, f"the stack must have {least} dims or more, got {stack}")
        wanted = map_of_matrix(stack) if of_map else view_of_matrix(stack)
        if self.matrix.type != wanted:
            return refuse(self, f"must give {wanted}, got {self.matrix.type}")
        if of_map and stack.box[-1] != 1:
            rule = "the boxes of the stack must be of one matrix"
            return refuse(self, f"{rule}, got {stack.box}")
        return True


class StackTilesOp(Tile.Operation, name="stack_tiles"):
    """`count = matrices * each`: the number of M tiles of all matrices of a stack, with `each` per
    matrix."""

    matrices: ext.Operand[ir.IndexType]
    each: ext.Operand[I32]
    count: ext.Result[I32]


class TransposedOp(Tile.Operation, name="transposed"):
    """`transposed`: the same elements with rows for columns: transposed[j, i] = view[i, j]."""

    view: ext.Operand[ir.MemRefType]
    transposed: ext.Result[ir.MemRefType]

    def verify_invariants(self) -> bool:
        if self.view.type.rank != 2:
            return refuse(self, f"the view must be of one matrix, got {self.view.type}")
        wanted = transposed_view(self.view.type)
        return self.transposed.type == wanted or refuse(
            self, f"must give {wanted}, got {self.transposed.type}"
        )


def transposed_view(view: ir.MemRefType) -> ir.MemRefType:
    """The type of a matrix's view with its dims exchanged."""
    strides, offset = view.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(offset, list(strides)[::-1])
    return ir.MemRefType.get(
        list(view.shape)[::-1], view.element_type, layout=layout, memory_space=view.memory_space
    )


def view_of_matrix(stack: ir.MemRefType) -> ir.MemRefType:
    """The type of one matrix of a stack; where it begins is not known."""
    strides, _ = stack.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(
        ir.ShapedType.get_dynamic_stride_or_offset(), list(strides)[1:]
    )
    return ir.MemRefType.get(
        list(stack.shape)[1:], stack.element_type, layout=layout, memory_space=stack.memory_space
    )


def map_of_matrix(stack: TensorMapType) -> TensorMapType:
    """The map that a stack's is for each of its matrices."""
    parts = stack.dims[:-1], stack.strides[:-1], stack.box[:-1]
    return TensorMapType.of(stack.element, *parts, stack.swizzle)


def map_of_stack(matrix: TensorMapType, count: int, stride_bytes: int) -> TensorMapType:
    """The map of `count` matrices that are `stride_bytes` apart."""
    parts = [*matrix.dims, count], [*matrix.strides, stride_bytes], [*matrix.box, 1]
    return TensorMapType.of(matrix.element, *parts, matrix.swizzle)
