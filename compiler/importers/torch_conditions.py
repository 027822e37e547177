"""torch's operators on truth values, and those that ask what kind of number an element is, as
comparisons and choices: `where` is the one that kernels have of them.

    a & b      where(a, b, False)            masked_fill(x, m, v)    where(m, v, x)
    a | b      where(a, True, b)             isnan(x)                x != x
    a ^ b      where(a, ~b, b)               isfinite(x)             abs(x) < inf

A function that returns NotImplemented leaves the operator to torch_mlir, or to a refusal.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import torch

aten: Any = torch.ops.aten


def _of_truths(function: Callable[..., Any]) -> Callable[..., Any]:
    """A bitwise operator, where all that it is of are truth values."""

    def of_truths(*values: Any) -> Any:
        truths = all(isinstance(x, torch.Tensor) and x.dtype == torch.bool for x in values)
        return function(*values) if truths else NotImplemented

    return of_truths


def _logical(function: Callable[..., Any]) -> Callable[..., Any]:
    """A logical operator: numbers are true unless they are 0."""

    def of_numbers(*values: torch.Tensor) -> Any:
        if not all(x.dtype == torch.bool or x.is_floating_point() for x in values):
            return NotImplemented
        return function(*(x if x.dtype == torch.bool else x != 0 for x in values))

    return of_numbers


def _and(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.where(a, b, torch.zeros_like(b))


def _or(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.where(a, torch.ones_like(b), b)


def _not(a: torch.Tensor) -> torch.Tensor:
    return torch.where(a, torch.zeros_like(a), torch.ones_like(a))


def _xor(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.where(a, _not(b), b)


def _of_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    def of_floats(x: torch.Tensor, *others: Any) -> Any:
        return function(x, *others) if x.is_floating_point() else NotImplemented

    return of_floats


@_of_floats
def _masked_fill(x: torch.Tensor, mask: torch.Tensor, value: Any) -> torch.Tensor:
    return torch.where(mask, value if isinstance(value, torch.Tensor) else float(value), x)


@_of_floats
def _nan_to_num(
    x: torch.Tensor, nan: float | None = None, most: float | None = None, least: float | None = None
) -> torch.Tensor:
    limit = torch.finfo(x.dtype).max
    most, least = limit if most is None else most, -limit if least is None else least
    finite = torch.where(x == inf, most, torch.where(x == -inf, least, x))
    return torch.where(x != x, nan or 0.0, finite)


@_of_floats
def _sign(x: torch.Tensor) -> torch.Tensor:
    """0 of NaN, as torch has it."""
    return torch.where(x > 0, torch.ones_like(x), torch.where(x < 0, -1.0, torch.zeros_like(x)))


def is_finite(x: torch.Tensor) -> torch.Tensor:
    """torch.isfinite, which torch takes apart into a product of truth values."""
    return x.abs() < inf


TABLE: dict[Any, Callable[..., Any]] = {
    aten.bitwise_and.Tensor: _of_truths(_and),
    aten.bitwise_or.Tensor: _of_truths(_or),
    aten.bitwise_xor.Tensor: _of_truths(_xor),
    aten.bitwise_not.default: _of_truths(_not),
    aten.logical_and.default: _logical(_and),
    aten.logical_or.default: _logical(_or),
    aten.logical_xor.default: _logical(_xor),
    aten.logical_not.default: _logical(_not),
    aten.masked_fill.Scalar: _masked_fill,
    aten.masked_fill.Tensor: _masked_fill,
    aten.isnan.default: _of_floats(lambda x: x != x),
    aten.isinf.default: _of_floats(lambda x: x.abs() == inf),
    aten.nan_to_num.default: _nan_to_num,
    aten.sign.default: _sign,
    aten.sgn.default: _sign,
}
