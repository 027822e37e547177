"""Sums of products in f64, and their error bounds.

The reference is of twice the digits, product by product: two-sum and Dekker's product keep what a
rounding loses (Higham, Accuracy and Stability of Numerical Algorithms, §4.3; Dekker, A
floating-point technique for extending the available precision, 1971). Where that is too much work,
it is a sum in f64, whose own error is added to the limits.
"""

from __future__ import annotations

import numpy as np

from .intervals import Interval

HALF_ULP = 2.0**-53
SMALLEST_NORMAL = 2.0**-1022
PRODUCTS_MAX = 2**26
SPLITTER = 2.0**27 + 1  # cuts the 53 bits of a number in halves


def double_sums(a: np.ndarray, b: np.ndarray) -> Interval:
    """a [m, k] · b [n, k]ᵀ with the limits of a sum in f64 in any order, by fma or not."""
    k = a.shape[1]
    relative = k * HALF_ULP / (1 - k * HALF_ULP)
    magnitude = np.abs(a) @ np.abs(b).T
    if a.shape[0] * b.shape[0] * k <= PRODUCTS_MAX and _is_tame(a) and _is_tame(b):
        middle, own = _exact_sums(a, b), HALF_ULP
    else:
        middle, own = a @ b.T, relative
    error = (relative + own) * magnitude + k * SMALLEST_NORMAL
    return Interval(middle, middle, middle).widened(error)


def _is_tame(values: np.ndarray) -> bool:
    """Whether products and their halves neither overflow nor lose digits below."""
    sizes = np.abs(values[values != 0])
    return bool(
        np.isfinite(values).all() and (sizes < 2.0**400).all() and (sizes > 2.0**-400).all()
    )


def _exact_sums(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    high, low = np.zeros((a.shape[0], b.shape[0])), np.zeros((a.shape[0], b.shape[0]))
    for k in range(a.shape[1]):
        product, rest = _two_product(a[:, k, None], b[None, :, k])
        high, lost = _two_sum(high, product)
        low = low + (lost + rest)
    return high + low


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a + b rounded, what the rounding lost)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a * b rounded, what the rounding lost)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, lost


def _halves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = SPLITTER * values
    high = scaled - (scaled - values)
    return high, values - high
