"""Elements with block scales: what a thread makes of its values, and where codes and scales go.

A scale is made of the bits of the largest magnitude. Its reciprocal multiplies the elements: of
ue8m0 a power of two, and so exact. Of ue4m3 it is rounded, and what the product leaves of the value
corrects it: the quotient is then rounded once (Markstein's theorem), so that a value halfway
between two elements stays there.
"""

from __future__ import annotations

import math
from functools import reduce

from ...dialects import sm
from ...dialects.dtypes import SCALE_ATOM_BLOCKS, SCALE_ATOM_ROWS, stored_dtype
from ...dialects.mlir import arith, ir, llvm, vector
from ...dialects.quantized import FRACTION_BITS, QUANTIZED
from ...dialects.tile_quantized import QuantizeValuesOp, WriteCodesOp, WriteScalesOp
from ...dialects.tile_types import bits_of, integers_of
from .. import build
from ..batches import row_pitch, step_bytes
from ..expand_rows import VECTOR_BYTES
from ..team import Team
from .elements import slice_of
from .group_sums import elements_of, magnitude, over_lanes
from .scope import Scope, lowered_parts

INFINITE = 0xFF << FRACTION_BITS  # bits of an f32; those of NaN are above
NAN = {"f8E8M0FNU": 0xFF, "f8E4M3FN": 0x7F}
LEAST = {"nearest": None, "normal": 2.0**-6}
POWER_BIAS = 254  # the exponents of a power of two and of its reciprocal add up to it
E4M3_SHIFT, E4M3_POWER = 20, 2.0**120
"""The bits of an e4m3 of no sign, moved to those of an f32, are the number times 2^-120."""
ATOM_BYTES, LINE_BYTES, LINES = 512, 16, 32


