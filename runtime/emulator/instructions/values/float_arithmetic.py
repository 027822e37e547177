"""Floating-point arithmetic (PTX ISA §9.7.3, §9.7.4 half precision)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from ...ptx.values import TYPES, Type, two_sum_odd
from ...truth import any_of
from . import double_fma, floats
from .common import bit_type, lanewise
from .rounding import MODES, canonical_nan, exact_lanes, zero_sum_down

OUTSIDE = np.uint16(0x7FF7)
"""The NaN of 16 bits that tensor copies fill in on an H100 and an H200, without its sign."""
FLOAT_TYPES = tuple(floats.ELEMENT)

_FRACTIONS = {
    np.add: lambda a, b: a + b,
    np.subtract: lambda a, b: a - b,
    np.multiply: lambda a, b: a * b,
    np.divide: lambda a, b: a / b,
}
_TERMS = {np.add: lambda a, b: (a, b), np.subtract: lambda a, b: (a, -b)}


def _sum(mode: str) -> Callable:
    """a + b of float64 arrays, rounded to odd, for a later rounding in `mode`."""
    if mode != "rm":
        return two_sum_odd
    return lambda a, b: zero_sum_down(two_sum_odd(a, b), a, b)


def _exact(function: np.ufunc, mode: str) -> Callable:
    """The same for add, sub and mul of numbers that have at most 24 bits."""
    if function is np.multiply:
        return np.multiply
    total = _sum(mode)
    return total if function is np.add else lambda a, b: total(a, -b)


_SATURATED = ("f32", "f16", "f16x2")


class Modifiers:
    """Rounding mode, .ftz, .sat and .relu of a float instruction (PTX ISA §9.7.3 to §9.7.5).

    rounded: whether a rounding modifier must be there, may be (None) or must not.
    """

    def __init__(self, ins: Decoded, type_: Type, *, rounded: bool | None):
        mode = ins.choice(MODES)
        half = floats.element(ins, type_) in ("f16", "bf16")
        if rounded is not None and rounded != (mode is not None):
            needs = "needs" if rounded else "has no"
            raise ins.trap("operand", f"{ins.opcode} {needs} rounding modifier")
        if half and mode not in (None, "rn"):
            raise ins.trap("operand", f"{ins.mnemonic} of .{type_.name} has no .{mode}")
        self.mode = mode or "rn"
        self.flush = ins.flag("ftz")
        self.sat = type_.name in _SATURATED and ins.flag("sat")
        self.relu = half and ins.mnemonic == "fma" and ins.flag("relu")
        if self.sat and self.relu:
            raise ins.trap("operand", f"{ins.mnemonic} has .sat or .relu, got both")

    @property
    def plain(self) -> bool:
        return not (self.flush or self.sat or self.relu) and self.mode == "rn"


def bind(
    ins: Decoded, type_: Type, count: int, read: Callable, compute: Callable, write: Callable
) -> Step:
    """d = write(compute(read(a), …)) on raw register bits."""
    bits = bit_type(type_.bits)
    if count == 1:
        return lanewise(ins, [bits], lambda a: write(compute(read(a))))
    if count == 2:
        return lanewise(ins, [bits] * 2, lambda a, b: write(compute(read(a), read(b))))
    return lanewise(ins, [bits] * 3, lambda a, b, c: write(compute(read(a), read(b), read(c))))


def _writer(ins: Decoded, type_: Type, modifiers: Modifiers) -> Callable:
    return floats.writer(
        ins,
        type_,
        mode=modifiers.mode,
        flush=modifiers.flush,
        sat=modifiers.sat,
        relu=modifiers.relu,
    )


def build_binary(ins: Decoded, function: np.ufunc) -> Step:
    """add, sub and mul of every float type and rounding mode."""
    type_ = ins.take_type()
    modifiers = Modifiers(ins, type_, rounded=None)
    form = floats.element(ins, type_)
    native = form in ("f32", "f64") and modifiers.mode == "rn"
    if native and modifiers.plain and type_.name != "f32x2":
        return lanewise(ins, [type_] * 2, function)
    write = _writer(ins, type_, modifiers)
    if native:
        read = floats.reader(ins, type_, modifiers.flush)
        return bind(ins, type_, 2, read, function, write)
    read = floats.wide_reader(ins, type_, modifiers.flush)
    if form == "f64":
        return bind(ins, type_, 2, read, _fractional(function, modifiers.mode), write)
    return bind(ins, type_, 2, read, _exact(function, modifiers.mode), write)


def _fractional(function: np.ufunc, mode: str) -> Callable:
    exact, terms = _FRACTIONS[function], _TERMS.get(function)
    return lambda a, b: exact_lanes(exact, function, mode, a, b, terms=terms)


def _fma_f64(mode: str) -> Callable:
    def native(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.where(np.isfinite(a) & np.isfinite(b) & np.isinf(c), c, a * b + c)

    def terms(a: float, b: float, c: float) -> tuple[float, float]:
        return math.copysign(1, a) * math.copysign(1, b), c

    def exact(*operands: np.ndarray) -> np.ndarray:
        return exact_lanes(lambda a, b, c: a * b + c, native, mode, *operands, terms=terms)

    return partial(_fused_or, exact) if mode == "rn" else exact


def _fused_or(exact: Callable, *operands: np.ndarray) -> np.ndarray:
    """All lanes at once; by fractions those near the ends of the range."""
    with np.errstate(all="ignore"):
        results = double_fma.fused(*operands)
    others = ~double_fma.is_tame(*operands)
    if any_of(others):
        results[others] = exact(*(operand[others] for operand in operands))
    return results


def build_mad(ins: Decoded) -> Step:
    """mad.rnd{.ftz}{.sat}.{f32,f64} d, a, b, c, which is fma (§9.7.3.7)."""
    if ins.peek_type().name not in ("f32", "f64"):
        raise ins.trap("type", f"mad has no type .{ins.peek_type().name}")
    return build_fma(ins)


@instruction("fma", section="9.7.3.6")
def build_fma(ins: Decoded) -> Step:
    """fma.rnd{.ftz}{.sat}{.oob}{.relu}.type d, a, b, c: one rounding of a · b + c."""
    type_ = ins.take_type()
    outside = floats.element(ins, type_) in ("f16", "bf16") and ins.flag("oob")
    modifiers = Modifiers(ins, type_, rounded=True)
    if outside and modifiers.flush:
        raise ins.trap("operand", "fma.oob has no .ftz")
    read = floats.wide_reader(ins, type_, modifiers.flush)
    write = _writer(ins, type_, modifiers)
    if floats.element(ins, type_) == "f64":
        return bind(ins, type_, 3, read, _fma_f64(modifiers.mode), write)
    total = _sum(modifiers.mode)
    if outside:
        return _fma_of_elements_outside(ins, type_, read, total, write)
    return bind(ins, type_, 3, read, lambda a, b, c: total(a * b, c), write)


def _fma_of_elements_outside(
    ins: Decoded, type_: Type, read: Callable, total: Callable, write: Callable
) -> Step:
    """.oob: +0 where a or b is what a tensor copy fills in outside of a tensor (§9.7.4.4)."""

    def function(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        result = write(total(read(a) * read(b), read(c))).view(np.uint16)
        magnitudes = (each.view(np.uint16) & np.uint16(0x7FFF) for each in (a, b))
        filled = np.logical_or(*(each == OUTSIDE for each in magnitudes))
        return np.where(filled, np.uint16(0), result).view(type_.raw)

    return lanewise(ins, [bit_type(type_.bits)] * 3, function)


def build_div(ins: Decoded) -> Step:
    """div{.approx,.full,.rnd}{.ftz}.{f32,f64} d, a, b."""
    type_ = one_of(ins, "f32", "f64")
    approximate = ins.choice(("approx", "full")) if type_.name == "f32" else None
    modifiers = Modifiers(ins, type_, rounded=approximate is None)
    refuse_saturation(ins, modifiers)
    read = floats.wide_reader(ins, type_, modifiers.flush)
    write = _writer(ins, type_, modifiers)
    if type_.name == "f64" and modifiers.mode != "rn":
        return bind(ins, type_, 2, read, _fractional(np.divide, modifiers.mode), write)
    compute = _divide_approximately if approximate == "approx" else np.divide
    return bind(ins, type_, 2, read, compute, write)


def _divide_approximately(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """div.approx.f32: a divisor above 2^126 gives 0 (NaN for an infinite dividend)."""
    quotient = a / b
    huge = (np.abs(b) > 2.0**126) & np.isfinite(b)
    replaced = np.where(np.isfinite(a), np.copysign(0.0, quotient), np.nan)
    return np.where(huge, replaced, quotient)


def refuse_saturation(ins: Decoded, modifiers: Modifiers) -> None:
    if modifiers.sat:
        raise ins.trap("operand", f"{ins.mnemonic} has no .sat")


def one_of(ins: Decoded, *names: str) -> Type:
    type_ = ins.take_type()
    if type_.name not in names:
        ins.unmodelled(f"type .{type_.name}")
    return type_


# -- signs, minimum and maximum, tests on the bits -------------------------------------------


def _element_dtype(ins: Decoded, type_: Type) -> np.dtype:
    bits = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}[floats.element(ins, type_)]
    return np.dtype(f"u{bits // 8}")


def build_sign(ins: Decoded, *, clear: bool) -> Step:
    """abs (`clear`) and neg: the sign bit of every element cleared or inverted."""
    type_ = ins.take_type()
    floats.refuse_pairs(ins, type_)
    flush = floats.flush_patterns(ins, type_) if ins.flag("ftz") else lambda raw: raw
    dtype = _element_dtype(ins, type_)
    sign = dtype.type(1 << dtype.itemsize * 8 - 1)

    def function(raw: np.ndarray) -> np.ndarray:
        value = flush(raw.view(dtype))
        return (value & ~sign if clear else value ^ sign).view(type_.raw)

    return lanewise(ins, [bit_type(type_.bits)], function)


def _total_order(raw: np.ndarray) -> np.ndarray:
    """Signed integers in the order of the floats with these patterns, -0 below +0."""
    signed = raw.view(np.dtype(f"i{raw.itemsize}"))
    bits = raw.itemsize * 8
    return signed ^ (signed >> signed.dtype.type(bits - 1) & signed.dtype.type((1 << bits - 1) - 1))


def _is_nan(form: str) -> Callable:
    limits = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}
    limit = limits[form]

    def test(raw: np.ndarray) -> np.ndarray:
        magnitude = raw & raw.dtype.type((1 << raw.itemsize * 8 - 1) - 1)
        return magnitude > raw.dtype.type(limit)

    return test


def _pick(form: str, smaller: bool, propagate: bool) -> Callable:
    """Minimum or maximum of raw patterns, with the ISA's NaN rules."""
    is_nan = _is_nan(form)
    compare = np.less_equal if smaller else np.greater_equal

    def pick(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        chosen = np.where(compare(_total_order(a), _total_order(b)), a, b)
        nan_a, nan_b = is_nan(a), is_nan(b)
        if propagate:
            return canonical_nan(chosen, nan_a | nan_b)
        chosen = np.where(nan_a, b, np.where(nan_b, a, chosen))
        return canonical_nan(chosen, nan_a & nan_b)

    return pick


def build_min_max(ins: Decoded, *, smaller: bool) -> Step:
    """min and max{.ftz}{.NaN}{.xorsign}{.abs}.type d, a, b{, c}."""
    type_ = ins.take_type()
    floats.refuse_pairs(ins, type_)
    flush = floats.flush_patterns(ins, type_) if ins.flag("ftz") else None
    propagate = ins.flag("NaN")
    xorsign, absolute = ins.flag("xorsign"), ins.flag("abs")
    if len(ins.operands) == 3 and xorsign != absolute:
        raise ins.trap("operand", f"{ins.mnemonic} of two has .xorsign.abs, or neither")
    if type_.name == "f64" and (propagate or xorsign):
        raise ins.trap("operand", f"{ins.mnemonic} of .f64 has neither .NaN nor .xorsign.abs")
    dtype = _element_dtype(ins, type_)
    form = floats.element(ins, type_)
    unsigned = _is_nan(form) if xorsign else None
    pick = _pick(form, smaller, propagate)
    function = _folded(pick, dtype, type_.raw, flush, unsigned, absolute)
    return lanewise(ins, [bit_type(type_.bits)] * (len(ins.operands) - 1), function)


def _folded(
    pick: Callable,
    dtype: np.dtype,
    raw: np.dtype,
    flush: Callable | None,
    unsigned: Callable | None,
    absolute: bool,
) -> Callable:
    """`unsigned`: for .xorsign, the results (NaN) that don't get the operands' signs."""
    sign = dtype.type(1 << dtype.itemsize * 8 - 1)

    def function(*operands: np.ndarray) -> np.ndarray:
        values = [operand.view(dtype) for operand in operands]
        if flush:
            values = [flush(value) for value in values]
        signs = np.bitwise_xor.reduce(np.stack(values)) & sign
        if absolute:
            values = [value & ~sign for value in values]
        chosen = values[0]
        for value in values[1:]:
            chosen = pick(chosen, value)
        if unsigned:
            chosen = np.where(unsigned(chosen), chosen, chosen ^ signs)
        return chosen.view(raw)

    return function


@instruction("copysign", section="9.7.3.2")
def build_copysign(ins: Decoded) -> Step:
    """copysign.type d, a, b: the magnitude of b with the sign of a."""
    type_ = one_of(ins, "f32", "f64")
    sign = type_.raw.type(1 << type_.bits - 1)
    return lanewise(ins, [bit_type(type_.bits)] * 2, lambda a, b: (a & sign) | (b & ~sign))


def _class_test(name: str) -> Callable:
    tests = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & ((np.abs(a) >= np.finfo(a.dtype).tiny) | (a == 0)),
        "subnormal": lambda a: (a != 0) & (np.abs(a) < np.finfo(a.dtype).tiny),
    }
    return tests[name]


@instruction("testp", section="9.7.3.1")
def build_testp(ins: Decoded) -> Step:
    """testp.class.type p, a: zeros count as normal."""
    type_ = one_of(ins, "f32", "f64")
    names = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    return lanewise(ins, [type_], _class_test(ins.required(names)), TYPES["pred"])
