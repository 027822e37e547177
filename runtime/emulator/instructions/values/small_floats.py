"""cvt to and from the packed formats of at most 8 bits (PTX ISA §9.7.9.21): e4m3, e5m2, e2m3, e3m2,
e2m1 and ue8m0, two or four in a register.

Element codes lie in 8 bits each (e2m1: 4), the first operand in the upper ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from ...ptx.decode import Decoded
from ...ptx.registry import Step
from ...ptx.values import RAW, TYPES, Type, bf16_to_f32, f32_to_bf16
from .rounding import relu as clamp_negative
from .rounding import round_stochastically

_NAN = 0x7F
_WIDE_NAN = 0x7FFF
_WIDE = {"f16x2": np.float16, "bf16x2": ml_dtypes.bfloat16}


@dataclass(frozen=True)
class Format:
    """Numpy type, largest value, mantissa bits, exponent of the smallest normal number, bits that
    a code takes in a register; `nan`: the code of NaN (formats without one give the largest)."""

    dtype: type
    limit: float
    mantissa: int
    smallest: int
    pitch: int = 8
    nan: int | None = None


_FORMATS = {
    "e4m3": Format(ml_dtypes.float8_e4m3fn, 448.0, 3, -6, nan=_NAN),
    "e5m2": Format(ml_dtypes.float8_e5m2, 57344.0, 2, -14, nan=_NAN),
    "e2m3": Format(ml_dtypes.float6_e2m3fn, 7.5, 3, 0),
    "e3m2": Format(ml_dtypes.float6_e3m2fn, 28.0, 2, -2),
    "e2m1": Format(ml_dtypes.float4_e2m1fn, 6.0, 1, 0, pitch=4),
}
_PACKED = {f"{name}x2" for name in (*_FORMATS, "ue8m0")} | {f"{name}x4" for name in _FORMATS}


def is_small_float(name: str) -> bool:
    """Is it a packed type of at most 8 bits an element?"""
    return name in _PACKED


def build_small_float(ins: Decoded) -> Step:
    """cvt{.rn,.rs,.rz,.rp}{.satfinite}{.relu}.dtype.atype d, a{, b}{, rbits}."""
    source, target = ins.take_type(), ins.take_type()
    if "ue8m0x2" in (source.name, target.name):
        return _from_scale(ins, target) if source.name == "ue8m0x2" else _to_scale(ins, source)
    if is_small_float(source.name):
        return _widen(ins, source, target)
    if not is_small_float(target.name):
        ins.unmodelled("more than two types")
    if target.name.endswith("x4"):
        return _four(ins, source, target)
    return _narrow(ins, source, target)


# -- codes -----------------------------------------------------------------------------------


def _encoder(form: Format, relu: bool) -> Callable:
    """float32 → uint8 codes, to nearest even, finite overflow and infinity to the largest."""

    def encode(values: np.ndarray) -> np.ndarray:
        positive = clamp_negative(values) if relu else values
        return _codes(form, np.clip(positive, -form.limit, form.limit), np.isnan(values))

    return encode


def _codes(form: Format, values: np.ndarray, nan: np.ndarray) -> np.ndarray:
    """uint8 codes of numbers inside the format's range; where `nan`, that of NaN."""
    replaced = np.where(nan, np.float32(form.limit), values.astype(np.float32))
    codes = replaced.astype(form.dtype).view(np.uint8)
    return codes if form.nan is None else np.where(nan, np.uint8(form.nan), codes)


def _join(columns: list[np.ndarray], pitch: int, raw: np.dtype) -> np.ndarray:
    """Codes of the operands, first operand in the upper bits, as one register."""
    joined = np.zeros(len(columns[0]), raw)
    for codes in columns:
        joined = joined << raw.type(pitch) | codes.astype(raw)
    return joined


def _split(register: np.ndarray, pitch: int) -> np.ndarray:
    """uint8[32, 2] codes of a register, lower one first."""
    field = (1 << pitch) - 1
    parts = [register >> register.dtype.type(pitch * part) & field for part in (0, 1)]
    return np.stack(parts, axis=1).astype(np.uint8)


# -- the binary formats ------------------------------------------------------------------------


def _take_modifiers(ins: Decoded, rounding: str) -> bool:
    """Consume the rounding, .satfinite (which a narrowing needs) and .relu; is .relu there?"""
    ins.required((rounding,))
    if not ins.flag("satfinite"):
        ins.unmodelled("a conversion without .satfinite")
    relu = ins.flag("relu")
    ins.finish_modifiers()
    return relu


def _narrow(ins: Decoded, source: Type, target: Type) -> Step:
    form = _FORMATS[target.name[:-2]]
    encode = _encoder(form, _take_modifiers(ins, "rn"))
    pair, write = _pair_reader(ins, source), ins.write(0, target.raw)

    def step(warp, mask):
        codes = [encode(values) for values in pair(warp)]
        write(warp, mask, _join(codes, form.pitch, target.raw))

    return step


