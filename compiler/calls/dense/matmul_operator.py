"""`matmul` as operators of torch, imported only if torch must see the call.

tilewright::matmul    what a graph records; differentiable; torch takes it apart into
tilewright::product   the kernel, with a fake implementation and without gradients
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch
from torch import library

from ....dialects.errors import OptionError
from ....runtime.element_types import torch_dtype
from ....runtime.tracing import is_traced, is_transformed, is_watched
from ..kernels.lookup import (
    BOTH,
    DEPTH,
    OF_STACKS,
    ROWS,
    STACKS,
    How,
    call_kernel,
    is_seen_by_torch,
    multiply,
    recall,
    records_gradients,
    seen,
    settled,
)
from ..operands.leading_dims import has_leading_dims, is_stack, rows_of, stacks_of
from ..operands.operands import check_types, result_shape
from ..operators.direct_calls import tell_inductor
from ..operators.flops import count_flops, of_rows

LIBRARY = library.Library("tilewright", "FRAGMENT")
# Graphs that were written before lack these.
LATER = "str m='', str scale_rounding='', str math='', str sums='', str precision=''"
HOW = f"str out_dtype, str target, str pipeline, str preset, {LATER}"
PRECISION_AT, M_AT = (2 + How._fields.index(name) for name in ("precision", "m"))
"""Of an operator's inputs."""
SIGNATURE = f"(Tensor a, Tensor b, {HOW}) -> Tensor"
TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
# Not by `custom_op`: its checks and its autograd take the host 11 us more at each call.
library.define("tilewright::product", SIGNATURE, lib=LIBRARY, tags=TAGS)
library.define("tilewright::matmul", SIGNATURE, lib=LIBRARY, tags=TAGS)
product_operator = torch.ops.tilewright.product.default
matmul_operator = torch.ops.tilewright.matmul.default
count_flops(product_operator, of_rows)  # torch takes `matmul` apart before it counts


@library.impl("tilewright::product", "default", lib=LIBRARY)
def _(a: torch.Tensor, b: torch.Tensor, *how: str) -> torch.Tensor:
    """a [m, k] · b [n, k]ᵀ as tilewright.matmul; empty texts leave the choice to the compiler."""
    known = seen(a, b, how)
    if known is not None:
        return known.kernel(a, b)
    asked = settled(a, How(*how))
    known = None if asked == how else seen(a, b, asked)  # of f32, whose precision a setting decides
    return known.kernel(a, b) if known else multiply(a, b, None, asked, asked)


@library.register_fake("tilewright::product", lib=LIBRARY)
def _(a: torch.Tensor, b: torch.Tensor, out_dtype: str, *_how: str) -> torch.Tensor:
    tell_inductor(product_operator)
    shape = result_shape(a.shape, b.shape)
    dtype = check_types(str(a.dtype), str(b.dtype), out_dtype)
    return a.new_empty(shape, dtype=torch_dtype(dtype))


