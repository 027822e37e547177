"""Rounding float64 values to the floats of MLIR, in every rounding mode of `arith.truncf`.

IEEE 754-2019, sections 3.3 (formats) and 4.3 (rounding-direction attributes).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NEAREST_EVEN, DOWNWARD, UPWARD, TOWARD_ZERO, NEAREST_AWAY = range(5)
"""MLIR's `arith::RoundingMode`."""


@dataclass(frozen=True)
class Format:
    """A binary format: significant bits, and the exponents of its smallest and largest normals."""

    bits: int
    smallest: int
    largest: int
    most: float | None = None

    @property
    def limit(self) -> float:
        """The largest number."""
        return self.most or (2.0 - 2.0 ** (1 - self.bits)) * 2.0**self.largest


FORMATS = {"f16": Format(11, -14, 15), "bf16": Format(8, -126, 127), "f32": Format(24, -126, 127)}
# What is beyond their largest number MLIR leaves open; here as in PTX (cvt.satfinite).
FORMATS |= {"f8E4M3FN": Format(4, -6, 8, 448.0), "f8E5M2": Format(3, -14, 15, 57344.0)}


def round_to(values: np.ndarray, name: str, mode: int = NEAREST_EVEN) -> np.ndarray:
    """The values in the format `name`, as float64; f64 stays as it is."""
    if name == "f64":
        return values
    format_ = FORMATS[name]
    values = np.asarray(values, np.float64)
    with np.errstate(all="ignore"):
        exponents = np.maximum(np.frexp(values)[1] - 1, format_.smallest)
        unit = np.ldexp(1.0, exponents - format_.bits + 1)
        rounded = _to_integer(values / unit, mode) * unit
    kept = np.where(np.isfinite(values), rounded, values)
    if name.startswith("f8"):
        return np.clip(kept, -format_.limit, format_.limit)
    return np.where(np.abs(kept) > format_.limit, _overflowed(kept, format_, mode, values), kept)


def _to_integer(scaled: np.ndarray, mode: int) -> np.ndarray:
    if mode == NEAREST_AWAY:
        return np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)
    directed = {DOWNWARD: np.floor, UPWARD: np.ceil, TOWARD_ZERO: np.trunc}
    return directed.get(mode, np.rint)(scaled)


def _overflowed(rounded: np.ndarray, format_: Format, mode: int, values: np.ndarray) -> np.ndarray:
    """What is beyond the largest number: infinite, or that number where the mode turns back."""
    back = {DOWNWARD: rounded > 0, UPWARD: rounded < 0, TOWARD_ZERO: True}.get(mode, False)
    infinite = np.copysign(np.inf, rounded)
    return np.where(back & np.isfinite(values), np.copysign(format_.limit, rounded), infinite)
