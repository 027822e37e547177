"""Block scales from absolute maxima, and where codes and scales are stored.

A scale is made of the bits of the largest magnitude. Its reciprocal multiplies the elements: of
ue8m0 a power of two, and so exact. Of ue4m3 it is rounded, and what the product leaves of the value
corrects it (`expand/quantized.py`).
"""

from __future__ import annotations

from ....dialects import llvm, sm
from ....dialects.dtypes import SCALE_ATOM_BLOCKS, SCALE_ATOM_ROWS, stored_dtype
from ....dialects.mlir import arith, ir
from ....dialects.quantized import FRACTION_BITS, QUANTIZED, Quantized
from ....dialects.tile.quantized import BlockScaleOp, WriteCodesOp, WriteScalesOp
from ....dialects.tile_types import bits_of
from ... import build
from ...batches import row_pitch
from ..scope.scope import Scope, lowered_parts

INFINITE = 0xFF << FRACTION_BITS  # bits of an f32; those of NaN are above
NAN = {"f8E8M0FNU": 0xFF, "f8E4M3FN": 0x7F}
LEAST = {"nearest": None, "normal": 2.0**-6}
POWER_BIAS = 254  # the exponents of a power of two and of its reciprocal add up to it
E4M3_SHIFT, E4M3_POWER = 20, 2.0**120
"""The bits of an e4m3 of no sign, moved to those of an f32, are the number times 2^-120."""
ATOM_BYTES, LINE_BYTES, LINES = 512, 16, 32


def lower_block_scale(_: Scope, op: BlockScaleOp) -> list[ir.Value]:
    """The code, i32; NaN where the largest magnitude is none or infinite."""
    type_, bits = str(op.scale.value), arith.bitcast(build.i32(), op.amax)
    make = _power if type_ == "f8E8M0FNU" else _fraction
    code, number, reciprocal = make(op, bits)
    finite = build.less(bits, INFINITE)
    return [arith.select(finite, code, build.constant(NAN[type_])), number, reciprocal]


def _power(op: BlockScaleOp, bits: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """ue8m0: the exponent, which a carry rounds up, less that of the largest element."""
    element, fraction = _element(op), build.constant(FRACTION_BITS)
    exponent = arith.shrui(bits + element.carry(op.rounding.value), fraction)
    code = arith.maxsi(exponent - element.exponent, build.constant(0))
    field = arith.shli(build.constant(POWER_BIAS) - code, fraction)
    reciprocal = arith.bitcast(ir.F32Type.get(), field)
    return code, arith.divf(_f32(1.0), reciprocal), reciprocal


def _fraction(op: BlockScaleOp, _: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """ue4m3: amax over the largest element, rounded; nothing is multiplied by a scale of zero."""
    wanted = arith.mulf(op.amax, _f32(1 / _element(op).largest))
    least = LEAST[op.rounding.value]
    if least is not None:
        wanted = arith.maximumf(wanted, _f32(least))
    pair = sm.NarrowOp.of(low=wanted, high=_f32(0.0), to="e4m3", result=build.i16()).result
    code = arith.extui(build.i32(), pair)
    field = arith.shli(code, build.constant(E4M3_SHIFT))
    number = arith.mulf(arith.bitcast(ir.F32Type.get(), field), _f32(E4M3_POWER))
    reciprocal = arith.divf(_f32(1.0), number)
    return code, number, arith.select(build.equal(code, 0), _f32(0.0), reciprocal)


def lower_write_codes(_: Scope, op: WriteCodesOp) -> None:
    """One store."""
    bits, (size,) = bits_of(op.view.type.element_type), ir.VectorType(op.codes.type).shape
    column = op.column * bits // 8 + op.behind.value
    offset = build.widen(op.row) * (row_pitch(op.view) * bits // 8) + build.widen(column)
    pointer = build.element_pointer(lowered_parts(op.view)[0], _byte(), offset)
    llvm.store(op.codes, pointer, alignment=size)


def lower_write_scales(_: Scope, op: WriteScalesOp) -> None:
    """A word of an atom, or a part of one (`runtime.scales.blocked`)."""
    along_k, rows = op.scales.type.shape[1], SCALE_ATOM_ROWS
    atom = op.row // rows * along_k + op.number // SCALE_ATOM_BLOCKS
    place = op.row % LINES * LINE_BYTES + op.row % rows // LINES * SCALE_ATOM_BLOCKS
    within = build.widen(place + op.number % SCALE_ATOM_BLOCKS)
    offset = build.widen(atom) * ATOM_BYTES + within
    pointer = build.element_pointer(lowered_parts(op.scales)[0], _byte(), offset)
    llvm.store(op.codes, pointer, alignment=ir.VectorType(op.codes.type).shape[0])


def _element(op: BlockScaleOp) -> Quantized:
    dtype = stored_dtype(str(op.element.value))
    assert dtype is not None  # the op's verifier has asked
    return QUANTIZED[dtype.name]


def _f32(value: float) -> ir.Value:
    return arith.ConstantOp(ir.F32Type.get(), value).result


def _byte() -> ir.Type:
    return ir.IntegerType.get_signless(8)
