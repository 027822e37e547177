"""torch's elementwise operators, as operators that torch_mlir imports.

For those that torch_mlir takes apart otherwise than torch computes them: where NaN is lost, bf16 or
f16 rounded in between, a constant rounded to them, or small numbers cancel. Torch computes of bf16
and f16 in f32 and rounds once (`opmath`); CPU kernels, aten/src/ATen/native/cpu.

A function that returns NotImplemented leaves the operator to torch_mlir.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from ml_dtypes import bfloat16
from torch._decomp import get_decompositions
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from torch.overrides import TorchFunctionMode

from .torch_conditions import TABLE as conditions
from .torch_conditions import is_finite
from .torch_einsum import as_product
from .torch_functions import TABLE as functions
from .torch_opmath import NARROW, in_f32, of_one_float, of_promoted_floats

aten: Any = torch.ops.aten
NUMPY = {torch.bfloat16: bfloat16, torch.float16: np.float16, torch.float32: np.float32}
ALPHA, SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946  # selu


def decompositions() -> dict[Any, Callable[..., Any]]:
    """The table, for torch.export; torch's own of GELU: torch_mlir's has sqrt(2/pi) to 3 digits."""
    return {**get_decompositions([aten.gelu.default]), **conditions, **functions, **_TABLE}


_TABLE: dict[Any, Callable[..., Any]] = {}


def _operator(*overloads: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        _TABLE.update(dict.fromkeys(overloads, function))
        return function

    return enter


@_operator(aten.expand.default)
def _expand(x: torch.Tensor, sizes: Any, **options: Any) -> Any:
    """Nothing where no size changes: of sizes that only a call says torch_mlir looks at each."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    pairs = zip(sizes, x.shape, strict=True) if len(sizes) == x.dim() else [(0, 1)]
    same = all(want is have or statically_known_true(want == have) for want, have in pairs)
    return x if same else NotImplemented


@_operator(aten.maximum.default, aten.clamp_min.Tensor)
@of_promoted_floats
def _maximum(a: torch.Tensor, b: torch.Tensor) -> Any:
    return torch.where(a >= b, a, torch.where(a != a, a, b))


@_operator(aten.minimum.default, aten.clamp_max.Tensor)
@of_promoted_floats
def _minimum(a: torch.Tensor, b: torch.Tensor) -> Any:
    return torch.where(a <= b, a, torch.where(a != a, a, b))


@_operator(aten.fmax.default)
@of_promoted_floats
def _fmax(a: torch.Tensor, b: torch.Tensor) -> Any:
    return torch.where(a >= b, a, torch.where(b != b, a, b))


@_operator(aten.fmin.default)
@of_promoted_floats
def _fmin(a: torch.Tensor, b: torch.Tensor) -> Any:
    return torch.where(a <= b, a, torch.where(b != b, a, b))


@_operator(aten.clamp.default)
def _clamp(x: torch.Tensor, low: Any = None, high: Any = None) -> Any:
    """Bounds are numbers of x's type; x where it is NaN."""
    if not of_one_float(x):
        return NotImplemented
    if any(bound != bound for bound in (low, high)):
        return torch.full_like(x, torch.nan)
    if low is not None:
        x = torch.where(x < low, low, x)
    return x if high is None else torch.where(x > high, high, x)


@_operator(aten.clamp.Tensor)
def _clamp_tensors(x: torch.Tensor, low: Any = None, high: Any = None) -> Any:
    x = x if low is None else _maximum(x, low)
    return x if high is None or x is NotImplemented else _minimum(x, high)


@_operator(aten.clamp_min.default)
def _clamp_min(x: torch.Tensor, low: Any) -> Any:
    return _clamp(x, low)


@_operator(aten.clamp_max.default)
def _clamp_max(x: torch.Tensor, high: Any) -> Any:
    return _clamp(x, None, high)


@_operator(aten.relu6.default)
def _relu6(x: torch.Tensor) -> Any:
    return _clamp(x, 0, 6)


@_operator(aten.hardtanh.default)
def _hardtanh(x: torch.Tensor, low: Any = -1, high: Any = 1) -> Any:
    return _clamp(x, low, high)


@_operator(aten.hardsigmoid.default)
@in_f32
def _hardsigmoid(x: torch.Tensor) -> Any:
    if not of_one_float(x):
        return NotImplemented
    return _clamp(x + 3, 0, 6) / 6


@_operator(aten.hardswish.default)
@in_f32
def _hardswish(x: torch.Tensor) -> Any:
    if not of_one_float(x):
        return NotImplemented
    return x * _clamp(x + 3, 0, 6) / 6


@_operator(aten.reciprocal.default)
def _reciprocal(x: torch.Tensor) -> Any:
    return torch.ones_like(x) / x if of_one_float(x) else NotImplemented


@_operator(aten.expm1.default)
@in_f32
def _expm1(x: torch.Tensor) -> Any:
    """e^x - 1 without cancellation: 2t / (1 - t) with t = tanh(x / 2), unless t is near 1."""
    if not of_one_float(x):
        return NotImplemented
    t = torch.tanh(x * 0.5)
    return torch.where(x > 1, torch.exp(x) - 1, (t + t) / (1 - t))


