"""The integer ops of `arith`, which wrap in two's complement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...runtime.judge.intervals import Interval
from .values import Value, bits_of, element_type, refuse, truth, unsigned, wrap

Operation = Callable[..., Value]
SIGNED = {2: np.less, 3: np.less_equal, 4: np.greater, 5: np.greater_equal}
UNSIGNED = {code + 4: function for code, function in SIGNED.items()}
PREDICATES = {0: np.equal, 1: np.not_equal, **SIGNED, **UNSIGNED}
"""MLIR's `arith::CmpIPredicate`."""


def compare_integers(op: Any, a: np.ndarray, b: np.ndarray) -> Value:
    """An arith.cmpi."""
    code = op.operation.attributes["predicate"].value
    if code in UNSIGNED:
        bits = _bits(op)
        a, b = unsigned(a, bits, op), unsigned(b, bits, op)
    return truth(PREDICATES[code](a, b))


def _bits(op: Any) -> int:
    bits = bits_of(element_type(op.operands[0].type))
    assert bits is not None
    return bits


def _wrapping(function: Callable[[Any, Any], np.ndarray]) -> Operation:
    def compute(op: Any, a: Value, b: Value) -> Value:
        _no_truths(op, a, b)
        return wrap(function(a, b), _bits(op))

    return compute


def _unsigned(function: Callable[[Any, Any], np.ndarray]) -> Operation:
    def compute(op: Any, a: Any, b: Any) -> Value:
        _no_truths(op, a, b)
        bits = _bits(op)
        return wrap(function(unsigned(a, bits, op), unsigned(b, bits, op)), bits)

    return compute


def _shifting(function: Callable[[Any, Any], np.ndarray], signed: bool = True) -> Operation:
    """Shifts by as many bits as there are, or more, have no value."""

    def compute(op: Any, a: Any, by: Any) -> Value:
        _no_truths(op, a, by)
        bits = _bits(op)
        if ((by < 0) | (by >= bits)).any():
            refuse(op, "shift beyond the width")
        return wrap(function(a if signed else unsigned(a, bits, op), by), bits)

    return compute


def _no_truths(op: Any, *values: Value) -> None:
    if any(isinstance(value, Interval) for value in values):
        refuse(op, "arithmetic of i1")


INTEGER_OPS: dict[str, Operation] = {
    "arith.addi": _wrapping(np.add),
    "arith.subi": _wrapping(np.subtract),
    "arith.muli": _wrapping(np.multiply),
    "arith.maxsi": _wrapping(np.maximum),
    "arith.minsi": _wrapping(np.minimum),
    "arith.maxui": _unsigned(np.maximum),
    "arith.minui": _unsigned(np.minimum),
    "arith.shli": _shifting(np.left_shift),
    "arith.shrsi": _shifting(np.right_shift),
    "arith.shrui": _shifting(np.right_shift, signed=False),
    "math.absi": lambda op, a: wrap(np.abs(a), _bits(op)),
}
