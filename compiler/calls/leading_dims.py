"""Products whose first operand has more than two dims, and those in which a size is 0.

    a [..., m, k], b [n, k]    →    a as rows [... * m, k], a view    →    c as [..., m, n], a view

No operand is copied for it: dims of `a` that do not step evenly are refused.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

from ...dialects.errors import OptionError
from ...runtime.element_types import is_torch
from ...runtime.operands.results import cleared, new_zeros
from .operands import Operand, check_shapes, operand_of, spec_of


def has_leading_dims(a: Any) -> bool:
    """Whether an array of torch or numpy has dims before its rows."""
    return (is_torch(a) or type(a).__module__ == "numpy") and len(a.shape) > 2


def rows_of(name: str, array: Any) -> Any:
    """The array as one matrix of all its rows, a view; OptionError if it does not lie so."""
    *leading, columns = array.shape
    if not _step_evenly(array):
        strides = list(array.stride() if is_torch(array) else array.strides)
        raise OptionError(
            f"matmul: the dims of {name} before its last must step evenly, so that they are rows "
            f"of one matrix, got strides {strides} for {list(array.shape)}; pass a contiguous copy"
        )
    shape = (prod(leading), columns)
    return array.view(shape) if is_torch(array) else array.reshape(shape)


def _step_evenly(array: Any) -> bool:
    """Whether each dim before the last steps over all of the next one."""
    shape = array.shape[:-1]
    strides = (array.stride() if is_torch(array) else array.strides)[:-1]
    if 0 in array.shape:
        return True
    kept = [(size, step) for size, step in zip(shape, strides, strict=True) if size != 1]
    return all(step == size * inner for (_, step), (size, inner) in pairwise(kept))


def is_empty(a: Any, b: Any) -> bool:
    """Whether a size of the product is 0: there is nothing to launch."""
    return 0 in getattr(a, "shape", ()) or 0 in getattr(b, "shape", ())


def product_of_nothing(a: Any, b: Any, out: Any, out_dtype: str) -> Any:
    """The product where a size is 0: no elements, or zeros where it is K.

    Types and shapes are refused as those of any other product.
    """
    a_operand, b_operand = operand_of("a", a), operand_of("b", b)
    check_shapes(a_operand.shape, b_operand.shape)
    spec = spec_of(_with_elements(a_operand), _with_elements(b_operand), out_dtype)
    shape = [a_operand.shape[0], b_operand.shape[0]]
    strides = [max(shape[1], 1), 1]
    declared = {"name": "c", "shape": shape, "strides": strides, "dtype": spec.c_dtype}
    return new_zeros(declared, a) if out is None else cleared(declared, out)


def _with_elements(operand: Operand) -> Operand:
    """The operand with sizes of 1 for 0."""
    return operand._replace(shape=tuple(max(extent, 1) for extent in operand.shape))
