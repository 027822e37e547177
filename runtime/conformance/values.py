"""Values of a case's operands, as float64 numbers that their types can represent.

Every special value is laid out so that the result does not depend on the order of the sum: a row
holds one number beside zeros, or what it must become in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..element_types import INTEGERS

Pair = tuple[np.ndarray, np.ndarray]
Size = tuple[int, int, int]


@dataclass(frozen=True)
class Limits:
    """The limits of a float type: the largest number, the smallest normal one, the smallest above
    0."""

    greatest: float
    normal: float
    denormal: float
    infinite: bool = True

    @property
    def lift(self) -> float:
        """A power of two that brings `denormal` among the normal numbers."""
        return 4 * self.normal / self.denormal


LIMITS = {
    "bf16": Limits(2.0**127 * (2 - 2.0**-7), 2.0**-126, 2.0**-133),
    "f16": Limits(65504.0, 2.0**-14, 2.0**-24),
    "f32": Limits(2.0**127 * (2 - 2.0**-23), 2.0**-126, 2.0**-149),
    "e4m3": Limits(448.0, 2.0**-6, 2.0**-9, infinite=False),
    "e5m2": Limits(57344.0, 2.0**-14, 2.0**-16),
}
RANGES = {"s8": (-128, 127), "u8": (0, 255), "s32": (-(2**31), 2**31 - 1)}


def make_values(name: str, size: Size, dtype: str, seed: int) -> Pair | None:
    """A [m, k] and B [n, k] in float64, or None if the type has no such values.

    They are rounded to `dtype` when they are stored, and then read back.
    """
    draw = np.random.default_rng(seed)
    if dtype in INTEGERS:
        made = _OF_INTEGERS.get(name)
        return made(draw, size, RANGES[dtype]) if made else None
    limits = LIMITS[dtype]
    if name in _INFINITE and not limits.infinite:
        return None
    return _OF_FLOATS[name](draw, size, limits)


def _normal(draw: np.random.Generator, size: Size, _: object = None) -> Pair:
    m, n, k = size
    return draw.standard_normal((m, k)), draw.standard_normal((n, k))


def _whole(draw: np.random.Generator, size: Size, span: tuple[int, int]) -> Pair:
    m, n, k = size
    low, high = span
    a, b = (draw.integers(low, high, (rows, k), endpoint=True) for rows in (m, n))
    return a.astype(np.float64), b.astype(np.float64)


def _identity(draw: np.random.Generator, size: Size, _: object) -> Pair:
    m, _n, k = size
    return np.eye(m, k), np.rint(4 * _normal(draw, size)[1])


def _small_integers(draw: np.random.Generator, size: Size, _: object) -> Pair:
    return _whole(draw, size, (-4, 4))


def _cancelling(draw: np.random.Generator, size: Size, _: object) -> Pair:
    """The second half of K takes back a multiple of the first, and leaves something small."""
    a, b = _normal(draw, size)
    half = size[2] // 2
    a[:, :half] *= 16
    a[:, half : 2 * half] = -a[:, :half]
    b[:, half : 2 * half] = b[:, :half]
    return a, b


def _signed_zeros(draw: np.random.Generator, size: Size, _: object) -> Pair:
    a, b = _normal(draw, size)
    return np.copysign(0.0, a), np.where(draw.random(b.shape) < 0.5, b, np.copysign(0.0, b))


def _zeros(_: np.random.Generator, size: Size, __: object) -> Pair:
    m, n, k = size
    return np.zeros((m, k)), np.zeros((n, k))


def _single(a_value: float, b_value: float, size: Size) -> Pair:
    """Each row of A holds one number, at another place, of either sign; B is one number."""
    m, n, k = size
    a = np.zeros((m, k))
    rows = np.arange(m)
    a[rows, (7 * rows + k - 1) % k] = np.where(rows % 3 == 1, -a_value, a_value)
    return a, np.full((n, k), b_value)


def _greatest(_: np.random.Generator, size: Size, limits: Limits) -> Pair:
    return _single(limits.greatest, 1.0, size)


def _smallest(_: np.random.Generator, size: Size, limits: Limits) -> Pair:
    return _single(limits.normal, 4.0, size)


def _denormal(_: np.random.Generator, size: Size, limits: Limits) -> Pair:
    """Denormal numbers in A, which must not be taken for 0; the products are normal numbers."""
    return _single(3 * limits.denormal, min(limits.lift, limits.greatest), size)


def _overflowing(_: np.random.Generator, size: Size, limits: Limits) -> Pair:
    return _single(limits.greatest, limits.greatest, size)


def _place(size: Size) -> tuple[int, int]:
    """The row of A and the place in K that hold what is special."""
    m, _n, k = size
    return m // 2, k - 1 - k // 3


def _nan_in_a(draw: np.random.Generator, size: Size, _: object) -> Pair:
    a, b = _normal(draw, size)
    a[_place(size)] = np.nan
    return a, b


def _nan_in_b(draw: np.random.Generator, size: Size, _: object) -> Pair:
    a, b = _normal(draw, size)
    b[size[1] // 2, _place(size)[1]] = np.nan
    return a, b


def _infinity(draw: np.random.Generator, size: Size, _: object) -> Pair:
    a, b = _normal(draw, size)
    a[_place(size)] = -np.inf
    return a, np.where(b == 0, 1.0, b)


def _opposite_infinities(draw: np.random.Generator, size: Size, _: object) -> Pair | None:
    if size[2] < 2:
        return None
    a, b = _normal(draw, size)
    row = _place(size)[0]
    a[row, 0], a[row, -1] = np.inf, -np.inf
    return a, np.abs(b) + 0.5


def _infinity_by_zero(draw: np.random.Generator, size: Size, _: object) -> Pair:
    a, b = _infinity(draw, size, None)
    b[size[1] // 3, _place(size)[1]] = 0.0
    return a, b


_OF_FLOATS: dict[str, Callable[..., Pair | None]] = {
    "normal": _normal,
    "identity": _identity,
    "small-integers": _small_integers,
    "cancelling": _cancelling,
    "signed-zeros": _signed_zeros,
    "zeros": _zeros,
    "greatest": _greatest,
    "smallest": _smallest,
    "denormal": _denormal,
    "overflowing": _overflowing,
    "nan-in-a": _nan_in_a,
    "nan-in-b": _nan_in_b,
    "infinity": _infinity,
    "opposite-infinities": _opposite_infinities,
    "infinity-by-zero": _infinity_by_zero,
}
_OF_INTEGERS: dict[str, Callable[..., Pair]] = {
    "normal": _whole,
    "zeros": _zeros,
    "identity": lambda draw, size, span: (np.eye(size[0], size[2]), _whole(draw, size, span)[1]),
    "greatest": lambda _, size, span: _single(span[1] if span[0] else 1, span[1], size),
    "smallest": lambda _, size, span: (
        _single(1, span[0], size) if span[0] else _zeros(_, size, span)
    ),
}
_INFINITE = ("infinity", "opposite-infinities", "infinity-by-zero")
VALUES = tuple(_OF_FLOATS)
