"""Binding: a caller's numpy array or torch tensor as the memory that a kernel will see.

Nothing is copied. torch is never imported here; a tensor is recognised by its type's module. What
is neither numpy's nor torch's is read through DLPack. bf16 arrives as torch.bfloat16, as the
bfloat16 of ml_dtypes or DLPack, or as the raw bits in 16-bit integers; e4m3 and e5m2 as the types
float8_e4m3fn and float8_e5m2 of torch, ml_dtypes or DLPack.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ..bundles.manifest import in_order
from ..element_types import (
    ITEM_BYTES,
    NUMPY_NAMES,
    PADDED_ALIGNMENT_BYTES,
    PADDED_TYPES,
    TORCH_NAMES,
    is_torch,
)
from ..errors import LaunchError
from .dlpack import CPU, ForeignArray, gpu_of, is_foreign, read_array
from .overlaps import check_no_overlap

RAW_DTYPES = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}


@dataclass(frozen=True)
class BoundTensor:
    """One tensor of the manifest with the caller's memory.

    `memory` is a flat array of raw bits (uint8, uint16 or uint32) from the tensor's first element
    to its last one, sharing the caller's bytes.
    """

    declared: Mapping[str, Any]
    memory: np.ndarray


def bind_all(manifest: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, BoundTensor]:
    """Bind every tensor of the manifest by name; raises LaunchError with the first broken rule."""
    alignments = required_alignments(manifest)
    pairs = zip(manifest["tensors"], in_order(manifest, values), strict=True)
    bound = {
        tensor["name"]: bind(tensor, value, alignments[tensor["name"]]) for tensor, value in pairs
    }
    check_no_overlap(manifest, {name: each.memory.ctypes.data for name, each in bound.items()})
    return bound


def required_alignments(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Bytes that each tensor's address must be a multiple of: 16 for TMA, else as declared."""
    alignments = {tensor["name"]: ITEM_BYTES[tensor["dtype"]] for tensor in manifest["tensors"]}
    for parameter in (each for each in manifest["parameters"] if "tensor" in each):
        needed = _map_alignment(parameter) or parameter["alignment_bytes"]
        name = parameter["tensor"]
        alignments[name] = max(needed, alignments.get(name, 1))
    return alignments


def _map_alignment(parameter: Mapping[str, Any]) -> int:
    """What cuTensorMapEncodeTiled asks of an address, 0 of one that no map is for."""
    if parameter["kind"] != "tensor_map":
        return 0
    return PADDED_ALIGNMENT_BYTES if parameter["dtype"] in PADDED_TYPES else 16


