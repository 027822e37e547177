"""Reading arrays of any library through DLPack, without a copy and without that library.

    array → __dlpack__() → capsule → address, shape, strides, dtype

A capsule is read but never renamed, so it stays its own owner: whoever keeps it keeps the memory.
Structures: DLPack 1.0, dlpack.h.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

from ..errors import LaunchError

CPU, CUDA, CUDA_MANAGED = 1, 2, 13
ON_A_GPU = (CUDA, CUDA_MANAGED)
VERSION = (1, 0)
READ_ONLY = 1
CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
FLOATS8 = {10: "float8_e4m3fn", 12: "float8_e5m2"}  # DLPack 1.1


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


@dataclass(frozen=True)
class ForeignArray:
    """What a capsule says: `strides` in elements, `dtype` as in "bfloat16", `device` (kind, id)."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: tuple[int, int]
    read_only: bool
    capsule: Any = field(repr=False)


def is_foreign(value: Any) -> bool:
    """Whether `value` can be read through DLPack."""
    return hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")


def gpu_of(value: Any) -> int | None:
    """The index of the GPU that an array lies on, None when it lies in the CPU's memory."""
    try:
        index = value.get_device()  # torch, whose tensors with gradients refuse DLPack
    except AttributeError:
        kind, found = value.__dlpack_device__() if is_foreign(value) else (CPU, 0)
        index = int(found) if kind in ON_A_GPU else -1
    return index if index >= 0 else None


def read_array(name: str, value: Any, stream: int | None = None) -> ForeignArray:
    """Read the array that is bound to the tensor `name`.

    `stream` is the CUDA stream that will use it, None for the CPU. Raises LaunchError when the
    array's library won't export it.
    """
    try:
        capsule = _export(value, stream)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise LaunchError(f"tensor '{name}': must export DLPack, got {error}") from error
    return _read(capsule)


def _export(value: Any, stream: int | None) -> Any:
    # Stream 0 is ambiguous there; 1 is the legacy default stream.
    keywords = {} if stream is None else {"stream": stream or 1}
    try:
        return value.__dlpack__(max_version=VERSION, **keywords)
    except TypeError:  # older than version 1
        return value.__dlpack__(**keywords)


def _read(capsule: Any) -> ForeignArray:
    versioned = bool(_python("PyCapsule_IsValid", ctypes.c_int)(capsule, b"dltensor_versioned"))
    name = b"dltensor_versioned" if versioned else b"dltensor"
    address = _python("PyCapsule_GetPointer", ctypes.c_void_p)(capsule, name)
    flags = _Versioned.from_address(address).flags if versioned else 0
    tensor = _Versioned.from_address(address).tensor if versioned else _Tensor.from_address(address)
    shape = tuple(tensor.shape[: tensor.ndim])
    return ForeignArray(
        (tensor.data or 0) + tensor.byte_offset,
        shape,
        tuple(tensor.strides[: tensor.ndim]) if tensor.strides else _compact(shape),
        _type_name(tensor.code, tensor.bits) + f"x{tensor.lanes}" * (tensor.lanes > 1),
        (tensor.device_type, tensor.device_id),
        bool(flags & READ_ONLY),
        capsule,
    )


def _type_name(code: int, bits: int) -> str:
    """A type as numpy and ml_dtypes call it."""
    return FLOATS8.get(code) or f"{CODES.get(code, 'type')}{bits}"


def _python(name: str, result: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, ctypes.py_object, ctypes.c_char_p)((name, ctypes.pythonapi))


def _compact(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
