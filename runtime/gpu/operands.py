"""Which arrays a kernel takes on a GPU: torch's, and others through DLPack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..dlpack import gpu_of, is_foreign, read_array
from ..element_types import NUMPY_NAMES, TORCH_NAMES, is_torch
from ..errors import LaunchError
from ..tensors import check_dtype, check_layout, refuse_type

Facts = list[tuple[Any, ...]]


def facts_of(values: Sequence[Any]) -> Facts | None:
    """What there is to check of torch tensors; None for other arrays.

    The address comes last. It stands for the GPU too: all of them share one address space (CUDA C++
    Programming Guide, "Unified Virtual Address Space").
    """
    try:
        return [(v.shape, v.stride(), v.dtype, v.data_ptr()) for v in values]
    except (AttributeError, TypeError):
        return None


def pointer_of(declared: Mapping[str, Any], value: Any, index: int, stream: int) -> int:
    """The address of an array's first element; raises LaunchError with the first broken rule.

    `index` is the GPU it must lie on, `stream` the handle of the stream that will use it.
    """
    if not is_torch(value) and not is_foreign(value):
        refuse_type(declared, type(value).__name__)
    _check_place(declared["name"], gpu_of(value), index)
    if is_torch(value):
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


def _check_place(name: str, got: int | None, wanted: int) -> None:
    if got == wanted:
        return
    place = "the CPU" if got is None else f"cuda:{got}"
    raise LaunchError(f"tensor '{name}': must be on cuda:{wanted}, got {place}; move it there")
