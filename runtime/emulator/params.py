"""Launch arguments to the bytes of the kernel's parameters, and host arrays to global memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from . import ptx
from .errors import LaunchError, short_name
from .layout import align_up, variable_alignment, variable_type
from .memory import Region
from .spaces import Space
from .tensor_map_object import TENSOR_MAP_BYTES, encode
from .tensormap import ADDRESSES, TensorMap

if TYPE_CHECKING:
    from .launch import Launch

GUARD_BYTES = 1 << 20
"""Unmapped bytes between the arrays of a launch."""
DEFAULT_ALIGNMENT = 256
TENSOR_MAP_ALIGNMENT = 64


@dataclass(frozen=True)
class GlobalArray:
    """An array whose emulated address is `offset` bytes behind a multiple of `align`."""

    array: np.ndarray
    align: int = DEFAULT_ALIGNMENT
    offset: int = 0


@dataclass(frozen=True)
class TensorMapArray:
    """Tensor map objects in global memory, one behind the other; passed by their address."""

    maps: Sequence[TensorMap]


def _image(array: np.ndarray) -> tuple[np.ndarray, int, np.ndarray | None]:
    """(bytes the array spans, index of its first element, allowed marks or None if dense)."""
    if array.flags.c_contiguous:
        flat = array.reshape(-1).view(np.uint8) if array.size else np.zeros(0, np.uint8)
        return flat, 0, None
    low, high = np.lib.array_utils.byte_bounds(array)
    flat = np.frombuffer((ctypes.c_uint8 * (high - low)).from_address(low), np.uint8)
    first = array.__array_interface__["data"][0] - low
    allowed = np.zeros(high - low, np.uint8)
    marks = np.ndarray(
        (*array.shape, array.itemsize), np.uint8, allowed, first, (*array.strides, 1)
    )
    marks[...] = 0xFF
    return flat, first, allowed


class HostArrays:
    """The numpy arrays of a launch as regions of its global memory; each array once.

    awaited: those that a prerequisite grid works on until griddepcontrol.wait.
    """

    def __init__(self, memory: Space, first_address: int):
        self._memory = memory
        self._next = first_address
        self._known: dict[tuple, int] = {}
        self._alive: list[np.ndarray] = []
        self._regions: list[Region] = []
        self.awaited: Sequence[np.ndarray] = ()

    def address(
        self, array: np.ndarray, name: str, align: int = DEFAULT_ALIGNMENT, offset: int = 0
    ) -> int:
        """The emulated address of `array`'s first element; maps it at the first call."""
        interface = array.__array_interface__
        key = (interface["data"][0], array.shape, array.strides, array.itemsize, align, offset)
        if key not in self._known:
            self._known[key] = self._map(array, name, align, offset)
        return self._known[key]

    def _map(self, array: np.ndarray, name: str, align: int, offset: int) -> int:
        data, first, allowed = _image(array)
        base = align_up(self._next, max(align, DEFAULT_ALIGNMENT)) + offset
        region = Region(name, base, data, writable=array.flags.writeable, allowed=allowed)
        region.expect(any(np.may_share_memory(array, each) for each in self.awaited))
        self._regions.append(region)
        self._memory.add(region)
        self._alive.append(array)
        self._next = base + len(data) + GUARD_BYTES
        return base + first

    def awaited_regions(self) -> list[Region]:
        """Those that a prerequisite grid still works on."""
        return [region for region in self._regions if region.awaited]

    def release(self) -> None:
        """The prerequisite grids have completed (griddepcontrol.wait)."""
        for region in self.awaited_regions():
            region.expect(False)


