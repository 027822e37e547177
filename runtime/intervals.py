"""Interval arithmetic for an epilogue: which values may correctly rounded float32 code produce?

An `Interval` holds, per element, the value computed in float64 without any rounding (`middle`) and
limits that every float32 evaluation respects when its input lies within the input's limits and each
operation errs by at most its entry in `RELATIVE_ERRORS`. A rounding to fewer bits moves the limits
alone, so `middle` may lie half a unit in the last place outside. Truth values are 0.0 and 1.0:
`low` is 1 where certainly true, `high` is 0 where certainly false.

Sources: IEEE 754 for the correctly rounded operations; PTX ISA, "Floating Point Instructions"
(div.full, sqrt.approx, rsqrt.approx, ex2.approx, tanh.approx), for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

HALF_ULP = 2.0**-24
SMALLEST_NORMAL = 2.0**-126
FLOAT32_LIMIT = 2.0**128 - 2.0**103

RELATIVE_ERRORS = {
    "arith.addf": HALF_ULP,
    "arith.sitofp": HALF_ULP,
    "arith.subf": HALF_ULP,
    "arith.mulf": HALF_ULP,
    "arith.divf": 4 * HALF_ULP,
    "math.erf": 8 * HALF_ULP,
    "math.fma": HALF_ULP,
    "math.exp2": 8 * HALF_ULP,
    "math.exp": 16 * HALF_ULP,
    "math.sqrt": 4 * HALF_ULP,
    "math.rsqrt": 4 * HALF_ULP,
    "math.tanh": 4 * HALF_ULP,
}


@dataclass(frozen=True)
class Interval:
    """Float64 arrays of one shape (or broadcastable to it)."""

    low: np.ndarray
    middle: np.ndarray
    high: np.ndarray

    @staticmethod
    def exactly(value: Any) -> Interval:
        """A value without error."""
        array = np.asarray(value, np.float64)
        return Interval(array, array, array)

    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(low, middle, high)."""
        return self.low, self.middle, self.high

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> Interval:
        """The image under a function that never decreases."""
        return Interval(*(function(part) for part in self.parts()))

    def widened(self, slack: np.ndarray) -> Interval:
        """Both limits moved outwards by `slack`, then rounded to what float32 can hold."""
        with np.errstate(invalid="ignore"):
            low = np.where(np.isfinite(self.low), self.low - slack, self.low)
            high = np.where(np.isfinite(self.high), self.high + slack, self.high)
        return Interval(low, self.middle, high).map(_overflowed)

    def magnitude(self) -> np.ndarray:
        """The largest absolute value inside."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


def rounded(name: str, exact: Interval, *inputs: Interval) -> Interval:
    """`exact` with the error that float32 code may add in the operation `name`."""
    relative = RELATIVE_ERRORS.get(name)
    if relative is None:
        return exact
    if name == "math.exp":  # exp2(x * log2 e): the rounded product errs in proportion to x
        relative = relative + 2 * HALF_ULP * inputs[0].magnitude()
    return exact.widened(relative * exact.magnitude() + SMALLEST_NORMAL)


def add(a: Interval, b: Interval) -> Interval:
    return Interval(a.low + b.low, a.middle + b.middle, a.high + b.high)


def negate(a: Interval) -> Interval:
    return Interval(-a.high, -a.middle, -a.low)


def subtract(a: Interval, b: Interval) -> Interval:
    return add(a, negate(b))


def multiply(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return _hull(corners, a.middle * b.middle)


def divide(a: Interval, b: Interval) -> Interval:
    """Anything where the divisor may be a zero, unless it is exactly one whose sign is known."""
    corners = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
    quotient = _hull(corners, a.middle / b.middle)
    signs = [np.signbit(part) for part in (b.low, b.middle, b.high)]
    exact = (b.low == b.high) & (signs[0] == signs[1]) & (signs[1] == signs[2])
    anything = (b.low <= 0) & (b.high >= 0) & ~exact
    low = np.where(anything, -np.inf, quotient.low)
    high = np.where(anything, np.inf, quotient.high)
    return Interval(low, quotient.middle, high)


def fused_multiply_add(a: Interval, b: Interval, c: Interval) -> Interval:
    return add(multiply(a, b), c)


def absolute(a: Interval) -> Interval:
    crosses_zero = (a.low <= 0) & (a.high >= 0)
    nearest = np.minimum(np.abs(a.low), np.abs(a.high))
    return Interval(np.where(crosses_zero, 0.0, nearest), np.abs(a.middle), a.magnitude())


def reciprocal_root(a: Interval) -> Interval:
    roots = a.map(lambda part: 1 / np.sqrt(np.maximum(part, 0)))
    middle = 1 / np.sqrt(a.middle)
    return Interval(roots.high, middle, roots.low)


def root(a: Interval) -> Interval:
    roots = a.map(lambda part: np.sqrt(np.maximum(part, 0)))
    return Interval(roots.low, np.sqrt(a.middle), roots.high)


def wrapped(values: np.ndarray) -> np.ndarray:
    """Exact integers as 32 bits hold them, in two's complement."""
    return (values + 2.0**31) % 2.0**32 - 2.0**31


def choose(condition: Interval, yes: Interval, no: Interval) -> Interval:
    certain, impossible = condition.low == 1, condition.high == 0
    either_low, either_high = np.minimum(yes.low, no.low), np.maximum(yes.high, no.high)
    low = np.where(certain, yes.low, np.where(impossible, no.low, either_low))
    high = np.where(certain, yes.high, np.where(impossible, no.high, either_high))
    return Interval(low, np.where(condition.middle == 1, yes.middle, no.middle), high)


def compare(predicate: str, a: Interval, b: Interval) -> Interval:
    """An `arith.cmpf` predicate: o or u (true when unordered), then eq, ne, lt, le, gt or ge."""
    ordered, relation = predicate[0] == "o", predicate[1:]
    certain, possible = _relation(relation, a, b)
    middle = _COMPARISONS[relation](a.middle, b.middle)
    unordered = np.isnan(a.middle) | np.isnan(b.middle)
    truths = (certain, middle, possible)
    return Interval(*(np.where(unordered, not ordered, truth) * 1.0 for truth in truths))


def binary(function: Callable[[Any, Any], np.ndarray]) -> Callable[[Interval, Interval], Interval]:
    """The interval form of a function that never decreases in either argument."""

    def combine(a: Interval, b: Interval) -> Interval:
        parts = zip(a.parts(), b.parts(), strict=True)
        return Interval(*(function(x, y) for x, y in parts))

    return combine


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _relation(relation: str, a: Interval, b: Interval) -> tuple[np.ndarray, np.ndarray]:
    """Where the relation holds for all, and where for some, values of the two intervals."""
    if relation in ("gt", "ge"):
        return _relation({"gt": "lt", "ge": "le"}[relation], b, a)
    if relation in ("lt", "le"):
        holds = _COMPARISONS[relation]
        return holds(a.high, b.low), holds(a.low, b.high)
    apart = (a.high < b.low) | (b.high < a.low)
    one_value = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
    return (one_value, ~apart) if relation == "eq" else (apart, ~one_value)


def _hull(corners: list[np.ndarray], middle: np.ndarray) -> Interval:
    return Interval(np.fmin.reduce(corners), middle, np.fmax.reduce(corners))


def _overflowed(part: np.ndarray) -> np.ndarray:
    return np.where(np.abs(part) >= FLOAT32_LIMIT, np.copysign(np.inf, part), part)
