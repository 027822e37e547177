"""Operands of a product: how they lie, their types, and copies of those that no kernel takes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...dialects.dtypes import (
    DTYPES,
    OPERAND_DTYPES,
    OUTPUT_DTYPES,
    TENSOR_DTYPES,
    THREAD_DTYPES,
)
from ...dialects.errors import OptionError
from ...dialects.target import find_target
from ...runtime.element_types import NUMPY_NAMES, TORCH_NAMES, is_torch
from ...runtime.operands.dlpack import is_foreign, read_array
from ..spec import MatmulSpec

ALIGNMENT_BYTES = 16


def _named(dtypes: Sequence[str]) -> dict[str, str]:
    """Each of the types by what torch, numpy and DLPack call it."""
    names = ((name, dtype) for dtype in dtypes for name in NUMPY_NAMES[dtype])
    return {TORCH_NAMES[dtype]: dtype for dtype in dtypes} | dict(names)


RESULTS = _named(OUTPUT_DTYPES)
# What tensor cores take by the same name comes last: float32 is tf32 where nobody asks for fma.
OPERANDS = _named(THREAD_DTYPES) | _named(TENSOR_DTYPES)


class Operand(NamedTuple):
    """An operand: sizes and strides in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


def spec_of(a: Operand, b: Operand, out_dtype: str = "") -> MatmulSpec:
    """The matmul of two operands; OptionError when their sizes or types don't go together."""
    from ..spec import MatmulSpec

    *stack, m, n = result_shape(a.shape, b.shape)
    k = a.shape[-1]
    majors: dict[str, Any] = {"a_major": _major(a, "m"), "b_major": _major(b, "n")}
    dtype = DTYPES[a.dtype]
    c_dtype = out_dtype or dtype.result
    if stack:
        stacked = {"a_stacked": len(a.shape) == 3, "b_stacked": len(b.shape) == 3}
        majors |= {"batch": stack[0], **stacked}
    return MatmulSpec(m, n, k, a.dtype, b.dtype, c_dtype, dtype.accumulator, **majors)


def result_shape(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    """[m, n], or that of a stack; OptionError for shapes that don't go together."""
    check_shapes(a, b)
    stack = (a if len(a) > 2 else b)[:-2]
    return [*stack, a[-2], b[-2]]


def check_shapes(a: Sequence[Any], b: Sequence[Any]) -> None:
    """Raise OptionError unless the shapes are [m, k] and [n, k], or such with a first dim before
    them, the same where both have one."""
    shapes = f"{list(a)} and {list(b)}"
    if len(b) == 3 and len(a) in (2, 3):
        if a[-1] != b[-1] or (len(a) == 3 and a[0] != b[0]):
            rule = "stacks must be [batch, m, k] and [batch, n, k], or one of them a matrix"
            raise OptionError(f"matmul: {rule}, got {shapes}")
        return
    if len(a) not in (2, 3) or len(b) != 2 or a[-1] != b[1]:
        raise OptionError(
            f"matmul: a and b must be [m, k] and [n, k], got {shapes}; pass b.T for a b of [k, n]"
        )


def operand_of(name: str, array: Any) -> Operand:
    if is_torch(array):
        shape, strides, dtype = tuple(array.shape), array.stride(), str(array.dtype)
    elif type(array).__module__ == "numpy":
        strides = tuple(stride // array.itemsize for stride in array.strides)
        shape, dtype = array.shape, array.dtype.name if array.dtype.isnative else str(array.dtype)
    elif is_foreign(array):
        found = read_array(name, array)
        shape, strides, dtype = found.shape, found.strides, found.dtype
    else:
        got = type(array).__name__
        raise OptionError(f"matmul: {name} must be an array of torch, numpy or DLPack, got {got}")
    return Operand(shape, strides, operand_type(name, dtype))


def quick_key(array: Any) -> Any:
    """What tells operands apart, as cheap as the library has it."""
    if is_torch(array):
        return array.shape, array.stride(), array.dtype
    return operand_of("operand", array)


def operand_type(name: str, dtype: str) -> str:
    """The type of an operand that torch, numpy or DLPack calls `dtype`; OptionError if no kernel
    takes it."""
    if dtype not in OPERANDS:
        known = ", ".join(OPERAND_DTYPES)
        raise OptionError(f"matmul: {name} must be one of {known}, got {dtype}; convert it")
    return OPERANDS[dtype]


def _major(operand: Operand, outer: str) -> str:
    """ "k" if K is contiguous, else the other axis; sizes of one element have no say."""
    matrix = Operand(operand.shape[-2:], operand.strides[-2:], operand.dtype)
    return "k" if _lies_as(matrix, (matrix.shape[1], 1)) else outer


def _lies_as(operand: Operand, strides: tuple[int, int]) -> bool:
    extents = zip(operand.shape, operand.strides, strides, strict=True)
    return all(extent == 1 or got == wanted for extent, got, wanted in extents)


def dense(array: Any) -> Any:
    """The array, or a copy where neither order of its last two axes is without gaps."""
    if is_torch(array):
        if array.layout is not sys.modules["torch"].strided:
            raise OptionError(f"matmul: operands must be dense, got {array.layout}; convert it")
        dense = array.dim() < 2 or array.is_contiguous() or array.mT.is_contiguous()
        return array if dense else _copied(array)
    if type(array).__module__ != "numpy":
        return array
    dense = array.flags.c_contiguous or array.swapaxes(-1, -2).flags.c_contiguous
    return array if dense else array.copy()


def readable(array: Any, target: str) -> Any:
    """The array, or a copy with K contiguous where the target's MMA reads its type only so.

    Threads read any type as it lies, those of 8 bytes among them.
    """
    if not is_torch(array) and type(array).__module__ != "numpy":
        return array
    if array.itemsize in (*find_target(target).mma.mn_major_bytes, 8):
        return array
    return array.contiguous() if is_torch(array) else sys.modules["numpy"].ascontiguousarray(array)


def aligned(array: Any) -> Any:
    """The array, or a copy where TMA can't take its address."""
    if is_torch(array) and array.data_ptr() % ALIGNMENT_BYTES:
        return _copied(array)
    return array


def _copied(array: Any) -> Any:
    """A torch tensor's values at a new address, its axes in the order they lie in."""
    if not array.is_contiguous() and array.mT.is_contiguous():
        return _copied(array.mT).mT
    return array.detach().clone(memory_format=sys.modules["torch"].contiguous_format)


def result_type(dtype: Any) -> str:
    """A dtype as a manifest names it; "" for None."""
    text = "" if dtype is None else str(dtype)
    if text and text not in RESULTS and text not in OUTPUT_DTYPES:
        known = ", ".join(OUTPUT_DTYPES)
        raise OptionError(f"matmul: out_dtype must be one of {known}, got {text}")
    return RESULTS.get(text, text)
