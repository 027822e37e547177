"""Operands of a product: their sizes, types and strides, and the spec that they make."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ....dialects.dtypes import (
    DTYPES,
    OPERAND_DTYPES,
    OUTPUT_DTYPES,
    SCALED_FORMATS,
    SPLITS,
    TENSOR_DTYPES,
    THREAD_DTYPES,
)
from ....dialects.errors import OptionError
from ....runtime.element_types import NUMPY_NAMES, TORCH_NAMES, is_torch
from ....runtime.operands.dlpack import is_foreign, read_array
from ...spec import DEPTH_HINT, MatmulSpec
from .placement import NO_GAPS, Placement, placement


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


def spec_of(
    a: Operand, b: Operand, out_dtype: str = "", gaps_of_c: tuple[int, int] = NO_GAPS
) -> MatmulSpec:
    """The matmul of two operands; OptionError when their sizes or types don't go together."""
    *stack, m, n = result_shape(a.shape, b.shape)
    k = a.shape[-1]
    lies: dict[str, Any] = {**_lies("a", a, "m"), **_lies("b", b, "n")}
    lies |= {"ldc": gaps_of_c[0], "stride_c": gaps_of_c[1]}
    dtype = DTYPES[a.dtype]
    c_dtype = out_dtype or dtype.result
    if stack:
        stacked = {"a_stacked": len(a.shape) == 3, "b_stacked": len(b.shape) == 3}
        lies |= {"batch": stack[0], **stacked}
    return MatmulSpec(m, n, k, a.dtype, b.dtype, c_dtype, dtype.accumulator, **lies)


def _lies(name: str, operand: Operand, outer: str) -> dict[str, Any]:
    """What a spec says of how an operand lies; `outer` is its dim beside K."""
    found = placement(operand.shape, operand.strides) or Placement(1)
    major = "k" if found.major == 1 else outer
    return {f"{name}_major": major, f"ld{name}": found.leading, f"stride_{name}": found.step}


def spec_of_depth(
    a: Operand, b: Operand, out_dtype: str = "", gaps_of_c: tuple[int, int] = NO_GAPS
) -> MatmulSpec:
    """The matmul of any K of two operands that have K as their rows in memory; OptionError where
    they do not."""
    lda, ldb = leading_of_depth("a", a), leading_of_depth("b", b)
    (m, _), (n, _) = a.shape, b.shape
    known = spec_of(
        a._replace(shape=(m, DEPTH_HINT), strides=(1, lda or m)),
        b._replace(shape=(n, DEPTH_HINT), strides=(1, ldb or n)),
        out_dtype,
        gaps_of_c,
    )
    lies = {"a_major": "m", "b_major": "n", "lda": lda, "ldb": ldb}
    return replace(known, dynamic_k=True, **lies)


def leading_of_depth(name: str, operand: Operand) -> int:
    """Elements from a row in memory to the next, of a matrix [mn, K] whose rows are along K; 0
    where there are no gaps, or one row."""
    shape, strides = operand.shape, operand.strides
    lies = len(shape) == 2 and (shape[0] <= 1 or strides[0] == 1)
    if not lies or (shape[1] > 1 and strides[1] < shape[0]):
        side = "m" if name == "a" else "n"
        rule = f"{name} must be a matrix with {side} contiguous where k is dynamic"
        got = f"strides {list(strides)} of {list(shape)}"
        raise OptionError(f"matmul: {rule}, got {got}; pass x.T of an x [k, {side}]")
    return 0 if shape[1] <= 1 or strides[1] == shape[0] else strides[1]


def lies_as(name: str, operand: Operand) -> tuple[Any, ...]:
    """How an operand lies, whatever its number of rows or matrices."""
    return tuple(_lies(name, operand, "m" if name == "a" else "n").values())


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
    elif hasattr(array, "mask") and type(array).__module__.startswith("numpy.ma"):
        raise OptionError(f"matmul: {name} must have no mask, got a masked array; fill it")
    elif is_foreign(array):
        found = read_array(name, array)
        shape, strides, dtype = found.shape, found.strides, found.dtype
    else:
        got = type(array).__name__
        raise OptionError(f"matmul: {name} must be an array of torch, numpy or DLPack, got {got}")
    return Operand(shape, strides, operand_type(name, dtype))


