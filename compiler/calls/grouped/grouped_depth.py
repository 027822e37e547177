"""`grouped_mm` of two matrices: K is divided into groups, each with its own product.

a [m, k], b [k, n], offs [groups]   →   c [groups, m, n]: of group g the sum over its part of k
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....dialects.dtypes import DTYPES, FMA
from ....dialects.errors import OptionError
from ....dialects.target import find_target
from ....runtime.group_sizes import heavy_first
from ....runtime.operands.copies import warn_of_copy
from ....runtime.operands.dlpack import gpu_of
from ....runtime.operands.results import new_zeros
from ...spec import MatmulSpec
from ..kernels.found_kernels import FoundKernels
from ..kernels.lookup import DEPTH, How, check_passes, default_target
from ..operands.operands import operand_of, quick_key
from ..operands.placement import aligned, check_extents
from ..operands.precision import with_precision
from .grouped_fused import After, Grouped, find, in_two_steps

ALL_DIGITS = "bf16x9"
"""How f32 is multiplied where tensor cores read no K as rows of tf32."""

_kernels: FoundKernels[Grouped] = FoundKernels()


def multiply_depth(
    a: Any, b: Any, offs: Any, how: How, after: After | None = None, order: str = ""
) -> Any:
    """The products by one kernel; a is [m, k] and b [n, k], both checked.

    order: "heavy" for the groups with the most of K first.
    """
    after = after or After()
    target = how.target or default_target(gpu_of(a))
    a, b = with_depth_as_rows("mat_a", a), with_depth_as_rows("mat_b", b)
    if 0 in (*a.shape, *b.shape, *offs.shape):
        check_passes(how)
        return _of_nothing(a, b, offs, how, after)
    kept: list[Any] = []
    groups = offs.shape[0]
    sides = [(each.shape[0], each.dtype) if how.m else quick_key(each) for each in (a, b)]
    key = *sides, groups, gpu_of(a), how, after.key(kept), order

    def find() -> Grouped:
        return _find(a, b, groups, how, target, after, bool(order), kept)

    found = _kernels.of(key, find, kept)
    beside = [*([heavy_first(offs, a.shape[1])] if order else []), *after.arguments(found)]
    a, b = aligned("grouped_mm: mat_a", a), aligned("grouped_mm: mat_b", b)
    if after.function is not None:  # a text says how arguments are stored
        a, b = a.swapaxes(0, 1), b.swapaxes(0, 1)
    return found.returned(found.kernel(a, b, offs, *beside))


def is_of_any_depth(a: Any, b: Any) -> bool:
    """Whether kernels of any K take operands [m, k] and [n, k]: of 16 bits, K as rows in memory."""
    return a.itemsize == 2 and a.mT.is_contiguous() and b.mT.is_contiguous()


def with_depth_as_rows(name: str, operand: Any) -> Any:
    """An operand [m or n, k] with K as rows in memory: only there can TMA end with any group."""
    rows = operand.swapaxes(0, 1)
    if rows.is_contiguous():
        return operand
    check_extents(f"grouped_mm: {name}", operand)
    warn_of_copy(f"grouped_mm: {name}", operand, "grouped K must be rows without gaps")
    return rows.detach().contiguous().swapaxes(0, 1)


def _of_nothing(a: Any, b: Any, offs: Any, how: How, after: After) -> Any:
    """What nothing adds up to."""

    def zeros(dtype: str) -> Any:
        return new_zeros((offs.shape[0], a.shape[0], b.shape[0]), dtype, a)

    if after.function is not None:
        return in_two_steps(zeros, a, offs, how, after)
    return zeros(how.out_dtype or DTYPES[operand_of("mat_a", a).dtype].result)


def _find(
    a: Any,
    b: Any,
    groups: int,
    how: How,
    target: str,
    after: After,
    ordered: bool,
    kept: list[Any],
) -> Grouped:
    left, right = operand_of("mat_a", a), operand_of("mat_b", b)
    dtype = DTYPES[left.dtype]
    asked = bool(how.pipeline or how.preset)
    unread = dtype.bytes not in find_target(target).mma.mn_major_bytes
    is_f32 = left.dtype == right.dtype == "tf32"
    if unread and dtype.operand_kind != FMA and not (asked or is_f32):
        rule = f"K must not be grouped for {left.dtype} on {target}, which reads no K as rows of it"
        raise OptionError(f"grouped_mm: {rule}, got groups of K; multiply in bf16 or f16")
    sizes = left.shape[0], right.shape[0], left.shape[1]
    names = left.dtype, right.dtype, how.out_dtype or dtype.result, dtype.accumulator
    spec = MatmulSpec(*sizes, *names, a_major="m", b_major="n", groups=groups, group_axis="k")
    spec = replace(spec, sums=how.sums, ordered=ordered)
    how = how._replace(m=DEPTH) if how.m else how
    exact = is_f32 and unread and not asked and how.precision in ("", "tf32")
    precision = ALL_DIGITS if exact else how.precision
    spec = with_precision(spec, precision, how.pipeline, how.preset)
    return find(spec, after, target, how, kept)
