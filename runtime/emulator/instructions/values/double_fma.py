"""a · b + c of f64, rounded once to nearest even, for whole warps.

Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding
to odd" (IEEE Transactions on Computers, 2008): the product and the sum are taken apart without an
error, what is left over is added with rounding to odd, and the last sum rounds once. It holds where
nothing overflows or loses digits below the normal numbers; `is_tame` says where that is certain.
"""

from __future__ import annotations

import numpy as np

from ...ptx.values import two_sum_odd

SPLITTER = 2.0**27 + 1
LEAST, MOST = 2.0**-400, 2.0**400


def is_tame(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Where `fused` is right: every operand is 0 or far from both ends of the range."""
    tame = np.ones(np.broadcast(a, b, c).shape, bool)
    for part in (a, b, c):
        size = np.abs(part)
        tame &= (size == 0) | ((size > LEAST) & (size < MOST))
    return tame


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The sums, where the operands are tame."""
    plain = a * b + c
    product, low = _two_product(a, b)
    high, rest = _two_sum(c, low)
    total, tail = _two_sum(product, high)
    exact = (a == 0) | (b == 0) | (c == 0)  # one rounding as it is, and the sign of zero
    return np.where(exact, plain, total + two_sum_odd(rest, tail))


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a + b rounded, what the rounding lost)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a · b rounded, what the rounding lost)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, lost


def _halves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = SPLITTER * values
    high = scaled - (scaled - values)
    return high, values - high
