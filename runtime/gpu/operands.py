"""Which arrays a kernel takes on a GPU: torch's, and others through DLPack."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..element_types import NUMPY_NAMES, TORCH_NAMES, is_torch, torch_dtype
from ..errors import LaunchError
from ..operands.dlpack import gpu_of, is_foreign, read_array
from ..operands.results import written
from ..operands.tensors import check_dense, check_dtype, check_layout, refuse_type

Recognizer = Callable[..., bool]


def nothing(*values: Any) -> bool:
    """The recognizer of no arrays."""
    del values
    return False


def recognizer(values: Sequence[Any]) -> Recognizer:
    """Tells whether as many arrays are like these torch tensors: shape, strides, dtype, GPU.

    By torch's own guards where they are as in torch 2.9 to 2.13: a quarter of a microsecond for
    three tensors, where asking each from Python takes one. They take no tensor twice: where one is
    given twice, as in x · xᵀ, it must be again. Other arrays are never recognized.
    """
    if not all(is_torch(value) for value in values):
        return nothing
    first = [next(at for at, each in enumerate(values) if each is value) for value in values]
    if len(set(first)) < len(first):
        return _with_repeats(first, recognizer([values[at] for at in sorted(set(first))]))
    try:
        from torch._C._dynamo.guards import TensorGuards  # pyright: ignore

        sizes: Any = [list(value.shape) for value in values]
        strides: Any = [list(value.stride()) for value in values]
        guards = TensorGuards(*values, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
        return guards.check
    except (ImportError, TypeError):
        known = [_form(value) for value in values]
        return lambda *given: [_form(value) for value in given] == known


def _with_repeats(first: Sequence[int], recognizes: Recognizer) -> Recognizer:
    """Tells whether arrays repeat where `first`, by position, names an earlier one, and whether the
    others are recognized."""
    alone = sorted(set(first))

    def check(*given: Any) -> bool:
        return (
            len(given) == len(first)
            and all(each is given[at] for each, at in zip(given, first, strict=True))
            and recognizes(*[given[at] for at in alone])
        )

    return check


def any_of(recognizers: Sequence[Recognizer]) -> Recognizer:
    """Tells whether one of these does, which are asked in their order."""
    if len(recognizers) == 1:
        return recognizers[0]
    return lambda *values: any(each(*values) for each in recognizers)


def maker(
    declared: Sequence[Mapping[str, Any]], values: Sequence[Any], index: int
) -> Callable[[], Any] | None:
    """Makes tensors like the last of these, which is the one output, by the way of Inductor's code.

    That takes a microsecond less than torch's own, and allocates on the current GPU: where that is
    another one it gives None. None is returned where there is no such way, or no such output.
    """
    torch: Any = sys.modules.get("torch")
    roles = [each["role"] for each in declared]
    if torch is None or roles.index("output") != len(roles) - 1:
        return None
    try:
        from torch._C import _cuda_getDevice as current  # pyright: ignore
        from torch._C._dynamo.guards import _empty_strided_cuda as empty  # pyright: ignore
    except ImportError:
        return None
    if not isinstance(values[-1], torch.Tensor):
        return None
    last = declared[-1]
    shape, strides = tuple(last["shape"]), tuple(last["strides"])
    dtype = torch_dtype(last["dtype"])
    return lambda: empty(shape, strides, dtype) if current() == index else None


def counter(value: Any) -> Callable[[tuple[Any, ...]], Any]:
    """Lets torch know of outputs like this that they change, as `written` does."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return written
    return torch._C._increment_version


def _form(value: Any) -> tuple[Any, ...] | None:
    if not is_torch(value):
        return None
    return type(value), value.shape, value.stride(), value.dtype, value.device


def pointer_of(declared: Mapping[str, Any], value: Any, index: int, stream: int) -> int:
    """The address of an array's first element; raises LaunchError with the first broken rule.

    `index` is the GPU it must lie on, `stream` the handle of the stream that will use it.
    """
    if not is_torch(value) and not is_foreign(value):
        refuse_type(declared, type(value).__name__)
    _check_place(declared["name"], gpu_of(value), index)
    if is_torch(value):
        check_dense(declared["name"], value)
        check_dtype(declared, str(value.dtype), (TORCH_NAMES[declared["dtype"]],))
        check_layout(declared, value.shape, value.stride())
        return value.data_ptr()
    array = read_array(declared["name"], value, stream)
    check_dtype(declared, array.dtype, NUMPY_NAMES[declared["dtype"]])
    check_layout(declared, array.shape, array.strides)
    if array.read_only and declared["role"] == "output":
        reason = f"tensor '{declared['name']}': must be writable, got a read-only array"
        raise LaunchError(f"{reason}; pass a copy")
    return array.pointer


def lies_nowhere(value: Any, pointer: int) -> bool:
    """Whether a torch tensor has no elements, or a storage that has been freed: its address is then
    as many bytes as it begins after that of its storage."""
    return pointer == value.storage_offset() * value.element_size()


def _check_place(name: str, got: int | None, wanted: int) -> None:
    if got == wanted:
        return
    place = "the CPU" if got is None else f"cuda:{got}"
    raise LaunchError(f"tensor '{name}': must be on cuda:{wanted}, got {place}; move it there")
