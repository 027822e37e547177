"""`matmul` as an operator of torch: tilewright::matmul, with a fake implementation and autograd.

Imported when torch is there and must see the call: under torch.compile, or for gradients.
"""

from __future__ import annotations

from typing import Any

import torch

from ..dialects.dtypes import DTYPES
from ..runtime.element_types import torch_dtype
from .first_use import OPERANDS, How, call_kernel, check_shapes


@torch.library.custom_op("tilewright::matmul", mutates_args=())
def matmul_operator(
    a: torch.Tensor, b: torch.Tensor, out_dtype: str, target: str, pipeline: str, preset: str
) -> torch.Tensor:
    """a [m, k] · b [n, k]ᵀ as compiler.matmul; empty texts leave the choice to the compiler."""
    return call_kernel(a, b, None, How(out_dtype, target, pipeline, preset))


@matmul_operator.register_fake
def _(
    a: torch.Tensor, b: torch.Tensor, out_dtype: str, target: str, pipeline: str, preset: str
) -> torch.Tensor:
    check_shapes(a.shape, b.shape)
    dtype = out_dtype or DTYPES[OPERANDS[str(a.dtype)]].result
    return a.new_empty((a.shape[0], b.shape[0]), dtype=torch_dtype(dtype))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    a, b, _, target, _, _ = inputs
    ctx.save_for_backward(a, b)
    ctx.target = target


def _gradients(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    """Of c = a·bᵀ: gradient·b for a and gradientᵀ·a for b, by kernels of their own."""
    a, b = ctx.saved_tensors
    gradient = gradient.to(a.dtype)
    how = ("", ctx.target, "", "")
    of_a = matmul_operator(gradient, b.t(), *how) if ctx.needs_input_grad[0] else None
    of_b = matmul_operator(gradient.t(), a.t(), *how) if ctx.needs_input_grad[1] else None
    return of_a, of_b, None, None, None, None


matmul_operator.register_autograd(_gradients, setup_context=_keep)
