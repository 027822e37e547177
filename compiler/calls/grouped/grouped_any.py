"""`grouped_mm(m="dynamic")` with an epilogue: a function of the sums in kernels that share all
numbers of rows.

The function is traced at the rows that come first, and at others: both must say the same, with "?"
in the place of rows. Operands are those of all rows, or have one row for each group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ....dialects.errors import CompileError, OptionError
from ....runtime.bundles.bundle import Bundle
from ....runtime.element_types import torch_dtype
from ...importers.epilogue_function import Frame, import_epilogue
from ...importers.linalg_text import LinalgText
from ...importers.open_sizes import depends_on_sizes
from ...importers.traced_function import TensorLike
from ...schedule.any_size.buckets import Bucket
from ...spec import MatmulSpec
from ...spec.epilogue import Epilogue
from ..dense.fused_rows import OTHER_ROWS, RULES, Traced, any_rows, changed_dims, with_rows
from ..kernels.kernel_cache import cached_bundle
from ..kernels.lookup import ROWS, How, buckets_of_rows
from ..kernels.row_kernels import RowKernels


def kernels_of_any_rows(
    spec: MatmulSpec,
    function: Callable[..., Any],
    likes: Sequence[TensorLike],
    target: str,
    how: How,
) -> tuple[RowKernels, Traced]:
    """The kernels, and what they compute and take after a, b and the offsets.

    Raises CompileError, at the function's line, for what is no epilogue or depends on the rows.
    """
    traced = _traced(spec, function, likes, how)
    make = partial(_bundle, traced.epilogue, target)
    return RowKernels(buckets_of_rows(traced.spec, target, how), make, copies=True), traced


def _bundle(epilogue: Epilogue, target: str, bucket: Bucket) -> Bundle:
    source = LinalgText(bucket.spec.mlir_text(epilogue), "grouped_mm")
    return cached_bundle(source, target, bucket.pipeline, named=bucket.named)


def _traced(
    spec: MatmulSpec, function: Callable[..., Any], likes: Sequence[TensorLike], how: How
) -> Traced:
    """The function with its rows as "?"; refused where other rows make it another."""
    rows = next(each for each in OTHER_ROWS if each != spec.m)
    first = trace_of_groups(spec, function, likes, how)
    far = [with_rows(e, first, n, {"m": [0]}, [rows]) for n, e in enumerate(likes)]
    second = trace_of_groups(replace(spec, m=rows), function, far, how)
    found, other = (any_rows(each.epilogue, each.arguments) for each in (first, second))
    sums = [TensorLike((rows, spec.n), torch_dtype(spec.acc_dtype))] * spec.products
    changed = [[0]] * spec.products + [changed_dims(*e) for e in zip(likes, far, strict=True)]
    seen = [each._replace(shape=each.shape[1:]) if len(each.shape) == 3 else each for each in far]
    same = (first.spec, found) == (replace(second.spec, m=spec.m), other)
    if not same or depends_on_sizes(function, [*sums, *seen], changed):
        raise CompileError(f"epilogue: {RULES[ROWS]}, got one that does; leave it out")
    return Traced(first.spec, *found, first.finish)


def trace_of_groups(
    spec: MatmulSpec, function: Callable[..., Any], likes: Sequence[TensorLike], how: How
) -> Traced:
    """A function of the sums of groups of rows, or of K, or of two stacks."""
    shape, of_k = [spec.m, spec.n], spec.group_axis == "k"
    stack = spec.groups if of_k else spec.batch
    frame = Frame.of([stack, *shape] if stack else shape, stack)
    spec, made, arguments, returned = import_epilogue(
        *(spec, frame, function, likes),
        c_is_open=not how.out_dtype,
        groups=0 if of_k else spec.groups,
        prepared=True,
    )
    if any(each.kind for each in returned):
        rule = "results must have the shape of acc where something is grouped"
        raise OptionError(f"grouped_mm: {rule}, got a reduction; reduce outside")
    finish = tuple(each._replace(value=None) for each in returned)  # keeps no graph
    return Traced(spec, made, arguments, finish)