@_operator(aten.elu.default)
@in_f32
def _elu(x: torch.Tensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    t = torch.tanh(x * (0.5 * input_scale))  # as in expm1, where x is negative
    return torch.where(x > 0, x * scale, (t + t) / (1 - t) * (alpha * scale))


@_operator(aten.selu.default)
def _selu(x: torch.Tensor) -> Any:
    return _elu(x, ALPHA, SCALE)


@_operator(aten.celu.default)
def _celu(x: torch.Tensor, alpha: Any = 1) -> Any:
    return _elu(x, alpha, 1, 1 / alpha)


@_operator(aten.leaky_relu.default)
@in_f32
def _leaky_relu(x: torch.Tensor, slope: Any = 0.01) -> Any:
    return torch.where(x > 0, x, x * slope)


@in_f32
def _softshrink(x: torch.Tensor, size: Any = 0.5) -> Any:
    return torch.where(x > size, x - size, torch.where(x < -size, x + size, x * 0))


@_operator(aten.hardshrink.default)
def _hardshrink(x: torch.Tensor, size: Any = 0.5) -> Any:
    kept = torch.where(x != x, x, 0.0)
    return torch.where(x > size, x, torch.where(x < -size, x, kept))


@_operator(aten.threshold.default)
@in_f32
def _threshold(x: torch.Tensor, limit: Any, value: Any) -> Any:
    return torch.where(x <= limit, value, x)


def _promoted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of tensors in the type that they are promoted to, computed in f32 of 16 bits."""

    @functools.wraps(function)
    def wide(*values: torch.Tensor, **options: Any) -> Any:
        kind = ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
        computed, result = elementwise_dtypes(*values, type_promotion_kind=kind)
        if not result.is_floating_point:
            return NotImplemented
        return function(*(each.to(computed) for each in values), **options).to(result)

    return wide


@_operator(aten.addcmul.default)
@_promoted
def _addcmul(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, value: Any = 1) -> Any:
    return x + a * value * b if value != 1 else x + a * b


@_operator(aten.addcdiv.default)
@_promoted
def _addcdiv(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, value: Any = 1) -> Any:
    return x + a * value / b if value != 1 else x + a / b


class BeforeExport(TorchFunctionMode):
    """For what torch.export takes apart whatever the table says: soft shrinkage, with a bound that
    it rounds to bf16, products of stacks, into views whose sizes are computed, and einsum."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function in (torch.nn.functional.softshrink, aten.softshrink.default):
            function = _softshrink
        if function in (torch.isfinite, torch.Tensor.isfinite, aten.isfinite.default):
            function = is_finite
        if function is torch.einsum and not kwargs:
            product = as_product(*args)
            if product is not NotImplemented:
                return product
        if function in PRODUCTS and not kwargs and _are_stacks(*args):
            function = torch.bmm
        return function(*args, **(kwargs or {}))


PRODUCTS = (torch.matmul, torch.Tensor.matmul, aten.matmul.default)


def _are_stacks(*operands: torch.Tensor) -> bool:
    """Whether both are stacks whose numbers of matrices are symbols. torch.export takes none of
    them for 1, so that they must be equal, to which bmm holds them."""
    return all(each.dim() == 3 and isinstance(each.shape[0], torch.SymInt) for each in operands)


def _of_type(number: Any, dtype: torch.dtype) -> Any:
    return float(NUMPY[dtype](number)) if dtype in NUMPY else number


def _compared(operator: Any) -> Callable[..., Any]:
    """A comparison with a number, which torch rounds to the tensor's type, torch_mlir to f64."""

    def compare(x: torch.Tensor, number: Any) -> Any:
        rounded = _of_type(number, x.dtype) if isinstance(number, int | float) else number
        return NotImplemented if rounded == number or number != number else operator(x, rounded)

    return compare


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _overload = getattr(aten, _name).Scalar
    _operator(_overload)(_compared(_overload))


def _as(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Converted as torch does: of integers by way of f32."""
    return x.to(dtype) if dtype not in NARROW or is_float(x) else x.float().to(dtype)


def is_float(x: torch.Tensor) -> bool:
    return x.is_floating_point() or x.dtype == torch.bool


def _with_a_number(operation: Callable[..., Any], scales: bool) -> Callable[..., Any]:
    """An operator on a tensor and a number, which is not rounded to the tensor's type.

    On a tensor of one element instead it is so where it `scales`, on the CPU.
    """

    def computed(x: Any, number: Any, **options: Any) -> Any:
        if not isinstance(x, torch.Tensor) or options.keys() - {"alpha"}:
            return NotImplemented
        if isinstance(number, torch.Tensor):
            return _of_tensors(x, number, options)
        if x.dtype not in NARROW:
            return NotImplemented
        return operation(x.float(), number * options.get("alpha", 1)).to(x.dtype)

    def _of_tensors(x: torch.Tensor, y: torch.Tensor, options: dict[str, Any]) -> Any:
        result = torch.result_type(x, y)
        if result not in NARROW or x.dtype == y.dtype:
            return NotImplemented
        if scales and y.dim() == 0:
            return operation(_as(x, result).float(), y.float()).to(result)
        alpha = options.get("alpha", 1)
        sides = _as(x, result).float(), _as(y, result).float()
        return operation(sides[0], sides[1] if alpha == 1 else sides[1] * alpha).to(result)

    return computed


def _compared_tensors(operator: Any) -> Callable[..., Any]:
    """A comparison of tensors of two types, which torch converts to one first."""

    def compare(x: torch.Tensor, y: torch.Tensor) -> Any:
        result = torch.result_type(x, y)
        if result not in NARROW or x.dtype == y.dtype:
            return NotImplemented
        return operator(_as(x, result), _as(y, result))

    return compare


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _overload = getattr(aten, _name).Tensor
    _operator(_overload)(_compared_tensors(_overload))


for _name, _operation in {
    "add": lambda x, number: x + number,
    "sub": lambda x, number: x - number,
    "mul": lambda x, number: x * number,
    "div": lambda x, number: x / number,
}.items():
    _overloads = [getattr(aten, _name).Tensor, getattr(aten, _name).Scalar]
    _operator(*_overloads)(_with_a_number(_operation, _name in ("mul", "div")))
