"""`matmul` with a block-scaled result: one kernel multiplies, quantizes and writes scales.

The sums go through the epilogue's function, or stay as they are, and the kernel makes elements and
scales of them in f32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ....dialects.errors import OptionError
from ....runtime.scales.blocked import to_blocked
from ....runtime.scales.quantize import quantize
from ..kernels.lookup import How, call_kernel
from ..operands.leading_dims import has_leading_dims
from .fused import bs_of, has_no_elements, matrices_of, multiply_fused, must_be_seen, two_steps
from .quantized_product import QuantizedProduct


def multiply_quantized(
    a: Any,
    b: Any,
    out: Any,
    how: How,
    epilogue: Callable[..., Any] | None,
    operands: Sequence[Any],
) -> Any:
    """The product in the format of `how`; of a function of several results a tuple of all."""
    if out is not None:
        rule = f"out must be None for a result of {how.out_dtype}, which has scales"
        raise OptionError(f"matmul: {rule}, got one")
    if must_be_seen(a, b, operands):
        rule = f"a result of {how.out_dtype} has no gradient and no operator of torch"
        raise OptionError(f"matmul: {rule}, got a call that needs one; call it under no_grad")
    multiply = _of_nothing if has_no_elements(a, b) else _by_kernel
    return multiply(a, b, how, epilogue or _sums, operands)


def _by_kernel(
    a: Any, b: Any, how: How, epilogue: Callable[..., Any], operands: Sequence[Any]
) -> Any:
    return multiply_fused(a, b, None, how, epilogue, operands)


def _of_nothing(
    a: Any, b: Any, how: How, epilogue: Callable[..., Any], operands: Sequence[Any]
) -> Any:
    """The product where a size is 0: what the function makes of zeros where it is K."""
    right, *second = bs_of(b)
    leading, left, right = matrices_of(a, right)
    shape = *leading, a.shape[-2], right.shape[-2]

    def sums(dtype: str) -> list[Any]:
        plain = how._replace(out_dtype=dtype, scale_rounding="", math="")
        made = [call_kernel(left, each, None, plain) for each in (right, *second)]
        return [each.reshape(shape) for each in made]

    made = two_steps(sums, epilogue, operands, a, "f32")
    first, *others = made if isinstance(made, tuple) else (made,)
    product = in_blocks(first, how, has_leading_dims(b))
    return (product, *others) if others else product


def in_blocks(values: Any, how: How, stacked: bool = False) -> QuantizedProduct:
    """Numbers [..., rows, n] in the format of `how`, by the host: all rows as one matrix, or a
    stack with scales for each."""
    data, scales, _ = quantize(values, how.out_dtype, how.scale_rounding)
    rows = scales if stacked else scales.reshape(prod(scales.shape[:-1]), scales.shape[-1])
    return QuantizedProduct(data, to_blocked(rows))


def _sums(acc: Any) -> Any:
    return acc
