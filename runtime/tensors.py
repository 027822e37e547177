"""Binding: a caller's numpy array or torch tensor as the memory that a kernel will see.

Nothing is copied. torch is never imported here; a tensor is recognised by its type's module.
bf16 arrives as torch.bfloat16, as ml_dtypes.bfloat16, or as the raw bits in 16-bit integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import LaunchError

ITEM_BYTES = {"bf16": 2, "f16": 2, "f32": 4}
NUMPY_NAMES = {
    "bf16": ("bfloat16", "uint16", "int16"),
    "f16": ("float16",),
    "f32": ("float32",),
}
TORCH_NAMES = {"bf16": "torch.bfloat16", "f16": "torch.float16", "f32": "torch.float32"}
RAW_DTYPES = {2: np.dtype(np.uint16), 4: np.dtype(np.uint32)}


@dataclass(frozen=True)
class BoundTensor:
    """One tensor of the manifest with the caller's memory.

    `memory` is a flat array of raw bits (uint16 or uint32) from the tensor's first element to its
    last one, sharing the caller's bytes.
    """

    declared: Mapping[str, Any]
    memory: np.ndarray


def bind_all(manifest: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, BoundTensor]:
    """Bind every tensor of the manifest by name; raises LaunchError with the first broken rule."""
    declared = {tensor["name"]: tensor for tensor in manifest["tensors"]}
    unknown = sorted(set(values) - set(declared))
    missing = sorted(set(declared) - set(values))
    if unknown or missing:
        got = f"missing {missing} and unknown {unknown}"
        raise LaunchError(
            f"tensors: must be exactly {list(declared)}, got {got}; pass each by name"
        )
    alignments = required_alignments(manifest)
    return {
        name: bind(tensor, values[name], alignments.get(name, ITEM_BYTES[tensor["dtype"]]))
        for name, tensor in declared.items()
    }


def required_alignments(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Bytes that each tensor's address must be a multiple of: 16 for TMA, else as declared."""
    alignments: dict[str, int] = {}
    for parameter in manifest["parameters"]:
        needed = 16 if parameter["kind"] == "tensor_map" else parameter["alignment_bytes"]
        name = parameter["tensor"]
        alignments[name] = max(needed, alignments.get(name, 1))
    return alignments


def bind(declared: Mapping[str, Any], value: Any, alignment_bytes: int) -> BoundTensor:
    """Check dtype, shape, strides (elements), alignment (bytes) and writability of one tensor."""
    array, offset_bytes = _as_raw(declared, value)
    name = declared["name"]
    _check(name, "shape", list(array.shape), declared["shape"])
    strides = [stride // array.itemsize for stride in array.strides]
    if not _same_strides(declared, strides):
        _check(name, "strides (in elements)", strides, declared["strides"])
    if offset_bytes % alignment_bytes:
        raise LaunchError(
            f"tensor '{name}': must start a multiple of {alignment_bytes} bytes into its"
            f" allocation, got {offset_bytes}; pass a copy"
        )
    if declared["role"] == "output" and not array.flags.writeable:
        raise LaunchError(f"tensor '{name}': must be writable, got a read-only array; pass a copy")
    return BoundTensor(declared, _flat(array, declared))


def is_torch(value: Any) -> bool:
    """Whether `value` is a torch tensor, told without importing torch."""
    return type(value).__module__.split(".")[0] == "torch"


def _as_raw(declared: Mapping[str, Any], value: Any) -> tuple[np.ndarray, int]:
    if is_torch(value):
        return _torch_as_raw(declared, value)
    if not isinstance(value, np.ndarray):
        _check_type(declared, type(value).__name__)
    if value.dtype.name not in NUMPY_NAMES[declared["dtype"]]:
        _check_type(declared, f"numpy {value.dtype}")
    return value.view(RAW_DTYPES[value.itemsize]), _offset_bytes(value)


def _torch_as_raw(declared: Mapping[str, Any], value: Any) -> tuple[np.ndarray, int]:
    if str(value.dtype) != TORCH_NAMES[declared["dtype"]]:
        _check_type(declared, str(value.dtype))
    if value.device.type != "cpu":
        where = f"tensor '{declared['name']}'"
        raise LaunchError(f"{where}: must be on the CPU for this device, got {value.device}")
    bits = value.detach()
    if declared["dtype"] == "bf16":
        bits = bits.view(_torch_int16(value))
    array = bits.numpy()
    offset_bytes = value.storage_offset() * value.element_size()
    return array.view(RAW_DTYPES[array.itemsize]), offset_bytes


def _torch_int16(value: Any) -> Any:
    import torch  # already imported by whoever made `value`

    return torch.int16


def _offset_bytes(array: np.ndarray) -> int:
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]


def _check_type(declared: Mapping[str, Any], got: str) -> None:
    dtype = declared["dtype"]
    wanted = f"{TORCH_NAMES[dtype]} or numpy {' or '.join(NUMPY_NAMES[dtype])}"
    raise LaunchError(f"tensor '{declared['name']}': must be {wanted}, got {got}")


def _check(name: str, what: str, got: list[int], wanted: list[int]) -> None:
    if got != list(wanted):
        raise LaunchError(f"tensor '{name}': {what} must be {list(wanted)}, got {got}")


def _same_strides(declared: Mapping[str, Any], strides: list[int]) -> bool:
    """Strides of dimensions with one element don't matter."""
    pairs = zip(declared["shape"], declared["strides"], strides, strict=True)
    return all(extent == 1 or wanted == got for extent, wanted, got in pairs)


def _flat(array: np.ndarray, declared: Mapping[str, Any]) -> np.ndarray:
    pairs = zip(declared["shape"], declared["strides"], strict=True)
    span = 1 + sum((extent - 1) * stride for extent, stride in pairs)
    return np.lib.stride_tricks.as_strided(
        array, shape=(span,), strides=(array.itemsize,), writeable=array.flags.writeable
    )
