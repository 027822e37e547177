"""`grouped_mm` of groups of rows, each multiplied by its own matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....dialects.dtypes import DTYPES
from ....runtime.operands.dlpack import gpu_of
from ....runtime.operands.results import new_zeros
from ...spec import MatmulSpec
from ..kernels.found_kernels import FoundKernels
from ..kernels.lookup import How, check_passes, default_target
from ..operands.operands import operand_of, quick_key
from ..operands.placement import aligned, read_in_place, row_by_row
from ..operands.precision import with_precision
from .grouped_fused import After, Grouped, find, in_two_steps

_kernels: FoundKernels[Grouped] = FoundKernels()


def multiply_rows(
    a: Any,
    b: Any,
    offs: Any,
    how: How,
    after: After | None = None,
    out: Any = None,
    rows: Any = None,
    second: Any = None,
) -> Any:
    """The product by one kernel; b is [groups, n, k], and `rows` says which rows of a there are.

    out: where the product goes, else a new tensor; rows that no group has stay as they are,
        or become 0.
    second: another b, of whose sums `after` makes something beside those of the first.
    """
    after = after or After()
    target = how.target or default_target(gpu_of(a))
    a = row_by_row("grouped_mm: mat_a", a)
    b = read_in_place("grouped_mm: mat_b", b, target, gaps=False)
    count = a.shape[0] if rows is None else rows.shape[0]
    if 0 in (*a.shape, *b.shape, count):
        check_passes(how)
        made = _of_nothing(a, b, count, offs, how, after, second)
        return made if out is None else out.copy_(made)
    kept: list[Any] = []
    gathered = 0 if rows is None else count
    products = 1 if second is None else 2
    left = (a.shape[1], a.dtype) if how.m else quick_key(a)
    key = (
        left,
        quick_key(b),
        gathered,
        gpu_of(a),
        how,
        after.key(kept, count if how.m else 0),
        products,
    )
    sizes = gathered, products
    found = _kernels.of(key, lambda: _find(a, b, sizes, how, target, after, kept), kept)
    beside = [*([] if rows is None else [rows]), *after.arguments(found)]
    bs = [aligned("grouped_mm: mat_b", each) for each in (b, second) if each is not None]
    bs = [each.swapaxes(1, 2) for each in bs] if found.is_transposed else bs
    result = found.kernel(aligned("grouped_mm: mat_a", a), *bs, offs, *beside, out=out)
    return result if out is not None else found.returned(result)


def _of_nothing(a: Any, b: Any, count: int, offs: Any, how: How, after: After, second: Any) -> Any:
    """The product where a size is 0: no elements, or zeros where it is K."""

    def zeros(dtype: str) -> Any:
        return new_zeros((count, b.shape[1]), dtype, a)

    if after.function is not None:
        several = 1 if second is None else 2
        return in_two_steps(lambda dtype: [zeros(dtype)] * several, a, offs, how, after, count)
    return zeros(how.out_dtype or DTYPES[operand_of("a", a).dtype].result)


def _find(
    a: Any,
    b: Any,
    sizes: tuple[int, int],
    how: How,
    target: str,
    after: After,
    kept: list[Any],
) -> Grouped:
    gathered, products = sizes
    left, right = operand_of("mat_a", a), operand_of("mat_b", b)
    dtype = DTYPES[left.dtype]
    (m, k), (groups, n, _) = left.shape, right.shape
    major = "k" if b.is_contiguous() else "n"
    names = left.dtype, right.dtype, how.out_dtype or dtype.result, dtype.accumulator
    table = m if gathered else 0
    spec = MatmulSpec(gathered or m, n, k, *names, b_major=major, groups=groups, gathered=table)
    spec = replace(spec, sums=how.sums, products=products)
    spec = with_precision(spec, how.precision, how.pipeline, how.preset)
    return find(spec, after, target, how, kept)
