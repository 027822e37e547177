"""The epilogue of `grouped_mm`: fused into the kernel, or a step after it.

An operand [groups, 1, n] has an element for each group, and the function sees the row of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ....dialects.errors import CompileError
from ....runtime.launch.kernel import Kernel
from ...importers.epilogue_function import Argument
from ...importers.linalg_text import LinalgText
from ...importers.traced_function import TensorLike
from ...spec import MatmulSpec
from ..dense.fused import as_argument, like_of, two_steps
from ..kernels.function_keys import function_key
from ..kernels.lookup import ROWS, How, buckets_of_rows, bundle_for, bundle_of_rows
from ..kernels.row_kernels import RowKernels
from .grouped_any import kernels_of_any_rows, trace_of_groups


class Grouped(NamedTuple):
    """A kernel of groups, and its arguments after the offsets; `is_transposed` says that it takes b
    as [groups, k, n].

    `kept` are values that its key names by their address.
    """

    kernel: Kernel | RowKernels
    arguments: Sequence[Argument]
    is_transposed: bool
    kept: list[Any]
    in_tuple: bool = False

    def returned(self, result: Any) -> Any:
        """The kernel's result as the function returns it, which may be a tuple of one."""
        return (result,) if self.in_tuple and not isinstance(result, (tuple, list)) else result


def _of_any_rows(like: TensorLike, rows: int) -> Any:
    """What an operand is but for the number of rows."""
    open_ = len(like.shape) == 2 and like.shape[0] == rows
    return (ROWS, *like.shape[1:], like.dtype) if open_ else like


class After(NamedTuple):
    """What is computed of the sums, and of which operands; nothing where there is no function."""

    function: Callable[..., Any] | None = None
    operands: Sequence[Any] = ()

    def key(self, kept: list[Any], rows: int = 0) -> Any:
        """Equal for functions that compute the same of operands that are alike.

        rows: how many there are, where a kernel takes any number: 1 alone is told from others.
        """
        of_function = None if self.function is None else function_key(self.function, kept)
        likes = (like_of(*each) for each in enumerate(self.operands))
        if rows < 2:
            return of_function, rows, tuple(likes)
        return of_function, ROWS, tuple(_of_any_rows(each, rows) for each in likes)

    def arguments(self, found: Grouped) -> list[Any]:
        """The operands as the kernel takes them."""
        return [as_argument(self.operands, each, "grouped_mm") for each in found.arguments]


def find(spec: MatmulSpec, after: After, target: str, how: How, kept: list[Any]) -> Grouped:
    """The kernel of groups of rows, or of K, with what comes after the sums; or those of any number
    of rows, or of any K."""
    function, likes = after.function, [like_of(*each) for each in enumerate(after.operands)]
    # A text says how arguments are stored; of a spec the loader takes b either way.
    is_transposed = spec.b_major == "n" and function is not None
    if how.m and function is None:
        make = partial(bundle_of_rows, target)
        return Grouped(RowKernels(buckets_of_rows(spec, target, how), make, True), (), False, kept)
    if how.m and function is not None:
        kernels, traced = kernels_of_any_rows(spec, function, likes, target, how)
        in_tuple = traced.finish[0].in_tuple
        return Grouped(kernels, traced.arguments, is_transposed, kept, in_tuple)
    source: MatmulSpec | LinalgText = spec
    arguments: Sequence[Argument] = ()
    in_tuple = False
    if function is not None:
        spec, made, arguments, finish = trace_of_groups(spec, function, likes, how)
        in_tuple = finish[0].in_tuple
        source = LinalgText(spec.mlir_text(made), "grouped_mm")
    bundle = bundle_for(source, spec, target, how)
    return Grouped(Kernel(bundle, copies=True), arguments, is_transposed, kept, in_tuple)


def in_two_steps(
    product: Callable[[str], Any],
    a: Any,
    offs: Any,
    how: How,
    after: After,
    rows: int | None = None,
) -> Any:
    """The function of the sums by torch, which sees both; `product` makes them in a type, or a list
    of those of two.

    rows: how many are grouped, None where K is.
    """
    operands = after.operands
    if rows is not None:
        operands = [_by_row(number, each, offs, rows) for number, each in enumerate(operands)]
    assert after.function is not None

    def sums(dtype: str) -> list[Any]:
        made = product(dtype)
        return made if isinstance(made, list) else [made]

    return two_steps(sums, after.function, operands, a, how.out_dtype)


def _by_row(number: int, operand: Any, offs: Any, rows: int) -> Any:
    """An operand of groups with an element for each row, of the last group after all."""
    import torch

    if operand.dim() != 3:
        return operand
    if operand.shape[0] != len(offs) or operand.shape[1] != 1:
        rule = f"operands[{number}] of three dims must have one row for each of {len(offs)} groups"
        raise CompileError(f"epilogue: {rule}, got {list(operand.shape)}")
    ends = offs.clamp(0, rows).cummax(0).values
    numbers = torch.arange(rows, device=offs.device, dtype=offs.dtype)
    group = torch.searchsorted(ends, numbers, right=True).clamp(max=max(0, len(offs) - 1))
    return operand.expand(-1, 1, -1)[group, 0]


def flipped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of the transposed sums, as the product of the transposes has them."""

    @functools.wraps(function)
    def transposed(acc: Any, *operands: Any) -> Any:
        found = function(acc.mT, *operands)
        return tuple(each.mT for each in found) if isinstance(found, (tuple, list)) else found.mT

    return transposed
