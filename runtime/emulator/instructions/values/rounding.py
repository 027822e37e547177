"""Rounding of exact results to PTX float formats, in every rounding mode.

Three carriers: float64 for results that are exact there; float64 rounded to odd (Boldo and
Melquiond, "Emulation of FMA and correctly rounded sums"), from which any format of at most 51
bits is rounded correctly; and Python fractions, one lane at a time, for the rest.
Source of the modes: PTX ISA §9.7.9.21 (cvt) and §9.7.3 (floating point).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ...ptx.values import BF16_NAN, F16_NAN, F32_NAN, f32_to_bf16, round_to_odd_f32
from ...truth import any_of

MODES = ("rn", "rz", "rm", "rp")
F64_NAN = 0x7FFFFFFFFFFFFFFF
TF32_NAN = 0x7FFFE000


def _nudge(nearest: np.ndarray, exact: np.ndarray, mode: str) -> np.ndarray:
    """The neighbour of a value rounded to nearest that a directed mode asks for."""
    wide = nearest.astype(np.float64)
    if mode == "rz":
        return np.where(
            np.abs(wide) > np.abs(exact), np.nextafter(nearest, nearest.dtype.type(0)), nearest
        )
    if mode == "rm":
        return np.where(wide > exact, np.nextafter(nearest, nearest.dtype.type(-np.inf)), nearest)
    return np.where(wide < exact, np.nextafter(nearest, nearest.dtype.type(np.inf)), nearest)


def to_f32(values: np.ndarray, mode: str = "rn") -> np.ndarray:
    """float64 (exact or rounded to odd) to float32; NaN becomes 0x7FFFFFFF."""
    nearest = values.astype(np.float32)
    if mode != "rn":
        nearest = _nudge(nearest, values, mode)
    nan = nearest != nearest
    if any_of(nan):
        nearest.view(np.uint32)[nan] = F32_NAN
    return nearest


def to_f16(values: np.ndarray, mode: str = "rn") -> np.ndarray:
    """float64 (exact or rounded to odd) to uint16 f16 patterns; NaN becomes 0x7FFF."""
    nearest = values.astype(np.float16)
    if mode != "rn":
        nearest = _nudge(nearest, values, mode)
    bits = nearest.view(np.uint16)
    nan = values != values
    return np.where(nan, np.uint16(F16_NAN), bits) if any_of(nan) else bits


def to_bf16(values: np.ndarray, mode: str = "rn") -> np.ndarray:
    """float64 (exact or rounded to odd) to uint16 bf16 patterns; NaN becomes 0x7FFF."""
    if mode == "rn":
        return f32_to_bf16(round_to_odd_f32(values))
    bits = to_f32(values, mode).view(np.uint32)
    upper = bits >> np.uint32(16)
    if mode != "rz":
        away = (bits >> np.uint32(31)) == (mode == "rm")
        finite = bits & np.uint32(0x7F800000) != np.uint32(0x7F800000)
        upper = upper + (away & finite & (bits & np.uint32(0xFFFF) != 0)).astype(np.uint32)
    return np.where(values != values, BF16_NAN, upper).astype(np.uint16)


def to_tf32(bits: np.ndarray, mode: str) -> np.ndarray:
    """f32 patterns to tf32 patterns (uint32, low 13 bits zero); `rna` is nearest, ties away."""
    magnitude = bits & np.uint32(0x7FFFFFFF)
    increments = {
        "rz": np.uint32(0),
        "rna": np.uint32(0x1000),
        "rn": np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1)),
    }
    rounded = (bits + increments[mode]) & np.uint32(0xFFFFE000)
    special = magnitude >= np.uint32(0x7F800000)
    infinite = np.where(magnitude == np.uint32(0x7F800000), bits, np.uint32(TF32_NAN))
    return np.where(special, infinite, rounded)


def flush_f32(values: np.ndarray) -> np.ndarray:
    """Subnormal float32 to zero of the same sign (.ftz)."""
    bits = values.view(np.uint32)
    small = bits & np.uint32(0x7F800000) == 0
    return np.where(small, bits & np.uint32(0x80000000), bits).view(np.float32)


def relu(values: np.ndarray) -> np.ndarray:
    """Negative numbers and -0 become +0; NaN stays."""
    return np.where(values <= 0, values.dtype.type(0), values)


def saturate(values: np.ndarray) -> np.ndarray:
    """Clamp to [0, 1]; NaN becomes +0 (.sat)."""
    one = values.dtype.type(1)
    return np.where(values > 0, np.minimum(values, one), values.dtype.type(0))


def round_stochastically(
    values: np.ndarray, fraction: np.ndarray, mantissa: int, smallest: int
) -> np.ndarray:
    """float32 to a format of `mantissa` bits as float64: `fraction` of a unit in the last place is
    added to the magnitude, which is then truncated (.rs).

    smallest: exponent of the smallest normal number. Overflow is not handled; NaN stays.
    """
    wide = values.astype(np.float64)
    exponent = np.maximum(np.frexp(wide)[1] - 1, smallest)
    place = np.where(np.isfinite(wide) & (wide != 0), np.exp2(exponent - mantissa), 1.0)
    rounded = np.floor(np.abs(wide) / place + fraction) * place
    return np.where(np.isfinite(wide), np.copysign(rounded, wide), wide)


PRECISION, MAX_EXPONENT = 53, 1023
"""Of float64: significant bits, exponent of the largest binade."""


def round_fraction(value: Fraction, mode: str) -> float:
    """An exact non-zero value rounded once to float64."""
    sign, magnitude = (-1, -value) if value < 0 else (1, value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    step = max(exponent, 1 - MAX_EXPONENT) - PRECISION + 1
    scaled = magnitude / Fraction(2) ** step
    whole, rest = divmod(scaled.numerator, scaled.denominator)
    whole += _round_up(whole, Fraction(rest, scaled.denominator), mode, sign)
    rounded = whole * Fraction(2) ** step
    largest = Fraction(sys.float_info.max)
    if rounded <= largest:
        return sign * float(rounded)
    finite = mode == "rz" or mode == ("rm" if sign > 0 else "rp")
    return sign * (sys.float_info.max if finite else math.inf)


def _round_up(whole: int, rest: Fraction, mode: str, sign: int) -> bool:
    if mode == "rn":
        return rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1 == 1)
    return rest > 0 and ((mode == "rm" and sign < 0) or (mode == "rp" and sign > 0))


def zero_sum_down(total: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sum of a and b rounded down: an exact zero is -0 unless both terms have sign +."""
    negative = np.signbit(a) | np.signbit(b)
    return np.where((total == 0) & negative, -0.0, total)


