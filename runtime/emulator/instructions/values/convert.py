"""cvt (PTX ISA §9.7.9.21) and cvt.pack (§9.7.9.22)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ...ptx.decode import Decoded
from ...ptx.registry import Step, instruction
from ...ptx.values import RAW, TYPES, Type, bf16_to_f32, f32_to_bf16
from . import floats
from .conversion_rules import check_conversion
from .rounding import MODES, round_fraction, round_stochastically, to_bf16, to_f16, to_tf32
from .rounding import relu as clamp_negative
from .small_floats import build_small_float, is_small_float

INTEGER_MODES = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_MAX_FINITE = {"f16": 65504.0, "bf16": float(bf16_to_f32(np.array([0x7F7F], np.uint16))[0])}


@instruction("cvt", section="9.7.9.21")
def build_cvt(ins: Decoded) -> Step:
    """cvt{.mode}{.ftz}{.sat}{.relu}{.satfinite}.dtype.atype d, a{, b}."""
    if any(is_small_float(name) for name in ins.modifiers):
        return build_small_float(ins)
    source = ins.take_type()
    target = ins.take_type()
    if target.name in ("f16x2", "bf16x2"):
        return _pair(ins, target, source)
    if target.name == "tf32":
        return _tf32(ins, source)
    ins.expect_operands(2)
    function = _conversion(ins, target, source)
    ins.finish_modifiers()
    exact = "bf16" in (source.name, target.name)  # both in registers of their size, but for bytes
    wider_source, wider_target = (
        each.kind != "x" and (not exact or each.bits == 8) for each in (source, target)
    )
    slot = ins.slot(1, source, relaxed=wider_source)
    result = ins.target(0, target, relaxed=wider_target)
    if result is not None:
        ins.note_computing((slot,), (result,))
    read = ins.read(1, source.raw, relaxed=wider_source)
    view = target.dtype if target.kind == "s" else target.raw
    write = ins.write(0, view, relaxed=wider_target)
    return lambda warp, mask: write(warp, mask, function(read(warp)))


def _conversion(ins: Decoded, target: Type, source: Type) -> Callable:
    """A function of raw source bits → raw (or signed) target values."""
    from_float, to_float = source.name in floats.ELEMENT, target.name in floats.ELEMENT
    for type_ in (source, target):
        if type_.kind not in "usf" and type_.name != "bf16":
            ins.unmodelled(f"type .{type_.name}")
    check_conversion(ins, target, source)
    if not from_float and not to_float:
        return _integer_to_integer(ins, target, source)
    if not from_float:
        return _integer_to_float(ins, target, source)
    if not to_float:
        return _float_to_integer(ins, target, source)
    return _float_to_float(ins, target, source)


# -- integers --------------------------------------------------------------------------------


def _integer_to_integer(ins: Decoded, target: Type, source: Type) -> Callable:
    view, out = source.dtype, target.dtype
    if not ins.flag("sat"):
        return lambda raw: raw.view(view).astype(out)
    wide = np.dtype(np.int64 if source.signed else np.uint64)
    low = max(int(np.iinfo(out).min), int(np.iinfo(wide).min))
    high = min(int(np.iinfo(out).max), int(np.iinfo(wide).max))
    return lambda raw: np.clip(raw.view(view).astype(wide), wide.type(low), wide.type(high)).astype(
        out
    )


def _odd_f64(values: np.ndarray) -> np.ndarray:
    """Integers as float64, exact up to 53 bits, else rounded to odd."""
    if values.itemsize < 8:
        return values.astype(np.float64)
    negative = values < 0
    magnitude = np.where(negative, np.negative(values.view(np.uint64)), values.view(np.uint64))
    large = magnitude >> np.uint64(53) != 0
    sticky = (magnitude & np.uint64(0x7FF) != 0).astype(np.uint64) << np.uint64(11)
    odd = np.where(large, magnitude & ~np.uint64(0x7FF) | sticky, magnitude)
    return np.where(negative, -odd.astype(np.float64), odd.astype(np.float64))


def _integer_to_float(ins: Decoded, target: Type, source: Type) -> Callable:
    mode, sat = ins.choice(MODES, "rn"), ins.flag("sat")
    flush = target.name == "f32" and ins.flag("ftz")
    view = source.dtype
    write = floats.writer(ins, target, mode=mode, sat=sat, flush=flush)
    if target.name != "f64":
        return lambda raw: write(_odd_f64(raw.view(view)))
    if mode == "rn":
        return lambda raw: write(raw.view(view).astype(np.float64))
    return lambda raw: write(
        np.array(
            [
                round_fraction(Fraction(value), mode) if value else 0.0
                for value in raw.view(view).tolist()
            ]
        )
    )


def _float_to_integer(ins: Decoded, target: Type, source: Type) -> Callable:
    """Out-of-range values are clamped; NaN gives 0, or the top bit alone where 64 bits or f64
    are involved (the ISA's rule)."""
    mode = ins.required(tuple(INTEGER_MODES))
    ins.flag("sat")
    read = floats.wide_reader(ins, source, ins.flag("ftz"))
    rounding, out = INTEGER_MODES[mode], target.dtype
    limits = np.iinfo(out)
    low, beyond = float(limits.min), float(limits.max + 1)
    nan = 1 << target.bits - 1 if 64 in (source.bits, target.bits) else 0
    nan_value = np.array([nan], RAW[target.bits]).view(out)[0]

    def function(raw: np.ndarray) -> np.ndarray:
        value = rounding(read(raw))
        inside = np.where((value >= low) & (value < beyond), value, 0.0).astype(out)
        clamped = np.where(
            value >= beyond,
            out.type(limits.max),
            np.where(value < low, out.type(limits.min), inside),
        )
        return np.where(value != value, nan_value, clamped)

    return function


# -- floats ----------------------------------------------------------------------------------


def _float_to_float(ins: Decoded, target: Type, source: Type) -> Callable:
    whole = ins.choice(tuple(INTEGER_MODES))
    mode = ins.choice(MODES, "rn")
    flush, sat = ins.flag("ftz"), ins.flag("sat")
    relu, finite = ins.flag("relu"), ins.flag("satfinite")
    plain = not (whole or flush or sat or relu or finite)
    if plain and (target.name, source.name) in _DIRECT and mode == "rn":
        return _DIRECT[target.name, source.name]
    read = floats.wide_reader(ins, source, flush and source.name == "f32")
    write = floats.writer(
        ins, target, mode=mode, sat=sat, relu=relu, flush=flush and target.name == "f32"
    )
    limit = _limiter(ins, target.name) if finite else lambda values: values
    rounding = INTEGER_MODES[whole] if whole else lambda values: values
    return lambda raw: write(limit(rounding(read(raw))))


_DIRECT = {
    ("bf16", "f32"): lambda raw: f32_to_bf16(raw.view(np.float32)),
    ("f32", "bf16"): lambda raw: raw.astype(np.uint32) << np.uint32(16),
    ("f32", "f16"): lambda raw: raw.view(np.float16).astype(np.float32).view(np.uint32),
}


def _limiter(ins: Decoded, form: str) -> Callable:
    """.satfinite: values beyond the largest finite one become that; NaN stays NaN."""
    if form not in _MAX_FINITE:
        ins.unmodelled(f".satfinite on .{form}")
    limit = _MAX_FINITE[form]
    return lambda values: np.clip(values, -limit, limit)


def _pair(ins: Decoded, target: Type, source: Type) -> Step:
    """cvt.rnd{.relu}{.satfinite}.{f16x2,bf16x2}.f32 d, a, b: a goes to the upper half."""
    if source.name != "f32":
        ins.unmodelled(f"type .{source.name}")
    if ins.flag("rs"):
        return _stochastic_pair(ins, target.name[:-2])
    ins.expect_operands(3)
    mode, relu, finite = ins.required(("rn", "rz")), ins.flag("relu"), ins.flag("satfinite")
    ins.finish_modifiers()
    form = target.name[:-2]
    narrow = _narrow(ins, form, mode, relu, finite)
    upper, lower, write = ins.slot(1, source), ins.slot(2, source), ins.write(0, target)

    def packed(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        pairs = np.empty(2 * len(low), np.uint32)
        pairs[::2], pairs[1::2] = low, high
        return narrow(pairs.view(np.float32)).view(np.uint32)

    def step(warp, mask):
        write(warp, mask, packed(warp.regs[lower], warp.regs[upper]))

    slot = ins.target(0, target)
    if slot is not None:
        ins.note_lanewise(packed, (lower, upper), (slot,))
    return step


def _stochastic_pair(ins: Decoded, form: str) -> Step:
    """cvt.rs{.relu}{.satfinite}.{f16x2,bf16x2}.f32 d, a, b, rbits: 13 or 16 random bits each."""
    ins.expect_operands(4)
    narrow = _narrow(ins, form, "rz", ins.flag("relu"), ins.flag("satfinite"))
    ins.finish_modifiers()
    bits, mantissa, smallest = (13, 10, -14) if form == "f16" else (16, 7, -126)
    upper, lower = ins.read(1, np.float32), ins.read(2, np.float32)
    random, write = ins.read(3, np.uint32), ins.write(0, np.uint32)

    def half(values: np.ndarray, share: np.ndarray) -> np.ndarray:
        fraction = (share & np.uint32((1 << bits) - 1)) / (1 << bits)
        return narrow(round_stochastically(values, fraction, mantissa, smallest))

    def step(warp, mask):
        share = random(warp)
        high = half(upper(warp), share >> np.uint32(16)).astype(np.uint32)
        write(warp, mask, high << np.uint32(16) | half(lower(warp), share))

    return step


def _narrow(ins: Decoded, form: str, mode: str, relu: bool, finite: bool) -> Callable:
    if form == "bf16" and mode == "rn" and not (relu or finite):
        return f32_to_bf16
    narrowing = to_f16 if form == "f16" else to_bf16
    limit = _limiter(ins, form) if finite else lambda values: values

    def narrow(values: np.ndarray) -> np.ndarray:
        wide = limit(values.astype(np.float64))
        return narrowing(clamp_negative(wide) if relu else wide, mode)

    return narrow


def _tf32(ins: Decoded, source: Type) -> Step:
    """cvt.{rna,rn,rz}{.relu}{.satfinite}.tf32.f32 d, a."""
    if source.name != "f32":
        ins.unmodelled(f"type .{source.name}")
    ins.expect_operands(2)
    mode = ins.required(("rna", "rn", "rz"))
    relu, finite = ins.flag("relu"), ins.flag("satfinite")
    if relu and mode == "rna":
        raise ins.trap("operand", "cvt.rna has no .relu")
    ins.finish_modifiers()
    slot, write = ins.slot(1, source), ins.write(0, TYPES["b32"])

    def step(warp, mask):
        bits = to_tf32(warp.regs[slot], mode)
        if relu:
            bits = clamp_negative(bits.view(np.float32)).view(np.uint32)
        if finite:
            infinite = bits & np.uint32(0x7FFFFFFF) == np.uint32(0x7F800000)
            bits = np.where(infinite, bits - np.uint32(0x2000), bits)
        write(warp, mask, bits)

    return step


@instruction("cvt.pack", section="9.7.9.22")
def build_cvt_pack(ins: Decoded) -> Step:
    """cvt.pack.sat.type.s32{.b32} d, a, b{, c}: a and b clamped, packed below c's low part."""
    if not ins.flag("sat"):
        ins.unmodelled("cvt.pack without .sat")
    has_c = len(ins.operands) == 4
    narrow = ins.required(("u2", "s2", "u4", "s4", "u8", "s8") if has_c else ("u16", "s16"))
    ins.required(("s32",))
    if has_c:
        ins.required(("b32",))
    ins.finish_modifiers()
    clamp, bits = _integer_clamp(narrow), np.uint32(int(narrow[1:]))
    a, b = ins.slot(1, TYPES["s32"]), ins.slot(2, TYPES["s32"])
    c = ins.slot(3, TYPES["b32"]) if has_c else None
    write = ins.write(0, np.uint32)

    def step(warp, mask):
        regs = warp.regs
        packed = clamp(regs[a]) << bits | clamp(regs[b])
        if c is not None:
            packed = packed | regs[c] << (bits + bits)
        write(warp, mask, packed)

    return step


def _integer_clamp(narrow: str) -> Callable:
    """A function of s32 patterns → the fields they are clamped to, of a type such as `u4`."""
    bits, signed = int(narrow[1:]), narrow[0] == "s"
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    field = np.uint32((1 << bits) - 1)
    return lambda raw: np.clip(raw.view(np.int32), low, high).view(np.uint32) & field
