"""Views and tensor maps of one matrix of a batch, traced to the batch (`tile.matrix`).

Likewise those of the rows of one group (`tile.group_rows`).
"""

from __future__ import annotations

from typing import Any

from ..dialects.dynamic import rows_times
from ..dialects.mlir import ir
from ..dialects.ragged_maps import ragged_map
from ..dialects.tile import CopyOp, KernelOp, LoadOp
from ..dialects.tile.batches import BatchOp, MatrixOp, TransposedOp, map_of_stack, view_of_matrix
from ..dialects.tile.grouped_products import GroupScalesOp
from ..dialects.tile.groups import GatheredRowsOp, GroupColumnsOp, GroupRowsOp
from ..dialects.tile.loads import TensorMapOp
from ..dialects.tile_types import TensorMapType, bits_of, extent_of
from .base import walk
from .groups import columns_of_group, part_of_group

STEP_ATTRIBUTE = "step_bytes"


def matrix_of(value: ir.Value) -> MatrixOp | None:
    """The op that takes a view or map from a stack; None where it is a view or map by itself."""
    if isinstance(value.owner, ir.Block) or not isinstance(value.owner.opview, MatrixOp):
        return None
    return value.owner.opview


def transposed_of(value: ir.Value) -> TransposedOp | None:
    """The op that exchanges rows and columns of a view; None where the view is by itself."""
    if isinstance(value.owner, ir.Block) or not isinstance(value.owner.opview, TransposedOp):
        return None
    return value.owner.opview


def stack_of(value: ir.Value) -> Any:
    """What a matrix, a group's rows or a transposed view are taken from, or the value itself."""
    if (transposed := transposed_of(value)) is not None:
        return stack_of(transposed.view)
    matrix, part = matrix_of(value), part_of_group(value)
    if part is not None:
        return part.whole
    return value if matrix is None else matrix.stack


def argument_of(view: ir.Value) -> ir.Value:
    """The argument of the kernel that a view is, or is a matrix of."""
    return stack_of(view)


def map_definition(map_: ir.Value) -> TensorMapOp:
    """The op that makes the map, of a stack where the map is that of one matrix."""
    return stack_of(map_).owner.opview


def loaded_argument(op: Any) -> Any:
    """The kernel's argument that an op loads from."""
    by_threads = isinstance(op, LoadOp | CopyOp)
    return argument_of(op.view) if by_threads else map_definition(op.map).view


def view_of_map(map_: ir.Value) -> ir.MemRefType:
    """The type of the view that a map shows; of one matrix where it is that of one."""
    view: Any = map_definition(map_).view
    return view.type if matrix_of(map_) is None else view_of_matrix(view.type)


def set_map(map_: Any, type_: TensorMapType) -> None:
    """Give a map another type, and the map of its stack with it.

    Of what a group has of K it becomes the ragged one.
    """
    if columns_of_group(map_) is not None:
        type_ = ragged_map(type_)
    if matrix_of(map_) is not None:
        define = map_definition(map_)
        count, stride_bytes = steps_of(define.view)
        define.map.set_type(map_of_stack(type_, count, stride_bytes))
    if part_of_group(map_) is not None:
        map_definition(map_).map.set_type(type_)
    map_.set_type(type_)


def map_of_view(view: Any, type_: TensorMapType) -> ir.Value:
    """Emit the map of a view; of a matrix, that of its stack here, and the matrix's beside it."""
    if (transposed := transposed_of(view)) is not None:
        view = transposed.view
    matrix, part = matrix_of(view), part_of_group(view)
    if part is not None:
        type_ = ragged_map(type_) if isinstance(part, GroupColumnsOp) else type_
        whole = TensorMapOp(map=type_, view=part.whole).map
        with ir.InsertionPoint.after(part.operation), part.location:
            return _part_of(part, whole, type_)
    if matrix is None:
        return TensorMapOp(map=type_, view=view).map
    whole = TensorMapOp(map=map_of_stack(type_, *steps_of(matrix.stack)), view=matrix.stack).map
    with ir.InsertionPoint.after(matrix.operation), matrix.location:
        return MatrixOp(stack=whole, batch=matrix.batch, matrix=type_).matrix


