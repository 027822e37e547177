"""The ops of `arith` and `math`, evaluated on whole arrays.

Sources: the descriptions of MLIR's arith and math dialects; for how far float32 code may be off,
`runtime.judge.intervals`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ...runtime.judge import intervals
from ...runtime.judge.intervals import Interval
from . import rounding
from .integers import INTEGER_OPS, compare_integers
from .rounding import round_to
from .values import Value, bits_of, constant, element_type, refuse, truth, unsigned, wrap

_KEEPS: ContextVar[bool] = ContextVar("keeps", default=False)
READ = ("predicate", "roundingmode", "value")
LICENCES = ("fastmath", "overflowFlags", "nneg", "nonNeg", "exact")
"""Attributes that allow other results, or none at all, which code need not make use of."""
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
    "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
"""MLIR's `arith::CmpFPredicate`, in its order."""


def evaluate(op: Any, inputs: Sequence[Value]) -> Value:
    """The result of a scalar op, or of one on tensors element by element."""
    name = op.operation.name
    _check_attributes(op)
    if name in intervals.FLOAT_OPERATIONS:
        return _float_op(op, name, inputs)
    if name in INTEGER_OPS:
        return INTEGER_OPS[name](op, *inputs)
    if name not in OTHER_OPS:
        refuse(op, "such op")
    return OTHER_OPS[name](op, *inputs)


def _check_attributes(op: Any) -> None:
    for name in op.operation.attributes:
        if name not in (*READ, *LICENCES):
            refuse(op, f"attribute {name} = {op.operation.attributes[name]}")
    if op.operation.name != "arith.truncf" and _mode(op) != rounding.NEAREST_EVEN:
        refuse(op, "rounding mode but to nearest even")


def _mode(op: Any) -> int:
    attributes = op.operation.attributes
    return attributes["roundingmode"].value if "roundingmode" in attributes else 0


def _float_op(op: Any, name: str, inputs: Sequence[Any]) -> Interval:
    """An op of float32, or of narrower floats, which may have been computed in float32."""
    type_ = element_type(op.results[0].type)
    if type_ not in rounding.FORMATS:
        refuse(op, f"arithmetic in {type_}")
    exact = intervals.FLOAT_OPERATIONS[name](*inputs)
    result = intervals.rounded(name, exact, *inputs)
    if name == "arith.mulf":
        result = _unless_held(exact, result, type_)
    return result if type_ == "f32" else _perhaps_rounded(result, type_)


def _unless_held(exact: Interval, erring: Interval, type_: str) -> Interval:
    """A product without error where its type holds it; what may be flushed to 0 has one."""
    normal = (np.abs(exact.low) >= intervals.SMALLEST_NORMAL) | (exact.low == 0)
    held = (exact.low == exact.high) & (round_to(exact.low, type_) == exact.low) & normal
    low, high = np.where(held, exact.low, erring.low), np.where(held, exact.high, erring.high)
    return Interval(low, erring.middle, high, erring.nan)


def _perhaps_rounded(value: Interval, type_: str) -> Interval:
    """The value or what it is rounded to: code may keep more digits up to the next tensor."""
    low, high = (round_to(part, type_) for part in (value.low, value.high))
    return Interval(np.fmin(value.low, low), value.middle, np.fmax(value.high, high), value.nan)


def stored(value: Value, type_: str) -> Value:
    """A value as a tensor of this type holds it: the limits are rounded, the middle stays exact."""
    if not isinstance(value, Interval) or type_ not in rounding.FORMATS:
        return value
    return _rounded(value, type_, rounding.NEAREST_EVEN)


@contextmanager
def kept(keeps_digits: bool) -> Iterator[None]:
    """Whether what is rounded to narrow floats may also keep all its digits."""
    token = _KEEPS.set(keeps_digits)
    try:
        yield
    finally:
        _KEEPS.reset(token)


def _rounded(value: Interval, type_: str, mode: int) -> Interval:
    if _KEEPS.get():
        return _perhaps_rounded(value, type_)
    low, high = (round_to(part, type_, mode) for part in (value.low, value.high))
    return Interval(low, value.middle, high, value.nan)


def _truncated(op: Any, value: Interval) -> Interval:
    type_ = element_type(op.results[0].type)
    if type_ not in rounding.FORMATS:
        refuse(op, f"truncation to {type_}")
    return _rounded(value, type_, _mode(op))


def _compared(op: Any, a: Interval, b: Interval) -> Interval:
    predicate = FLOAT_PREDICATES[op.operation.attributes["predicate"].value]
    shape = np.broadcast_shapes(np.shape(a.middle), np.shape(b.middle))
    if predicate in ("true", "false"):
        return truth(np.full(shape, predicate == "true"))
    if predicate not in ("ord", "uno"):
        return intervals.compare(predicate, a, b)
    numbers = intervals.compare("oeq", _own(a), _own(a)), intervals.compare("oeq", _own(b), _own(b))
    both = Interval(*(x * y for x, y in zip(*(n.parts() for n in numbers), strict=True)))
    return both if predicate == "ord" else _not(both)