class Parameters:
    """Encodes the arguments of one launch."""

    def __init__(self, launch: Launch):
        self._launch = launch

    def encode(self, arguments: list) -> np.ndarray:
        """uint8 bytes of the parameter space; LaunchError names the parameter that is wrong."""
        expected = self._launch.program.parameter_sizes()
        if len(arguments) != len(expected):
            names = ", ".join(variable.name for variable, _, _ in expected)
            raise LaunchError(
                f"kernel {short_name(self._launch.entry)}: it has {len(expected)} parameters"
                f" ({names or 'none'}), got {len(arguments)}"
            )
        data = np.zeros(self._launch.program.params.size, np.uint8)
        for number, (variable, offset, size) in enumerate(expected):
            raw = self._encode_one(
                f"parameter {number} ({variable.name})", variable, size, arguments[number]
            )
            data[offset : offset + size] = np.frombuffer(raw, np.uint8)
        return data

    def _encode_one(self, where: str, variable: ptx.Variable, size: int, value) -> bytes:
        if isinstance(value, TensorMap):
            return self._tensor_map(where, variable, size, value)
        if isinstance(value, TensorMapArray):
            return self._map_array(where, variable, value)
        if isinstance(value, np.ndarray | GlobalArray):
            return self._pointer(where, variable, value)
        if isinstance(value, bytes | bytearray | memoryview):
            return self._raw(where, size, bytes(value))
        if isinstance(value, bool | int | float | np.generic):
            return self._scalar(where, variable, value)
        raise LaunchError(
            f"{where}: must be a numpy array, a TensorMap, a TensorMapArray, a number or bytes,"
            f" got {type(value).__name__}"
        )

    def _tensor_map(self, where: str, variable: ptx.Variable, size: int, value: TensorMap) -> bytes:
        if size != TENSOR_MAP_BYTES or variable_alignment(variable) % TENSOR_MAP_ALIGNMENT:
            raise LaunchError(
                f"{where}: a TensorMap needs `.param .align 64 .b8 p[128]`, got"
                f" {size} bytes aligned to {variable_alignment(variable)}"
            )
        return self._encoded_map(where, value)

    def _encoded_map(self, where: str, value: TensorMap) -> bytes:
        address = (self._launch.arrays.address(value.array, where) + value.offset) % ADDRESSES
        value.check_address(address)
        return encode(value, address)

    def _map_array(self, where: str, variable: ptx.Variable, value: TensorMapArray) -> bytes:
        encoded = [self._encoded_map(where, each) for each in value.maps]
        data = np.frombuffer(b"".join(encoded), np.uint8).copy()
        raw = self._pointer(where, variable, data)
        for number, each in enumerate(encoded):
            place = int.from_bytes(raw, "little") + number * TENSOR_MAP_BYTES
            self._launch.tensor_maps.placed(place, each)
        return raw

    def _pointer(
        self, where: str, variable: ptx.Variable, value: np.ndarray | GlobalArray
    ) -> bytes:
        if variable.dims or variable_type(variable).bits != 64:
            raise LaunchError(
                f"{where}: an array is passed by its 64-bit address, got a parameter"
                f" of type .{variable.type}"
            )
        wrapped = value if isinstance(value, GlobalArray) else GlobalArray(value)
        if wrapped.array.dtype.hasobject:
            raise LaunchError(f"{where}: arrays of Python objects have no bytes to pass")
        address = self._launch.arrays.address(wrapped.array, where, wrapped.align, wrapped.offset)
        return address.to_bytes(8, "little")

    @staticmethod
    def _raw(where: str, size: int, value: bytes) -> bytes:
        if len(value) != size:
            raise LaunchError(f"{where}: must be {size} bytes, got {len(value)}")
        return value

    def _scalar(self, where: str, variable: ptx.Variable, value) -> bytes:
        type_ = variable_type(variable)
        if variable.dims or type_.bits > 64:
            raise LaunchError(
                f"{where}: a number cannot fill {variable.type} with dims"
                f" {list(variable.dims)}; pass bytes"
            )
        if isinstance(value, float | np.floating):
            return self._float(where, variable, float(value))
        return self._integer(where, variable, int(value))

    @staticmethod
    def _float(where: str, variable: ptx.Variable, value: float) -> bytes:
        type_ = variable_type(variable)
        if type_.kind not in "fb" or type_.bits < 16:
            raise LaunchError(f"{where}: is of type .{variable.type}, got the float {value}")
        return np.array(value, np.float64).astype(f"f{type_.bits // 8}").tobytes()

    @staticmethod
    def _integer(where: str, variable: ptx.Variable, value: int) -> bytes:
        """Compilers declare signed integers as .uN, so those take negative values too."""
        type_ = variable_type(variable)
        if type_.kind == "f":
            return np.array(value, np.float64).astype(type_.dtype).tobytes()
        low = -(1 << type_.bits - 1)
        high = (1 << type_.bits - 1) - 1 if type_.kind == "s" else (1 << type_.bits) - 1
        if not low <= value <= high:
            raise LaunchError(
                f"{where}: must be in {low}..{high} for .{variable.type}, got {value}"
            )
        return (value & (1 << type_.bits) - 1).to_bytes(type_.bits // 8, "little")
