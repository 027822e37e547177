"""`matmul` as operators of torch, imported when torch must see the call.

tilewright::matmul    what a graph records; differentiable; torch takes it apart into
tilewright::product   the kernel, with a fake implementation and without gradients
"""

from __future__ import annotations

from typing import Any

import torch
from torch import library

from ...dialects.dtypes import DTYPES
from ...dialects.errors import OptionError
from ...runtime.element_types import torch_dtype
from ...runtime.tracing import is_traced, is_watched
from .kernels import How, call_kernel, is_seen_by_torch, multiply, recall, records_gradients
from .leading_dims import has_leading_dims, is_stack, rows_of, stacks_of
from .operands import operand_type, result_shape

LIBRARY = library.Library("tilewright", "FRAGMENT")
# Graphs that were written before lack these.
LATER = "str m='', str scale_rounding='', str math='', str sums=''"
HOW = f"str out_dtype, str target, str pipeline, str preset, {LATER}"
SIGNATURE = f"(Tensor a, Tensor b, {HOW}) -> Tensor"
TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
# Not by `custom_op`: its checks and its autograd take the host 11 us more at each call.
library.define("tilewright::product", SIGNATURE, lib=LIBRARY, tags=TAGS)
library.define("tilewright::matmul", SIGNATURE, lib=LIBRARY, tags=TAGS)
product_operator = torch.ops.tilewright.product.default
matmul_operator = torch.ops.tilewright.matmul.default


@library.impl("tilewright::product", "default", lib=LIBRARY)
def _(a: torch.Tensor, b: torch.Tensor, *how: str) -> torch.Tensor:
    """a [m, k] · b [n, k]ᵀ as tilewright.matmul; empty texts leave the choice to the compiler."""
    return call_kernel(a, b, None, How(*how))


@library.register_fake("tilewright::product", lib=LIBRARY)
def _(a: torch.Tensor, b: torch.Tensor, out_dtype: str, *_how: str) -> torch.Tensor:
    shape = result_shape(a.shape, b.shape)
    dtype = out_dtype or DTYPES[operand_type("a", str(a.dtype))].result
    return a.new_empty(shape, dtype=torch_dtype(dtype))


def _gradients(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
    """Of c = a·bᵀ: gradient·b for a and gradientᵀ·a for b, by kernels of their own."""
    a, b = ctx.saved_tensors
    if a.itemsize == 1:
        raise OptionError(
            f"matmul: gradients must be of 16 or 32 bits, got {a.dtype}; convert the operands"
        )
    gradient = gradients[0].to(a.dtype)
    needed, target = ctx.needs_input_grad, ctx.target
    pairs = ((gradient, b.mT), (gradient.mT, a.mT))
    of_a, of_b = (
        _gradient(*pair, target) if wanted else None
        for wanted, pair in zip(needed[:2], pairs, strict=True)
    )
    of_a, of_b = (_summed(*each) for each in ((of_a, a), (of_b, b)))
    return of_a, of_b, *[None for _ in How._fields]


def _summed(gradient: torch.Tensor | None, operand: torch.Tensor) -> torch.Tensor | None:
    """The gradient of a matrix that all of a stack share: the sum of theirs."""
    if gradient is None or gradient.dim() == operand.dim():
        return gradient
    return gradient.sum(0)


def _gradient(a: torch.Tensor, b: torch.Tensor, target: str) -> torch.Tensor:
    """A product in the backward pass, of which torch may record gradients again."""
    asked, how = (None, target or None, None, None, None), How(target=target)
    kernel = None if is_traced() else recall(a, b, asked)
    if kernel is not None:
        return kernel(a, b)
    seen = is_seen_by_torch(a, b)
    return product(a, b, how) if seen else multiply(a, b, None, asked, how)


def product(a: torch.Tensor, b: torch.Tensor, how: How) -> torch.Tensor:
    """The product as torch must see it: an operator in a graph, or with its gradients."""
    if is_traced() or is_watched(a, b):
        return matmul_operator(a, b, *how)
    return Product.apply(a, b, *how)


class Product(torch.autograd.Function):
    """The product with its gradients.

    Not by setup_context, for which torch binds the arguments to a signature at each call.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        a, b, *how = inputs
        ctx.save_for_backward(a, b)
        ctx.target = inputs[3]
        return product_operator(*inputs) if is_watched(a, b) else call_kernel(a, b, None, How(*how))

    backward = staticmethod(_gradients)


@library.impl("tilewright::matmul", "CompositeImplicitAutograd", lib=LIBRARY)
def _(a: torch.Tensor, b: torch.Tensor, *how: str) -> torch.Tensor:
    """tilewright.matmul: products, with gradients if torch records them."""
    if has_leading_dims(b) and not is_stack(a, b):
        batch, left, right = stacks_of(a, b)
        return matmul_operator(left, right, *how).reshape(*batch, a.shape[-2], b.shape[-2])
    if has_leading_dims(a) and not has_leading_dims(b):
        c = matmul_operator(rows_of("a", a), b, *how)
        return c.reshape(*a.shape[:-1], c.shape[-1])
    asked = _with_symbols(a, b, How(*how))
    if records_gradients(a, b):
        return Product.apply(a, b, *asked)
    return product_operator(a, b, *asked)


def _with_symbols(a: torch.Tensor, b: torch.Tensor, how: How) -> How:
    """With a kernel for any M where torch says of `a` that its rows alone are a symbol."""
    if not (type(a.shape[-2]) is torch.SymInt and a.dim() == b.dim() == 2 and a.is_contiguous()):
        return how
    if any(type(size) is torch.SymInt for size in (a.shape[1], *b.shape)):
        return how
    return how._replace(m="dynamic")
