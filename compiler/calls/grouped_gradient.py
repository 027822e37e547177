"""The gradients of a product of groups of rows, imported when torch records them.

of mat_a    gradient [rows, n] · mat_b[g]ᵀ, groups of rows again, by a kernel of their own
of mat_b    mat_aᵀ [k, rows] · gradient [rows, n], in which K is grouped

Of a product whose rows of mat_a are gathered the former is added up by the rows' numbers, and the
latter takes a copy of them.

Of a product of groups of K, whose gradient is a stack [groups, m, n]:

of mat_a    the transpose [k, m] is mat_b [k, n] · gradient[g]ᵀ, groups of rows
of mat_b    mat_aᵀ [k, m] · gradient[g], groups of rows
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .grouped_depth import multiply_depth
from .kernels import How

Multiply = Callable[..., torch.Tensor]


class GroupedProduct(torch.autograd.Function):
    """The product with its gradients; `multiply_rows` computes one."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        a, b, offs, how, rows, order, multiply_rows = inputs
        ctx.save_for_backward(a, b, offs, rows)
        ctx.how, ctx.order, ctx.multiply_rows = How(target=how.target), order, multiply_rows
        return multiply_rows(a, b, offs, how, rows=rows)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        """Rows behind the last group have a gradient of 0, whatever C holds there."""
        a, b, offs, rows = ctx.saved_tensors
        gradient = gradients[0].to(a.dtype).contiguous()
        numbers = None if rows is None else rows.clamp(0, len(a) - 1)
        of_a = of_b = None
        if ctx.needs_input_grad[0] and numbers is None:
            zeros = torch.zeros_like(a)
            of_a = ctx.multiply_rows(gradient, b.mT, offs, ctx.how, out=zeros)
        elif ctx.needs_input_grad[0]:
            of_a = _scattered(ctx, gradient, b, offs, numbers, a)
        if ctx.needs_input_grad[1]:  # of [groups, n, k]
            read = a if numbers is None else a.index_select(0, numbers)
            of_b = multiply_depth(gradient.mT, read.mT, offs, ctx.how, order=ctx.order)
        return of_a, of_b, None, None, None, None, None


def _scattered(ctx: Any, gradient: Any, b: Any, offs: Any, numbers: Any, a: Any) -> torch.Tensor:
    """The gradient of a whose rows are read by their numbers: of each the sum, in f32 or f64."""
    dtype, name = (torch.float64, "f64") if a.itemsize == 8 else (torch.float32, "f32")
    parts = torch.zeros(len(numbers), a.shape[1], dtype=dtype, device=a.device)
    parts = ctx.multiply_rows(gradient, b.mT, offs, ctx.how._replace(out_dtype=name), out=parts)
    whole = torch.zeros(a.shape, dtype=dtype, device=a.device)
    return whole.index_add_(0, numbers, parts).to(a.dtype)


class DepthProduct(torch.autograd.Function):
    """The products of groups of K, with their gradients; `multiply_rows` computes these."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        a, b, offs, how, order, multiply_rows = inputs
        ctx.save_for_backward(a, b, offs)
        ctx.how, ctx.multiply_rows = How(target=how.target), multiply_rows
        return multiply_depth(a, b.mT, offs, how, order=order)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        """What no group has of K has a gradient of 0."""
        a, b, offs = ctx.saved_tensors
        gradient = gradients[0].to(a.dtype).contiguous()
        of_a = of_b = None
        if ctx.needs_input_grad[0]:
            rows = torch.zeros(a.shape[::-1], dtype=a.dtype, device=a.device)
            of_a = ctx.multiply_rows(b, gradient, offs, ctx.how, out=rows).mT
        if ctx.needs_input_grad[1]:
            rows = torch.zeros(b.shape, dtype=b.dtype, device=b.device)
            of_b = ctx.multiply_rows(a.mT, gradient.mT, offs, ctx.how, out=rows)
        return of_a, of_b, None, None, None, None
