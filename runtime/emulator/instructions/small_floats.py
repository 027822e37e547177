"""cvt to and from the packed 8-bit formats e4m3x2 and e5m2x2 (PTX ISA §9.7.9.21)."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from ..decode import Decoded
from ..registry import Step
from ..rounding import relu as clamp_negative
from ..values import Type

_FORMATS = {"e4m3x2": (ml_dtypes.float8_e4m3fn, 448.0), "e5m2x2": (ml_dtypes.float8_e5m2, 57344.0)}
_NAN = 0x7F


def is_small_float(name: str) -> bool:
    """Is it an 8-bit packed type that is modelled?"""
    return name in _FORMATS


def _encode(form: str, relu: bool) -> Callable:
    """float32 → uint8, to nearest even, finite overflow and infinity to the largest value."""
    dtype, limit = _FORMATS[form]

    def encode(values: np.ndarray) -> np.ndarray:
        positive = clamp_negative(values) if relu else values
        bits = np.clip(positive, -limit, limit).astype(np.float32).astype(dtype).view(np.uint8)
        return np.where(np.isnan(values), np.uint8(_NAN), bits)

    return encode


def build_small_float(ins: Decoded) -> Step:
    """cvt.rn.satfinite{.relu}.e4m3x2.{f32,f16x2}, cvt.rn{.relu}.f16x2.e4m3x2 and e5m2x2."""
    source, target = ins.take_type(), ins.take_type()
    ins.required(("rn",))
    relu, finite = ins.flag("relu"), ins.flag("satfinite")
    ins.finish_modifiers()
    if is_small_float(source.name):
        return _widen(ins, source, target, relu)
    if not finite:
        ins.unmodelled("a conversion without .satfinite")
    if source.name == "f32":
        return _from_f32(ins, target, relu)
    if source.name == "f16x2":
        return _from_f16x2(ins, target, relu)
    return ins.unmodelled(f"type .{source.name}")


def _from_f32(ins: Decoded, target: Type, relu: bool) -> Step:
    ins.expect_operands(3)
    encode, write = _encode(target.name, relu), ins.write(0, np.uint16)
    upper, lower = ins.read(1, np.float32), ins.read(2, np.float32)

    def step(warp, mask):
        pair = np.stack([encode(lower(warp)), encode(upper(warp))], axis=1)
        write(warp, mask, pair.view(np.uint16).reshape(32))

    return step


def _from_f16x2(ins: Decoded, target: Type, relu: bool) -> Step:
    ins.expect_operands(2)
    encode, write = _encode(target.name, relu), ins.write(0, np.uint16)
    read = ins.read(1, np.uint32)

    def step(warp, mask):
        halves = read(warp).view(np.float16).astype(np.float32)
        write(warp, mask, encode(halves).view(np.uint16))

    return step


def _widen(ins: Decoded, source: Type, target: Type, relu: bool) -> Step:
    ins.expect_operands(2)
    if target.name != "f16x2":
        ins.unmodelled(f"type .{target.name}")
    dtype, read = _FORMATS[source.name][0], ins.read(1, np.uint16)
    write = ins.write(0, np.uint32)

    def step(warp, mask):
        values = read(warp).view(np.uint8).view(dtype).astype(np.float16)
        bits = np.where(np.isnan(values), np.uint16(0x7FFF), values.view(np.uint16))
        if relu:
            bits = np.where(values <= 0, np.uint16(0), bits)
        write(warp, mask, bits.view(np.uint32))

    return step
