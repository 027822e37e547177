"""`weight_only_mm` as an operator of torch, imported when torch must see the call.

tilewright::weight_only    the kernel with a bias, a fake implementation, and a gradient for a
"""

from __future__ import annotations

from typing import Any

import torch
from torch import library

from ...dialects.dtypes import DTYPES
from ...dialects.errors import OptionError
from ...runtime.element_types import torch_dtype
from .kernels import How
from .operands import operand_type
from .weight_product import multiply_weights, weights_of

INPUTS = 8


@library.custom_op("tilewright::weight_only", mutates_args=())
def product(
    a: torch.Tensor,
    b: torch.Tensor,
    scales: torch.Tensor | None,
    zeros: torch.Tensor | None,
    bias: torch.Tensor | None,
    b_dtype: str,
    out_dtype: str,
    m: str,
) -> torch.Tensor:
    """a [..., m, k] times weights [n, k], plus a bias [n]; empty texts leave the choice open."""
    weights = weights_of(b, scales, zeros, None, b_dtype)
    how = How(out_dtype, m=m)
    with torch.no_grad():
        if bias is None:
            return multiply_weights(a, weights, how)
        return multiply_weights(a, weights, how, add_bias, (bias,))


def add_bias(acc: Any, bias: Any) -> Any:
    """The epilogue of a linear layer."""
    return acc + bias


@product.register_fake
def _(
    a: torch.Tensor,
    b: torch.Tensor,
    scales: torch.Tensor | None,
    zeros: torch.Tensor | None,
    bias: torch.Tensor | None,
    b_dtype: str,
    out_dtype: str,
    m: str,
) -> torch.Tensor:
    dtype = out_dtype or operand_type("a", str(a.dtype))
    return a.new_empty((*a.shape[:-1], b.shape[0]), dtype=torch_dtype(dtype))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    a, b, scales, zeros, bias, b_dtype, _, _ = inputs
    ctx.save_for_backward(b, *(each for each in (scales, zeros) if each is not None))
    ctx.of_a, ctx.b_dtype, ctx.has_bias = a.dtype, b_dtype, bias is not None


def _gradient(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    """Of a: the gradient times dequantized weights; of a bias its sum. Weights have none."""
    if any(ctx.needs_input_grad[1:4]):
        rule = "narrow weights, scales and zeros have no gradients"
        raise OptionError(f"weight_only_mm: {rule}, got one that requires them; detach it")
    b, *beside = ctx.saved_tensors
    of_a = gradient.to(ctx.of_a) @ dequantized(b, *beside, b_dtype=ctx.b_dtype).to(ctx.of_a)
    of_bias = None
    if ctx.has_bias and ctx.needs_input_grad[4]:
        of_bias = gradient.reshape(-1, gradient.shape[-1]).sum(0)
    return of_a, None, None, None, of_bias, *[None] * (INPUTS - 5)


product.register_autograd(_gradient, setup_context=_keep)


def dequantized(
    b: torch.Tensor,
    scales: torch.Tensor | None = None,
    zeros: torch.Tensor | None = None,
    *,
    b_dtype: str,
) -> torch.Tensor:
    """The weights [n, k] in float32."""
    values = b.float()
    if DTYPES[b_dtype].bits == 4:
        pairs = torch.stack([b & 15, b >> 4], -1).flatten(1).float()
        values = torch.where(pairs >= 8, pairs - 16, pairs) if b_dtype == "s4" else pairs
    if scales is None:
        return values
    groups = values.unflatten(1, (scales.reshape(len(b), -1).shape[1], -1))
    if zeros is not None:
        groups = groups - zeros.reshape(len(b), -1, 1).float()
    return (groups * scales.reshape(len(b), -1, 1).float()).flatten(1)