def _own(a: Interval) -> Interval:
    """0 where the value is a number, NaN where it is none: equal to itself where it is ordered."""
    zero = np.where(a.certainly_nan(), np.nan, 0.0)
    return Interval(zero, np.where(np.isnan(a.middle), np.nan, 0.0), zero, a.nan)


def _not(a: Interval) -> Interval:
    return Interval(1 - a.high, 1 - a.middle, 1 - a.low)


def _selected(op: Any, condition: Interval, yes: Value, no: Value) -> Value:
    if isinstance(yes, np.ndarray) and isinstance(no, np.ndarray):
        return np.where(_certain(op, condition), yes, no)
    assert isinstance(yes, Interval) and isinstance(no, Interval)
    return intervals.choose(condition, yes, no)


def _certain(op: Any, condition: Interval) -> np.ndarray:
    """Truth values that don't depend on rounding."""
    if (condition.low != condition.high).any():
        refuse(op, "integer that depends on how floats are rounded")
    return condition.low == 1


def _logic(function: Callable[[Any, Any], Any]) -> Callable[..., Value]:
    """and, or: of integers bit by bit; truth values are 0 and 1, and both never decrease."""

    def combine(op: Any, a: Value, b: Value) -> Value:
        if not isinstance(a, Interval) or not isinstance(b, Interval):
            return function(a, b)
        pairs = zip(a.parts(), b.parts(), strict=True)
        return Interval(*(function(x == 1, y == 1) * 1.0 for x, y in pairs))

    return combine


def _exclusive_or(op: Any, a: Value, b: Value) -> Value:
    if not isinstance(a, Interval) or not isinstance(b, Interval):
        assert isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
        return a ^ b
    known = (a.low == a.high) & (b.low == b.high)
    middle = (a.middle != b.middle) * 1.0
    low, high = ((a.low != b.low) & known, (a.low != b.low) | ~known)
    return Interval(low * 1.0, middle, high * 1.0)


def _from_integer(signed: bool) -> Callable[..., Interval]:
    def convert(op: Any, value: Value) -> Interval:
        exact = Interval.exactly(_read(op, value, signed))
        type_ = element_type(op.results[0].type)
        if type_ not in rounding.FORMATS:
            refuse(op, f"conversion to {type_}")
        result = intervals.rounded("arith.sitofp", exact)
        return result if type_ == "f32" else _perhaps_rounded(result, type_)

    return convert


def _read(op: Any, value: Value, signed: bool) -> np.ndarray:
    """An integer operand as the number that the op takes it for."""
    if isinstance(value, Interval):  # i1, whose only bit is its sign
        return _certain(op, value) * np.int64(-1 if signed else 1)
    bits = bits_of(element_type(op.operands[0].type))
    assert bits is not None
    return value if signed else unsigned(value, bits, op)


def _extended(signed: bool) -> Callable[..., Value]:
    def extend(op: Any, value: Value) -> Value:
        bits = bits_of(element_type(op.results[0].type))
        assert bits is not None
        return wrap(_read(op, value, signed), bits)

    return extend


def _cut(op: Any, value: np.ndarray) -> Value:
    bits = bits_of(element_type(op.results[0].type))
    assert bits is not None
    return truth(value & 1) if bits == 1 else wrap(value, bits)


def _power(op: Any, base: Interval, exponent: np.ndarray) -> Interval:
    """A small constant power, by products in any order."""
    powers = np.unique(exponent)
    if powers.size != 1 or not 1 <= powers[0] <= 64:
        refuse(op, "power but constants from 1 to 64")
    power = int(powers[0])
    if power == 1:
        return base
    odd = base.map(lambda part: part**power)
    exact = odd if power % 2 else intervals.absolute(base).map(lambda part: part**power)
    result = exact.erring(1.01 * (power - 1) * intervals.HALF_ULP)
    type_ = element_type(op.results[0].type)
    return result if type_ == "f32" else _perhaps_rounded(result, type_)


def _power_of_two(op: Any, base: Interval, exponent: Interval) -> Interval:
    if (base.low != 2).any() or (base.high != 2).any():
        refuse(op, "power of another number than 2")
    exact = intervals.FLOAT_OPERATIONS["math.exp2"](exponent)
    result = intervals.rounded("math.exp2", exact, exponent)
    type_ = element_type(op.results[0].type)
    return result if type_ == "f32" else _perhaps_rounded(result, type_)


OTHER_OPS: dict[str, Callable[..., Value]] = {
    "arith.constant": constant,
    "arith.truncf": _truncated,
    "arith.extf": lambda op, value: value,
    "arith.cmpf": _compared,
    "arith.cmpi": lambda op, a, b: compare_integers(op, _plain(op, a), _plain(op, b)),
    "arith.select": _selected,
    "arith.andi": _logic(np.bitwise_and),
    "arith.ori": _logic(np.bitwise_or),
    "arith.xori": _exclusive_or,
    "arith.sitofp": _from_integer(signed=True),
    "arith.uitofp": _from_integer(signed=False),
    "arith.extsi": _extended(signed=True),
    "arith.extui": _extended(signed=False),
    "arith.trunci": _cut,
    "math.fpowi": _power,
    "math.powf": _power_of_two,
}


def _plain(op: Any, value: Value) -> np.ndarray:
    return _read(op, value, signed=True) if isinstance(value, Interval) else value