def check_operands(function: str, operands: Any) -> None:
    """Refuse operands of an epilogue that are no sequence of tensors, but perhaps one of them."""
    if not isinstance(operands, (tuple, list)):
        rule = "operands must be a tuple or list of tensors"
        raise OptionError(f"{function}: {rule}, got {type(operands).__name__}")


def check_options(function: str, *, out_dtype: Any = None, **texts: Any) -> None:
    """Refuse options that are no texts; a type may be torch's or numpy's, too."""
    for name, value in texts.items():
        if value is not None and not (isinstance(value, str) and value):
            raise OptionError(f"{function}: {name} must be a text, got {value!r}; leave it out")
    if out_dtype is not None and str(out_dtype) == "":
        raise OptionError(f"{function}: out_dtype must name a type, got ''; leave it out")
    if type(out_dtype).__hash__ is None:
        rule = "out_dtype must be the name of a type, or torch's"
        raise OptionError(f"{function}: {rule}, got {type(out_dtype).__name__}")


def check_flags(function: str, **values: Any) -> None:
    """Refuse what is neither True nor False, of which nobody says which it means."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise OptionError(f"{function}: {name} must be True or False, got {value!r}")


def check_no_dims(function: str, contraction_dim: Any) -> None:
    """Refuse dims to add up along, as torch names them: it is K."""
    if not isinstance(contraction_dim, (tuple, list)) or len(contraction_dim):
        raise OptionError(f"{function}: contraction_dim must be (), got {contraction_dim}")


def check_tensors(function: str, **values: Any) -> None:
    """Refuse arguments of a function of torch tensors that are something else."""
    for name, value in values.items():
        if not is_torch(value):
            rule = f"{name} must be a torch tensor"
            raise OptionError(f"{function}: {rule}, got {type(value).__name__}")
    check_dense(function, **values)


def given(**values: Any) -> dict[str, Any]:
    """The arguments that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def quick_key(array: Any, name: str = "operand") -> Any:
    """What tells operands apart, as cheap as the library has it."""
    if not is_torch(array):
        return operand_of(name, array)
    try:
        return array.shape, array.stride(), array.dtype
    except RuntimeError:  # of layouts without strides
        check_dense("matmul", **{name: array})
        raise


def check_dense(function: str, **values: Any) -> None:
    """Refuse nested tensors, some of which have not even a shape, and those without strides."""
    for name, value in values.items():
        got = "a nested tensor" if getattr(value, "is_nested", False) else ""
        if not got and is_torch(value) and value.layout is not sys.modules["torch"].strided:
            got = str(value.layout)
        if got:
            raise OptionError(f"{function}: {name} must be dense, got {got}; convert it")


def operand_type(name: str, dtype: str) -> str:
    """The type of an operand that torch, numpy or DLPack calls `dtype`; OptionError if no kernel
    takes it."""
    if dtype not in OPERANDS:
        known = ", ".join(name for name in OPERAND_DTYPES if name not in SPLITS)
        raise OptionError(f"matmul: {name} must be one of {known}, got {dtype}; convert it")
    return OPERANDS[dtype]


def check_types(a: str, b: str, out_dtype: str = "") -> str:
    """The type of a product of operands that torch calls so; OptionError where there is none, as
    when a kernel is compiled, for calls that launch nothing."""
    left, right = (
        Operand((128, 128), (128, 1), operand_type(*each)) for each in (("a", a), ("b", b))
    )
    return spec_of(left, right, out_dtype).c_dtype


def result_type(dtype: Any) -> str:
    """A dtype as a manifest names it; "" for None."""
    text = "" if dtype is None else str(dtype)
    if text in SCALED_FORMATS:
        return text
    if text and text not in RESULTS and text not in OUTPUT_DTYPES:
        known = ", ".join([*OUTPUT_DTYPES, *SCALED_FORMATS])
        raise OptionError(f"matmul: out_dtype must be one of {known}, got {text}")
    return RESULTS.get(text, text)
