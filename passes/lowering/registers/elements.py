"""Elements in registers: parts of a load, and an epilogue's other operands."""

from __future__ import annotations

import math
from typing import Any

from ....dialects import llvm
from ....dialects.mlir import arith, ir, scf, vector
from ....dialects.tile import ElementOp
from ....dialects.tile.ahead import HeldElementOp, ReadOperandOp
from ....dialects.tile.duals import JoinOp
from ....dialects.tile_types import element_bytes
from ....dialects.verify import products_of
from ... import build
from ...base import refused
from ...batches import column_pitch, row_pitch, step_bytes
from ..scope.scope import Scope, element_pointer
from ..tiles.groups import row_of_whole


def widened(element: ir.Type, width: int) -> ir.Type:
    """`vector<width x element>`, or the element itself when width is 1."""
    return element if width == 1 else ir.VectorType.get([width], element)


def slice_of(values: ir.Value, start: int, width: int) -> ir.Value:
    """`width` neighbouring elements of a vector; a scalar when `width` is 1, or of a scalar."""
    if not isinstance(values.type, ir.VectorType):
        return values
    made_of = _elements_of(values)
    if made_of:
        return joined(made_of[start : start + width]) if width > 1 else made_of[start]
    if width == 1:
        return vector.ExtractOp(values, [], [start]).result
    element = ir.VectorType(values.type).element_type
    mask = list(range(start, start + width))
    return llvm.shufflevector(ir.VectorType.get([width], element), values, values, mask)


def _elements_of(values: ir.Value) -> list[ir.Value]:
    """The scalars that a vector was made of, if it was."""
    owner = values.owner
    if isinstance(owner, ir.Block) or owner.name != "vector.from_elements":
        return []
    return list(owner.operands)


def slices_of(op: Any, values: ir.Value, start: int, width: int) -> list[ir.Value]:
    """The same of the sums of each product that the epilogue of an op takes."""
    products = products_of(op)
    if products == 1:
        return [slice_of(values, start, width)]
    half = ir.VectorType(values.type).shape[0] // products
    return [slice_of(values, number * half + start, width) for number in range(products)]


def join(_: Scope, op: JoinOp) -> ir.Value:
    """One vector of two."""
    (count,) = ir.VectorType(op.values.type).shape
    return llvm.shufflevector(op.values.type, op.first, op.second, list(range(count)))


def joined(values: list[ir.Value]) -> ir.Value:
    """Values of one type as a vector."""
    type_ = ir.VectorType.get([len(values)], values[0].type)
    return vector.FromElementsOp(type_, values).result


def concatenated(parts: list[ir.Value]) -> ir.Value:
    """Vectors of as many elements each, a power of two of them, as one."""
    while len(parts) > 1:
        (width,) = ir.VectorType(parts[0].type).shape
        double = ir.VectorType.get([2 * width], ir.VectorType(parts[0].type).element_type)
        mask = list(range(2 * width))
        parts = [
            llvm.shufflevector(double, *pair, mask)
            for pair in zip(parts[::2], parts[1::2], strict=True)
        ]
    return parts[0]


def read_elements(
    row: ir.Value,
    column: ir.Value,
    width: int,
    inside: ir.Value | None,
    op: ElementOp | ReadOperandOp,
) -> ir.Value:
    """`width` elements of another operand, at the place that is being stored.

    Where `inside` is false the place is outside of C, and what is given counts for nothing.
    """
    view, axes, element = op.source, op.axes.value, op.source.type.element_type
    row = row_of_whole(view, row)
    if axes in ("", "m"):
        first = _safe(build.widen(row), inside) if axes else build.constant(0, build.i64())
        one = llvm.load(element, element_pointer(view, first))
        return one if width == 1 else vector.BroadcastOp(widened(element, width), one).result
    if axes == "mn" and width > 1 and column_pitch(view) != 1:
        return joined([read_elements(row, column + at, 1, inside, op) for at in range(width)])
    # where operands are exchanged rows of a group are columns of the sums
    offset = build.widen(column if axes == "mn" else row_of_whole(view, column))
    if axes == "mn":
        along = column_pitch(view)
        offset = build.widen(row) * row_pitch(view) + (offset if along == 1 else offset * along)
    type_, alignment = widened(element, width), _alignment(op, width)
    if axes == "mn" and inside is not None:
        return _read_inside(view, offset, inside, type_, alignment)
    return llvm.load(type_, element_pointer(view, _safe(offset, inside)), alignment=alignment)


def read_operand(_: Scope, op: ReadOperandOp) -> ir.Value:
    """One load."""
    (width,) = op.values.type.shape if isinstance(op.values.type, ir.VectorType) else (1,)
    made = read_elements(op.row, op.column, width, op.inside, op)
    return made if made.type == op.values.type else joined([made])


def held_elements(op: HeldElementOp, width: int) -> ir.Value:
    """`width` neighbours of what has been read before; the one of a row or of all for each."""
    if op.axes.value == "n":
        (count,) = op.values.type.shape
        if count != width:
            raise refused(op, f"must hold the {width} neighbours of the outputs, got {count}")
        return slice_of(op.values, 0, width)
    wide = widened(op.value.type, width)
    return op.values if width == 1 else vector.BroadcastOp(wide, op.values).result


def _read_inside(
    view: ir.Value[ir.MemRefType],
    offset: ir.Value,
    inside: ir.Value,
    type_: ir.Type,
    alignment: int,
) -> ir.Value:
    """What lies there, or zeros where `inside` is false.

    C may be the tensor itself, of which others write every element, so threads read only those that
    they write. Left undefined, the registers would be live from the start of the kernel on.
    """
    branch = scf.IfOp(inside, [type_], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        pointer = element_pointer(view, offset)
        scf.YieldOp([llvm.load(type_, pointer, alignment=alignment)])
    outside = branch.else_block
    assert outside is not None  # it was asked for
    with ir.InsertionPoint(outside):
        scf.YieldOp([llvm.zero(type_)])
    return branch.results[0]


def _alignment(op: ElementOp | ReadOperandOp, width: int) -> int:
    """Bytes of which the place of `width` elements of a row is a multiple, in every row."""
    view, item = op.source, element_bytes(op.source.type.element_type)
    pitch = row_pitch(view) if op.axes.value == "mn" else 0
    return math.gcd(width * item, pitch * item, step_bytes(view))


def _safe(offset: ir.Value, inside: ir.Value | None) -> ir.Value:
    if inside is None:
        return offset
    return arith.select(inside, offset, build.constant(0, build.i64()))
