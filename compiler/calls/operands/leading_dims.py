"""Operands with batch dims, and products with a size of 0.

    a [..., m, k], b [n, k]        →    a as rows [... * m, k]     →    c as [..., m, n], a view
    a [..., m, k], b [..., n, k]   →    stacks [prod, m, k], …     →    c as [..., m, n], a view

An operand is copied for it where its dims do not step evenly, as those of a transpose or of one
that is broadcast along some of them; an output is refused then.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from ....dialects.errors import OptionError
from ....runtime.element_types import is_torch
from ....runtime.operands.copies import warn_of_copy
from ....runtime.operands.results import cleared, new_zeros
from ....runtime.tracing import is_traced
from .operands import Operand, check_shapes, operand_of, result_shape, spec_of

OUT = "out"


def _stepping_evenly(name: str, array: Any, kept: int) -> Any:
    """A copy of an operand without gaps, which a warning tells of."""
    strides = list(array.stride() if is_torch(array) else array.strides)
    last, are = ("its last", "rows of one matrix") if kept == 1 else ("its matrices", "a stack")
    if name == OUT:
        raise OptionError(
            f"matmul: the dims of {name} before {last} must step evenly, so that they are {are}, "
            f"got strides {strides} for {list(array.shape)}; copy the result there"
        )
    if not is_traced():
        warn_of_copy(f"matmul: {name}", array, f"strides {strides} are not those of {are}")
    return array.contiguous() if is_torch(array) else array.copy(order="C")


def has_leading_dims(a: Any) -> bool:
    """Whether an array of torch or numpy has dims before its rows."""
    return (is_torch(a) or type(a).__module__ == "numpy") and len(a.shape) > 2


def rows_of(name: str, array: Any) -> Any:
    """The array as one matrix of all its rows, as `flattened` makes it."""
    return flattened(name, array, 1)


def flattened(name: str, array: Any, kept: int) -> Any:
    """The array with all dims but the last `kept` as one: a view, of a copy where there is none.

    Raises OptionError for an output, `name` "out", that has no such view.
    """
    if not steps_evenly(array, kept):
        array = _stepping_evenly(name, array, kept)
    shape = (prod(array.shape[:-kept]), *array.shape[-kept:])
    return array.view(shape) if is_torch(array) else array.reshape(shape)


def is_stack(a: Any, b: Any, of_any: bool = False) -> bool:
    """Whether a kernel takes the operands as they are: stacks of one length, or `a` a matrix.

    of_any: whether it takes any number of matrices, so that one is a stack, too.
    """
    if len(b.shape) != 3 or not 2 <= len(a.shape) <= 3:
        return False
    return len(a.shape) == 2 or (a.shape[0] == b.shape[0] and (of_any or a.shape[0] != 1))


def stacks_of(a: Any, b: Any, of_any: bool = False) -> tuple[list[Any], Any, Any]:
    """The dims of the product before its matrices, and operands of at most one such dim, views.

    of_any: whether the kernel takes any number of matrices, and one is a stack of it, too.
    """
    leading = [list(each.shape[:-2]) for each in (a, b)]
    batch = _broadcast(*leading)
    alone = [all(extent == 1 for extent in dims) for dims in leading]
    if of_any and all(alone):
        alone = [not dims for dims in leading]
    if len(a.shape) < 2:
        check_shapes(a.shape, b.shape)
    if leading[0] != leading[1] and not any(alone):
        a, b = (_expanded(each, batch) for each in (a, b))
    left, right = (
        each.reshape(each.shape[-2:]) if one else flattened(name, each, 2)
        for name, each, one in zip("ab", (a, b), alone, strict=True)
    )
    return batch, left, right


def _broadcast(*leading: list[Any]) -> list[Any]:
    """The dims that both become, by torch's rule: aligned at the last one, one of each pair or
    none is 1; OptionError for others."""
    rank = max(map(len, leading))
    pairs = list(zip(*([1] * (rank - len(dims)) + dims for dims in leading), strict=True))
    if any(x != y and 1 not in (x, y) for x, y in pairs):
        rule = "the dims of a and b before their matrices must be the same, or 1 or missing in one"
        raise OptionError(f"matmul: {rule}, got {leading[0]} and {leading[1]}; reshape one of them")
    return [y if x == 1 else x for x, y in pairs]


def _expanded(array: Any, batch: list[Any]) -> Any:
    """The stack with other dims before its matrices, a view."""
    shape = *batch, *array.shape[-2:]
    return array.expand(shape) if is_torch(array) else np.broadcast_to(array, shape)


def steps_evenly(array: Any, kept: int) -> bool:
    """Whether each dim before the last ones steps over all of the next one."""
    shape = array.shape[:-kept]
    strides = (array.stride() if is_torch(array) else array.strides)[:-kept]
    if 0 in array.shape:
        return True
    dims = [(size, step) for size, step in zip(shape, strides, strict=True) if size != 1]
    return all(step == size * inner for (_, step), (size, inner) in pairwise(dims))


def is_empty(a: Any, b: Any) -> bool:
    """Whether a size of the product is 0: there is nothing to launch."""
    return 0 in getattr(a, "shape", ()) or 0 in getattr(b, "shape", ())


def product_of_nothing(a: Any, b: Any, out: Any, out_dtype: str) -> Any:
    """The product where a size is 0: no elements, or zeros where it is K.

    Types and shapes are refused as those of any other product.
    """
    a_operand, b_operand = operand_of("a", a), operand_of("b", b)
    shape = result_shape(a_operand.shape, b_operand.shape)
    spec = spec_of(_with_elements(a_operand), _with_elements(b_operand), out_dtype)
    if out is None:
        return new_zeros(shape, spec.c_dtype, a)
    declared = {"name": "c", "shape": shape, "dtype": spec.c_dtype}
    return cleared(declared, out)


def _with_elements(operand: Operand) -> Operand:
    """The operand with sizes of 1 for 0."""
    return operand._replace(shape=tuple(max(extent, 1) for extent in operand.shape))
