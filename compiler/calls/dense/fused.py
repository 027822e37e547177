"""`matmul` with an epilogue: a Python function of the sums, in the same kernel.

    function → graph of aten operators → linalg after the product's → bundle → launch

Where torch must see the call, to trace it or to record gradients, the product and the function are
two steps, and torch sees both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from ml_dtypes import bfloat16

from ....dialects.dtypes import DTYPES
from ....dialects.epilogue import NO_FUNCTION
from ....dialects.errors import CompileError, OptionError
from ....runtime.element_types import is_torch
from ....runtime.launch.kernel import Kernel
from ....runtime.operands.copies import warn_of_copy
from ....runtime.operands.dlpack import gpu_of
from ....runtime.tracing import is_traced, is_watched
from ...importers.epilogue_function import Argument, Frame, Returned, import_epilogue
from ...importers.linalg_text import LinalgText
from ...importers.traced_function import TensorLike
from ...spec import MatmulSpec
from ...spec.epilogue import Epilogue
from ..kernels.found_kernels import FoundKernels
from ..kernels.function_keys import function_key
from ..kernels.lookup import How, bundle_for, default_target, records_gradients
from ..operands.leading_dims import flattened, has_leading_dims, is_empty, rows_of, stacks_of
from ..operands.operands import check_dense, operand_of, operand_type, quick_key, spec_of
from ..operands.placement import gaps_of, read_in_place
from ..operands.precision import with_precision
from .quantized_product import QuantizedProduct


class Fused(NamedTuple):
    """A kernel, what it computes, its arguments after a and b, what is left to do of reductions,
    and objects that its key names."""

    kernel: Kernel
    spec: MatmulSpec
    frame: Frame
    arguments: list[Argument]
    finish: list[Returned]
    kept: list[Any]


_fused: FoundKernels[Fused] = FoundKernels()


def must_be_two_steps(a: Any, b: Any, operands: Sequence[Any]) -> bool:
    """Whether torch must see product and function, or there is nothing to launch."""
    return has_no_elements(a, b) or must_be_seen(a, b, operands)


def has_no_elements(a: Any, b: Any) -> bool:
    """Whether a size of a product is 0, of one b or of two."""
    return any(is_empty(a, each) for each in bs_of(b))


def must_be_seen(a: Any, b: Any, operands: Sequence[Any]) -> bool:
    """Whether torch must see the product, to trace it, to watch it or to record gradients."""
    values = (a, *bs_of(b), *operands)
    if is_traced() or is_watched(*values):
        return True
    return any(records_gradients(each, each) for each in values)


def check_math(epilogue: Epilogue, how: How) -> None:
    """Refuse a policy for functions where there is none."""
    if how.math and not epilogue.has_functions:
        raise OptionError(f"matmul: {NO_FUNCTION}")


def bs_of(b: Any) -> tuple[Any, ...]:
    """The matrices that A is multiplied with: one, or two where the caller gives a pair."""
    if not isinstance(b, (tuple, list)):
        return (b,)
    if len(b) != 2:
        raise OptionError(f"matmul: b must be one tensor or two, got {len(b)}; multiply them apart")
    shapes, types = [list(_shape_of(each)) for each in b], [str(each.dtype) for each in b]
    if types[0] != types[1]:  # perhaps by what another library calls it
        types = [operand_of("b", each).dtype for each in b]
    if shapes[0] != shapes[1] or len(shapes[0]) != 2 or types[0] != types[1]:
        got = f"{types[0]} {shapes[0]} and {types[1]} {shapes[1]}"
        raise OptionError(f"matmul: two b must be matrices of one shape and type, got {got}")
    return tuple(b)


def _shape_of(b: Any) -> Sequence[int]:
    """The sizes of one of two; OptionError for what is no array."""
    shape = getattr(b, "shape", None)
    return operand_of("b", b).shape if shape is None else shape


def two_steps(
    product: Callable[..., Any],
    epilogue: Callable[..., Any],
    operands: Sequence[Any],
    a: Any,
    out_dtype: str,
) -> Any:
    """The function of the sums, by torch; `product` makes those of each B in a type."""
    import torch

    if not isinstance(a, torch.Tensor):
        got = type(a).__name__
        raise OptionError(f"matmul: an epilogue of no elements needs torch tensors, got {got}")
    dtype = DTYPES[operand_type("a", str(a.dtype))]
    sums = product(dtype.accumulator)
    result = epilogue(*sums, *operands)
    wanted = getattr(torch, DTYPES[out_dtype or dtype.result].torch)
    results = result if isinstance(result, (tuple, list)) else (result,)
    _check_shapes(results, sums[0].shape)
    first = results[0]
    if out_dtype or not (first.is_floating_point() and first.itemsize == 1):
        first = first.to(wanted)
    return (first, *results[1:]) if isinstance(result, (tuple, list)) else first


def _check_shapes(results: Sequence[Any], shape: Sequence[Any]) -> None:
    """Refuse results that a kernel refuses: none, and others than of the sums' shape, or reduced
    ones after the first."""
    import torch

    rows, sums = tuple(shape[:-1]), tuple(shape)
    reduced = rows, (*rows, 1), (), (1,) * len(sums)
    for number, each in enumerate(results or (None,)):
        if not isinstance(each, torch.Tensor):
            got = type(each).__name__
            rule = "the function must return a tensor or several"
            raise CompileError(f"epilogue: {rule}, got {got}")
        if tuple(each.shape) != sums and not (number and tuple(each.shape) in reduced):
            rule = f"the result must have the shape of acc, {list(shape)}"
            got = list(each.shape)
            raise CompileError(f"epilogue: {rule}, got {got}; reduce or expand outside")


def multiply_fused(
    a: Any, b: Any, out: Any, how: How, epilogue: Callable[..., Any], operands: Sequence[Any]
) -> Any:
    """The function of the product's sums, in one kernel.

    Raises CompileError, at the function's line, for what is no epilogue.
    """
    found, left, rights = find_fused(a, b, out, how, epilogue, operands)
    return _call(found, left, rights, operands, out)


def find_fused(
    a: Any, b: Any, out: Any, how: How, epilogue: Callable[..., Any], operands: Sequence[Any]
) -> tuple[Fused, Any, tuple[Any, ...]]:
    """The kernel, found or compiled, and the matrices that it multiplies."""
    right, *second = bs_of(b)
    leading, left, right = matrices_of(a, right)
    kept: list[Any] = []
    likes = tuple(like_of(*each) for each in enumerate(operands))
    lies = tuple(_is_column_major(each) for each in operands)
    operand_keys = *map(quick_key, (left, right, *second)), gpu_of(a)
    gaps = gaps_of(_place(out, len(right.shape) > 2 or len(left.shape) > 2))
    key = function_key(epilogue, kept), tuple(leading), operand_keys, likes, lies, how, gaps

    def find() -> Fused:
        made = _find(left, (right, *second), leading, how, epilogue, operands, gaps)
        return made._replace(kept=kept)

    return _fused.of(key, find, kept), left, (right, *second)


def _place(out: Any, stacked: bool) -> Any:
    """The output as the kernel writes it: a stack of matrices, or all rows as one matrix."""
    kept = 2 if stacked else 1
    if not hasattr(out, "shape") or len(out.shape) <= kept + (not stacked):
        return out
    return flattened("out", out, kept)


def matrices_of(a: Any, b: Any) -> tuple[list[Any], Any, Any]:
    """The dims of the product before its matrices, and operands that one kernel takes."""
    if has_leading_dims(b):
        return stacks_of(a, b)
    if has_leading_dims(a):
        return list(a.shape[:-2]), rows_of("a", a), b
    return [], a, b


def like_of(number: int, value: Any) -> TensorLike:
    """Sizes and type of an operand of the function."""
    import torch

    if is_torch(value):
        check_dense("matmul", **{f"operands[{number}]": value})
        return TensorLike(tuple(value.shape), value.dtype)
    dtype = getattr(torch, str(getattr(value, "dtype", None)), None)
    if not isinstance(dtype, torch.dtype) or not hasattr(value, "__setitem__"):  # numpy's scalars
        got = type(value).__name__
        rule = f"operands[{number}] must be a tensor of torch or numpy, got {got}"
        raise OptionError(f"matmul: {rule}; let the function close over a number")
    return TensorLike(tuple(value.shape), dtype)


def _is_column_major(value: Any) -> bool:
    strides = value.stride() if is_torch(value) else value.strides
    return len(strides) >= 2 and 0 < strides[-2] < strides[-1]


def _find(
    left: Any,
    rights: tuple[Any, ...],
    leading: Sequence[int],
    how: How,
    epilogue: Callable[..., Any],
    operands: Sequence[Any],
    gaps: tuple[int, int],
) -> Fused:
    target = how.target or default_target(gpu_of(left))
    named = (("a", left), ("b", rights[0]))  # a second b that lies otherwise is copied at the call
    a, b = (
        operand_of(name, read_in_place(f"matmul: {name}", each, target)) for name, each in named
    )
    more = {"products": len(rights), "scale_rounding": how.scale_rounding, "sums": how.sums}
    spec = replace(spec_of(a, b, how.out_dtype, gaps), **more)
    spec = with_precision(spec, how.precision, how.pipeline, how.preset)
    frame = Frame.of([*leading, spec.m // _rows(leading, spec), spec.n], spec.batch)
    likes = [like_of(*each) for each in enumerate(operands)]
    spec, made, arguments, returned = import_epilogue(
        spec, frame, epilogue, likes, c_is_open=not how.out_dtype, prepared=True
    )
    check_math(made, how)
    transposed = {
        number
        for number, each in enumerate(arguments, start=1 + len(rights))
        if not each.spread and _is_column_major(_transposed(operands[each.number], each))
    }
    of_b = ("b",) if len(rights) == 1 else ("b[0]", "b[1]")
    names = ("a", *of_b, *(f"operands[{each.number}]" for each in arguments))
    source = LinalgText(spec.mlir_text(made), "matmul", names, column_major=frozenset(transposed))
    bundle = bundle_for(source, spec, target, how, how.math)
    finish = [each._replace(value=None) for each in returned]  # keeps no graph
    return Fused(Kernel(bundle, copies=True), spec, frame, arguments, finish, [])


def _rows(leading: Sequence[int], spec: MatmulSpec) -> int:
    """How many matrices' rows the kernel sees as one matrix's."""
    return 1 if spec.batch else prod(leading)


def as_argument(operands: Sequence[Any], argument: Argument, of: str = "matmul") -> Any:
    """The operand with its dims as the kernel has them: a view where it lies so, else a copy, of
    which a warning tells if it is large, and `of` which function."""
    name = f"{of}: operands[{argument.number}]"
    transposed = _ordered(_read_beside(name, operands[argument.number]), argument)
    if argument.spread:
        own, wanted = zip(*argument.spread, strict=True)
        transposed = transposed.reshape(own)
        transposed = (
            transposed.expand(wanted)
            if is_torch(transposed)
            else np.broadcast_to(transposed, wanted)
        )
    found = transposed.reshape(argument.shape)
    if _address(found) != _address(transposed):
        warn_of_copy(name, transposed, "the kernel has some of its dims as one")
    return found


def _transposed(value: Any, argument: Argument) -> Any:
    """The operand with its dims as the kernel has them, for what they tell of how it lies."""
    return _ordered(value, argument).reshape(argument.shape)


def _ordered(value: Any, argument: Argument) -> Any:
    """The operand, a view, with the dims first that the kernel indexes."""
    rest = [dim for dim in range(len(value.shape)) if dim not in argument.order]
    dims = *argument.order, *rest
    return value.permute(dims) if is_torch(value) else value.transpose(dims)


def _address(value: Any) -> int:
    return value.data_ptr() if is_torch(value) else value.__array_interface__["data"][0]


def _read_beside(name: str, value: Any) -> Any:
    """An operand of bytes in the type that stands for theirs beside the sums."""
    from ...importers.element_names import STAND_IN, STOOD_FOR

    names = [str(each).removeprefix("torch.") for each in STOOD_FOR]
    if str(value.dtype).removeprefix("torch.") not in names:
        return value
    found = value.to(STAND_IN) if is_torch(value) else value.astype(bfloat16)
    warn_of_copy(name, found, f"a kernel reads no {value.dtype} beside the sums")
    return found


def _call(
    fused: Fused, left: Any, rights: tuple[Any, ...], operands: Sequence[Any], out: Any
) -> Any:
    spec, shape = fused.spec, list(fused.frame.shape)
    if out is not None and any(each.kind for each in fused.finish):
        raise OptionError("matmul: out must be None where a result is a reduction, got one")
    given = given_outputs(out, len(spec.outputs))
    for each in given or ():
        if list(each.shape) != shape:
            raise OptionError(f"matmul: out must be {shape}, got {list(each.shape)}")
    stored = (
        left if spec.a_major == "k" else left.swapaxes(-1, -2),
        *(each if spec.b_major == "k" else each.swapaxes(-1, -2) for each in rights),
    )
    arguments = (as_argument(operands, each) for each in fused.arguments)
    several = len(spec.outputs) > 1
    places = [_place(each, bool(spec.batch)) for each in given or ()]
    place = None if given is None else places if several else places[0]
    result = fused.kernel(*stored, *arguments, out=place)
    if out is not None:
        return out
    if spec.quantized:
        return _with_scales(fused, result)
    if not several:
        made = result.reshape(shape)
        return (made,) if fused.finish[0].in_tuple else made
    pairs = zip(fused.finish, result, strict=True)
    return tuple(each.finished(made.reshape(*shape[:-1], made.shape[-1])) for each, made in pairs)


def _with_scales(fused: Fused, result: Sequence[Any]) -> Any:
    """The product with its scales, and what else the function returns."""
    *results, scales = result
    rows = fused.frame.shape[:-1]
    pairs = zip(fused.finish, results, strict=True)
    data, *others = (each.finished(made.reshape(*rows, made.shape[-1])) for each, made in pairs)
    product = QuantizedProduct(data, scales)
    return (product, *others) if fused.finish[0].in_tuple else product


def given_outputs(out: Any, count: int) -> list[Any] | None:
    """The caller's outputs; a tuple of them where there are several."""
    if out is None:
        return None
    if count == 1:
        if isinstance(out, (tuple, list)):
            rule = "out must be one array for a function of one result"
            raise OptionError(f"matmul: {rule}, got a {type(out).__name__}")
        return [out]
    if not isinstance(out, (tuple, list)) or len(out) != count:
        got = len(out) if isinstance(out, (tuple, list)) else type(out).__name__
        raise OptionError(f"matmul: out must be a tuple of {count} outputs, got {got}")
    return list(out)
