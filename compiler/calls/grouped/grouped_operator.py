"""`grouped_mm` as an operator of torch, imported only if torch must see the call.

tilewright::grouped    the kernel, a fake implementation, and gradients by the same operator
RecordedGroups         the same without torch's dispatcher, where nothing but gradients is recorded
TransformedGroups      the same under torch.func, and forward

    of grouped rows      the gradient of mat_a is one of grouped rows, that of mat_b of a grouped K
    of a grouped K       both gradients are of grouped rows

Of rows that are gathered by their numbers the former is added up, and the latter takes a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import library

from ....dialects.dtypes import DTYPES
from ....dialects.errors import OptionError
from ....runtime.element_types import torch_dtype
from ....runtime.tracing import is_traced, is_transformed, is_watched
from ..kernels.lookup import ROWS, How, records_gradients, settled
from ..operands.operands import operand_type
from ..operators.flops import count_flops, of_groups
from .grouped_depth import is_of_any_depth, multiply_depth
from .grouped_rows import multiply_rows

NO_GRADIENTS = (None,) * 9  # of what comes after offs and rows


@library.custom_op("tilewright::grouped", mutates_args=())
def grouped_operator(
    mat_a: torch.Tensor,
    mat_b: torch.Tensor,
    offs: torch.Tensor,
    rows: torch.Tensor | None,
    order: str,
    zeros: bool,
    out_dtype: str,
    target: str,
    pipeline: str,
    preset: str,
    sums: str,
    precision: str = "",  # which programs that were saved before it do not say, as the next one
    m: str = "",
) -> torch.Tensor:
    """mat_a [rows, k] times mat_b [groups, k, n], or [m, k] times [k, n] with a grouped K, as
    tilewright.grouped_mm; with `zeros` rows that no group has are 0. Empty texts leave the choice
    to the compiler."""
    how = out_dtype, target, pipeline, preset, sums, precision, m
    with torch.no_grad():
        return _multiply(mat_a, mat_b, offs, rows, order, zeros, *how)


def _multiply(
    mat_a: torch.Tensor,
    mat_b: torch.Tensor,
    offs: torch.Tensor,
    rows: torch.Tensor | None,
    order: str,
    zeros: bool,
    out_dtype: str,
    target: str,
    pipeline: str,
    preset: str,
    sums: str,
    precision: str = "",
    m: str = "",
) -> torch.Tensor:
    how = How(out_dtype, target, pipeline, preset, m, sums=sums, precision=precision)
    how = settled(mat_a, how)
    if mat_b.dim() == 2:
        return multiply_depth(mat_a, mat_b.mT, offs, how, order=order)
    out = _empty(mat_a, mat_b, rows, out_dtype).zero_() if zeros else None
    return multiply_rows(mat_a, mat_b.mT, offs, how, out=out, rows=rows)


@grouped_operator.register_fake
def _(mat_a: torch.Tensor, mat_b: torch.Tensor, offs: torch.Tensor, *others: Any) -> torch.Tensor:
    rows, _order, _zeros, out_dtype, *_how = others
    if mat_b.dim() == 2:
        shape = offs.shape[0], mat_a.shape[0], mat_b.shape[1]
        return mat_a.new_empty(shape, dtype=_result(mat_a, out_dtype))
    return _empty(mat_a, mat_b, rows, out_dtype)


def _empty(
    mat_a: torch.Tensor, mat_b: torch.Tensor, rows: torch.Tensor | None, out_dtype: str
) -> torch.Tensor:
    count = mat_a.shape[0] if rows is None else rows.shape[0]
    return mat_a.new_empty((count, mat_b.shape[2]), dtype=_result(mat_a, out_dtype))


def _result(mat_a: torch.Tensor, out_dtype: str) -> torch.dtype:
    return torch_dtype(out_dtype or DTYPES[operand_type("mat_a", str(mat_a.dtype))].result)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    mat_a, mat_b, offs, rows, ctx.order, _, _, *how = inputs
    ctx.target, ctx.precision, ctx.m = how[0], how[4], how[5]
    ctx.save_for_backward(mat_a, mat_b, offs, rows)


def _gradients(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    """By operators again, so that torch may record gradients of them, too. What no group has, of
    rows or of K, has a gradient of 0."""
    mat_a, mat_b, offs, rows = ctx.saved_tensors
    _check_derivatives(mat_a)
    gradient = gradient.to(mat_a.dtype).contiguous()
    of_a = of_b = None
    if mat_b.dim() == 2:
        if ctx.needs_input_grad[0]:
            of_a = _rows(ctx, mat_b, gradient.mT, offs).mT
        if ctx.needs_input_grad[1]:
            of_b = _rows(ctx, mat_a.mT, gradient, offs)
        return of_a, of_b, *NO_GRADIENTS, None, None
    offs = offs.cummax(0).values  # as grouped rows count one that is less than the one before it
    numbers = None if rows is None else rows.clamp(0, mat_a.shape[0] - 1)
    if ctx.needs_input_grad[0]:
        of_a = _of_rows(ctx, gradient, mat_b.mT, offs, numbers, mat_a)
    if ctx.needs_input_grad[1]:
        read = mat_a if numbers is None else mat_a.index_select(0, numbers)
        of_b = _call(ctx, gradient.mT, read, offs, ctx.order, False, "").mT
    return of_a, of_b, *NO_GRADIENTS, None, None


def _check_derivatives(mat_a: torch.Tensor) -> None:
    if mat_a.itemsize == 1:
        rule = f"grouped_mm: gradients must be of 16 bits or more, got {mat_a.dtype}"
        raise OptionError(f"{rule}; convert the operands")


def _of_rows(
    ctx: Any, gradient: Any, mat_b: Any, offs: Any, numbers: Any, mat_a: Any
) -> torch.Tensor:
    """The gradient of rows; where they are read by their numbers, of each the sum in f32 or f64."""
    if numbers is None:
        return _rows(ctx, gradient, mat_b, offs)
    dtype, name = (torch.float64, "f64") if mat_a.itemsize == 8 else (torch.float32, "f32")
    parts = _rows(ctx, gradient, mat_b, offs, name)
    return torch.zeros_like(mat_a, dtype=dtype).index_add(0, numbers, parts).to(mat_a.dtype)


def _rows(ctx: Any, mat_a: Any, mat_b: Any, offs: Any, out_dtype: str = "") -> torch.Tensor:
    """A product of grouped rows, 0 where no group has some."""
    return _call(ctx, mat_a, mat_b, offs, "", True, out_dtype)


def _call(
    ctx: Any, mat_a: Any, mat_b: Any, offs: Any, order: str, zeros: bool, out_dtype: str
) -> torch.Tensor:
    how = out_dtype, ctx.target, "", "", "", ctx.precision
    m = ctx.m if _takes_any(mat_a, mat_b) else ""
    return composed(mat_a, mat_b, offs, None, order, zeros, *how, m)


def _takes_any(mat_a: torch.Tensor, mat_b: torch.Tensor) -> bool:
    """Whether kernels for any number of rows, or of any K, take a product as it lies."""
    if mat_b.dim() == 2:
        return is_of_any_depth(mat_a, mat_b.mT)
    return mat_a.is_contiguous()


def composed(*inputs: Any) -> torch.Tensor:
    """The product as torch must see it: an operator, or with its derivatives."""
    inputs = _with_symbols(*inputs)
    if is_traced():
        return grouped_operator(*inputs)
    if is_transformed():
        return TransformedGroups.apply(*inputs)  # type: ignore[no-any-return]
    if is_watched(*inputs[:4]):
        return grouped_operator(*inputs)
    if records_gradients(*inputs[:2]):
        return RecordedGroups.apply(*inputs)  # type: ignore[no-any-return]
    return _multiply(*inputs)


def _with_symbols(mat_a: Any, mat_b: Any, offs: Any, rows: Any, *others: Any) -> tuple[Any, ...]:
    """With kernels for any number of rows, or of any K, where torch says of that alone that it is a
    symbol."""
    *how, m = others
    axis = 1 if mat_b.dim() == 2 else 0
    known = mat_a.shape[1 - axis], *mat_b.shape[axis:]
    is_open = type(mat_a.shape[axis]) is torch.SymInt and rows is None
    if is_open and all(type(each) is int for each in known) and _takes_any(mat_a, mat_b):
        m = ROWS
    return mat_a, mat_b, offs, rows, *how, m


class RecordedGroups(torch.autograd.Function):
    """The product with its gradients.

    Not by setup_context, for which torch binds the arguments to a signature at each call.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        result = _multiply(*inputs)
        _keep(ctx, inputs, result)
        return result

    backward = staticmethod(_gradients)


