"""`weight_only_mm` as an operator of torch, imported only if torch must see the call.

tilewright::weight_only    the kernel with a bias, a fake implementation, and a gradient for a
TransformedWeights         the same under torch.func, and forward
"""

from __future__ import annotations

from typing import Any

import torch
from torch import library

from ....dialects.dtypes import DTYPES
from ....dialects.errors import OptionError
from ....runtime.element_types import torch_dtype
from ....runtime.tracing import is_traced, is_transformed
from ..grouped.grouped_operator import one_by_one
from ..kernels.lookup import How
from ..operands.operands import operand_type
from ..operators.flops import count_flops, of_rows
from .weight_product import multiply_weights, weights_of

INPUTS = 8


@library.custom_op("tilewright::weight_only", mutates_args=())
def weight_operator(
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


@weight_operator.register_fake
def _(a: torch.Tensor, b: torch.Tensor, *others: Any) -> torch.Tensor:
    *_, out_dtype, _m = others
    dtype = out_dtype or operand_type("a", str(a.dtype))
    return a.new_empty((*a.shape[:-1], b.shape[0]), dtype=torch_dtype(dtype))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    a, b, scales, zeros, bias, b_dtype, _, _ = inputs
    ctx.save_for_backward(b, *(each for each in (scales, zeros) if each is not None))
    ctx.of_a, ctx.b_dtype, ctx.has_bias = a.dtype, b_dtype, bias is not None


def _gradient(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    """The gradient of a, by the dequantized weights, and of a bias. Weights have none."""
    if any(ctx.needs_input_grad[1:4]):
        _refuse_derivatives()
    b, *beside = ctx.saved_tensors
    of_a = gradient.to(ctx.of_a) @ dequantized(b, *beside, b_dtype=ctx.b_dtype).to(ctx.of_a)
    of_bias = None
    if ctx.has_bias and ctx.needs_input_grad[4]:
        of_bias = gradient.reshape(-1, gradient.shape[-1]).sum(0)
    return of_a, None, None, None, of_bias, *[None] * (INPUTS - 5)


weight_operator.register_autograd(_gradient, setup_context=_keep)
count_flops(torch.ops.tilewright.weight_only.default, of_rows)


def _refuse_derivatives() -> None:
    rule = "narrow weights, scales and zeros have no gradients"
    raise OptionError(f"weight_only_mm: {rule}, got one that requires them; detach it")


def product(*inputs: Any) -> torch.Tensor:
    """The operator, as torch can transform it where it does."""
    if is_traced() or not is_transformed():
        return weight_operator(*inputs)
    return TransformedWeights.apply(*inputs)  # type: ignore[no-any-return]


class TransformedWeights(torch.autograd.Function):
    """The product under torch.func's transforms and in forward mode, and any nest of them."""

    @staticmethod
    def forward(*inputs: Any) -> torch.Tensor:
        return weight_operator(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        _keep(ctx, inputs, output)
        ctx.set_materialize_grads(False)  # None, not zeros, where there is no tangent
        ctx.save_for_forward(*inputs[1:4])
        ctx.how = inputs[5:]
        ctx.result = output.shape, output.dtype

    backward = staticmethod(_gradient)

    @staticmethod
    def jvp(ctx: Any, of_a: Any, *others: Any) -> torch.Tensor:
        """Along tangents of a and of the bias, of which one may be None."""
        *of_weights, of_bias = others[:4]
        if any(each is not None for each in of_weights):
            _refuse_derivatives()
        weights = (*ctx.saved_tensors, None, None)[:3]
        parts = [] if of_a is None else [product(of_a, *weights, None, *ctx.how)]
        shape, dtype = ctx.result
        parts += [] if of_bias is None else [of_bias.to(dtype).expand(shape)]
        return parts[0] + parts[1] if len(parts) > 1 else parts[0].clone()

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[torch.Tensor, int]:
        """More rows where a alone is a batch, else one after another."""
        a, *others = inputs
        if any(dim is not None for dim in in_dims[1:]):
            return one_by_one(product, info.batch_size, in_dims, inputs), 0
        return product(a.movedim(in_dims[0], 0).contiguous(), *others), 0


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
