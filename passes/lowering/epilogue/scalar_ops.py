"""The epilogue region on whole vectors: the same op on every element at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from ....dialects import llvm, sm
from ....dialects.epilogue import CIRCULAR, LOGARITHMS, SCALAR_OPS
from ....dialects.mlir import arith, ir, vector
from ....dialects.tile import ElementOp
from ....dialects.tile.pieces import ApplyEpilogueOp
from ....dialects.tile.threads import ApplyToRowOp, WriteRowOp
from ... import build
from ...base import attributes_of, refused
from ..registers.elements import widened
from .circular_functions import circular
from .special_functions import erf, logarithm, tanh
from .values import LOG2_E

NARROW = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}
UPPER_HALF = 0xFFFF0000  # of a word
WHOLE = ("math.ceil", "math.floor", "math.round", "math.roundeven", "math.trunc")
INFINITE = 0x7C  # of e5m2; the sign is the byte's


def apply_epilogue(
    op: WriteRowOp | ApplyToRowOp | ApplyEpilogueOp,
    sums: Sequence[ir.Value],
    width: int,
    read: Callable[[ElementOp], ir.Value],
) -> ir.Value:
    """What the region yields for `width` elements (vectors, or scalars when width is 1).

    `sums` are those of each product. `read` gives the elements of another operand beside them.
    """
    block = op.epilogue.blocks[0]
    values: dict[ir.Value, ir.Value] = dict(zip(block.arguments, sums, strict=True))
    *body, last = list(block.operations)
    for inner in body:
        result = inner.operation.results[0]
        if isinstance(inner, ElementOp):
            values[result] = read(inner)
        elif isinstance(inner, sm.ApproximateOp):
            values[result] = _each(values[inner.value], width, inner.function.value)
        else:
            operands = [_taken(each, values, width) for each in inner.operands]
            values[result] = _lower(inner, operands, width)
    return values[last.operands[0]]


def _taken(value: ir.Value, values: dict[ir.Value, ir.Value], width: int) -> ir.Value:
    """What stands for a value of the region; one from outside is the same for all elements."""
    if value in values:
        return values[value]
    return vector.BroadcastOp(widened(value.type, width), value).result if width > 1 else value


def _lower(op: ir.OpView, operands: list[ir.Value], width: int) -> ir.Value:
    name = op.operation.name
    if name not in SCALAR_OPS:
        rule = "must be an op on one element (docs/passes/normalize.md)"
        raise refused(op, f"{rule}, got {name}; move it out")
    if name in OF_F32:
        return _in_f32(OF_F32[name], operands[0], width)
    element = op.operation.results[0].type
    if str(element) in NARROW:
        return _narrow(op, operands, width)
    result = widened(element, width)
    if name == "arith.extf" and _is_bf16(op) and str(element) == "f32":
        if width % 2 == 0:
            return _unpacked(operands[0], width)
        if _has_f16(op):
            return _shifted(operands[0], width)
    attributes = attributes_of(op)
    if name == "arith.constant":
        return _constant(attributes["value"], result)
    if name == "arith.select" and width > 1 and not isinstance(operands[0].type, ir.VectorType):
        operands[0] = vector.BroadcastOp(widened(operands[0].type, width), operands[0]).result
    clone = ir.Operation.create(name, results=[result], operands=operands, attributes=attributes)
    return clone.results[0]


def _narrow(op: ir.OpView, operands: list[ir.Value], width: int) -> ir.Value:
    """An op that gives floats of 8 bits, as bytes: LLVM has no such type."""
    name, element = op.operation.name, op.operation.results[0].type
    bytes_ = widened(ir.IntegerType.get_signless(8), width)
    if name == "arith.truncf":
        return narrowed(operands[0], width, str(element))
    if name == "arith.constant":
        number = ir.FloatAttr(op.operation.attributes["value"]).value
        if str(element) != "f8E5M2" or abs(number) != math.inf:
            raise refused(op, f"a constant of {element} must be infinite, got {number}; round one")
        bits = INFINITE if number > 0 else INFINITE - 128
        return _constant(ir.IntegerAttr.get(ir.IntegerType.get_signless(8), bits), bytes_)
    if width > 1 and not isinstance(operands[0].type, ir.VectorType):
        operands[0] = vector.BroadcastOp(widened(operands[0].type, width), operands[0]).result
    return arith.select(*operands)


def narrowed(value: ir.Value, width: int, element: str) -> ir.Value:
    """Floats as bytes: two by two, each pair by one cvt."""
    f32, i8 = ir.F32Type.get(), ir.IntegerType.get_signless(8)
    if value.type != widened(f32, width):
        value = arith.extf(widened(f32, width), value)
    parts = [value] if width == 1 else [_part(value, index) for index in range(width)]
    if width % 2:
        parts.append(arith.ConstantOp(f32, 0.0).result)
    pairs = [
        sm.NarrowOp.of(low=low, high=high, to=NARROW[element], result=build.i16()).result
        for low, high in zip(parts[::2], parts[1::2], strict=True)
    ]
    if width == 1:
        return arith.trunci(i8, pairs[0])
    joined = vector.FromElementsOp(ir.VectorType.get([len(pairs)], build.i16()), pairs).result
    found = vector.bitcast(ir.VectorType.get([2 * len(pairs)], i8), joined)
    return (
        found
        if width % 2 == 0
        else llvm.shufflevector(ir.VectorType.get([width], i8), found, found, list(range(width)))
    )


def _part(value: ir.Value, index: int) -> ir.Value:
    return vector.ExtractOp(value, [], [index]).result


def _is_bf16(op: ir.OpView) -> bool:
    return isinstance(op.operation.operands[0].type, ir.BF16Type)


def _has_f16(op: ir.OpView) -> bool:
    """Whether the region rounds anything to f16."""
    return any(
        each.operation.name == "arith.truncf"
        and isinstance(each.operation.results[0].type, ir.F16Type)
        for each in op.operation.block.operations
    )


def _unpacked(value: ir.Value, width: int) -> ir.Value:
    """Pairs of bf16 as f32: the lower half of a word is shifted, the upper one masked.

    A cvt of the upper half is two instructions of the GPU. Nor does LLVM see extended bf16 here
    (`_shifted`).
    """
    i32 = build.i32()
    words = ir.VectorType.get([width // 2], i32)
    packed = vector.bitcast(words, value)
    by = _constant(ir.IntegerAttr.get(i32, 16), words)
    upper = _constant(ir.IntegerAttr.get(i32, build.signed(UPPER_HALF)), words)
    halves = arith.shli(packed, by), arith.andi(packed, upper)
    pairs = [index + number * width // 2 for index in range(width // 2) for number in range(2)]
    joined = llvm.shufflevector(ir.VectorType.get([width], i32), *halves, pairs)
    return arith.bitcast(ir.VectorType.get([width], ir.F32Type.get()), joined)


def _shifted(value: ir.Value, width: int) -> ir.Value:
    """bf16 as f32, by its bits.

    LLVM's InstCombine makes f16 arithmetic of f32 arithmetic on extended bf16 that is rounded to
    f16: it compares digits only, and what is beyond 65504 becomes infinite before it should.
    """
    i16, i32 = (widened(ir.IntegerType.get_signless(bits), width) for bits in (16, 32))
    bits = arith.extui(i32, arith.bitcast(i16, value))
    by = _constant(ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 16), i32)
    return arith.bitcast(widened(ir.F32Type.get(), width), arith.shli(bits, by))


def _constant(value: ir.Attribute, type_: ir.Type) -> ir.Value:
    if isinstance(type_, ir.VectorType):
        value = ir.DenseElementsAttr.get_splat(type_, value)
    return arith.ConstantOp(type_, value).result


def _in_f32(function: Callable[[ir.Value, int], ir.Value], value: ir.Value, width: int) -> ir.Value:
    """Apply a function of f32 to a value of any float type."""
    f32 = widened(ir.F32Type.get(), width)
    if value.type == f32:
        return function(value, width)
    return arith.truncf(value.type, function(arith.extf(f32, value), width))


def _exp2(value: ir.Value, width: int) -> ir.Value:
    """ex2.approx.f32 is within 2 ulp over the full range (PTX ISA, ex2)."""
    return _each(value, width, "ex2")


def _exp(value: ir.Value, width: int) -> ir.Value:
    scale = ir.FloatAttr.get(ir.F32Type.get(), LOG2_E)
    return _exp2(arith.mulf(value, _constant(scale, value.type)), width)


def _helpers(width: int) -> tuple[Callable[[ir.Value], ir.Value], ...]:
    """exp and a reciprocal of so many elements."""
    return partial(_exp, width=width), partial(_each, width=width, function="rcp.ftz")


def _rsqrt(value: ir.Value, width: int) -> ir.Value:
    return _each(value, width, "rsqrt")


def _each(value: ir.Value, width: int, function: str) -> ir.Value:
    """An approximate instruction on every element."""
    if width == 1:
        return _approximate(value, function)
    elements = [vector.ExtractOp(value, [], [index]).result for index in range(width)]
    results = [_approximate(element, function) for element in elements]
    return vector.FromElementsOp(value.type, results).result


def _approximate(value: ir.Value, function: str) -> ir.Value:
    return sm.ApproximateOp.of(value=value, function=function, result=value.type).result


def _logarithm(name: str) -> Callable[[ir.Value, int], ir.Value]:
    def of(value: ir.Value, width: int) -> ir.Value:
        return logarithm(name, value, partial(_each, width=width, function="lg2"))

    return of


def _circular(name: str, value: ir.Value, _width: int) -> ir.Value:
    return circular(name, value)


def _rounding(name: str) -> Callable[[ir.Value, int], ir.Value]:
    """To a whole number, of any width."""

    def rounded(value: ir.Value, width: int) -> ir.Value:
        return ir.Operation.create(name, results=[value.type], operands=[value]).results[0]

    return rounded


OF_F32: dict[str, Callable[[ir.Value, int], ir.Value]] = {
    **{name: partial(_circular, name) for name in CIRCULAR},
    "math.erf": lambda value, width: erf(value, *_helpers(width)),
    "math.exp": _exp,
    "math.exp2": _exp2,
    **{name: _logarithm(name) for name in LOGARITHMS},
    "math.rsqrt": _rsqrt,
    "math.tanh": lambda value, width: tanh(value, *_helpers(width)),
    **{name: _rounding(name) for name in WHOLE},
}
"""Ops that are computed in f32, of any type."""
