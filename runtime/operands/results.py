"""Allocates the output of a call."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..element_types import ITEM_BYTES, NUMPY_NAMES, TORCH_NAMES, is_torch, torch_dtype
from ..errors import LaunchError
from .dlpack import gpu_of

if TYPE_CHECKING:
    import numpy as np


def new_output(declared: Mapping[str, Any], like: Any) -> Any:
    """An array with the shape, strides and dtype of a manifest's tensor, its content undefined.

    Numpy's when `like` is, else torch's, in the CPU's memory or on the GPU where `like` is. numpy
    itself has no bf16: its bits are typed as `like` types them, or as ml_dtypes does where that is
    installed. Raises LaunchError when torch is needed and missing.
    """
    shape, strides, dtype = declared["shape"], declared["strides"], declared["dtype"]
    if is_torch(like) and str(like.layout) == "torch.strided":
        return like.new_empty_strided(shape, strides, dtype=torch_dtype(dtype))
    if type(like).__module__ == "numpy":
        return _numpy_output(declared, like.dtype)
    torch = sys.modules.get("torch") or _torch(declared["name"])
    place = "cpu" if gpu_of(like) is None else f"cuda:{gpu_of(like)}"
    return torch.empty_strided(shape, strides, dtype=torch_dtype(dtype), device=place)


def new_zeros(shape: Sequence[int], dtype: str, like: Any, name: str = "c") -> Any:
    """A dense array as of `new_output`, of zeros; sizes may be 0."""
    if type(like).__module__ == "numpy":
        import numpy as np

        return np.zeros(shape, _numpy_dtype(dtype, like.dtype))
    if is_torch(like):
        return like.new_zeros(shape, dtype=torch_dtype(dtype))
    torch = sys.modules.get("torch") or _torch(name)
    place = "cpu" if gpu_of(like) is None else f"cuda:{gpu_of(like)}"
    return torch.zeros(shape, dtype=torch_dtype(dtype), device=place)


def cleared(declared: Mapping[str, Any], out: Any) -> Any:
    """The output that a caller gave, set to zero; raises LaunchError where it is no such array."""
    check_type(declared, out)
    if list(out.shape) != declared["shape"]:
        rule = f"shape must be {declared['shape']}, got {list(out.shape)}"
        raise LaunchError(f"tensor '{declared['name']}': {rule}")
    out[...] = 0
    return out


def check_type(declared: Mapping[str, Any], value: Any) -> None:
    """Refuse an array of torch or numpy of another type; raises LaunchError."""
    from .tensors import check_dtype

    if is_torch(value):
        check_dtype(declared, str(value.dtype), (TORCH_NAMES[declared["dtype"]],))
    else:
        name = str(getattr(value, "dtype", type(value).__name__))
        check_dtype(declared, name, NUMPY_NAMES[declared["dtype"]])


def written(out: Any) -> Any:
    """The caller's output, or a tuple of them, of which torch then knows that it changes.

    So a backward that still needs what it held is an error, as after torch's own operators.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return out
    if type(out) is torch.Tensor:
        torch.autograd.graph.increment_version(out)
        return out
    for each in out if isinstance(out, tuple) else (out,):
        if isinstance(each, torch.Tensor):
            torch.autograd.graph.increment_version(each)
    return out


def _numpy_output(declared: Mapping[str, Any], like: np.dtype[Any]) -> np.ndarray:
    import numpy as np

    strides = [stride * ITEM_BYTES[declared["dtype"]] for stride in declared["strides"]]
    span = 1 + sum(
        (extent - 1) * stride
        for extent, stride in zip(declared["shape"], declared["strides"], strict=True)
    )
    memory = np.empty(span, _numpy_dtype(declared["dtype"], like))
    return np.lib.stride_tricks.as_strided(memory, declared["shape"], strides)


def copy_as_it_lies(array: np.ndarray) -> np.ndarray:
    """A copy of an array of numpy at another address, with the same strides, none negative."""
    import numpy as np

    steps = zip(array.shape, array.strides, strict=True)
    span = array.itemsize + sum((extent - 1) * step for extent, step in steps)
    memory = np.empty(max(span, array.itemsize), np.uint8)
    one = memory[: array.itemsize].view(array.dtype)
    copy = np.lib.stride_tricks.as_strided(one, array.shape, array.strides)
    copy[...] = array
    return copy


def _numpy_dtype(dtype: str, like: np.dtype[Any]) -> np.dtype[Any]:
    import numpy as np

    if dtype in ("e4m3", "e5m2"):
        return _narrow_dtype(dtype)
    if dtype != "bf16":
        return np.dtype(NUMPY_NAMES[dtype][0])
    if like.name in ("bfloat16", "uint16", "int16"):
        return like
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(np.uint16)
    return np.dtype(ml_dtypes.bfloat16)


def _narrow_dtype(dtype: str) -> np.dtype[Any]:
    """Floats of 8 bits, which ml_dtypes alone has."""
    import numpy as np

    try:
        import ml_dtypes
    except ImportError as error:
        rule = f"an output of {dtype} in numpy needs ml_dtypes, got none"
        raise LaunchError(f"{rule}; install it, or pass torch tensors") from error
    return np.dtype(getattr(ml_dtypes, NUMPY_NAMES[dtype][0]))


def _torch(name: str) -> Any:
    try:
        import torch
    except ImportError as error:
        rule = "must be given as out= without torch, got none"
        raise LaunchError(f"tensor '{name}': {rule}") from error
    return torch