def bind(declared: Mapping[str, Any], value: Any, alignment_bytes: int) -> BoundTensor:
    """Check dtype, shape, strides (elements), alignment (bytes) and writability of one tensor."""
    array, offset_bytes = _as_raw(declared, value)
    name = declared["name"]
    check_layout(declared, array.shape, [stride // array.itemsize for stride in array.strides])
    if offset_bytes % alignment_bytes:
        raise LaunchError(
            f"tensor '{name}': must start a multiple of {alignment_bytes} bytes into its"
            f" allocation, got {offset_bytes}; pass a copy"
        )
    if declared["role"] == "output" and not array.flags.writeable:
        raise LaunchError(f"tensor '{name}': must be writable, got a read-only array; pass a copy")
    return BoundTensor(declared, _flat(array, declared))


def check_layout(declared: Mapping[str, Any], shape: Sequence[int], strides: Sequence[int]) -> None:
    """Raise LaunchError unless shape and strides (in elements) are as declared.

    Strides of dimensions with one element don't matter.
    """
    _check(declared["name"], "shape", list(shape), declared["shape"])
    if not fits_strides(declared, strides):
        _check(declared["name"], "strides (in elements)", list(strides), declared["strides"])


def fits_strides(declared: Mapping[str, Any], strides: Sequence[int]) -> bool:
    """Whether strides (in elements) are as declared, those of one element apart."""
    extents = zip(declared["shape"], declared["strides"], strides, strict=True)
    return all(extent == 1 or wanted == got for extent, wanted, got in extents)


def check_dense(name: str, value: Any) -> None:
    """Raise LaunchError unless a torch tensor has strides, and memory that has its values."""
    if str(value.layout) != "torch.strided":
        raise LaunchError(f"tensor '{name}': must be dense, got {value.layout}; convert it")
    if value.is_neg():
        raise LaunchError(
            f"tensor '{name}': must hold its values, got a view that negates its memory; pass"
            " what resolve_neg() gives"
        )
    if value._is_zerotensor():
        raise LaunchError(
            f"tensor '{name}': must hold its values, got torch's tensor of zeros without memory;"
            " pass what torch.zeros_like gives"
        )
    needed, held = _bytes_of(value), value.untyped_storage().nbytes()
    if needed > held:
        raise LaunchError(
            f"tensor '{name}': must have memory for its {value.numel()} elements, got a storage of"
            f" {held} bytes where they end at byte {needed}; it has been freed or made smaller"
        )


def _bytes_of(value: Any) -> int:
    """From the beginning of a torch tensor's storage to the end of its last element."""
    if value.numel() == 0:
        return 0
    pairs = zip(value.shape, value.stride(), strict=True)
    last = value.storage_offset() + sum((extent - 1) * stride for extent, stride in pairs)
    return (last + 1) * value.element_size()


def check_dtype(declared: Mapping[str, Any], got: str, known: Sequence[str]) -> None:
    """Raise LaunchError unless the name of an element type is one of those that fit."""
    if got not in known:
        refuse_type(declared, got)


def refuse_type(declared: Mapping[str, Any], got: str) -> NoReturn:
    """Raise the LaunchError for a value of the wrong type."""
    dtype = declared["dtype"]
    wanted = f"{TORCH_NAMES[dtype]} or numpy {' or '.join(NUMPY_NAMES[dtype])}"
    raise LaunchError(f"tensor '{declared['name']}': must be {wanted}, got {got}")


def _as_raw(declared: Mapping[str, Any], value: Any) -> tuple[np.ndarray, int]:
    if is_torch(value):
        return _torch_as_raw(declared, value)
    if not isinstance(value, np.ndarray):
        return _foreign_as_raw(declared, value)
    if isinstance(value, np.ma.MaskedArray):
        rule = f"tensor '{declared['name']}': must have no mask, got a masked array"
        raise LaunchError(f"{rule}; fill it")
    if not value.dtype.isnative or value.dtype.name not in NUMPY_NAMES[declared["dtype"]]:
        refuse_type(declared, f"numpy {value.dtype}")
    return value.view(RAW_DTYPES[value.itemsize]), offset_bytes(value)


def _torch_as_raw(declared: Mapping[str, Any], value: Any) -> tuple[np.ndarray, int]:
    if str(value.dtype) != TORCH_NAMES[declared["dtype"]]:
        refuse_type(declared, str(value.dtype))
    if value.device.type != "cpu":
        _refuse_place(declared, value.device)
    check_dense(declared["name"], value)
    item_bytes, shape = value.element_size(), tuple(value.shape)
    # Not by .numpy(), after which torch can't free the storage, as FSDP does with gathered weights.
    memory = ForeignArray(
        value.data_ptr(), shape, value.stride(), "", (CPU, 0), False, value.detach()
    )
    return _as_numpy(memory, item_bytes), value.storage_offset() * item_bytes


def _foreign_as_raw(declared: Mapping[str, Any], value: Any) -> tuple[np.ndarray, int]:
    if not is_foreign(value):
        refuse_type(declared, type(value).__name__)
    if gpu_of(value) is not None:
        _refuse_place(declared, f"cuda:{gpu_of(value)}")
    array = read_array(declared["name"], value)
    check_dtype(declared, array.dtype, NUMPY_NAMES[declared["dtype"]])
    return _as_numpy(array, ITEM_BYTES[declared["dtype"]]), 0


def _as_numpy(array: ForeignArray, item_bytes: int) -> np.ndarray:
    """The array's memory as raw bits; the result keeps the capsule."""
    if 0 in array.shape:
        return np.empty(array.shape, RAW_DTYPES[item_bytes])
    pairs = zip(array.shape, array.strides, strict=True)
    span = item_bytes * (1 + sum((extent - 1) * stride for extent, stride in pairs))
    memory: Any = (ctypes.c_char * span).from_address(array.pointer)
    memory.capsule = array.capsule
    strides = [stride * item_bytes for stride in array.strides]
    bits = np.ndarray(array.shape, RAW_DTYPES[item_bytes], memory, strides=strides)
    bits.flags.writeable = not array.read_only
    return bits


def _refuse_place(declared: Mapping[str, Any], got: object) -> NoReturn:
    where = f"tensor '{declared['name']}'"
    raise LaunchError(f"{where}: must be on the CPU for this device, got {got}")


def offset_bytes(array: np.ndarray) -> int:
    """Where an array of numpy starts in its allocation."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]


def _check(name: str, what: str, got: list[int], wanted: list[int]) -> None:
    if got != list(wanted):
        raise LaunchError(f"tensor '{name}': {what} must be {list(wanted)}, got {got}")


def _flat(array: np.ndarray, declared: Mapping[str, Any]) -> np.ndarray:
    pairs = zip(declared["shape"], declared["strides"], strict=True)
    span = 1 + sum((extent - 1) * stride for extent, stride in pairs)
    return np.lib.stride_tricks.as_strided(
        array, shape=(span,), strides=(array.itemsize,), writeable=array.flags.writeable
    )
