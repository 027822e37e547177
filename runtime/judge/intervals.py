"""Interval arithmetic for an epilogue: the values that correctly rounded f32 code may produce.

An `Interval` holds, per element, the value computed in float64 without any rounding (`middle`) and
limits that every float32 evaluation respects when its input lies within the input's limits and each
operation errs by at most its entry in `RELATIVE_ERRORS`. A rounding to fewer bits moves the limits
alone, so `middle` may lie half a unit in the last place outside. Truth values are 0.0 and 1.0:
`low` is 1 where certainly true, `high` is 0 where certainly false. The limits are those of results
that are numbers; `nan` says where the result may be none, and where it certainly is none the limits
are NaN.

Sources: IEEE 754 for the correctly rounded operations; PTX ISA, "Floating Point Instructions"
(div.full, sqrt.approx, rsqrt.approx, lg2.approx, ex2.approx, tanh.approx), for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..math_policies import CIRCULAR, LOGARITHMS

HALF_ULP = 2.0**-24
SMALLEST_NORMAL = 2.0**-126
FLOAT32_LIMIT = 2.0**128 - 2.0**103
EXP_LIMIT = 128.0
"""exp of more is infinite in float32, of less than -128 below all normal numbers."""

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
    **dict.fromkeys((*CIRCULAR, *LOGARITHMS), 8 * HALF_ULP),
    "math.sqrt": 4 * HALF_ULP,
    "math.rsqrt": 4 * HALF_ULP,
    "math.tanh": 4 * HALF_ULP,
}


@dataclass(frozen=True)
class Interval:
    """Float64 arrays of one shape (or broadcastable to it).

    nan: where the value may be NaN; by default where `middle` is.
    """

    low: np.ndarray
    middle: np.ndarray
    high: np.ndarray
    nan: np.ndarray = None  # pyright: ignore[reportAssignmentType]  # set below

    def __post_init__(self) -> None:
        if self.nan is None:
            object.__setattr__(self, "nan", np.isnan(self.middle))

    @staticmethod
    def exactly(value: Any) -> Interval:
        """A value without error."""
        array = np.asarray(value, np.float64)
        return Interval(array, array, array)

    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(low, middle, high)."""
        return self.low, self.middle, self.high

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> Interval:
        """The image under a function that never decreases, and is NaN of NaN alone."""
        low, middle, high = (function(part) for part in self.parts())
        return Interval(low, middle, high, self.nan)

    def reshaped(self, function: Callable[[np.ndarray], np.ndarray]) -> Interval:
        """The same elements in other places."""
        return Interval(*(function(part) for part in (*self.parts(), self.nan)))

    def widened(self, slack: np.ndarray) -> Interval:
        """Both limits moved outwards by `slack`, then rounded to what float32 can hold."""
        return self._moved(slack, slack)

    def _moved(self, down: np.ndarray, up: np.ndarray) -> Interval:
        with np.errstate(invalid="ignore"):
            low = np.where(np.isfinite(self.low), self.low - down, self.low)
            high = np.where(np.isfinite(self.high), self.high + up, self.high)
        return Interval(_overflowed(low), _overflowed(self.middle), _overflowed(high), self.nan)

    def erring(self, relative: Any) -> Interval:
        """Widened by a relative error, and by what is flushed to 0.

        A limit moves by the error of its own magnitude: x - e|x| never decreases while e < 1.
        """
        slacks = (relative * np.abs(part) + SMALLEST_NORMAL for part in (self.low, self.high))
        return self._moved(*slacks)

    def magnitude(self) -> np.ndarray:
        """The largest absolute value inside."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def certainly_nan(self) -> np.ndarray:
        """Where no number is possible."""
        return np.isnan(self.low)


def stacked(parts: Sequence[Interval]) -> Interval:
    """Intervals of one shape along a new first dim."""
    pairs = zip(*((*part.parts(), part.nan) for part in parts), strict=True)
    return Interval(*(np.stack(each) for each in pairs))


def rounded(name: str, exact: Interval, *inputs: Interval) -> Interval:
    """`exact` with the error that float32 code may add in the operation `name`."""
    relative = RELATIVE_ERRORS.get(name)
    if relative is None:
        return exact
    if name == "math.exp":  # exp2(x * log2 e): the rounded product errs in proportion to x
        relative = relative + 2 * HALF_ULP * np.minimum(inputs[0].magnitude(), EXP_LIMIT)
    return exact.erring(relative)


def add(a: Interval, b: Interval) -> Interval:
    nan = a.nan | b.nan | _opposite(a, b) | _opposite(b, a)
    low, high = a.low + b.low, a.high + b.high
    return Interval(_or(low, high), a.middle + b.middle, _or(high, low), nan)


def negate(a: Interval) -> Interval:
    return Interval(-a.high, -a.middle, -a.low, a.nan)


def subtract(a: Interval, b: Interval) -> Interval:
    return add(a, negate(b))


def multiply(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    nan = a.nan | b.nan | (_holds_zero(a) & _unbounded(b)) | (_holds_zero(b) & _unbounded(a))
    return _hull(corners, a, b, a.middle * b.middle, nan)


def divide(a: Interval, b: Interval) -> Interval:
    """Anything where the divisor may be a zero, unless it is exactly one whose sign is known."""
    corners = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
    nan = a.nan | b.nan | (_holds_zero(a) & _holds_zero(b)) | (_unbounded(a) & _unbounded(b))
    quotient = _hull(corners, a, b, a.middle / b.middle, nan)
    anything = _holds_zero(b) & ~_is_signed(b) & ~a.certainly_nan()
    low = np.where(anything, -np.inf, quotient.low)
    high = np.where(anything, np.inf, quotient.high)
    return Interval(low, quotient.middle, high, nan)


def fused_multiply_add(a: Interval, b: Interval, c: Interval) -> Interval:
    return add(multiply(a, b), c)


def absolute(a: Interval) -> Interval:
    nearest = np.minimum(np.abs(a.low), np.abs(a.high))
    low = np.where(_holds_zero(a), 0.0, nearest)
    return Interval(low, np.abs(a.middle), a.magnitude(), a.nan)


def reciprocal_root(a: Interval) -> Interval:
    """1/√x; of -0 it is -∞, and a zero among others may be either."""
    roots = root(a)
    low, middle, high = 1 / roots.high, 1 / roots.middle, 1 / roots.low
    either = _holds_zero(a) & ~_is_signed(a)
    return Interval(
        np.where(either, -np.inf, low), middle, np.where(either, np.inf, high), roots.nan
    )


def root(a: Interval) -> Interval:
    """√x, NaN of what is below 0."""
    low = np.sqrt(np.where((a.low < 0) & (a.high >= 0), 0.0, a.low))
    return Interval(low, np.sqrt(a.middle), np.sqrt(a.high), a.nan | (a.low < 0))


def logarithm(
    function: Callable[[np.ndarray], np.ndarray], least: float
) -> Callable[..., Interval]:
    """A logarithm of `least` and more, where it is -∞; NaN below."""

    def of(a: Interval) -> Interval:
        low = function(np.where((a.low < least) & (a.high >= least), least, a.low))
        return Interval(low, function(a.middle), function(a.high), a.nan | (a.low < least))

    return of


def wave(function: Callable[[np.ndarray], np.ndarray], peak: float) -> Callable[..., Interval]:
    """A sine or cosine, which is 1 at `peak` times pi, and NaN of infinities."""

    def of(a: Interval) -> Interval:
        with np.errstate(invalid="ignore"):
            low, middle, high = (function(part) for part in a.parts())
        ends = a.low / np.pi, a.high / np.pi
        spread = _unbounded(a) & (a.low != a.high)
        top, bottom = (_holds_turn(*ends, turn) | spread for turn in (peak, peak + 1))
        most, least = (
            np.where(top, 1.0, np.fmax(low, high)),
            np.where(bottom, -1.0, np.fmin(low, high)),
        )
        return Interval(least, middle, most, a.nan | _unbounded(a))

    return of


def _holds_turn(low: np.ndarray, high: np.ndarray, turn: float) -> np.ndarray:
    """Whether a number that is even but for `turn` lies between, or as near as rounding tells."""
    slack = 2.0**-50
    below, above = low - slack * np.abs(low), high + slack * np.abs(high)
    with np.errstate(invalid="ignore"):
        return np.floor((above - turn) / 2) >= np.ceil((below - turn) / 2)


def away_from_zero(values: np.ndarray) -> np.ndarray:
    """The nearest integers, of two the one further from 0."""
    whole = np.trunc(values)
    return np.where(np.abs(values - whole) >= 0.5, whole + np.sign(values), whole)


def wrapped(values: np.ndarray) -> np.ndarray:
    """Exact integers as 32 bits hold them, in two's complement."""
    return (values + 2.0**31) % 2.0**32 - 2.0**31