class TransformedGroups(torch.autograd.Function):
    """The product under torch.func's transforms and in forward mode, and any nest of them."""

    @staticmethod
    def forward(*inputs: Any) -> torch.Tensor:
        return grouped_operator(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        _keep(ctx, inputs, output)
        ctx.set_materialize_grads(False)  # None, not zeros, where there is no tangent
        ctx.save_for_forward(*inputs[:4])
        ctx.how = inputs[4:]

    backward = staticmethod(_gradients)

    @staticmethod
    def jvp(ctx: Any, of_a: Any, of_b: Any, *_: None) -> torch.Tensor:
        """Along tangents of the operands, of which one may be None."""
        mat_a, mat_b, offs, rows = ctx.saved_tensors
        _check_derivatives(mat_a)
        pairs = [(of_a, mat_b)] * (of_a is not None) + [(mat_a, of_b)] * (of_b is not None)
        first, *second = [composed(*pair, offs, rows, *ctx.how) for pair in pairs]
        return first + second[0] if second else first

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[torch.Tensor, int]:
        """One after another: offsets may differ."""
        return one_by_one(composed, info.batch_size, in_dims, inputs), 0


def one_by_one(
    function: Callable[..., torch.Tensor], count: int, in_dims: Sequence[Any], inputs: Sequence[Any]
) -> torch.Tensor:
    """A stack of what a function gives for each element of a batch."""
    pairs = list(zip(inputs, in_dims, strict=True))
    return torch.stack(
        [
            function(*(each if dim is None else each.select(dim, n) for each, dim in pairs))
            for n in range(count)
        ]
    )


grouped_operator.register_autograd(_gradients, setup_context=_keep)
count_flops(torch.ops.tilewright.grouped.default, of_groups)
