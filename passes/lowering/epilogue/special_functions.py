"""erf, tanh and logarithms of f32 by few instructions, without libdevice.

    |x| small    x * P(x²): P was fitted to f(x) / x by least relative error (Lawson's iteration)
    else         erf: 1 - t * Q(t) * exp(-x²), t = 1 / (1 + 0.3275911 |x|)   (Abramowitz and Stegun,
                 Handbook of Mathematical Functions, 7.1.26; Q errs by 1.5e-7)
                 tanh: 1 - 2 / (1 + exp(2 |x|))

    log y, f = y - 1    f * P(f) where where f is from -0.4 to 0.7, else lg2(y) * log 2

The odd polynomial keeps the relative error of small values; together at most 2^-21 for erf and
2^-22 for tanh. The quotients are of numbers from 1 on and only a part of what they are taken from:
rcp.approx.ftz, 1 unit off (PTX ISA, rcp.approx.ftz.f32), is exact enough, where div.rn would have a
branch for each element. A logarithm errs by 2^-21 at most: lg2.approx is 2^-22 off, of the value
outside of 0.5 to 2 (PTX ISA, lg2.approx.f32), which is too much near 1 alone. It takes subnormal
numbers, and gives -∞ of 0 and NaN of what is below. Where functions are fast, P has four terms, f
is from -0.125 to 0.125, and the error is 2^-17.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log

from ....dialects.mlir import arith, ir, math

LOG_2 = log(2)
UNITS = {"math.log2": LOG_2, "math.log10": log(10)}
Unary = Callable[[ir.Value], ir.Value]

ERF_SMALL, TANH_SMALL = 1.0, 0.625
ERF_OVER_X = (
    1.1283791, -0.37612626, 0.11283585, -0.026853813, 0.0051883277, -0.00080101937, 7.8538615e-05,
)  # fmt: skip
TANH_OVER_X = (1.0, -0.3333326, 0.13331127, -0.053721067, 0.020590989, -0.0056599891)
LOG_OVER_F = (
    1.0, -0.49999902, 0.33332911, -0.25006691, 0.20021217, -0.16554041, 0.13900083, -0.13007997,
    0.13804439, -0.11269503, 0.041837316,
)  # fmt: skip
FAST_LOG_OVER_F = (0.9999938, -0.4999886, 0.3364912, -0.25316304)
CENTRES = {LOG_OVER_F: 0.15, FAST_LOG_OVER_F: 0.0}
REACHES = {LOG_OVER_F: 0.55, FAST_LOG_OVER_F: 0.125}
"""Of the numbers f for which a fit is taken: the middle, and how far from it they may be."""
ERF_STEP = 0.3275911
ERF_TAIL = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


def erf(value: ir.Value, exp: Unary, reciprocal: Unary) -> ir.Value:
    """erf of f32, of a vector or of one; `exp` and `reciprocal` are those of f32 there."""
    size = math.absf(value)
    small = _odd(value, ERF_OVER_X)
    t = reciprocal(math.fma(size, number(ERF_STEP, value), number(1, value)))
    tail = arith.mulf(t, polynomial(t, ERF_TAIL))
    falling = exp(arith.negf(arith.mulf(size, size)))
    large = math.fma(arith.negf(tail), falling, number(1, value))
    return _join(value, size, ERF_SMALL, small, large)


def tanh(value: ir.Value, exp: Unary, reciprocal: Unary) -> ir.Value:
    """tanh of f32, of a vector or of one; `exp` and `reciprocal` are those of f32 there."""
    size = math.absf(value)
    small = _odd(value, TANH_OVER_X)
    growing = exp(arith.addf(size, size))
    share = reciprocal(arith.addf(growing, number(1, value)))
    large = math.fma(share, number(-2, value), number(1, value))
    return _join(value, size, TANH_SMALL, small, large)


def logarithm(
    name: str, value: ir.Value, lg2: Unary, fit: tuple[float, ...] = LOG_OVER_F
) -> ir.Value:
    """The logarithm of that name of f32, of a vector or of one; `lg2` is that of f32 there."""
    one, unit = number(1, value), UNITS.get(name, 1.0)
    if name == "math.log1p":
        value, less_one = arith.addf(value, one), value
    else:
        less_one = arith.subf(value, one)
    over_f = [each / unit for each in fit]
    near = arith.mulf(less_one, polynomial(less_one, over_f))
    factor = LOG_2 / unit
    far = lg2(value) if factor == 1 else arith.mulf(lg2(value), number(factor, value))
    size = math.absf(arith.subf(less_one, number(CENTRES[fit], value)))
    below = arith.cmpf(arith.CmpFPredicate.OLT, size, number(REACHES[fit], value))
    return arith.select(below, near, far)


def _odd(value: ir.Value, over_x: Sequence[float]) -> ir.Value:
    """x * P(x²)."""
    return arith.mulf(value, polynomial(arith.mulf(value, value), over_x))


def polynomial(value: ir.Value, coefficients: Sequence[float]) -> ir.Value:
    """Horner's rule; the coefficient of the lowest power is the first."""
    *others, total = (number(each, value) for each in coefficients)
    for each in reversed(others):
        total = math.fma(total, value, each)
    return total


def _join(
    value: ir.Value, size: ir.Value, limit: float, small: ir.Value, large: ir.Value
) -> ir.Value:
    """`small` up to a limit, beyond it `large` with the value's sign, and NaN as it is."""
    below = arith.cmpf(arith.CmpFPredicate.OLT, size, number(limit, value))
    return arith.select(below, small, math.copysign(large, value))


def number(value: float, like: ir.Value) -> ir.Value:
    """A constant of the type of another value."""
    attribute = ir.FloatAttr.get(ir.F32Type.get(), value)
    if isinstance(like.type, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(like.type, attribute)
    return arith.ConstantOp(like.type, attribute).result
