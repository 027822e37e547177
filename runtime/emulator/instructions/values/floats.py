"""How float operands are read for computing and how results are rounded back.

16-bit formats are computed in float64 (their sums and products are exact or rounded to odd
there) and rounded once; f32 and f64 are computed in their own format where numpy's rounding to
nearest is the answer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...ptx.decode import Decoded
from ...ptx.values import Type, bf16_to_f32
from . import rounding
from .rounding import flush_f32, saturate, to_bf16, to_f16, to_f32

Convert = Callable[[np.ndarray], np.ndarray]

ELEMENT = {
    "f16": "f16",
    "f16x2": "f16",
    "bf16": "bf16",
    "bf16x2": "bf16",
    "f32": "f32",
    "f32x2": "f32",
    "f64": "f64",
}
"""The element format of each float type."""


def element(ins: Decoded, type_: Type) -> str:
    """The element format of a float type; refuses other types."""
    if type_.name not in ELEMENT:
        ins.unmodelled(f"type .{type_.name}")
    return ELEMENT[type_.name]


def refuse_pairs(ins: Decoded, type_: Type) -> None:
    """Only sums and products have the type .f32x2 (PTX ISA §9.7.3)."""
    if type_.name == "f32x2":
        raise ins.trap("type", f"{ins.mnemonic} has no type .f32x2")


def _f16_wide(raw: np.ndarray) -> np.ndarray:
    return raw.view(np.float16).astype(np.float64)


def _bf16_wide(raw: np.ndarray) -> np.ndarray:
    return bf16_to_f32(raw.view(np.uint16)).astype(np.float64)


def flush_patterns(ins: Decoded, type_: Type) -> Convert:
    """A function of element patterns (.ftz): subnormal f16 or f32 become zero of their sign."""
    form = element(ins, type_)
    if form == "f32":
        return lambda raw: flush_f32(raw.view(np.float32)).view(np.uint32)
    if form != "f16":
        ins.unmodelled(f".ftz on .{type_.name}")
    sign, exponent = np.uint16(0x8000), np.uint16(0x7C00)
    return lambda raw: np.where(raw & exponent == 0, raw & sign, raw)


def _flush_f16(wide: np.ndarray) -> np.ndarray:
    return np.where(np.abs(wide) < 2.0**-14, np.copysign(0.0, wide), wide)


def reader(ins: Decoded, type_: Type, flush: bool) -> Convert:
    """Raw register bits to numbers: float64 for 16-bit formats, else the format itself.

    Packed types give 64 numbers, low half of lane 0 first.
    """
    form = element(ins, type_)
    if flush and form == "f16":
        return lambda raw: _flush_f16(_f16_wide(raw))
    if flush and form == "f32":
        return lambda raw: flush_f32(raw.view(np.float32))
    if flush:
        ins.unmodelled(f".ftz on .{type_.name}")
    plain = {
        "f16": _f16_wide,
        "bf16": _bf16_wide,
        "f32": lambda raw: raw.view(np.float32),
        "f64": lambda raw: raw.view(np.float64),
    }
    return plain[form]


def wide_reader(ins: Decoded, type_: Type, flush: bool) -> Convert:
    """Raw register bits to float64 numbers."""
    narrow = reader(ins, type_, flush)
    if element(ins, type_) != "f32":
        return narrow
    return lambda raw: narrow(raw).astype(np.float64)


def writer(
    ins: Decoded,
    type_: Type,
    *,
    mode: str = "rn",
    flush: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> Convert:
    """Numbers to raw register bits of `type_`.

    Takes float64 (exact or rounded to odd) for 16-bit formats and for f32 in any mode; float32
    for f32 is stored as it is. `mode` rounds, then come `.ftz`, `.sat` and `.relu`.
    """
    form, raw = element(ins, type_), type_.raw
    if form == "f64":
        return lambda values: _clamped(values, sat, relu).view(raw)
    if form == "f32":
        return _f32_writer(raw, mode, flush, sat, relu)
    narrow = to_f16 if form == "f16" else to_bf16

    def write(values: np.ndarray) -> np.ndarray:
        clamped = _clamped(values, sat, relu)
        return narrow(_flush_f16(clamped) if flush else clamped, mode).view(raw)

    return write


def _clamped(values: np.ndarray, sat: bool, relu: bool) -> np.ndarray:
    if sat:
        return saturate(values)
    return rounding.relu(values) if relu else values


def _f32_writer(raw: np.dtype, mode: str, flush: bool, sat: bool, relu: bool) -> Convert:
    def narrow(values: np.ndarray) -> np.ndarray:
        return to_f32(values, mode) if values.dtype == np.float64 else values

    def finish(values: np.ndarray) -> np.ndarray:
        rounded = flush_f32(narrow(values)) if flush else narrow(values)
        return _clamped(rounded, sat, relu).astype(np.float32).view(raw)

    if flush or sat or relu:
        return finish
    return lambda values: narrow(values).view(raw)
