"""Launch arguments to the bytes of the kernel's parameters, and host arrays to global memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..copies.tensor_map import ADDRESSES, TensorMap
from ..copies.tensor_map_object import TENSOR_MAP_BYTES, encode
from ..errors import LaunchError, short_name
from ..interface import Launch
from ..machine.memory import Region
from ..machine.spaces import Space
from ..ptx import syntax
from ..ptx.layout import align_up, variable_alignment, variable_type
from . import overlaps

GUARD_BYTES = 1 << 20
"""Unmapped bytes between the arrays of a launch."""
DEFAULT_ALIGNMENT = 256
TENSOR_MAP_ALIGNMENT = 64
ADDRESS_BYTES = 8


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


@dataclass(frozen=True)
class PointerArray:
    """Addresses in global memory, 8 bytes each, as batched and grouped kernels take them; passed by
    their own address. None is a null pointer."""

    arrays: Sequence[np.ndarray | GlobalArray | None]


@dataclass(frozen=True)
class Wanted:
    """An array to place, as `GlobalArray`; name: for messages."""

    name: str
    array: np.ndarray
    align: int = DEFAULT_ALIGNMENT
    offset: int = 0

    @property
    def is_particular(self) -> bool:
        """Whether it asks for an address of its own choice."""
        return (self.align, self.offset) != (DEFAULT_ALIGNMENT, 0)

    @property
    def key(self) -> tuple:
        interface = self.array.__array_interface__
        return interface["data"][0], self.array.shape, self.array.strides, self.array.itemsize

    def fits(self, address: int) -> bool:
        """Whether the address is one that it asks for."""
        return not self.is_particular or (address - self.offset) % self.align == 0


class HostArrays:
    """The numpy arrays of a launch as regions of its global memory: one region for each array, and
    for all that share bytes.

    awaited: those that a prerequisite grid works on until griddepcontrol.wait. outputs, inputs,
    scratch: see `emulator.launch`; views: arrays as matrices of elements, where a launch file says
    what flat memory holds.
    """

    def __init__(self, memory: Space, first_address: int):
        self._memory = memory
        self._next = first_address
        self._known: dict[tuple, int] = {}
        self._alive: list[Wanted] = []
        self.regions: list[Region] = []
        self.awaited: Sequence[np.ndarray] = ()
        self.outputs: Sequence[np.ndarray] = ()
        self.inputs: Sequence[np.ndarray] = ()
        self.scratch: Sequence[np.ndarray] = ()
        self.views: Mapping[str, np.ndarray] = {}

    def address(
        self, array: np.ndarray, name: str, align: int = DEFAULT_ALIGNMENT, offset: int = 0
    ) -> int:
        """The emulated address of `array`'s first element; maps it at the first call."""
        wanted = Wanted(name, array, align, offset)
        if wanted.key not in self._known:
            self.place([wanted])
        address = self._known[wanted.key]
        if not wanted.fits(address):
            raise _elsewhere(wanted)
        return address

    def place(self, arrays: Sequence[Wanted]) -> None:
        """Map these arrays; later calls can't put what shares bytes with them in one region."""
        new = list({wanted.key: wanted for wanted in reversed(arrays)}.values())[::-1]
        for group in overlaps.groups([wanted.array for wanted in new]):
            self._map([new[number] for number in group], arrays)

    def _map(self, group: list[Wanted], arrays: Sequence[Wanted]) -> None:
        data, allowed = overlaps.image([wanted.array for wanted in group])
        low = min(overlaps.bounds(wanted.array)[0] for wanted in group)
        keys = {wanted.key for wanted in group}
        base = self._base([wanted for wanted in arrays if wanted.key in keys], low)
        name = " and ".join(dict.fromkeys(wanted.name for wanted in group))
        writable = any(wanted.array.flags.writeable for wanted in group)
        region = Region(name, base, data, writable=writable, allowed=allowed)
        region.expect(any(np.may_share_memory(wanted.array, each)
                          for wanted in group for each in self.awaited))  # fmt: skip
        self.regions.append(region)
        self._memory.add(region)
        self._next = base + len(data) + GUARD_BYTES
        for wanted in group:
            self._alive.append(wanted)
            self._known[wanted.key] = base + overlaps.first_byte(wanted.array) - low

    def _base(self, group: list[Wanted], low: int) -> int:
        """The address of the byte at the host's `low`, as the arrays there ask for it."""
        particular = [wanted for wanted in group if wanted.is_particular]
        if not particular:
            return align_up(self._next, DEFAULT_ALIGNMENT)
        first = max(particular, key=lambda wanted: wanted.align)
        inside = overlaps.first_byte(first.array) - low
        unit = max(first.align, DEFAULT_ALIGNMENT)
        base = align_up(self._next + inside, unit) + first.offset - inside
        for wanted in particular:
            if not wanted.fits(base + overlaps.first_byte(wanted.array) - low):
                raise _elsewhere(wanted)
        return base

    def awaited_regions(self) -> list[Region]:
        """The regions on which a prerequisite grid still works."""
        return [region for region in self.regions if region.awaited]

    def say(self, awaited: Sequence[np.ndarray], *parts: Sequence[np.ndarray]) -> None:
        """What `emulator.launch` is told of arrays; parts: outputs, inputs, scratch."""
        self.awaited = awaited
        self.outputs, self.inputs, self.scratch = (
            _filled(name, some)
            for name, some in zip(("outputs", "inputs", "scratch"), parts, strict=True)
        )

    def named(self) -> list[tuple[str, np.ndarray]]:
        """The arrays of the launch in the shape of their elements, each with its name."""
        return list(self.views.items()) or [(each.name, each.array) for each in self._alive]

    def region_of(self, array: np.ndarray) -> tuple[Region, int]:
        """Where an array's first element lies; LaunchError for one that has not been passed."""
        low, high = overlaps.bounds(array)
        for region in self.regions:
            start = overlaps.first_byte(region.data)
            if start <= low and high <= start + len(region.data):
                return region, overlaps.first_byte(array) - start
        rule = "outputs, inputs and scratch must be arrays that are passed, or parts of them"
        raise LaunchError(f"{rule}, got another one")

    def release(self) -> None:
        """The prerequisite grids have completed (griddepcontrol.wait)."""
        for region in self.awaited_regions():
            region.expect(False)