def _gradients(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
    """The gradients of c = a·bᵀ: gradient·b for a and gradientᵀ·a for b, each by its own kernel."""
    a, b = ctx.saved_tensors
    _check_derivatives(a)
    gradient = gradients[0].to(a.dtype)
    if ctx.m:  # of sums it is one number for all, which is copied for any kernel
        gradient = gradient.contiguous()
    needed, how = ctx.needs_input_grad, (ctx.target, ctx.precision)
    m = {STACKS: STACKS, ROWS: DEPTH}.get(ctx.m, "")  # of the second one M is K
    pairs = ((gradient, b.mT, ctx.m), (gradient.mT, a.mT, m))
    of_a, of_b = (
        _gradient(*pair, *how) if wanted else None
        for wanted, pair in zip(needed[:2], pairs, strict=True)
    )
    of_a, of_b = (_summed(*each) for each in ((of_a, a), (of_b, b)))
    return of_a, of_b, *[None for _ in How._fields]


def _check_derivatives(a: torch.Tensor) -> None:
    if a.itemsize == 1:
        raise OptionError(
            f"matmul: gradients must be of 16 or 32 bits, got {a.dtype}; convert the operands"
        )


def _summed(gradient: torch.Tensor | None, operand: torch.Tensor) -> torch.Tensor | None:
    """The gradient of a matrix that all of a stack share: the sum of theirs."""
    if gradient is None or gradient.dim() == operand.dim():
        return gradient
    return gradient.sum(0)


def _gradient(
    a: torch.Tensor, b: torch.Tensor, m: str, target: str, precision: str
) -> torch.Tensor:
    """A product in the backward pass, of which torch may record gradients again.

    Where a launch says the size of the product, it says that of its gradients, if those have it.
    """
    m = m if _has_size(a, b, m) else ""
    how = settled(a, How(target=target, precision=precision, m=m))
    asked = None, target or None, None, None, m or None, how.precision or None
    kernel = None if is_traced() else recall(a, b, asked)
    if kernel is not None:
        return kernel(a, b)
    seen = is_seen_by_torch(a, b)
    return product(a, b, how) if seen else multiply(a, b, None, asked, how)


def _has_size(a: torch.Tensor, b: torch.Tensor, m: str) -> bool:
    """Whether kernels of any size, as `How.m` names it, take a product of a gradient."""
    if m == DEPTH:
        return _is_of_any_depth(a, b)
    if m in OF_STACKS:
        return all(each.is_contiguous() or each.mT.is_contiguous() for each in (a, b))
    return a.dim() == b.dim() == 2 and (a.is_contiguous() or a.mT.is_contiguous())


def _is_of_any_depth(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether kernels of any K take a product: of matrices of 16 bits whose rows are along K."""
    matrices = a.dim() == b.dim() == 2 and a.itemsize == 2
    return matrices and a.mT.is_contiguous() and b.mT.is_contiguous()


def product(a: torch.Tensor, b: torch.Tensor, how: How) -> torch.Tensor:
    """The product as torch must see it: an operator in a graph, or with its gradients."""
    if is_traced():
        return matmul_operator(a, b, *how)
    if is_watched(a, b) and not is_transformed():
        return matmul_operator(a, b, *how)
    return composed(a, b, *how)


def _tell_of_shardings() -> None:
    """Register the rules for DTensor once it is there."""
    if "torch.distributed.tensor" in sys.modules:
        _register_shardings()


@functools.cache
def _register_shardings() -> None:
    from ..operators.sharding import register

    register(product_operator)


class Product(torch.autograd.Function):
    """The product with its gradients.

    Not by setup_context, for which torch binds the arguments to a signature at each call.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        a, b, *how = inputs
        ctx.save_for_backward(a, b)
        ctx.target, ctx.precision, ctx.m = inputs[3], inputs[PRECISION_AT], inputs[M_AT]
        return product_operator(*inputs) if is_watched(a, b) else call_kernel(a, b, None, How(*how))

    backward = staticmethod(_gradients)


class RepeatedProduct(torch.autograd.Function):
    """The product with its gradients by a kernel that took tensors like these before."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        a, b, kernel, ctx.target, ctx.precision, ctx.m = inputs
        ctx.save_for_backward(a, b)
        return kernel(a, b)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        return *_gradients(ctx, *gradients)[:2], None, None, None, None


def repeat_product(
    a: Any, b: Any, kernel: Any, target: str, precision: str, m: str = ""
) -> torch.Tensor | None:
    """The product of tensors that the kernel takes, which are not watched, with their gradients.

    None where torch takes derivatives otherwise than backward.
    """
    return None if is_transformed() else RepeatedProduct.apply(a, b, kernel, target, precision, m)


class TransformedProduct(torch.autograd.Function):
    """The product under torch.func's transforms and in forward mode, and any nest of them.

    torch's manual, "Extending torch.func with autograd.Function", asks for such a form.
    """

    @staticmethod
    def forward(a: torch.Tensor, b: torch.Tensor, *how: str) -> torch.Tensor:
        return product_operator(a, b, *how)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        a, b, *how = inputs
        ctx.save_for_backward(a, b)
        ctx.set_materialize_grads(False)  # None, not zeros, where there is no tangent
        ctx.save_for_forward(a, b)
        ctx.how, ctx.m = how, How(*how).m
        ctx.target, ctx.precision = How(*how).target, How(*how).precision

    backward = staticmethod(_gradients)

    @staticmethod
    def jvp(ctx: Any, of_a: Any, of_b: Any, *_: None) -> torch.Tensor:
        """Along tangents of the operands, of which one may be None."""
        a, b = ctx.saved_tensors
        _check_derivatives(a)
        pairs = [(of_a, b)] * (of_a is not None) + [(a, of_b)] * (of_b is not None)
        first, *second = [composed(*pair, *ctx.how) for pair in pairs]
        return first + second[0] if second else first

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], a: Any, b: Any, *how: str
    ) -> tuple[torch.Tensor, int]:
        """All products at once: the rows of one matrix where they share b, else a stack."""
        left, right = (
            each if dim is None else each.movedim(dim, 0)
            for each, dim in zip((a, b), in_dims[:2], strict=True)
        )
        as_they_are = in_dims[0] is None and left.dim() == 2 and right.dim() == 3
        if not as_they_are and (in_dims[1] is not None or has_leading_dims(right)):
            left, right = _stacked(left, right, in_dims, info.batch_size)
        return composed(left.contiguous(), right.contiguous(), *how), 0


def _stacked(
    left: Any, right: Any, in_dims: tuple[int | None, ...], count: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Operands with the same leading dims, the batch of vmap the first of them."""
    batched = [
        each.expand(count, *each.shape) if dim is None else each
        for each, dim in zip((left, right), in_dims[:2], strict=True)
    ]
    inner = torch.broadcast_shapes(*(each.shape[1:-2] for each in batched))
    ones = [(1,) * (len(inner) + 3 - each.dim()) for each in batched]
    aligned = (
        each.reshape(count, *one, *each.shape[1:]) for each, one in zip(batched, ones, strict=True)
    )
    a, b = (each.expand(count, *inner, *each.shape[-2:]).contiguous() for each in aligned)
    return a, b


def composed(a: torch.Tensor, b: torch.Tensor, *how: str) -> torch.Tensor:
    """tilewright.matmul: products, with gradients if torch records them."""
    _tell_of_shardings()
    of_any = How(*how).m in OF_STACKS
    if has_leading_dims(b) and not is_stack(a, b, of_any):
        batch, left, right = stacks_of(a, b, of_any)
        return composed(left, right, *how).reshape(*batch, a.shape[-2], b.shape[-2])
    if has_leading_dims(a) and not has_leading_dims(b):
        c = composed(rows_of("a", a), b, *how)
        return c.reshape(*a.shape[:-1], c.shape[-1])
    asked = _with_symbols(a, b, How(*how))
    if is_transformed():
        return TransformedProduct.apply(a, b, *asked)
    if records_gradients(a, b):
        return Product.apply(a, b, *asked)
    return product_operator(a, b, *asked)


library.impl("tilewright::matmul", "CompositeImplicitAutograd", composed, lib=LIBRARY)
library.register_vmap("tilewright::matmul", TransformedProduct.vmap, lib=LIBRARY)


def _with_symbols(a: torch.Tensor, b: torch.Tensor, how: How) -> How:
    """With a kernel for any M where torch says of `a` that its rows alone are a symbol, for any K
    where it says so of that alone, or for any batch of how many matrices there are."""
    if b.dim() == 3:
        return how._replace(m=_symbolic_stack(a, b) or how.m)
    if a.dim() != 2:
        return how
    open_ = [type(size) is torch.SymInt for size in (a.shape[0], b.shape[0], a.shape[1])]
    if open_ == [True, False, False] and (a.is_contiguous() or a.mT.is_contiguous()):
        return how._replace(m=ROWS)
    if open_ == [False, False, True] and not how.precision and _is_of_any_depth(a, b):
        return how._replace(m=DEPTH)
    return how


def _symbolic_stack(a: torch.Tensor, b: torch.Tensor) -> str:
    """The kernels for any matrices, or any rows of them, where these alone are symbols and each
    matrix lies by itself; "" for none."""
    if any(type(size) is torch.SymInt for size in (a.shape[-1], *b.shape[-2:])):
        return ""
    if type(a.shape[-2]) is torch.SymInt:
        lies = all(each.is_contiguous() or each.mT.is_contiguous() for each in (a, b))
        return BOTH if lies else ""
    if type(b.shape[0]) is not torch.SymInt:
        return ""
    lies = all(each.is_contiguous() or each.mT.is_contiguous() for each in (a, b))
    return STACKS if lies else ""