def lower_quantize_values(_: Scope, op: QuantizeValuesOp) -> list[ir.Value]:
    """In a thread from the first column to the last, and over the lanes that share a row."""
    rows, columns = op.view.type.shape
    lanes, block = op.every.value // op.neighbours.value, op.block.value
    blocks: dict[int, list[ir.Value]] = {}
    for start, value in elements_of(op, build.less(op.row, rows), columns):
        blocks.setdefault(start // block, []).append(value)
    codes, scales = [], []
    for values in blocks.values():
        amax = over_lanes(reduce(arith.maximumf, map(magnitude, values)), lanes, arith.maximumf)
        code, scale, reciprocal = _scale(op, amax)
        scales.append(arith.trunci(_byte(), code))
        codes += [_quotient(value, scale, reciprocal) for value in values]
    return [_packed(op, codes), vector.FromElementsOp(op.scales.type, scales).result]


def _scale(op: QuantizeValuesOp, amax: ir.Value) -> tuple[ir.Value, ir.Value | None, ir.Value]:
    """The code of the scale of a block, i32, the scale, None where it is a power of two, and its
    reciprocal."""
    type_, bits = str(op.scale.value), arith.bitcast(build.i32(), amax)
    make = _power if type_ == "f8E8M0FNU" else _fraction
    code, scale, reciprocal = make(op, amax, bits)
    finite = build.less(bits, INFINITE)
    return arith.select(finite, code, build.constant(NAN[type_])), scale, reciprocal


def _quotient(value: ir.Value, scale: ir.Value | None, reciprocal: ir.Value) -> ir.Value:
    """A value over a scale, rounded once."""
    near = arith.mulf(value, reciprocal)
    if scale is None:
        return near
    left = _fma(arith.negf(near), scale, value)
    return _fma(left, reciprocal, near)


def _power(op: QuantizeValuesOp, _: ir.Value, bits: ir.Value) -> tuple[ir.Value, None, ir.Value]:
    """ue8m0: the exponent, which a carry rounds up, less that of the largest element."""
    element = QUANTIZED[_element(op.view)]
    exponent = arith.shrui(bits + element.carry(op.rounding.value), build.constant(FRACTION_BITS))
    code = arith.maxsi(exponent - element.exponent, build.constant(0))
    field = arith.shli(build.constant(POWER_BIAS) - code, build.constant(FRACTION_BITS))
    return code, None, arith.bitcast(ir.F32Type.get(), field)


def _fraction(
    op: QuantizeValuesOp, amax: ir.Value, _: ir.Value
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """ue4m3: amax over the largest element, rounded; nothing is multiplied by a scale of zero."""
    wanted = arith.mulf(amax, _f32(1 / QUANTIZED[_element(op.view)].largest))
    least = LEAST[op.rounding.value]
    if least is not None:
        wanted = arith.maximumf(wanted, _f32(least))
    pair = sm.NarrowOp.of(low=wanted, high=_f32(0.0), to="e4m3", result=build.i16()).result
    code = arith.extui(build.i32(), pair)
    field = arith.shli(code, build.constant(E4M3_SHIFT))
    number = arith.mulf(arith.bitcast(ir.F32Type.get(), field), _f32(E4M3_POWER))
    reciprocal = arith.divf(_f32(1.0), number)
    return code, number, arith.select(build.equal(code, 0), _f32(0.0), reciprocal)


def _packed(op: QuantizeValuesOp, values: list[ir.Value]) -> ir.Value:
    """Numbers as codes, one after the other, low bits first: two by two, each pair by one cvt."""
    element, bits = _element(op.view), bits_of(op.view.type.element_type)
    pairs = [
        sm.NarrowOp.of(low=low, high=high, to=element, result=build.i16()).result
        for low, high in zip(values[::2], values[1::2], strict=True)
    ]
    if bits == 8:
        whole = vector.FromElementsOp(ir.VectorType.get([len(pairs)], build.i16()), pairs).result
        return vector.bitcast(op.codes.type, whole)
    if bits == 4:
        return vector.FromElementsOp(
            op.codes.type, [arith.trunci(_byte(), pair) for pair in pairs]
        ).result
    words = _words([_joined(pair) for pair in pairs])
    whole = vector.FromElementsOp(ir.VectorType.get([len(words)], build.i32()), words).result
    return vector.bitcast(op.codes.type, whole)


def _joined(pair: ir.Value) -> ir.Value:
    """Two codes of 6 bits, each in a byte of its own, side by side."""
    wide = arith.extui(build.i32(), pair)
    high = arith.andi(arith.shrui(wide, build.constant(2)), build.constant(0xFC0))
    return arith.ori(arith.andi(wide, build.constant(0x3F)), high)


def _words(pairs: list[ir.Value]) -> list[ir.Value]:
    """Words of 32 bits from pairs of 12: eight pairs are three words."""
    words = []
    for first in range(0, 12 * len(pairs), 32):
        parts = []
        for number, pair in enumerate(pairs):
            at = 12 * number - first
            if -12 < at < 32:
                shift, by = (arith.shli, at) if at >= 0 else (arith.shrui, -at)
                parts.append(shift(pair, build.constant(by)) if by else pair)
        words.append(reduce(arith.ori, parts))
    return words


def lower_write_codes(_: Scope, op: WriteCodesOp) -> None:
    """Each run of neighbours, vector by vector, where its block lies inside of C."""
    (rows, columns), bits = op.view.type.shape, bits_of(op.view.type.element_type)
    pitch, inside = row_pitch(op.view) * bits // 8, build.less(op.row, rows)
    size, run = code_bytes(op), op.neighbours.value * bits // 8
    (count,) = ir.VectorType(op.codes.type).shape
    for first in range(0, count, size):
        start, within = op.column + first // run * op.every.value, first % run
        there = build.less(start + within * 8 // bits, columns)
        with build.when(build.both(inside, there)):
            offset = build.widen(op.row) * pitch + build.widen(start * bits // 8 + within)
            pointer = build.element_pointer(lowered_parts(op.view)[0], _byte(), offset)
            llvm.store(slice_of(op.codes, first, size), pointer, alignment=size)


def code_bytes(op: WriteCodesOp) -> int:
    """Bytes of one store: of which a block in a thread, a row and a matrix are whole numbers."""
    view, bits = op.view, bits_of(op.view.type.element_type)
    near = min(op.neighbours.value, op.block.value)
    lengths = (near * bits // 8, row_pitch(view) * bits // 8, step_bytes(view))
    return math.gcd(VECTOR_BYTES, *lengths)


def lower_write_scales(_: Scope, op: WriteScalesOp) -> None:
    """A byte for each block, and zeros where the atoms are padded."""
    rows, columns = integers_of(op.extents)
    height, blocks = op.rows.value, columns // op.block.value
    tiles = -(-rows // height)
    covered, padded = tiles * height, -(-rows // SCALE_ATOM_ROWS) * SCALE_ATOM_ROWS
    lanes = op.every.value // op.neighbours.value
    first_lane = build.equal(Team.of(op).lane % lanes, 0) if lanes > 1 else None
    inside = build.less(op.row, min(covered, padded))
    of_c = build.less(op.row, rows)
    for number in range(ir.VectorType(op.codes.type).shape[0]):
        block = (op.column + number * op.block.value) // op.block.value
        code = slice_of(op.codes, number, 1)
        if rows % height:
            code = arith.select(of_c, code, build.constant(0, _byte()))
        with build.when(build.both(first_lane, build.both(inside, build.less(block, blocks)))):
            _write_scale(op, blocks, op.row, block, code)
            _pad(op, blocks, op.row, block)
    for behind in range(height, padded - covered + height, height):
        _write_behind(op, blocks, behind, (covered - height, padded), first_lane)


def _write_behind(
    op: WriteScalesOp,
    blocks: int,
    behind: int,
    ends: tuple[int, int],
    first_lane: ir.Value | None,
) -> None:
    """Zeros in a row so far behind one of the last tile, if it pads the atoms."""
    last_tile, padded = ends
    row = op.row + behind
    there = build.both(build.less(op.row - last_tile, op.rows.value), build.less(row, padded))
    for number in range(ir.VectorType(op.codes.type).shape[0]):
        block = (op.column + number * op.block.value) // op.block.value
        with build.when(build.both(first_lane, build.both(there, build.less(block, blocks)))):
            _write_scale(op, blocks, row, block, build.constant(0, _byte()))
            _pad(op, blocks, row, block)


def _pad(op: WriteScalesOp, blocks: int, row: ir.Value, block: ir.Value) -> None:
    """Zeros behind the last block of a row, up to the end of its atom."""
    missing = -blocks % SCALE_ATOM_BLOCKS
    if not missing:
        return
    with build.when(build.equal(block, blocks - 1)):
        for number in range(missing):
            at = build.constant(blocks + number)
            _write_scale(op, blocks, row, at, build.constant(0, _byte()))


def _write_scale(
    op: WriteScalesOp, blocks: int, row: ir.Value, block: ir.Value, code: ir.Value
) -> None:
    """A byte of an atom (`runtime.scales.blocked`)."""
    along_k, rows = -(-blocks // SCALE_ATOM_BLOCKS), SCALE_ATOM_ROWS
    atom = row // rows * along_k + block // SCALE_ATOM_BLOCKS
    place = row % LINES * LINE_BYTES + row % rows // LINES * SCALE_ATOM_BLOCKS
    offset = build.widen(atom) * ATOM_BYTES + build.widen(place + block % SCALE_ATOM_BLOCKS)
    pointer = build.element_pointer(lowered_parts(op.scales)[0], _byte(), offset)
    llvm.store(code, pointer, alignment=1)


def _element(view: ir.Value) -> str:
    dtype = stored_dtype(str(ir.MemRefType(view.type).element_type))
    assert dtype is not None  # the op's verifier has asked
    return dtype.name


def _fma(left: ir.Value, right: ir.Value, addend: ir.Value) -> ir.Value:
    operands = [left, right, addend]
    return ir.Operation.create("math.fma", results=[left.type], operands=operands).result


def _f32(value: float) -> ir.Value:
    return arith.ConstantOp(ir.F32Type.get(), value).result


def _byte() -> ir.Type:
    return ir.IntegerType.get_signless(8)