def _filled(name: str, arrays: object) -> list[np.ndarray]:
    """The arrays that have elements."""
    rule = f"{name}: must be a list of numpy arrays, got"
    if not isinstance(arrays, list | tuple):
        raise LaunchError(f"{rule} {type(arrays).__name__}")
    for each in arrays:
        if not isinstance(each, np.ndarray):
            raise LaunchError(f"{rule} {type(each).__name__} in it")
    return [each for each in arrays if each.size]


def _elsewhere(wanted: Wanted) -> LaunchError:
    return LaunchError(
        f"{wanted.name}: it shares bytes with another array, so that its address cannot be"
        f" {wanted.offset} behind a multiple of {wanted.align}; pass copies, or ask for it once"
    )


def _arrays_of(arguments: Sequence, expected: Sequence) -> Iterator[Wanted]:
    """Every array that the arguments name."""
    for number, (value, (variable, _, _)) in enumerate(zip(arguments, expected, strict=True)):
        yield from _wanted(f"parameter {number} ({variable.name})", value)


def _wanted(where: str, value: object) -> Iterator[Wanted]:
    parts = value.values() if isinstance(value, Mapping) else ()
    parts = getattr(value, "maps", getattr(value, "arrays", parts))
    if not isinstance(parts, Iterable):
        kind, got = type(value).__name__, type(parts).__name__
        raise LaunchError(f"{where}: {kind} must be of a list, got {got}")
    if isinstance(getattr(value, "array", value), np.ma.MaskedArray):
        raise LaunchError(f"{where}: must have no mask, got a masked array; fill it")
    for part in parts:
        yield from _wanted(where, part)
    if isinstance(value, GlobalArray) and not value.array.dtype.hasobject:
        yield Wanted(where, value.array, value.align, value.offset)
    array = value.array if isinstance(value, TensorMap) else value
    if isinstance(array, np.ndarray) and not array.dtype.hasobject:
        yield Wanted(where, array)


