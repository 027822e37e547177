"""Whether a result is correct: every element within the bounds of an f32 sum in any order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from ..element_types import INTEGERS
from ..judge.epilogue import round_to
from ..judge.intervals import HALF_ULP, SMALLEST_NORMAL, Interval, wrapped
from ..judge.reference import Comparison, compare
from ..judge.sums import SMALLEST_NORMALS, narrow_sums


class Verdict(Enum):
    """RIGHT; REFUSED by a clear exception; WRONG: an element, a gap or an operand; FAULT: the
    kernel broke a rule of the machine; SKIPPED: the subject, or this machine, has no such case."""

    RIGHT = "right"
    REFUSED = "refused"
    WRONG = "WRONG"
    FAULT = "FAULT"
    SKIPPED = "skipped"

    @property
    def failed(self) -> bool:
        return self in (Verdict.WRONG, Verdict.FAULT)


@dataclass(frozen=True)
class Outcome:
    """What became of one case, and one line about it."""

    verdict: Verdict
    detail: str = ""


RIGHT = Outcome(Verdict.RIGHT)


def sums(a: np.ndarray, b: np.ndarray, dtypes: tuple[str, str], on_gpu: bool = False) -> Interval:
    """What a kernel may sum up for A [m, k] · B [n, k]ᵀ (float64) before it rounds to C's type.

    Integers are exact in 32 bits. Sums of floats err by k·u/(1 - k·u) · (|A|·|B|ᵀ), u = 2^-24, in
    any order; what is not finite is as in float64. `on_gpu`: 8-bit floats are summed as Hopper does
    (`sums.narrow_sums`).
    """
    with np.errstate(all="ignore"):
        exact = _product(a, b)
        if dtypes[0] in INTEGERS:
            return Interval.exactly(wrapped(exact))
        radius = _radius(a, b, dtypes, on_gpu)
        radius = np.where(np.isfinite(exact), np.nan_to_num(radius, posinf=0.0), 0.0)
        return Interval(exact - radius, exact, exact + radius)


def rounded(found: Interval, c_dtype: str) -> Interval:
    """The limits as C's type has them."""
    low, middle, high = found.parts()
    return Interval(round_to(low, c_dtype), middle, round_to(high, c_dtype))


def _radius(a: np.ndarray, b: np.ndarray, dtypes: tuple[str, str], on_gpu: bool) -> np.ndarray:
    k = a.shape[1]
    if on_gpu and all(dtype in SMALLEST_NORMALS for dtype in dtypes):
        found = narrow_sums(a, b, *(SMALLEST_NORMALS[dtype] for dtype in dtypes))
        return np.asarray(found.high - found.low)
    relative = k * HALF_ULP / (1 - k * HALF_ULP)
    single = (np.count_nonzero(a, axis=1) <= 1).all()  # one product a row: nothing is summed
    floor = SMALLEST_NORMAL * (1 if single else k)
    return (0.0 if single else relative) * _product(np.abs(a), np.abs(b)) + floor


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """In float64, and so that NaN and infinities go where they must in any library."""
    if np.isfinite(a).all() and np.isfinite(b).all():
        return a @ b.T
    return np.stack([(row * b).sum(axis=1) for row in a])


def judge(expected: Interval, actual: np.ndarray, c_dtype: str) -> Outcome:
    """RIGHT or WRONG, with the worst element."""
    if actual.shape != expected.middle.shape:
        shape = "×".join(map(str, expected.middle.shape))
        got = "×".join(map(str, actual.shape)) or "a scalar"
        return Outcome(Verdict.WRONG, f"the result must be {shape}, got {got}")
    if actual.size == 0:
        return RIGHT
    comparison = compare(expected, actual, c_dtype)
    return RIGHT if comparison.passed else Outcome(Verdict.WRONG, worst_element(comparison))


def worst_element(comparison: Comparison) -> str:
    """The worst element in words."""
    index = ", ".join(map(str, comparison.index))
    share = f"{comparison.mismatches} of {comparison.elements} elements, [{index}]"
    return f"{share} is {comparison.actual:.9g} for {comparison.expected:.9g}"


def first_line(error: BaseException) -> str:
    """An exception in one line."""
    lines: list[Any] = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
