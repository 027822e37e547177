"""PTX scalar types and their numpy storage (PTX ISA §5.2), and bit-exact rounding helpers.

Registers hold raw bits: an unsigned numpy array of the register's width (bool for `.pred`,
uint64[32, 2] low word first for 128 bits). Instructions view them as what the type says.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from ..truth import any_of


@dataclass(frozen=True)
class Type:
    """kind: `u`, `s`, `b`, `f`, `p` (predicate) or `x` (packed or alternate float, raw bits)."""

    name: str
    bits: int
    kind: str
    dtype: np.dtype
    """How a value is viewed to compute with it; raw bits where numpy has no such type."""

    @property
    def raw(self) -> np.dtype:
        """The unsigned (or bool) dtype that stores it."""
        return RAW[self.bits] if self.kind != "p" else RAW[1]

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def signed(self) -> bool:
        return self.kind == "s"


RAW = {
    1: np.dtype(bool),
    8: np.dtype(np.uint8),
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
    128: np.dtype(np.uint64),
}


def _table() -> dict[str, Type]:
    types = {"pred": Type("pred", 1, "p", RAW[1]), "b128": Type("b128", 128, "b", RAW[128])}
    for bits in (8, 16, 32, 64):
        types[f"b{bits}"] = Type(f"b{bits}", bits, "b", RAW[bits])
        types[f"u{bits}"] = Type(f"u{bits}", bits, "u", RAW[bits])
        types[f"s{bits}"] = Type(f"s{bits}", bits, "s", np.dtype(f"int{bits}"))
    for bits in (16, 32, 64):
        types[f"f{bits}"] = Type(f"f{bits}", bits, "f", np.dtype(f"float{bits}"))
    for name, bits in (
        ("bf16", 16),
        ("tf32", 32),
        ("f16x2", 32),
        ("bf16x2", 32),
        ("u16x2", 32),
        ("s16x2", 32),
        ("f32x2", 64),
        ("e2m1x2", 8),
        *((f"{name}x2", 16) for name in ("e4m3", "e5m2", "e2m3", "e3m2", "ue8m0")),
        ("e2m1x4", 16),
        *((f"{name}x4", 32) for name in ("e4m3", "e5m2", "e2m3", "e3m2")),
    ):
        types[name] = Type(name, bits, "x", RAW[bits])
    return types


TYPES: dict[str, Type] = _table()

_BF16 = np.dtype(ml_dtypes.bfloat16)
F32_NAN = 0x7FFFFFFF
F16_NAN = BF16_NAN = 0x7FFF


def bf16_to_f32(bits: np.ndarray) -> np.ndarray:
    """uint16 bf16 patterns to float32 (exact)."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def f32_to_bf16(values: np.ndarray) -> np.ndarray:
    """float32 to uint16 bf16 patterns, round to nearest even; NaN becomes 0x7FFF."""
    rounded = values.astype(_BF16).view(np.uint16)
    flat = values.ravel()
    squares = np.dot(flat, flat)
    if squares != squares:
        rounded[values != values] = BF16_NAN
    return rounded


def round_to_odd_f32(values: np.ndarray) -> np.ndarray:
    """float64 to float32 so that a later rounding to ≤ 22 bits is correct (inexact → odd)."""
    nearest = values.astype(np.float32)
    wide = nearest.astype(np.float64)
    inexact = (wide != values) & np.isfinite(values)
    toward_zero = np.abs(wide) > np.abs(values)
    bits = nearest.view(np.uint32) - (inexact & toward_zero).astype(np.uint32)
    return (bits | inexact).astype(np.uint32).view(np.float32)


def two_sum_odd(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b in float64, rounded to odd: rounding the result again to ≤ 51 bits is correct.

    Knuth's two-sum finds the error of the nearest sum; an inexact even sum moves one step
    toward the error (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums").
    """
    total = a + b
    shifted = total - a
    error = (a - (total - shifted)) + (b - shifted)
    bits = total.view(np.int64)
    fix = (error != 0) & (bits & 1 == 0) & np.isfinite(total)
    if not any_of(fix):
        return total
    step = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(fix, bits + step, bits).view(np.float64)