def _offset_of(where: str) -> Callable[[Any], int]:
    """A key to sort fields by, which refuses what is no offset."""

    def offset(key: Any) -> int:
        if isinstance(key, bool) or not isinstance(key, int) or key < 0:
            raise LaunchError(f"{where}: a field's offset must be an integer from 0, got {key!r}")
        return key

    return offset


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
        self._launch.arrays.place(list(_arrays_of(arguments, expected)))
        data = np.zeros(self._launch.program.params.size, np.uint8)
        for number, (variable, offset, size) in enumerate(expected):
            raw = self._encode_one(
                f"parameter {number} ({variable.name})", variable, size, arguments[number]
            )
            data[offset : offset + size] = np.frombuffer(raw, np.uint8)
        return data

    def _encode_one(self, where: str, variable: syntax.Variable, size: int, value) -> bytes:
        if isinstance(value, Mapping):
            return self._struct(where, size, value)
        if isinstance(value, TensorMap):
            return self._tensor_map(where, variable, size, value)
        if isinstance(value, np.ndarray | GlobalArray | TensorMapArray | PointerArray):
            self._check_pointer(where, variable)
            return self._field(where, value)
        if isinstance(value, bytes | bytearray | memoryview):
            return self._raw(where, size, bytes(value))
        if isinstance(value, bool | int | float | np.generic):
            return self._scalar(where, variable, value)
        raise LaunchError(
            f"{where}: must be a numpy array, a TensorMap, a TensorMapArray, a PointerArray,"
            f" a number, bytes or a dict of a struct's fields, got {type(value).__name__}"
        )

    def _tensor_map(
        self, where: str, variable: syntax.Variable, size: int, value: TensorMap
    ) -> bytes:
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

    def _struct(self, where: str, size: int, fields: Mapping[int, Any]) -> bytes:
        """A struct's bytes from its fields by offset; zero between them."""
        data, end = bytearray(size), 0
        for offset in sorted(fields, key=_offset_of(where)):
            raw = self._field(f"{where}, offset {offset}", fields[offset])
            if isinstance(fields[offset], TensorMap) and offset % TENSOR_MAP_ALIGNMENT:
                rule = f"a TensorMap must lie at a multiple of {TENSOR_MAP_ALIGNMENT}"
                raise LaunchError(f"{where}: {rule}, got offset {offset}")
            if not end <= offset <= size - len(raw):
                rule = f"a field of {len(raw)} bytes must lie in {end}..{size}"
                raise LaunchError(f"{where}: {rule}, got one at {offset}")
            end = offset + len(raw)
            data[offset:end] = raw
        return bytes(data)

    def _field(self, where: str, value: Any) -> bytes:
        if isinstance(value, TensorMap):
            return self._encoded_map(where, value)
        if isinstance(value, TensorMapArray):
            return self._placed_maps(where, value)
        if isinstance(value, PointerArray):
            return self._placed_addresses(where, value)
        if isinstance(value, np.ndarray | GlobalArray):
            return self._address(where, value)
        if isinstance(value, np.generic):
            return value.tobytes()
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        raise LaunchError(
            f"{where}: must be a numpy array, a TensorMap, a TensorMapArray, a PointerArray,"
            f" bytes or a number of numpy's, which has a width, got {type(value).__name__};"
            " as np.int32(3)"
        )

    def _placed_maps(self, where: str, value: TensorMapArray) -> bytes:
        encoded = [self._encoded_map(where, each) for each in value.maps]
        data = np.frombuffer(b"".join(encoded), np.uint8).copy()
        raw = self._address(where, data)
        for number, each in enumerate(encoded):
            place = int.from_bytes(raw, "little") + number * TENSOR_MAP_BYTES
            self._launch.events.map_placed(place, each)
        return raw

    def _placed_addresses(self, where: str, value: PointerArray) -> bytes:
        null, addresses = bytes(ADDRESS_BYTES), []
        for number, each in enumerate(value.arrays):
            if each is not None and not isinstance(each, np.ndarray | GlobalArray):
                rule = f"{where}, pointer {number}: must be a numpy array, a GlobalArray or None"
                raise LaunchError(f"{rule}, got {type(each).__name__}")
            addresses.append(null if each is None else self._address(where, each))
        return self._address(where, np.frombuffer(b"".join(addresses), np.uint8).copy())

    @staticmethod
    def _check_pointer(where: str, variable: syntax.Variable) -> None:
        if variable.dims or variable_type(variable).bits != 64:
            raise LaunchError(
                f"{where}: an array is passed by its 64-bit address, got a parameter"
                f" of type .{variable.type}"
            )

    def _address(self, where: str, value: np.ndarray | GlobalArray) -> bytes:
        wrapped = value if isinstance(value, GlobalArray) else GlobalArray(value)
        if wrapped.array.dtype.hasobject:
            raise LaunchError(f"{where}: arrays of Python objects have no bytes to pass")
        address = self._launch.arrays.address(wrapped.array, where, wrapped.align, wrapped.offset)
        return address.to_bytes(ADDRESS_BYTES, "little")

    @staticmethod
    def _raw(where: str, size: int, value: bytes) -> bytes:
        if len(value) != size:
            raise LaunchError(f"{where}: must be {size} bytes, got {len(value)}")
        return value

    def _scalar(self, where: str, variable: syntax.Variable, value) -> bytes:
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
    def _float(where: str, variable: syntax.Variable, value: float) -> bytes:
        type_ = variable_type(variable)
        if type_.kind not in "fb" or type_.bits < 16:
            raise LaunchError(f"{where}: is of type .{variable.type}, got the float {value}")
        return np.array(value, np.float64).astype(f"f{type_.bits // 8}").tobytes()

    @staticmethod
    def _integer(where: str, variable: syntax.Variable, value: int) -> bytes:
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
