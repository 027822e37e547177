"""The gradients of a product of groups of rows, imported when torch records them.

of mat_a    gradient [rows, n] · mat_b[g]ᵀ, groups of rows again, by a kernel of their own
of mat_b    mat_aᵀ [k, rows] · gradient [rows, n], in which K is grouped: by torch's grouped_mm
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Multiply = Callable[..., torch.Tensor]


class GroupedProduct(torch.autograd.Function):
    """The product with its gradients; `multiply` computes one of groups of rows."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        a, b, offs, multiply = inputs
        ctx.save_for_backward(a, b, offs)
        ctx.multiply = multiply
        return multiply(a, b, offs)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        """Rows behind the last group have a gradient of 0, whatever C holds there."""
        a, b, offs = ctx.saved_tensors
        gradient = gradients[0].to(a.dtype).contiguous()
        of_a = of_b = None
        if ctx.needs_input_grad[0]:
            of_a = ctx.multiply(gradient, b.mT, offs, out=torch.zeros_like(a))
        if ctx.needs_input_grad[1]:  # of [groups, n, k]
            of_b = torch_grouped_mm(gradient.mT, a.contiguous(), offs=offs)
        return of_a, of_b, None, None


def torch_grouped_mm(*operands: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    """By its public name where this torch has it."""
    public = getattr(torch.nn.functional, "grouped_mm", None)
    return (public or torch._grouped_mm)(*operands, offs=offs)  # pyright: ignore
