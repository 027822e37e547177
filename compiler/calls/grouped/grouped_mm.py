"""`grouped_mm`: grouped GEMM, like torch.nn.functional.grouped_mm.

a [rows, k], b [groups, k, n]   →   group g of the rows times b[g], in one kernel
a [groups, m, k], b [k, cols]   →   the same of bᵀ and aᵀ, and the result's transpose
a [m, k], b [k, n]              →   a product for each group of k (`grouped_depth`)
a, b of 3 dims                  →   a stack of products
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....dialects.errors import OptionError
from ....runtime.element_types import is_torch
from ....runtime.tracing import is_traced, is_transformed, is_watched
from ..dense.fused import multiply_fused
from ..dense.matmul import matmul
from ..kernels.lookup import ROWS, How, records_gradients
from ..operands.operands import (
    check_flags,
    check_operands,
    check_options,
    check_tensors,
    given,
    result_type,
)
from ..operands.precision import check_precision, set_precision
from .grouped_depth import is_of_any_depth, multiply_depth
from .grouped_fused import After, flipped, in_two_steps
from .grouped_rows import multiply_rows


def grouped_mm(
    mat_a: Any,
    mat_b: Any,
    *,
    offs: Any = None,
    bias: Any = None,
    out_dtype: Any = None,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = (),
    rows: Any = None,
    order: str | None = None,
    check_offsets: bool = False,
    target: str | None = None,
    pipeline: str | None = None,
    preset: str | None = None,
    m: str | None = None,
    precision: str | None = None,
) -> Any:
    """Products of groups, with the signature of torch.nn.functional.grouped_mm.

    mat_a, mat_b, offs: torch tensors. With mat_a [rows, k] and mat_b [groups, k, n], the rows from
        offs[g - 1] to offs[g] are multiplied by mat_b[g]. With mat_a [groups, m, k] and mat_b [k,
        columns], the columns are grouped likewise, and the result is the transpose of a row-major
        tensor. With mat_a [m, k] and mat_b [k, n], K is grouped, and the result is [groups, m, n],
        zero for an empty group; operands that are not stored with k as their rows are copied. With
        two stacks, each product is that of two matrices, and offs must be None. If rows are
        grouped, mat_b may be a pair of stacks [groups, k, n], such as the gate and up weights of
        SwiGLU: the epilogue takes the accumulators of both first. offs is a vector of int32 on the
        device of the others. The kernel reads it, and the host does not wait for it; groups may
        begin at any row, and may be empty. What is behind the last group is undefined.
    bias: None, as in torch; an epilogue can add one.
    out_dtype: as for `matmul`; by default that of mat_a.
    epilogue, operands: as for `matmul`, with an acc of the shape of the result. If rows are
        grouped, an operand [groups, 1, n] (for grouped columns [groups, m, 1]) has one row per
        group, and the function sees the row of its group as [1, n]. It may return several results;
        reductions are refused.
    rows: a vector of int32 on the device of the others, if rows are grouped: row r of the product
        is computed from row rows[r] of mat_a, so tokens need not be copied into the order of their
        experts. An index out of range counts as the nearest row.
    order: "heavy" computes the groups with the largest K first, so that no long group begins last
        if sizes differ much. The order is computed on the device, by a few small kernels of torch
        (docs/grouped.md says when that pays). For grouped rows and columns, whose tiles all take
        equally long, it applies to the gradients of the matrices.
    check_offsets: checks offs on the host, which waits for them, and raises OptionError if one is
        less than the one before it or beyond the rows. Without it, such an offset counts as the
        nearest valid one. For a grouped K, a group whose offset is less than the one before it is
        empty, and an offset is clamped to 0 and k.
    m: "dynamic" uses kernels for any number of rows in all groups, or of k if K is grouped, so that
        a new number compiles nothing. mat_a must then be contiguous; for a grouped k, both operands
        must have 16 bits and be stored with k as their rows, and there must be no epilogue. Rows
        are not gathered.
    target, pipeline, preset, precision: as for `matmul`. A grouped K of f32 is multiplied by
        "bf16x9" where that would be "tf32", whose MMA cannot read operands that are stored with K
        as their rows.

    It supports torch's autograd: the gradient of mat_a is a product of groups of rows, and that of
    mat_b one of groups of K. The gradients of a grouped K are products of groups of rows, so its
    offsets must be in order. If torch records gradients, an epilogue is a separate step by torch.

    Raises OptionError for shapes and types that do not go together, CompileError if the product
    cannot be compiled, DeviceError if it cannot be launched.
    """
    pair = isinstance(mat_b, (tuple, list))
    for each in mat_b if pair else (mat_b,):
        check_tensors("grouped_mm", mat_a=mat_a, mat_b=each, **given(offs=offs, rows=rows))
    texts = {"target": target, "pipeline": pipeline, "preset": preset, "precision": precision}
    check_options("grouped_mm", out_dtype=out_dtype, **texts)
    check_flags("grouped_mm", check_offsets=check_offsets)
    if bias is not None:
        rule = "bias must be None, got one"
        raise OptionError(f"grouped_mm: {rule}; add it by epilogue=lambda acc, bias: acc + bias")
    if precision is not None:
        check_precision(mat_a, precision)
    how = How(result_type(out_dtype), target or "", pipeline or "", preset or "", m or "")
    how = how._replace(precision=precision or set_precision(mat_a, pipeline, preset) or "")
    if m is not None:
        _check_any(m, mat_a, mat_b, epilogue, rows)
    if epilogue is not None and not callable(epilogue):
        got = type(epilogue).__name__
        raise OptionError(f"grouped_mm: epilogue must be a function of acc and operands, got {got}")
    check_operands("grouped_mm", operands)
    if epilogue is None and len(operands):
        raise OptionError("grouped_mm: operands are those of an epilogue, got none; pass epilogue=")
    if order not in (None, "heavy"):
        raise OptionError(f"grouped_mm: order must be 'heavy', got {order!r}; leave it out")
    after = After(epilogue, operands)
    return grouped_product(mat_a, mat_b, offs, how, after, check_offsets, rows, order or "")


def _check_any(m: str, mat_a: Any, mat_b: Any, epilogue: Any, rows: Any) -> None:
    """Refuse groups that no kernels for any number of rows, or of k, compute."""
    if m != ROWS:
        raise OptionError(f"grouped_mm: m must be 'dynamic', got {m!r}; leave it out")
    pair = isinstance(mat_b, (tuple, list))
    shapes = [list(each.shape) for each in (mat_b if pair else [mat_b])]
    ranks = len(mat_a.shape), len(shapes[0])
    if ranks not in ((2, 3), (2, 2)) or (pair and ranks != (2, 3)):
        got = " and ".join(map(str, (list(mat_a.shape), *shapes)))
        rule = "m must be None but for grouped rows and k, of mat_a [rows, k] or [m, k]"
        raise OptionError(f"grouped_mm: {rule}, got {got}; leave it out")
    of_k = ranks == (2, 2) and epilogue is not None
    if rows is not None or of_k:
        rule = "m must be None with rows, and of a grouped k with an epilogue"
        raise OptionError(f"grouped_mm: {rule}, got {'an epilogue' if of_k else 'rows'}")
    if ranks == (2, 2) and not is_of_any_depth(mat_a, mat_b.swapaxes(0, 1)):
        rule = "m='dynamic' must come with 16 bits and a k that is rows of both in memory"
        got = f"{mat_a.dtype}, strides {list(mat_a.stride())} and {list(mat_b.stride())}"
        raise OptionError(
            f"grouped_mm: {rule}, got {got}; leave it out, or pass x.T of an x [k, m]"
        )
    if ranks == (2, 3) and not mat_a.is_contiguous():
        got = list(mat_a.stride())
        raise OptionError(
            f"grouped_mm: mat_a must be contiguous with m='dynamic', got strides {got}"
        )


def grouped_product(
    mat_a: Any,
    mat_b: Any,
    offs: Any,
    how: How,
    after: After,
    check_offsets: bool,
    rows: Any = None,
    order: str = "",
) -> Any:
    """`grouped_mm` of what is asked of the compilation, and what is made of the sums."""
    if isinstance(mat_b, (tuple, list)):
        return _of_two(mat_a, mat_b, offs, how, after, check_offsets, rows)
    ranks = len(mat_a.shape), len(mat_b.shape)
    if rows is not None and ranks != (2, 3):
        rule = "rows must be None but for mat_a [rows, k] and mat_b [groups, k, n]"
        raise OptionError(f"grouped_mm: {rule}, got {list(mat_a.shape)} and {list(mat_b.shape)}")
    if ranks == (3, 3):
        if offs is not None:
            raise OptionError("grouped_mm: offs must be None for two stacks, got one; drop it")
        if order:
            rule = "order must be None for two stacks, whose products take equally long"
            raise OptionError(f"grouped_mm: {rule}, got {order!r}; leave it out")
        return _stack(mat_a, mat_b.swapaxes(-1, -2), how, after)
    if ranks == (3, 2):
        function = None if after.function is None else flipped(after.function)
        sides = mat_b.swapaxes(-1, -2), mat_a.swapaxes(-1, -2)
        transposed = After(function, after.operands)
        found = grouped_product(*sides, offs, how, transposed, check_offsets, None, order)
        several = isinstance(found, tuple)
        return tuple(each.mT for each in found) if several else found.mT
    if ranks not in ((2, 3), (2, 2)):
        rule = "mat_a and mat_b must be [rows, k] and [groups, k, n], or [groups, m, k] and "
        got = f"{list(mat_a.shape)} and {list(mat_b.shape)}"
        raise OptionError(f"grouped_mm: {rule}[k, columns], or [m, k] and [k, n], got {got}")
    b = mat_b.swapaxes(-1, -2)
    _check(mat_a, b, offs, rows, check_offsets)
    given = b, *after.operands
    recorded = any(records_gradients(mat_a, each) for each in given)
    if recorded or is_traced() or is_transformed() or is_watched(mat_a, *given):
        return _seen(mat_a, b, offs, how, after, rows, order)
    if ranks == (2, 2):
        return multiply_depth(mat_a, b, offs, how, after, order)
    return multiply_rows(mat_a, b, offs, how, after, rows=rows)


def _of_two(
    a: Any, bs: Sequence[Any], offs: Any, how: How, after: After, check_offsets: bool, rows: Any
) -> Any:
    """What the epilogue makes of the products with two stacks; by torch where it must see them."""
    shapes = [list(each.shape) for each in bs]
    alike = len(bs) == 2 and shapes[0] == shapes[1] and bs[0].dtype == bs[1].dtype
    if not alike or len(a.shape) != 2 or len(shapes[0]) != 3 or after.function is None:
        rule = "a pair of mat_b must be two stacks [groups, k, n] of a type, with an epilogue"
        got = f"{len(bs)} of {shapes}{'' if after.function else ' without one'}"
        raise OptionError(f"grouped_mm: {rule}, got {got}; multiply them apart")
    first, second = (each.swapaxes(-1, -2) for each in bs)
    _check(a, first, offs, rows, check_offsets)
    watched = (a, first, second, *after.operands)
    if is_traced() or is_watched(*watched) or any(records_gradients(a, e) for e in watched):

        def product(dtype: str) -> list[Any]:
            plain = how._replace(out_dtype=dtype)
            return [grouped_product(a, each, offs, plain, After(), False, rows) for each in bs]

        return in_two_steps(product, a, offs, how, after, len(a if rows is None else rows))
    return multiply_rows(a, first, offs, how, after, rows=rows, second=second)


def _stack(a: Any, b: Any, how: How, after: After) -> Any:
    """The products of two stacks; b is [groups, n, k]."""
    if how.sums and after.function is not None:
        return multiply_fused(a, b, None, how, after.function, after.operands)
    return matmul(
        a,
        b,
        out_dtype=how.out_dtype or None,
        epilogue=after.function,
        operands=after.operands,
        target=how.target or None,
        pipeline=how.pipeline or None,
        preset=how.preset or None,
        precision=how.precision or None,
    )


def _seen(a: Any, b: Any, offs: Any, how: How, after: After, rows: Any, order: str) -> Any:
    """The product where torch must see it; what comes after the sums is a second step."""
    from .grouped_operator import composed

    def product(dtype: str) -> Any:
        asked = dtype, how.target, how.pipeline, how.preset, how.sums, how.precision, how.m
        return composed(a, b.mT, offs, rows, order, False, *asked)

    if after.function is None:
        return product(how.out_dtype)
    count = None if b.dim() == 2 else len(a if rows is None else rows)
    return in_two_steps(product, a, offs, how, after, count)


def _check(a: Any, b: Any, offs: Any, rows: Any, check_offsets: bool) -> None:
    """Sizes, and the offsets where their values are asked for."""
    if not all(is_torch(each) for each in (a, b, offs)):
        kinds = ", ".join(type(each).__name__ for each in (a, b, offs))
        raise OptionError(f"grouped_mm: mat_a, mat_b and offs must be torch tensors, got {kinds}")
    if a.shape[1] != b.shape[-1]:
        got = f"{a.shape[1]} and {b.shape[-1]}"
        raise OptionError(f"grouped_mm: mat_a and mat_b must have the same k, got {got}")
    check_ends(a, b, offs, False)
    if rows is not None:
        _check_rows(a, rows)
    if check_offsets:
        _check_values_of(a, b, offs, rows)


def check_ends(a: Any, b: Any, offs: Any, check_offsets: bool) -> None:
    """The offsets, one for each group, on the device of both; their values where asked for."""
    if not is_torch(offs):
        raise OptionError(f"grouped_mm: offs must be a torch tensor, got {type(offs).__name__}")
    groups = [b.shape[0]] if b.dim() == 3 else list(offs.shape)
    if list(offs.shape) != groups or len(groups) != 1 or str(offs.dtype) != "torch.int32":
        got = f"{list(offs.shape)} of {offs.dtype}"
        rule = f"offs must be int32, one for each of {groups[0] if groups else 0} groups"
        raise OptionError(f"grouped_mm: {rule}, got {got}")
    if {each.device for each in (b, offs)} != {a.device}:
        got = f"{a.device}, {b.device} and {offs.device}"
        raise OptionError(f"grouped_mm: mat_a, mat_b and offs must be on one device, got {got}")
    if check_offsets:
        _check_values_of(a, b, offs, None)


def _check_values_of(a: Any, b: Any, offs: Any, rows: Any) -> None:
    """Offsets that cut the rows, or K, where the host looks at them."""
    count = len(a if rows is None else rows)
    what, extent = ("rows", count) if b.dim() == 3 else ("of k", a.shape[1])
    _check_values(offs.tolist(), extent, what)


def _check_rows(a: Any, rows: Any) -> None:
    """The numbers of rows: their type, and where they are."""
    if not is_torch(rows) or rows.dim() != 1 or str(rows.dtype) != "torch.int32":
        got = f"{list(rows.shape)} of {rows.dtype}" if is_torch(rows) else type(rows).__name__
        raise OptionError(f"grouped_mm: rows must be a vector of int32, got {got}")
    if not len(a) and len(rows):
        raise OptionError("grouped_mm: mat_a must have a row to gather, got none; drop rows")
    if rows.device != a.device:
        rule = "rows must be on the device of mat_a"
        raise OptionError(f"grouped_mm: {rule}, got {rows.device} and {a.device}")


def _check_values(ends: Sequence[int], extent: int, what: str) -> None:
    """In order, and within the rows, or k."""
    for group, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if not begin <= end <= extent:
            rule = f"offs[{group}] must be from {begin}, the end of the group before, to {extent}"
            raise OptionError(f"grouped_mm: {rule} {what}, got {end}; sort and clamp the offsets")