def exact_lanes(
    function: Callable[..., Fraction],
    native: Callable[..., np.ndarray],
    mode: str,
    *operands: np.ndarray,
    terms: Callable[..., tuple[float, float]] | None = None,
) -> np.ndarray:
    """float64 lanes of an operation evaluated exactly and rounded once to float64.

    `native` gives the lanes whose operands or results are not finite, and exact zeros; for a sum,
    `terms` gives the two addends, on whose signs an exact zero rounded down depends.
    """
    results = native(*operands)
    for lane in range(len(results)):
        values = [float(operand[lane]) for operand in operands]
        if not all(map(math.isfinite, values)):
            continue
        try:
            exact = function(*map(Fraction, values))
        except ZeroDivisionError:
            continue
        if exact:
            results[lane] = round_fraction(exact, mode)
        elif mode == "rm" and terms is not None:
            results[lane] = _zero_down(*terms(*values))
    return results


def _zero_down(a: float, b: float) -> float:
    return -0.0 if math.copysign(1, a) < 0 or math.copysign(1, b) < 0 else 0.0


def sqrt_f64(values: np.ndarray, mode: str) -> np.ndarray:
    """float64 square roots in a directed mode."""
    nearest = np.sqrt(values)
    for lane, value in enumerate(values.tolist()):
        if value > 0 and math.isfinite(value):
            nearest[lane] = _sqrt_directed(value, float(nearest[lane]), mode)
    return nearest


def _sqrt_directed(value: float, nearest: float, mode: str) -> float:
    square, exact = Fraction(nearest) ** 2, Fraction(value)
    if square > exact and mode in ("rz", "rm"):
        return math.nextafter(nearest, 0)
    if square < exact and mode == "rp":
        return math.nextafter(nearest, math.inf)
    return nearest


def canonical_nan(bits: np.ndarray, nan: np.ndarray) -> np.ndarray:
    """Patterns with the lanes of `nan` replaced by the format's canonical NaN."""
    if not any_of(nan):
        return bits
    pattern = {2: F16_NAN, 4: F32_NAN, 8: F64_NAN}[bits.itemsize]
    return np.where(nan, bits.dtype.type(pattern), bits)
