"""The element types of tensors and of scalar parameters."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class ElementType:
    """One element: `bits` in memory, `dtype` the numpy type that holds one.

    `kind` is f (float), s or u (integers). e2m1 elements are packed two a byte, the first in the
    low half, and are held one a byte.
    """

    name: str
    kind: str
    bits: int
    dtype: np.dtype

    @property
    def raw(self) -> np.dtype:
        """The unsigned type of the same width, which .npy files use for what numpy lacks."""
        return np.dtype(f"u{self.dtype.itemsize}")

    @property
    def native(self) -> bool:
        """Whether numpy itself has the type."""
        return self.dtype.type.__module__ == "numpy"

    def integer_range(self) -> tuple[int, int]:
        """Least and greatest integer of an integer type."""
        if self.kind == "s":
            return -(1 << self.bits - 1), (1 << self.bits - 1) - 1
        return 0, (1 << self.bits) - 1


def _floats() -> list[ElementType]:
    kinds = [
        ("bf16", 16, ml_dtypes.bfloat16),
        ("f16", 16, np.float16),
        ("f32", 32, np.float32),
        ("f64", 64, np.float64),
        ("e4m3", 8, ml_dtypes.float8_e4m3fn),
        ("e5m2", 8, ml_dtypes.float8_e5m2),
        ("ue8m0", 8, ml_dtypes.float8_e8m0fnu),
        ("e2m1", 4, ml_dtypes.float4_e2m1fn),
    ]
    return [ElementType(name, "f", bits, np.dtype(kind)) for name, bits, kind in kinds]


def _integers() -> list[ElementType]:
    widths = [(sign, bits) for sign in "us" for bits in (8, 16, 32, 64)]
    letters = {"u": "u", "s": "i"}
    return [
        ElementType(f"{sign}{bits}", sign, bits, np.dtype(f"{letters[sign]}{bits // 8}"))
        for sign, bits in widths
    ]


ELEMENT_TYPES = {kind.name: kind for kind in (*_floats(), *_integers())}
SCALAR_TYPES = {name: kind for name, kind in ELEMENT_TYPES.items() if name not in ("e2m1", "ue8m0")}
