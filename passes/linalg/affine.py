"""Affine expressions of loops: on which loops one depends, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dialects.mlir import ir

Formula = Callable[[int], int]


def function_of(expression: ir.AffineExpr) -> Formula:
    """An affine expression of one loop as a function of it."""
    if isinstance(expression, ir.AffineDimExpr):
        return lambda i: i
    if isinstance(expression, ir.AffineConstantExpr):
        constant = ir.AffineConstantExpr(expression).value
        return lambda i: constant
    kind = next(kind for kind in _ARITHMETIC if isinstance(expression, kind))
    both, combine = kind(expression), _ARITHMETIC[kind]
    left, right = function_of(both.lhs), function_of(both.rhs)
    return lambda i: combine(left(i), right(i))


_ARITHMETIC: dict[Any, Callable[[int, int], int]] = {
    ir.AffineAddExpr: lambda a, b: a + b,
    ir.AffineMulExpr: lambda a, b: a * b,
    ir.AffineModExpr: lambda a, b: a % b,
    ir.AffineFloorDivExpr: lambda a, b: a // b,
    ir.AffineCeilDivExpr: lambda a, b: -(-a // b),
}


def dims_of(expression: ir.AffineExpr) -> set[int]:
    """The loops that an affine expression is of."""
    if isinstance(expression, ir.AffineDimExpr):
        return {ir.AffineDimExpr(expression).position}
    if isinstance(expression, ir.AffineConstantExpr):
        return set()
    both: Any = next(kind for kind in _ARITHMETIC if isinstance(expression, kind))(expression)
    return dims_of(both.lhs) | dims_of(both.rhs)
