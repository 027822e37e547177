"""torch's matmul operators, as those that torch_mlir imports correctly.

For torch modules. A function that returns NotImplemented leaves the operator to torch_mlir.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import get_decompositions

from ...dialects.errors import CompileError
from .torch_functions import TABLE as functions
from .torch_operators import is_float
from .torch_opmath import NARROW

aten: Any = torch.ops.aten
PLAIN = tuple(getattr(aten, name).default for name in ("mm", "bmm", "matmul", "convolution"))

GROUPED = tuple(
    getattr(aten, name).default
    for name in ("_grouped_mm", "_scaled_grouped_mm", "_scaled_grouped_mm_v2")
    if hasattr(aten, name)
)
"""Products of groups of rows or of K, as torch has them; 2.9 lacks the last one."""


def of_modules() -> dict[Any, Callable[..., Any]]:
    """A further table for torch.export: what functions of sums have themselves, or not at all."""
    known = get_decompositions([aten._to_copy.default])[aten._to_copy.default]

    def to_copy(x: torch.Tensor, **options: Any) -> Any:
        dtype = options.get("dtype")
        if x.dtype == torch.bool and dtype is not None and dtype.is_floating_point:
            return torch.where(x, torch.ones((), dtype=dtype), torch.zeros((), dtype=dtype))
        integers = options.get("dtype") in NARROW and not is_float(x)
        return known(x.float() if integers else x, **options)

    return {
        **dict.fromkeys(PLAIN, _plain),
        **dict.fromkeys((aten.addmm.default, aten.baddbmm.default), _added),
        **dict.fromkeys((aten.mm.dtype, aten.bmm.dtype), _of_wide_sums),
        **dict.fromkeys((aten.floor_divide.default, aten.floor_divide.Scalar), _rounded_down),
        **dict.fromkeys((aten.div.Tensor_mode, aten.div.Scalar_mode), _quotient),
        aten.linear.default: _linear,
        **dict.fromkeys(GROUPED, _grouped),
        aten._to_copy.default: to_copy,
    }


def _plain(*values: Any, **options: Any) -> Any:
    """Left as it is: torch makes views of a stack times one matrix. Of bytes torch keeps 8 bits of
    a sum, and torch_mlir ends the process."""
    types = {each.dtype for each in values if isinstance(each, torch.Tensor)}
    if types & {torch.int8, torch.uint8}:
        got = " and ".join(sorted(map(str, types)))
        rule = "a product must not keep 8 bits of its sums"
        raise CompileError(f"{rule}, got one of {got}; take torch._int_mm")
    return NotImplemented


def _rounded_down(*values: Any) -> Any:
    """torch takes fmod for the last digit, torch_mlir the floor of a rounded quotient."""
    raise CompileError("a quotient must not be rounded down, got one; round it outside")


def _quotient(x: torch.Tensor, y: Any, *, rounding_mode: Any = None) -> Any:
    if rounding_mode == "floor":
        return _rounded_down(x, y)
    return functions[aten.div.Tensor_mode](x, y, rounding_mode=rounding_mode)


def _added(
    added: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    """Rounded once, as cuBLAS and oneDNN do: beta · added joins the sums in f32. With a beta of 0
    torch reads nothing of what is added, be it NaN; torch_mlir multiplies it.

    What is added is spread over the product before it is converted to the type of the sums: so
    each argument is read by an op that names its dims of one element.
    """
    sizes = [*a.shape[:-1], b.shape[-1]]
    known = all(type(size) is int for size in sizes)
    spread = known and added.dim() >= len(sizes) and list(added.shape) != sizes
    if spread:
        added = added.expand(sizes)
    if a.dtype not in NARROW and beta != 0:
        operator = aten.addmm.default if a.dim() == 2 else aten.baddbmm.default
        return operator(added, a, b, beta=beta, alpha=alpha) if spread else NotImplemented
    sums = _of_wide_sums(a, b, torch.float32 if a.dtype in NARROW else a.dtype)
    if alpha != 1:
        sums = sums * alpha
    if beta != 0:
        sums = sums + (added.float() if beta == 1 else added.float() * beta)
    return sums.to(a.dtype)


def _grouped(*_: Any, **__: Any) -> Any:
    """linalg has no product of groups."""
    rule = "a product must be of matrices or of stacks of them, got one of groups"
    cure = "call tilewright.grouped_mm with an epilogue"
    raise CompileError(f'{rule}; {cure}, or use torch.compile(backend="tilewright")')


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> Any:
    """A linear layer on a stack of rows as a batched product that shares the weight. torch makes
    one matrix of all rows, by views."""
    if x.dim() not in (2, 3):
        rule = "the input of a layer must be a matrix or a stack of matrices"
        raise CompileError(f"{rule}, got {list(x.shape)}; reshape it before the call")
    if x.dim() == 3 and type(x.shape[0]) is not int:
        rule = "matrices of a stack may be dynamic in a product of two stacks"
        cure = "pass all rows as one matrix, of which those may be dynamic"
        raise CompileError(f"{rule}, got a layer of {list(x.shape)}; {cure}")
    if bias is None or not x.is_floating_point():
        return NotImplemented
    if x.dim() == 2:
        return aten.addmm.default(bias, x, weight.T) if x.dtype in NARROW else NotImplemented
    matrices = weight.T.expand(x.shape[0], *weight.T.shape)
    return aten.baddbmm.default(bias, x, matrices)


def _of_wide_sums(a: torch.Tensor, b: torch.Tensor, out_dtype: torch.dtype) -> Any:
    """The sums of bf16 or f16 as they are, which is what torch takes `out_dtype` for."""
    product = aten.mm.default if a.dim() == 2 else aten.bmm.default
    return product(a.to(out_dtype), b.to(out_dtype))
