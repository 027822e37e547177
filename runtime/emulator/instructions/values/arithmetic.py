"""Integer arithmetic (PTX ISA §9.7.1) and the dispatch of shared mnemonics to the float forms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from ...ptx.values import TYPES, Type
from . import float_arithmetic as floating
from .common import lanewise
from .extended import build_carry

_INTEGERS = tuple(f"{kind}{bits}" for kind in "us" for bits in (16, 32, 64))
_PACKED = ("u16x2", "s16x2")


def _is_float(ins: Decoded) -> bool:
    return ins.peek_type().name in floating.FLOAT_TYPES


def integer_type(ins: Decoded, *more: str) -> Type:
    """Consume the type, which must be an integer type or one of `more`."""
    type_ = ins.take_type()
    if type_.name not in (*_INTEGERS, *more):
        ins.unmodelled(f"type .{type_.name}")
    return type_


def packed_view(type_: Type) -> np.dtype:
    """The dtype of one element of `.u16x2`/`.s16x2`, or of the type itself."""
    if type_.name in _PACKED:
        return np.dtype(np.int16 if type_.name == "s16x2" else np.uint16)
    return type_.dtype


def _elementwise(ins: Decoded, type_: Type, count: int, function: Callable) -> Step:
    """lanewise on the elements of a possibly packed type."""
    view = packed_view(type_)
    if type_.name not in _PACKED:
        return lanewise(ins, [type_] * count, function)
    return lanewise(
        ins, [type_] * count, lambda *values: function(*[value.view(view) for value in values])
    )


def _saturating(function: Callable, wide: type = np.int64) -> Callable:
    """s32 add or sub clamped to its range instead of wrapping."""

    def clamp(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        exact = function(a.astype(wide), b.astype(wide))
        return np.clip(exact, -(2**31), 2**31 - 1).astype(np.int32)

    return clamp


def _saturates(ins: Decoded, type_: Type) -> bool:
    """Whether it has .sat, which only .s32 may have."""
    sat = ins.flag("sat")
    if sat and type_.name != "s32":
        raise ins.trap("type", f"{ins.mnemonic}.sat has no type .{type_.name}")
    return sat


def _add_or_sub(ins: Decoded, function: np.ufunc) -> Step:
    if "cc" in ins.modifiers:
        return build_carry(ins, function is np.subtract)
    if _is_float(ins):
        return floating.build_binary(ins, function)
    type_ = integer_type(ins, *(_PACKED if function is np.add else ()))
    if _saturates(ins, type_):
        return lanewise(ins, [type_] * 2, _saturating(function))
    if type_.name in _PACKED:
        return _elementwise(ins, type_, 2, function)
    return lanewise(ins, [TYPES[f"u{type_.bits}"]] * 2, function)


@instruction("add", section="9.7.1.1")
def build_add(ins: Decoded) -> Step:
    """add{.sat}.type d, a, b."""
    return _add_or_sub(ins, np.add)


@instruction("sub", section="9.7.1.2")
def build_sub(ins: Decoded) -> Step:
    """sub{.sat}.type d, a, b."""
    return _add_or_sub(ins, np.subtract)


def high_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of the product of two integer arrays of the same dtype."""
    bits = a.itemsize * 8
    if bits < 64:
        wide = np.dtype(f"{a.dtype.kind}{a.itemsize * 2}")
        return (a.astype(wide) * b.astype(wide) >> wide.type(bits)).astype(a.dtype)
    x, y = a.view(np.uint64), b.view(np.uint64)
    high = _high_u64(x, y)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return high.view(a.dtype)


