"""The element types of a manifest and what they are called elsewhere; needs no numpy."""

from __future__ import annotations

import functools
from typing import Any

ITEM_BYTES = {
    "bf16": 2, "f16": 2, "f32": 4, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1, "s32": 4,
}  # fmt: skip
NUMPY_NAMES = {
    "bf16": ("bfloat16", "uint16", "int16"),
    "f16": ("float16",),
    "f32": ("float32",),
    "tf32": ("float32",),
    "e4m3": ("float8_e4m3fn",),
    "e5m2": ("float8_e5m2",),
    "s8": ("int8",),
    "u8": ("uint8",),
    "s32": ("int32",),
}
TORCH_NAMES = {
    "bf16": "torch.bfloat16",
    "f16": "torch.float16",
    "f32": "torch.float32",
    "tf32": "torch.float32",
    "e4m3": "torch.float8_e4m3fn",
    "e5m2": "torch.float8_e5m2",
    "s8": "torch.int8",
    "u8": "torch.uint8",
    "s32": "torch.int32",
}
INTEGERS = ("s8", "u8", "s32")


def is_torch(value: Any) -> bool:
    """Whether `value` is a torch tensor, told without importing torch."""
    return _is_of_torch(type(value))


@functools.cache
def torch_dtype(dtype: str) -> Any:
    """The torch.dtype of a manifest's dtype."""
    import torch

    return getattr(torch, TORCH_NAMES[dtype].removeprefix("torch."))


@functools.cache  # a tensor's type takes half a microsecond to tell its module
def _is_of_torch(kind: type) -> bool:
    return kind.__module__.split(".")[0] == "torch"