def choose(condition: Interval, yes: Interval, no: Interval) -> Interval:
    certain, impossible = condition.low == 1, condition.high == 0
    either = (np.fmin(yes.low, no.low), np.fmax(yes.high, no.high), yes.nan | no.nan)
    pairs = ((yes.low, no.low), (yes.high, no.high), (yes.nan, no.nan))
    low, high, nan = (
        np.where(certain, of_yes, np.where(impossible, of_no, both))
        for (of_yes, of_no), both in zip(pairs, either, strict=True)
    )
    return Interval(low, np.where(condition.middle == 1, yes.middle, no.middle), high, nan)


def compare(predicate: str, a: Interval, b: Interval) -> Interval:
    """An `arith.cmpf` predicate: o or u (true when unordered), then eq, ne, lt, le, gt or ge; or
    one of `ORDERS`."""
    if predicate in ORDERS:
        return Interval.exactly(ORDERS[predicate](np.isnan(a.middle) | np.isnan(b.middle)) * 1.0)
    ordered, relation = predicate[0] == "o", predicate[1:]
    certain, possible = _relation(relation, a, b)
    may, must = a.nan | b.nan, a.certainly_nan() | b.certainly_nan()
    middle = _COMPARISONS[relation](a.middle, b.middle)
    middle = np.where(np.isnan(a.middle) | np.isnan(b.middle), not ordered, middle)
    truths = (certain & ~may, middle, possible & ~must)
    if not ordered:
        truths = (certain | must, middle, possible | may)
    return Interval(*(np.asarray(truth, np.float64) for truth in truths))