def _high_u64(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + (x0 * y0 >> half)
    other = x0 * y1 + (middle & low)
    return x1 * y1 + (middle >> half) + (other >> half)


def _wide_type(type_: Type) -> Type:
    return TYPES[f"{type_.kind}{type_.bits * 2}"]


def _wide_product(type_: Type) -> Callable:
    wide = _wide_type(type_).dtype
    return lambda a, b: a.astype(wide) * b.astype(wide)


@instruction("mul", section="9.7.1.3")
def build_mul(ins: Decoded) -> Step:
    """mul{.hi,.lo,.wide}.type d, a, b."""
    if _is_float(ins):
        return floating.build_binary(ins, np.multiply)
    type_ = integer_type(ins)
    part = ins.required(("lo", "hi", "wide"))
    if part == "lo":
        return lanewise(ins, [TYPES[f"u{type_.bits}"]] * 2, np.multiply)
    if part == "hi":
        return lanewise(ins, [type_] * 2, high_product)
    if type_.bits == 64:
        ins.unmodelled("mul.wide of 64-bit operands")
    return lanewise(ins, [type_] * 2, _wide_product(type_), _wide_type(type_))


@instruction("mad", section="9.7.1.4")
def build_mad(ins: Decoded) -> Step:
    """mad{.hi,.lo,.wide}{.sat}.type d, a, b, c."""
    if _is_float(ins):
        return floating.build_mad(ins)
    if "cc" in ins.modifiers:
        return build_carry(ins, False, high_product)
    type_ = integer_type(ins)
    part = ins.required(("lo", "hi", "wide"))
    if part == "wide" and type_.bits == 64:
        ins.unmodelled("mad.wide of 64-bit operands")
    if part == "wide":
        product, wide = _wide_product(type_), _wide_type(type_)
        return lanewise(ins, [type_, type_, wide], lambda a, b, c: product(a, b) + c, wide)
    if part == "lo":
        return lanewise(ins, [TYPES[f"u{type_.bits}"]] * 3, lambda a, b, c: a * b + c)
    return _high_mad(ins, type_, high_product)


def _high_mad(ins: Decoded, type_: Type, product: Callable) -> Step:
    """{mad,mad24}.hi{.sat}: the sum of a product's upper part and c."""
    if _saturates(ins, type_):
        clamp = _saturating(np.add)
        return lanewise(ins, [type_] * 3, lambda a, b, c: clamp(product(a, b), c))
    return lanewise(ins, [type_] * 3, lambda a, b, c: product(a, b) + c)


def _low24(values: np.ndarray) -> np.ndarray:
    """The low 24 bits, sign- or zero-extended by the dtype, as 64 bits."""
    shift = values.dtype.type(8)
    return (values << shift >> shift).astype(np.dtype(f"{values.dtype.kind}8"))


def _product24(part: str) -> Callable:
    shift = 0 if part == "lo" else 16

    def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        product = _low24(a) * _low24(b)
        return (product >> product.dtype.type(shift)).astype(a.dtype)

    return function


@instruction("mul24", section="9.7.1.5")
def build_mul24(ins: Decoded) -> Step:
    """mul24{.hi,.lo}.{u32,s32} d, a, b: bits 47..16 or 31..0 of the 48-bit product."""
    type_ = ins.take_type("u32", "s32")
    return lanewise(ins, [type_] * 2, _product24(ins.required(("lo", "hi"))))


@instruction("mad24", section="9.7.1.6")
def build_mad24(ins: Decoded) -> Step:
    """mad24{.hi,.lo}{.sat}.{u32,s32} d, a, b, c."""
    type_, part = ins.take_type("u32", "s32"), ins.required(("lo", "hi"))
    product = _product24(part)
    if part == "hi":
        return _high_mad(ins, type_, product)
    return lanewise(ins, [type_] * 3, lambda a, b, c: product(a, b) + c)


@instruction("sad", section="9.7.1.7")
def build_sad(ins: Decoded) -> Step:
    """sad.type d, a, b, c: c + |a - b|."""
    type_ = integer_type(ins)
    return lanewise(ins, [type_] * 3, lambda a, b, c: c + np.where(a < b, b - a, a - b))


def _magnitude(values: np.ndarray) -> np.ndarray:
    raw = values.view(np.dtype(f"u{values.itemsize}"))
    return np.where(values < 0, np.negative(raw), raw)


def _signed_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    x, y = _magnitude(a), _magnitude(b)
    quotient = np.where((a < 0) != (b < 0), np.negative(x // y), x // y)
    return np.where(y == 0, ~y.dtype.type(0), quotient)


def _signed_remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    x, y = _magnitude(a), _magnitude(b)
    rest = np.where(y == 0, x, x % y)
    return np.where(a < 0, np.negative(rest), rest)


@instruction("div", section="9.7.1.8")
def build_div(ins: Decoded) -> Step:
    """div.type d, a, b: truncates; a division by zero gives all ones (unspecified by the ISA)."""
    if _is_float(ins):
        return floating.build_div(ins)
    type_ = integer_type(ins)
    if type_.signed:
        return lanewise(ins, [type_] * 2, _signed_divide)
    ones = type_.dtype.type((1 << type_.bits) - 1)
    return lanewise(ins, [type_] * 2, lambda a, b: np.where(b == 0, ones, a // b))


@instruction("rem", section="9.7.1.9")
def build_rem(ins: Decoded) -> Step:
    """rem.type d, a, b: sign of a; the remainder by zero is a (unspecified by the ISA)."""
    type_ = integer_type(ins)
    if type_.signed:
        return lanewise(ins, [type_] * 2, _signed_remainder)
    return lanewise(ins, [type_] * 2, lambda a, b: np.where(b == 0, a, a % b))


@instruction("abs", section="9.7.1.10")
def build_abs(ins: Decoded) -> Step:
    """abs.type d, a."""
    if _is_float(ins):
        return floating.build_sign(ins, clear=True)
    type_ = integer_type(ins)
    if not type_.signed:
        ins.unmodelled(f"type .{type_.name}")
    return lanewise(ins, [type_], _magnitude)


@instruction("neg", section="9.7.1.11")
def build_neg(ins: Decoded) -> Step:
    """neg.type d, a."""
    if _is_float(ins):
        return floating.build_sign(ins, clear=False)
    type_ = integer_type(ins)
    if not type_.signed:
        raise ins.trap("type", f"neg has no type .{type_.name}")
    return lanewise(ins, [type_], np.negative)


def _min_or_max(ins: Decoded, *, smaller: bool) -> Step:
    if _is_float(ins):
        return floating.build_min_max(ins, smaller=smaller)
    type_ = integer_type(ins, *_PACKED)
    function = np.minimum if smaller else np.maximum
    if not ins.flag("relu"):
        return _elementwise(ins, type_, 2, function)
    if type_.name not in ("s32", "s16x2"):
        ins.unmodelled(f".relu on .{type_.name}")
    return _elementwise(ins, type_, 2, lambda a, b: np.maximum(function(a, b), a.dtype.type(0)))


@instruction("min", section="9.7.1.12")
def build_min(ins: Decoded) -> Step:
    """min{.relu}.type d, a, b."""
    return _min_or_max(ins, smaller=True)


@instruction("max", section="9.7.1.13")
def build_max(ins: Decoded) -> Step:
    """max{.relu}.type d, a, b."""
    return _min_or_max(ins, smaller=False)


def _dot(ins: Decoded, *, half: str | None = None) -> Step:
    """dp4a and dp2a: c + sum of products of small elements; signedness of a and b apart."""
    b_type, a_type = ins.take_type(), ins.take_type()
    if not {a_type.name, b_type.name} <= {"u32", "s32"}:
        ins.unmodelled(f"types .{a_type.name}.{b_type.name}")
    signed = a_type.signed or b_type.signed
    a_view = np.int8 if a_type.signed else np.uint8
    b_view = np.int8 if b_type.signed else np.uint8
    if half is not None:
        a_view = np.int16 if a_type.signed else np.uint16
    part = {None: slice(0, 4), "lo": slice(0, 2), "hi": slice(2, 4)}[half]

    def function(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        x = a.view(a_view).reshape(len(a), -1).astype(np.int64)
        y = b.view(b_view).reshape(len(b), 4)[:, part].astype(np.int64)
        return ((x * y).sum(axis=1) + c.astype(np.int64)).astype(np.uint32)

    out = TYPES["s32" if signed else "u32"]
    return lanewise(ins, [TYPES["u32"], TYPES["u32"], out], function, out)


@instruction("dp4a", section="9.7.1.23")
def build_dp4a(ins: Decoded) -> Step:
    """dp4a.atype.btype d, a, b, c: four products of bytes."""
    return _dot(ins)


@instruction("dp2a", section="9.7.1.24")
def build_dp2a(ins: Decoded) -> Step:
    """dp2a.mode.atype.btype d, a, b, c: two products of halves of a and bytes of b."""
    return _dot(ins, half=ins.required(("lo", "hi")))


@instruction("madc", section="9.7.2.6")
def build_madc(ins: Decoded) -> Step:
    """madc{.hi,.lo}{.cc}.type d, a, b, c: a · b + c + CC.CF."""
    return build_carry(ins, False, high_product, takes=True)