def _pair_reader(ins: Decoded, source: Type) -> Callable:
    """A function warp → (upper, lower) float32[32] of two f32 operands or one packed one."""
    if source.name == "f32":
        ins.expect_operands(3)
        upper, lower = ins.read(1, np.float32), ins.read(2, np.float32)
        return lambda warp: (upper(warp), lower(warp))
    if source.name not in ("f16x2", "bf16x2"):
        ins.unmodelled(f"type .{source.name}")
    ins.expect_operands(2)
    read = ins.read(1, np.uint32)
    widen = bf16_to_f32 if source.name == "bf16x2" else lambda raw: raw.view(np.float16)

    def pair(warp):
        halves = read(warp).view(np.uint16).reshape(-1, 2)
        parts = [np.ascontiguousarray(halves[:, part]) for part in (1, 0)]
        return [widen(part).astype(np.float32) for part in parts]

    return pair


def _widen(ins: Decoded, source: Type, target: Type) -> Step:
    """To f16x2, and since PTX ISA 9.2 to bf16x2: every value is exact in both."""
    if target.name not in _WIDE:
        ins.unmodelled(f"type .{target.name}")
    dtype = _WIDE[target.name]
    ins.required(("rn",))
    relu = ins.flag("relu")
    ins.finish_modifiers()
    ins.expect_operands(2)
    form = _FORMATS[source.name[:-2]]
    read, write = ins.read(1, source.raw), ins.write(0, np.uint32)

    def step(warp, mask):
        values = _split(read(warp), form.pitch).view(form.dtype).astype(dtype)
        bits = np.where(np.isnan(values), np.uint16(_WIDE_NAN), values.view(np.uint16))
        if relu:
            bits = np.where(values <= 0, np.uint16(0), bits)
        write(warp, mask, bits.view(np.uint32).reshape(-1))

    return step


# -- stochastic rounding of four f32 -------------------------------------------------------------


def _four(ins: Decoded, source: Type, target: Type) -> Step:
    """cvt.rs{.relu}.satfinite.…x4.f32 d, {a, b, e, f}, rbits."""
    if source.name != "f32":
        ins.unmodelled(f"type .{source.name}")
    form = _FORMATS[target.name[:-2]]
    relu = _take_modifiers(ins, "rs")
    ins.expect_operands(3)
    read, random = ins.read_vector(1, 4, np.float32), ins.read(2, np.uint32)
    write, share = ins.write(0, target.raw), _random_shares(form)

    def encode(values: np.ndarray, fraction: np.ndarray) -> np.ndarray:
        rounded = round_stochastically(values, fraction, form.mantissa, form.smallest)
        inside = np.clip(rounded, -form.limit, form.limit)
        return _codes(form, clamp_negative(inside) if relu else inside, np.isnan(values))

    def step(warp, mask):
        first, second = share(random(warp))
        fractions = (first, first, second, second)
        codes = [encode(*pair) for pair in zip(read(warp), fractions, strict=True)]
        write(warp, mask, _join(codes, form.pitch, target.raw))

    return step


def _random_shares(form: Format) -> Callable:
    """A function rbits → fractions of the last place for a, b and for e, f: 16 bits each."""
    if form.pitch == 8:
        return lambda bits: ((bits >> 16) / 65536, (bits & 0xFFFF) / 65536)

    def halves(bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        upper = bits >> 16 & 0xFF00 | bits >> 8 & 0xFF
        lower = bits >> 8 & 0xFF00 | bits & 0xFF
        return upper / 65536, lower / 65536

    return halves


# -- ue8m0: an exponent --------------------------------------------------------------------------


def _to_scale(ins: Decoded, source: Type) -> Step:
    """cvt.{rz,rp}{.satfinite}.ue8m0x2.{f32,bf16x2}: the power of two below or above |a|."""
    up, finite = ins.required(("rz", "rp")) == "rp", ins.flag("satfinite")
    ins.finish_modifiers()
    if source.name not in ("f32", "bf16x2"):
        ins.unmodelled(f"type .{source.name}")
    pair, write = _pair_reader(ins, source), ins.write(0, np.uint16)

    def step(warp, mask):
        codes = [_exponents(values, up, finite) for values in pair(warp)]
        write(warp, mask, _join(codes, 8, RAW[16]))

    return step


def _exponents(values: np.ndarray, up: bool, finite: bool) -> np.ndarray:
    magnitude = values.view(np.uint32) & np.uint32(0x7FFFFFFF)
    codes = magnitude >> np.uint32(23)
    if up:
        above = (magnitude & np.uint32(0x7FFFFF) != 0) & (magnitude > np.uint32(0x400000))
        codes = codes + (above & (codes != 0xFF))
    if finite:
        codes = np.where(np.isnan(values), 0xFF, np.minimum(codes, 0xFE))
    return codes.astype(np.uint8)


def _from_scale(ins: Decoded, target: Type) -> Step:
    """cvt.rn.bf16x2.ue8m0x2 d, a: exact."""
    ins.required(("rn",))
    ins.finish_modifiers()
    if target.name != "bf16x2":
        ins.unmodelled(f"type .{target.name}")
    ins.expect_operands(2)
    read, write = ins.read(1, TYPES["ue8m0x2"].raw), ins.write(0, np.uint32)

    def step(warp, mask):
        codes = _split(read(warp), 8)
        values = np.exp2(codes.astype(np.float64) - 127).astype(np.float32)
        halves = f32_to_bf16(np.where(codes == 0xFF, np.float32(np.nan), values))
        write(warp, mask, halves.view(np.uint32).reshape(-1))

    return step