def map_of_other_stack(map_: ir.Value, type_: TensorMapType) -> ir.Value:
    """Emit another map of what a map shows, a view or one matrix of a stack."""
    define, matrix = map_definition(map_), matrix_of(map_)
    with ir.InsertionPoint.after(define), define.location:
        if matrix is None:
            return TensorMapOp(map=type_, view=define.view).map
        of_stack = map_of_stack(type_, *steps_of(define.view))
        whole = TensorMapOp(map=of_stack, view=define.view).map
    with ir.InsertionPoint.after(matrix.operation), matrix.location:
        return MatrixOp(stack=whole, batch=matrix.batch, matrix=type_).matrix


def view_behind(map_: ir.Value) -> ir.Value:
    """Emit what a map shows as a view: the same matrix of a stack, or the same part of a group."""
    whole: Any = map_definition(map_).view
    matrix, part = matrix_of(map_), part_of_group(map_)
    if matrix is not None:
        type_ = view_of_matrix(whole.type)
        return MatrixOp(stack=whole, batch=matrix.batch, matrix=type_).matrix
    if part is not None:
        return _part_of(part, whole, whole.type)
    return whole


def _part_of(part: Any, whole: ir.Value, type_: Any) -> ir.Value:
    """The same part of another whole."""
    fields = {"rows": part.rows} if isinstance(part, GatheredRowsOp) else {}
    fields |= {"form": part.form} if isinstance(part, GroupScalesOp) else {}
    return type(part)(whole=whole, part=type_, first=part.first, count=part.count, **fields).part


def steps_of(stack: Any) -> tuple[int, int]:
    """How many matrices a view has, -1 if a launch says it, and bytes from one to the next, as the
    strides of a map have them."""
    step = step_of(stack.type)
    return extent_of(stack.type, 0), step * bits_of(stack.type.element_type) // 8


def step_of(stack: ir.MemRefType) -> int:
    """Elements from a matrix to the next; of any number of rows as many times those of a row."""
    strides, _ = stack.get_strides_and_offset()
    if not is_dynamic_step(strides[0]):
        return strides[0]
    long_as_rows = len(strides) == 3 and is_dynamic_step(strides[2])
    return rows_times(stack.shape[2] if long_as_rows else strides[1])


def is_dynamic_step(stride: int) -> bool:
    """Whether a view says `?` for the elements from one to the next."""
    return stride == ir.ShapedType.get_dynamic_stride_or_offset()


def row_pitch(view: ir.Value[ir.MemRefType]) -> int:
    """Elements from a row of a matrix to the next."""
    return view.type.get_strides_and_offset()[0][0]


def column_pitch(view: ir.Value[ir.MemRefType]) -> int:
    """Elements from a column to the next: 1 but of transposed views."""
    return view.type.get_strides_and_offset()[0][1]


def step_bytes(view: ir.Value) -> int:
    """Bytes from a matrix to the next of its stack, 0 where the view is none of one.

    A view that has been lowered says it by an attribute.
    """
    if not isinstance(view.owner, ir.Block) and STEP_ATTRIBUTE in view.owner.attributes:
        return ir.IntegerAttr(view.owner.attributes[STEP_ATTRIBUTE]).value
    if (transposed := transposed_of(view)) is not None:
        return step_bytes(transposed.view)
    matrix = matrix_of(view)
    return 0 if matrix is None else steps_of(matrix.stack)[1]


def drop_unused(kernel: KernelOp) -> None:
    """Drop the views of matrices and of groups' rows that nothing reads any more."""
    parts = MatrixOp | TransposedOp | GroupRowsOp | GatheredRowsOp | GroupColumnsOp
    for part in walk(kernel, parts):
        if not list(part.operation.results[0].uses):
            part.operation.erase()


def batch_of(kernel: KernelOp) -> BatchOp | None:
    """What says which matrix a tile belongs to, one of possibly several alike; None without."""
    return next(iter(walk(kernel, BatchOp)), None)