def maximum(a: Interval, b: Interval) -> Interval:
    """The larger one, +0 above -0; NaN of a NaN."""
    low, middle, high = (_maximum(*both) for both in zip(a.parts(), b.parts(), strict=True))
    return Interval(low, middle, high, a.nan | b.nan)


def minimum(a: Interval, b: Interval) -> Interval:
    """The smaller one, -0 below +0; NaN of a NaN."""
    return negate(maximum(negate(a), negate(b)))


def maximum_number(a: Interval, b: Interval) -> Interval:
    """The larger one, either of two zeros; the other one of a NaN."""
    low = np.fmin.reduce([np.fmax(a.low, b.low), _where(a.nan, b.low), _where(b.nan, a.low)])
    low = np.where((low == 0) & (_holds_zero(a) & _holds_zero(b)), -0.0, low)
    high = np.fmax(a.high, b.high) + 0.0  # + 0 makes +0 of -0
    return Interval(low, np.fmax(a.middle, b.middle), high, a.nan & b.nan)


def minimum_number(a: Interval, b: Interval) -> Interval:
    """The smaller one, either of two zeros; the other one of a NaN."""
    return negate(maximum_number(negate(a), negate(b)))


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


ORDERS: Mapping[str, Callable[[Any], Any]] = {
    "ord": np.logical_not,
    "uno": np.asarray,
    "true": np.ones_like,
    "false": np.zeros_like,
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


def _hull(
    corners: list[np.ndarray], a: Interval, b: Interval, middle: np.ndarray, nan: np.ndarray
) -> Interval:
    """What a product or quotient lies in. Where every corner is 0·∞ or ∞/∞ and yet one of the two
    may be finite, only 0 is left."""
    low, high = np.fmin.reduce(corners), np.fmax.reduce(corners)
    lost = np.isnan(low) & ~a.certainly_nan() & ~b.certainly_nan()
    lost &= (a.low < a.high) | (b.low < b.high)
    return Interval(np.where(lost, 0.0, low), middle, np.where(lost, 0.0, high), nan)


def _opposite(a: Interval, b: Interval) -> np.ndarray:
    """Where a may be ∞ while b is -∞."""
    return (a.high == np.inf) & (b.low == -np.inf)


def _or(value: np.ndarray, other: np.ndarray) -> np.ndarray:
    """`other` where the value is NaN: a limit that no number reaches is the other limit."""
    return np.where(np.isnan(value), other, value)


def _where(condition: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.where(condition, value, np.nan)


def _holds_zero(a: Interval) -> np.ndarray:
    return (a.low <= 0) & (a.high >= 0)


def _unbounded(a: Interval) -> np.ndarray:
    return (a.low == -np.inf) | (a.high == np.inf)


def _is_signed(a: Interval) -> np.ndarray:
    """Where the value is one number, and its sign is known also if it is 0."""
    signs = [np.signbit(part) for part in a.parts()]
    return (a.low == a.high) & (signs[0] == signs[1]) & (signs[1] == signs[2])


def _maximum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    zeros = (x == 0) & (y == 0)
    return np.where(zeros, np.where(np.signbit(x), y, x), np.maximum(x, y))


def _overflowed(part: np.ndarray) -> np.ndarray:
    return np.where(np.abs(part) >= FLOAT32_LIMIT, np.copysign(np.inf, part), part)


def _erf(values: np.ndarray) -> np.ndarray:
    import torch

    return torch.erf(torch.from_numpy(np.array(values, np.float64))).numpy()


FLOAT_OPERATIONS: dict[str, Callable[..., Interval]] = {
    "arith.addf": add,
    "arith.subf": subtract,
    "arith.mulf": multiply,
    "arith.divf": divide,
    "arith.negf": negate,
    "arith.maximumf": maximum,
    "arith.minimumf": minimum,
    "arith.maxnumf": maximum_number,
    "arith.minnumf": minimum_number,
    "math.absf": absolute,
    "math.erf": lambda a: a.map(_erf),
    "math.exp": lambda a: a.map(np.exp),
    "math.exp2": lambda a: a.map(np.exp2),
    "math.tanh": lambda a: a.map(np.tanh),
    "math.sqrt": root,
    "math.rsqrt": reciprocal_root,
    "math.cos": wave(np.cos, 0.0),
    "math.sin": wave(np.sin, 0.5),
    "math.log": logarithm(np.log, 0.0),
    "math.log10": logarithm(np.log10, 0.0),
    "math.log1p": logarithm(np.log1p, -1.0),
    "math.log2": logarithm(np.log2, 0.0),
    "math.ceil": lambda a: a.map(np.ceil),
    "math.floor": lambda a: a.map(np.floor),
    "math.round": lambda a: a.map(away_from_zero),
    "math.roundeven": lambda a: a.map(np.rint),
    "math.trunc": lambda a: a.map(np.trunc),
    "math.fma": fused_multiply_add,
}
"""What an op of MLIR's arith or math on floats gives before it is rounded (`rounded`)."""
