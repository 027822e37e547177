"""`matmul` as an operator of torch: tilewright::matmul, with a fake implementation and autograd.

Imported when torch is there and must see the call: under torch.compile, or for gradients.
"""

from __future__ import annotations

from typing import Any

import torch

from ..dialects.dtypes import DTYPES
from ..dialects.errors import OptionError
from ..runtime.element_types import torch_dtype
from .first_use import OPERANDS, How, call_kernel, check_shapes, matmul

NAME = "tilewright::matmul"
LIBRARY = torch.library.Library("tilewright", "FRAGMENT")
# Not torch.library.custom_op, whose own checks take the host 4 us more at each call.
torch.library.define(
    NAME,
    "(Tensor a, Tensor b, str out_dtype, str target, str pipeline, str preset) -> Tensor",
    lib=LIBRARY,
    tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides),
)
matmul_operator = torch.ops.tilewright.matmul.default


@torch.library.impl(NAME, "default", lib=LIBRARY)
def _(
    a: torch.Tensor, b: torch.Tensor, out_dtype: str, target: str, pipeline: str, preset: str
) -> torch.Tensor:
    """a [m, k] · b [n, k]ᵀ as compiler.matmul; empty texts leave the choice to the compiler."""
    return call_kernel(a, b, None, How(out_dtype, target, pipeline, preset))


@torch.library.register_fake(NAME, lib=LIBRARY)
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
    if a.itemsize == 1:
        raise OptionError(
            f"matmul: gradients must be of 16 or 32 bits, got {a.dtype}; convert the operands"
        )
    gradient = gradient.to(a.dtype)
    needed, target = ctx.needs_input_grad, ctx.target or None
    pairs = ((gradient, b.t()), (gradient.t(), a.t()))
    of_a, of_b = (
        matmul(*pair, target=target) if wanted else None
        for wanted, pair in zip(needed[:2], pairs, strict=True)
    )
    return of_a, of_b, None, None, None, None


torch.library.register_autograd(NAME, _gradients, setup_context=_keep, lib=LIBRARY)


class Product(torch.autograd.Function):
    """The operator with its gradients, for calls that nothing traces; torch's way takes 45 us more.

    Not by setup_context, for which torch binds the arguments to a signature at each call.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        a, b, *how = inputs
        output = call_kernel(a, b, None, How(*how))
        _keep(ctx, inputs, output)
        return output

    backward = staticmethod(_gradients)
