"""Sums of 8-bit floats as Hopper's wgmma forms them, with 14 significant bits.

PTX asks for more than half and less than single precision (PTX ISA §9.7.15.5.2, precision and
rounding). What an H100 does was found out by others (Xie et al., MMA-Sim, arXiv 2511.10909). For
each MMA, of 32 elements of K:

    terms    the 32 products and the sum before; a product's exponent is that of its factors
             together, and a factor below the smallest normal number has the exponent of that
    cut      each term, towards zero, 13 bits below the largest exponent of a term
    sum      exactly, and cut 13 bits below its own exponent
"""

from __future__ import annotations

import numpy as np

SUMS = ("f32", "hopper")
"""What `launch` takes as `fp8_sums`, the default first."""
SMALLEST = {"e4m3": -6, "e5m2": -14}
"""Exponents of the smallest normal numbers, by type."""
FRACTION = 13
NOTHING = -1000


def short_sum(
    a: np.ndarray, b: np.ndarray, types: tuple[str, str], before: np.ndarray | None
) -> np.ndarray:
    """``float32[m, n]`` = A[m, k] · B[n, k]ᵀ, and the sums before, with 14 bits."""
    old = np.zeros((len(a), len(b))) if before is None else before.astype(np.float64)
    with np.errstate(all="ignore"):
        products = a[:, None, :].astype(np.float64) * b[None, :, :]
        places = _exponents(a, SMALLEST[types[0]])[:, None] + _exponents(b, SMALLEST[types[1]])
        largest = np.maximum(places.max(-1), _exponents(old))
        unit = np.ldexp(1.0, largest - FRACTION)
        total = np.trunc(products / unit[..., None]).sum(-1) + np.trunc(old / unit)
        total = _cut(total * unit)
        finite = np.isfinite(products).all(-1) & np.isfinite(old)
        return np.where(finite, total, products.sum(-1) + old).astype(np.float32)


def _cut(total: np.ndarray) -> np.ndarray:
    unit = np.ldexp(1.0, _exponents(total) - FRACTION)
    return np.trunc(total / unit) * unit


def _exponents(values: np.ndarray, least: int = NOTHING) -> np.ndarray:
    """floor(log2 |value|), at least `least`; of zero far less than any."""
    found = np.maximum(np.frexp(values)[1] - 1, least)
    return np.where((values == 0) | ~np.isfinite(values), NOTHING, found)
