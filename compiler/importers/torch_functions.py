"""torch's powers, logarithms and rounding functions, as operators that kernels support.

    pow(x, 3)         x · x · x                  softplus(x)     log1p(exp(x)), x from the threshold
    pow(x, -2)        1 / (x · x)                mish(x)         x · tanh(log1p(exp(x)))
    pow(x, ±0.5)      sqrt(x), rsqrt(x)          logsigmoid(x)   min(x, 0) - log1p(exp(-abs(x)))
    pow(2, x)         exp2(x)                    logit(x)        log(x / (1 - x))
    pow(b, x)         exp2(log2(b) · x)          logaddexp(a, b) max + log1p(exp(-abs(a - b)))
    frac(x)           x - trunc(x)               xlogy(x, y)     x · log(y), 0 where x is
    tan(x)            sin(x) / cos(x)            sinc(x)         sin(pi · x) / (pi · x), 1 of 0

Sources: aten/src/ATen/native/cuda, PowKernel.cu, BinaryDivTruncKernel.cu, ActivationMishKernel,
ActivationSoftplusKernel.cu, ActivationLogSigmoidKernel.cu, UnarySpecialOpsKernel.cu,
LogAddExpKernel.cu. A function that returns NotImplemented leaves the operator to torch_mlir, or to
a refusal.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite, log2, pi
from typing import Any

import torch

from .torch_opmath import in_f32, of_floats, of_promoted_floats

aten: Any = torch.ops.aten
MOST = 8
"""The largest exponent that becomes products."""
ROOTS: dict[float, Callable[[torch.Tensor], torch.Tensor]] = {0.5: torch.sqrt, -0.5: torch.rsqrt}
DECIMALS = 6
"""Of which ten to their number is a float of 16 and more bits without error."""


def is_power(exponent: Any) -> bool:
    """Whether kernels compute powers of that exponent."""
    if exponent in ROOTS:
        return True
    return isinstance(exponent, int | float) and 1 <= abs(exponent) <= MOST and exponent % 1 == 0


@of_floats
@in_f32
def _power(x: torch.Tensor, exponent: Any) -> Any:
    if not is_power(exponent):
        return NotImplemented
    if exponent in ROOTS:
        return ROOTS[exponent](x)
    product = x
    for _ in range(int(abs(exponent)) - 1):
        product = product * x
    return product if exponent > 0 else torch.ones_like(x) / product


@of_floats
@in_f32
def _exponential(x: torch.Tensor, base: Any) -> Any:
    if base == 1:
        return torch.ones_like(x)  # also of infinities and NaN
    if base == 2:
        return torch.exp2(x)
    return torch.exp2(x * log2(base))


def _number_to_the(base: Any, x: torch.Tensor) -> Any:
    return _exponential(x, base) if base > 0 and isfinite(base) else NotImplemented


@of_floats
@in_f32
def _softplus(x: torch.Tensor, beta: Any = 1, threshold: Any = 20) -> Any:
    scaled = x * beta
    return torch.where(scaled > threshold, x, torch.log1p(torch.exp(scaled)) / beta)


@of_floats
@in_f32
def _mish(x: torch.Tensor) -> Any:
    return x * torch.tanh(torch.log1p(torch.exp(x)))


@of_floats
@in_f32
def _logsigmoid(x: torch.Tensor) -> Any:
    least = torch.where(x > 0, torch.zeros_like(x), x)
    return least - torch.log1p(torch.exp(-x.abs()))


def _logsigmoid_forward(x: torch.Tensor) -> Any:
    """With what the CPU keeps for a gradient, which no graph of a kernel reads."""
    result = _logsigmoid(x)
    return result if result is NotImplemented else (result, result)


@of_floats
@in_f32
def _logit(x: torch.Tensor, eps: Any = None) -> Any:
    if eps is not None:
        x = torch.where(x < eps, eps, torch.where(x > 1 - eps, 1 - eps, x))
    return torch.log(x / (1 - x))


@of_promoted_floats
@in_f32
def _logaddexp(a: torch.Tensor, b: torch.Tensor) -> Any:
    more = torch.where(a >= b, a, torch.where(a != a, a, b))
    same = (a == b) & (a.abs() == inf)
    return torch.where(same, a, more + torch.log1p(torch.exp(-(a - b).abs())))


@of_promoted_floats
@in_f32
def _xlogy(x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.where(y != y, y, torch.where(x == 0, torch.zeros_like(x), x * torch.log(y)))


@of_floats
@in_f32
def _tan(x: torch.Tensor) -> Any:
    return torch.sin(x) / torch.cos(x)


@of_floats
@in_f32
def _sinc(x: torch.Tensor) -> Any:
    angle = x * pi
    return torch.where(x == 0, torch.ones_like(x), torch.sin(angle) / angle)


@of_floats
@in_f32
def _frac(x: torch.Tensor) -> Any:
    return x - torch.trunc(x)


@of_floats
@in_f32
def _round(x: torch.Tensor, *, decimals: int) -> Any:
    if not 0 <= decimals <= DECIMALS:
        return NotImplemented
    return torch.round(x * 10**decimals) / 10**decimals


@of_floats
def _quotient(x: Any, y: Any, *, rounding_mode: Any = None) -> Any:
    """Towards 0: rounded down, torch takes fmod for the last digit, which no kernel has.

    A quotient by a tensor is rounded to its type first, as a number x is; one by a number is not.
    """
    if rounding_mode != "trunc":
        return NotImplemented
    if not isinstance(y, torch.Tensor) or y.dim() == 0:
        return _whole_quotient(x, y)
    dividend = x if isinstance(x, torch.Tensor) else torch.full_like(y, x)
    return torch.trunc(dividend / y)


@in_f32
def _whole_quotient(x: torch.Tensor, y: Any) -> torch.Tensor:
    return torch.trunc(x / y)


def is_taken(target: Any, args: Any, options: Any) -> bool:
    """Whether a function of `TABLE` takes these arguments, as far as they are no tensors."""
    takes = LIMITS.get(target)
    return takes is None or takes(*args, **options)


LIMITS: dict[Any, Callable[..., bool]] = {
    aten.pow.Tensor_Scalar: lambda x, exponent: is_power(exponent),
    aten.pow.Scalar: lambda base, x: base > 0 and isfinite(base),
    aten.round.decimals: lambda x, *, decimals: 0 <= decimals <= DECIMALS,
    aten.div.Tensor_mode: lambda x, y, *, rounding_mode: rounding_mode == "trunc",
    aten.div.Scalar_mode: lambda x, y, *, rounding_mode: rounding_mode == "trunc",
}
TABLE: dict[Any, Callable[..., Any]] = {
    aten.pow.Tensor_Scalar: _power,
    aten.pow.Scalar: _number_to_the,
    aten.softplus.default: _softplus,
    aten.mish.default: _mish,
    aten.log_sigmoid_forward.default: _logsigmoid_forward,
    aten.log_sigmoid.default: _logsigmoid,
    aten.logit.default: _logit,
    aten.logaddexp.default: _logaddexp,
    aten.xlogy.Tensor: _xlogy,
    aten.frac.default: _frac,
    aten.tan.default: _tan,
    aten.sinc.default: _sinc,
    aten.round.decimals: _round,
    aten.div.Tensor_mode: _quotient,
    aten.div.Scalar_mode: _quotient,
}
