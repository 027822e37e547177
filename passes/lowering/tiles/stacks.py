"""Batches: the matrix of a tile, and its address."""

from __future__ import annotations

from typing import Any

from ....dialects import llvm
from ....dialects.mlir import arith, ir
from ....dialects.tile.batches import (
    BatchOp,
    CountedBatchOp,
    MatrixOp,
    OrderedBatchOp,
    StackTilesOp,
    TransposedOp,
)
from ....dialects.tile_types import DYNAMIC, TensorMapType, integer, is_padded
from ... import build
from ...batches import STEP_ATTRIBUTE, step_of, steps_of
from ..scope.scope import Scope, element_pointer, lowered, lowered_as, lowered_parts
from .groups import is_of_group, transposed_rows


def lower_batch(_: Scope, op: BatchOp) -> list[ir.Value]:
    """The tiles of one matrix come after those of the one before."""
    place, tiles = build.as_i32(op.i), op.tiles.value
    return [build.as_index(place // tiles), build.as_index(place % tiles)]


def lower_counted_batch(_: Scope, op: CountedBatchOp) -> list[ir.Value]:
    """The same by a number that is not known; the remainder comes from its quotient."""
    place = build.as_i32(op.i)
    batch = arith.divui(place, op.each)
    return [build.as_index(batch), build.as_index(place - batch * op.each)]


def lower_ordered_batch(_: Scope, op: OrderedBatchOp) -> list[ir.Value]:
    """The same of the matrix whose turn it is."""
    place, tiles = build.as_i32(op.i), op.tiles.value
    numbers = lowered_parts(op.order)[0]
    pointer = build.element_pointer(numbers, build.i32(), build.widen(place // tiles))
    number = llvm.load(build.i32(), pointer, alignment=4)
    known = arith.minui(number, build.constant(op.count.value - 1))
    return [build.as_index(known), build.as_index(place % tiles)]


def lower_matrix(scope: Scope, op: MatrixOp) -> ir.Value:
    """A view by its address, and how far apart those of matrices are; a map with its coordinate."""
    batch = build.as_i32(op.batch)
    if isinstance(op.stack.type, TensorMapType):
        return lowered_as([lowered(op.stack), batch], op.matrix.type)
    step, step_bytes = step_of(op.stack.type), steps_of(op.stack)[1]
    if is_padded(op.stack.type.element_type):  # packed ones have no pointers of their own
        byte = ir.IntegerType.get_signless(8)
        offset = build.widen(batch) * step_bytes
        pointer = build.element_pointer(lowered(op.stack), byte, offset)
    else:
        first = build.widen(batch) * abs(step)
        if step < 0:
            first = first * build.widen(build.as_value(scope.extent(DYNAMIC)))
        pointer = element_pointer(op.stack, first)
    made = lowered_as(pointer, op.matrix.type)
    ir.OpResult(made).owner.attributes[STEP_ATTRIBUTE] = integer(step_bytes)
    return made


def lower_transposed(_: Scope, op: TransposedOp) -> ir.Value:
    """The same address, but for rows of a group; the type says how far apart elements are."""
    if is_of_group(op.view):
        return transposed_rows(op.view, op.transposed.type)
    return lowered_as(lowered_parts(op.view), op.transposed.type)


def lower_stack_tiles(_: Scope, op: StackTilesOp) -> ir.Value:
    """Each matrix has as many."""
    return build.as_i32(op.matrices) * op.each


BATCHES: dict[type, Any] = {
    BatchOp: lower_batch,
    CountedBatchOp: lower_counted_batch,
    OrderedBatchOp: lower_ordered_batch,
    MatrixOp: lower_matrix,
    TransposedOp: lower_transposed,
    StackTilesOp: lower_stack_tiles,
}
"""Of stacks."""
