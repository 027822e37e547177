"""The kernels of products with narrow weights, found once and then called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ....dialects.dtypes import DTYPES, WEIGHT_DTYPES
from ....dialects.errors import CompileError, OptionError
from ....runtime.element_types import torch_dtype
from ....runtime.launch.kernel import Kernel
from ....runtime.launch.loading import open_kernel
from ....runtime.operands.dlpack import gpu_of
from ...importers.epilogue_function import Argument, Frame, Returned, import_epilogue
from ...importers.linalg_text import LinalgText
from ...importers.open_sizes import depends_on_sizes
from ...importers.traced_function import TensorLike
from ...spec import ROWS_HINT, MatmulSpec
from ...spec.epilogue import Epilogue
from ..dense.fused import as_argument, like_of, two_steps
from ..dense.fused_rows import OTHER_ROWS, RULES
from ..kernels.found_kernels import FoundKernels
from ..kernels.function_keys import function_key
from ..kernels.lookup import ROWS, How, bundle_for, check_passes, default_target
from ..operands.leading_dims import rows_of
from ..operands.operands import operand_type
from ..operands.placement import aligned, row_by_row

TYPES = {f"torch.{DTYPES[name].torch}": name for name in ("s8", "e4m3", "e5m2")}
SCALES = {"torch.bfloat16": "bf16", "torch.float16": "f16", "torch.float32": "f32"}
PACKED = {"s4": 2, "u4": 2}
WIDE = ("torch.bfloat16", "torch.float16")
BUCKETS = (16, 64, 128, 256)
"""Of kernels for a run-time M: each is called up to one of these, and another one for more."""


class Weights(NamedTuple):
    """Weights [n, k] with their scales and zero points [n, k / group], as a kernel takes them."""

    dtype: str
    n: int
    k: int
    group: int
    tensors: tuple[Any, ...]


class Found(NamedTuple):
    """A kernel, what it takes of the operands of an epilogue, what is left to do of reductions,
    and objects that its key names."""

    kernel: Kernel
    arguments: list[Argument]
    finish: list[Returned]
    kept: list[Any]


_kernels: FoundKernels[Found] = FoundKernels()


def multiply_weights(
    a: Any,
    weights: Weights,
    how: How,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = (),
) -> Any:
    """[..., m, n] of a [..., m, k], without gradients."""
    how = how._replace(target=how.target or default_target(gpu_of(a)))
    rows = a.reshape(1, -1) if len(a.shape) == 1 else a
    rows = rows if len(rows.shape) == 2 else rows_of("a", rows)
    return _multiply(rows, list(a.shape[:-1]), weights, how, epilogue, operands)


def weights_of(
    b: Any, scales: Any, zeros: Any, group_size: int | None, b_dtype: str | None
) -> Weights:
    """The weights, whose shapes and types go together."""
    dtype = _weight_dtype(b, zeros, b_dtype)
    if len(b.shape) != 2 or not b.is_contiguous():
        got = f"{list(b.shape)} with strides {list(b.stride())}"
        raise _refused("b must be a contiguous matrix", f"{got}; copy it")
    n, k = b.shape[0], b.shape[1] * PACKED.get(dtype, 1)
    if scales is None:
        if group_size or zeros is not None:
            raise _refused("group_size and zeros must come with scales", "none; leave them out")
        return Weights(dtype, n, k, 0, (b,))
    group = _group_of(scales, n, k, group_size)
    groups = scales.shape[1] if len(scales.shape) == 2 else 1
    given = {"b": b, "scales": scales.reshape(n, groups)}
    if zeros is not None:
        if list(zeros.shape) != list(scales.shape) or str(zeros.dtype) != "torch.uint8":
            rule = f"zeros must be uint8 {list(scales.shape)}, as scales"
            raise _refused(rule, f"{zeros.dtype} {list(zeros.shape)}")
        given["zeros"] = zeros.reshape(n, groups)
    laid = (row_by_row(f"weight_only_mm: {name}", each) for name, each in given.items())
    return Weights(dtype, n, k, group, tuple(laid))


def _weight_dtype(b: Any, zeros: Any, b_dtype: str | None) -> str:
    """What the elements are: bytes without a name are two s4, or beside zero points two u4."""
    stored = str(getattr(b, "dtype", type(b).__name__))
    packed = "s4" if zeros is None else "u4"
    dtype = b_dtype or TYPES.get(stored) or (packed if stored == "torch.uint8" else "")
    fits = stored == "torch.uint8" if dtype in PACKED else TYPES.get(stored) == dtype
    if dtype in WEIGHT_DTYPES and fits:
        return dtype
    rule = "b must be int8, float8_e4m3fn, float8_e5m2, or uint8 of two s4 or u4"
    raise _refused(rule, f"{stored} as {dtype or 'none'}")


def _group_of(scales: Any, n: int, k: int, group_size: int | None) -> int:
    """How many elements of K share a scale: as is said, or as the shape of the scales has it."""
    if group_size is not None and (type(group_size) is not int or group_size < 1):
        rule = "group_size must be a number of elements of K"
        raise _refused(rule, f"{group_size!r}; leave it out")
    groups = scales.shape[1] if len(scales.shape) == 2 else 1
    group = group_size or (k // groups if groups and k % groups == 0 else 0) or (1 - bool(k))
    count = k // group if group and k % group == 0 else -1
    of_all = list(scales.shape) in ([n], [n, 1]) and count in (0, 1)
    if list(scales.shape) != [n, count] and not of_all:
        wanted = f"[{n}, {count if count >= 0 else 'k / group_size'}]"
        rule = f"scales must be {wanted} for groups of {group_size or 'any size'}"
        raise _refused(rule, list(scales.shape))
    if str(scales.dtype) not in SCALES:
        raise _refused("scales must be bfloat16, float16 or float32", scales.dtype)
    return group


def _refused(rule: str, got: Any) -> OptionError:
    return OptionError(f"weight_only_mm: {rule}, got {got}")


def _multiply(
    a: Any,
    leading: list[int],
    weights: Weights,
    how: How,
    epilogue: Callable[..., Any] | None,
    operands: Sequence[Any],
) -> Any:
    """The product of rows [m, k], as [leading, n]."""
    if 0 in a.shape or not weights.n:
        check_passes(how)
        return _of_nothing(a, leading, weights, how, epilogue, operands)
    a = aligned("weight_only_mm: a", row_by_row("weight_only_mm: a", a))
    kept: list[Any] = []
    likes = tuple(like_of(*each) for each in enumerate(operands))
    rows = _hint_of(a.shape[0]) if how.m else a.shape[0]
    types = a.dtype, weights[:4], *(str(each.dtype) for each in weights.tensors[1:])
    named = None if epilogue is None else function_key(epilogue, kept)
    key = rows, types, likes, named, how, gpu_of(a)

    def find() -> Found:
        return _find(rows, a, weights, how, epilogue, likes)._replace(kept=kept)

    found = _kernels.of(key, find, kept)
    beside = (
        row_by_row(
            f"weight_only_mm: operands[{each.number}]",
            as_argument(operands, each, "weight_only_mm"),
        )
        for each in found.arguments
    )
    result = found.kernel(a, *weights.tensors, *beside)
    if not isinstance(result, (tuple, list)):
        made = result.reshape(*leading, weights.n)
        return (made,) if found.finish and found.finish[0].in_tuple else made
    pairs = zip(found.finish, result, strict=True)
    return tuple(each.finished(made.reshape(*leading, made.shape[-1])) for each, made in pairs)


def _hint_of(m: int) -> int:
    """The M whose schedule the kernel for a run-time M has that serves so many rows."""
    return next((most for most in BUCKETS if m <= most), ROWS_HINT)


def _of_nothing(
    a: Any,
    leading: list[int],
    weights: Weights,
    how: How,
    epilogue: Callable[..., Any] | None,
    operands: Sequence[Any],
) -> Any:
    """The result where a size is 0: no elements, or what zeros become where it is K."""

    def zeros(dtype: str) -> list[Any]:
        return [a.new_zeros((*leading, weights.n), dtype=torch_dtype(dtype))]

    if epilogue is not None:
        return two_steps(zeros, epilogue, operands, a, how.out_dtype)
    return zeros(how.out_dtype or operand_type("a", str(a.dtype)))[0]


def _find(
    m: int,
    a: Any,
    weights: Weights,
    how: How,
    epilogue: Callable[..., Any] | None,
    likes: Sequence[TensorLike],
) -> Found:
    a_dtype = operand_type("a", str(a.dtype))
    types = a_dtype, weights.dtype, how.out_dtype or a_dtype
    groups: dict[str, Any] = {}
    if weights.group:
        scales = SCALES[str(weights.tensors[1].dtype)]
        zeros = len(weights.tensors) > 2
        groups = {"group_size": weights.group, "scale_dtype": scales, "zero_points": zeros}
    spec = MatmulSpec(m, weights.n, weights.k, *types, **groups)
    if how.m:
        most = {"least_m": 1, "most_m": m} if m in BUCKETS else {}
        spec = replace(spec, dynamic_m=True, **most)
    if epilogue is None:
        bundle = bundle_for(spec, spec, how.target, how)
        return Found(open_kernel(bundle), [], [], [])
    spec, made, arguments, returned = import_epilogue(
        *(spec, _frame(spec), epilogue, likes), prepared=True
    )
    if how.m:
        _check_any_rows(spec, made, epilogue, likes)
    source = LinalgText(spec.mlir_text(made), "weight_only_mm")
    bundle = bundle_for(source, spec, how.target, how, how.math)
    finish = [each._replace(value=None) for each in returned]  # keeps no graph
    return Found(open_kernel(bundle), arguments, finish, [])


def _frame(spec: MatmulSpec) -> Frame:
    return Frame.of([spec.m, spec.n], 0)


def _check_any_rows(
    spec: MatmulSpec, made: Epilogue, epilogue: Callable[..., Any], likes: Sequence[TensorLike]
) -> None:
    """Refuse a function that is another one for other numbers of rows than those of `spec`."""
    if any("m" in each.axes for each in made.operands):
        rule = "operands must be one number or one for each column where m is dynamic"
        raise _refused(rule, "one for each row; leave m out")
    others = replace(spec, m=OTHER_ROWS[0], least_m=0, most_m=0)
    read = import_epilogue(others, _frame(others), epilogue, likes, prepared=True)[1]
    same = read == made
    sums = TensorLike((others.m, others.n), torch_dtype(spec.acc_dtype))
    if not same or depends_on_sizes(epilogue, [sums, *likes], [[0], *([] for _ in likes)]):
        raise CompileError(f"epilogue: {RULES[ROWS]}, got one that does; leave m out")
