"""Tensors at emulated addresses, and parameters as the bytes that hold these addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..emulator import Im2colMap, LaunchError, TensorMap
from ..emulator.copies.tensor_map import ADDRESSES
from ..emulator.copies.tensor_map_object import encode
from ..emulator.host.launch import Launch
from .element_types import SCALAR_TYPES
from .memory import TensorMemory

DEFAULT_ALIGN = 256
MAP_FIELDS = ("element_strides", "interleave", "swizzle", "l2_promotion", "oob_fill")


class Binder:
    """Encodes the parameters of one running launch."""

    def __init__(
        self, running: Launch, launch: Mapping[str, Any], tensors: Mapping[str, TensorMemory]
    ):
        self._running = running
        self._tensors = tensors
        self._maps = {
            each["name"]: (i, each) for i, each in enumerate(launch.get("tensor_maps", []))
        }

    def encode(self, parameter: Mapping[str, Any]) -> bytes:
        """The bytes of a parameter or of a struct's field; LaunchError for an illegal map."""
        if "pointer" in parameter:
            address = self._address(parameter["pointer"]) + parameter.get("offset_bytes", 0)
            return address.to_bytes(8, "little")
        if "tensor_map" in parameter:
            return self._encode_map(*self._maps[parameter["tensor_map"]])
        if "tensor_map_array" in parameter:
            return self._encode_array(parameter["tensor_map_array"])
        if "pointer_array" in parameter:
            return self._encode_pointers(parameter["pointer_array"])
        if "scalar" in parameter:
            return _encode_scalar(parameter)
        if "hex" in parameter:
            return bytes.fromhex(parameter["hex"])
        return self._encode_struct(parameter)

    def _address(self, name: str) -> int:
        tensor = self._tensors[name]
        align = tensor.declared.get("align", DEFAULT_ALIGN)
        offset = tensor.declared.get("offset_bytes", 0)
        arrays = self._running.arrays
        return arrays.address(tensor.memory, f"tensor '{name}'", align, offset)

    def _encode_map(self, number: int, declared: Mapping[str, Any]) -> bytes:
        tensor = self._tensors[declared["tensor"]]
        offset = declared.get("offset_bytes", 0)
        address = (self._address(declared["tensor"]) + offset) % ADDRESSES
        try:
            made = _make_map(declared, tensor)
            made.check_address(address)
        except LaunchError as error:
            rule = str(error).removeprefix("tensor map: ")
            mode = "Im2col" if "im2col" in declared else "Tiled"
            cure = f"cuTensorMapEncode{mode} would refuse it"
            raise LaunchError(f"tensor_maps[{number}]: {rule}; {cure}") from None
        return encode(made, address)

    def _encode_array(self, names: list[str]) -> bytes:
        """The address of maps that lie in global memory one after the other."""
        encoded = [self._encode_map(*self._maps[name]) for name in names]
        data = np.frombuffer(b"".join(encoded), np.uint8).copy()
        start = self._running.arrays.address(data, f"tensor maps {', '.join(names)}")
        for number, each in enumerate(encoded):
            self._running.events.map_placed(start + number * len(each), each)
        return start.to_bytes(8, "little")

    def _encode_pointers(self, names: list[str]) -> bytes:
        """The address of the tensors' addresses, which lie in global memory."""
        data = np.array([self._address(name) for name in names], np.uint64)
        return self._running.arrays.address(data, "pointers").to_bytes(8, "little")

    def _encode_struct(self, parameter: Mapping[str, Any]) -> bytes:
        data = bytearray(parameter["size_bytes"])
        for field in parameter["struct"]:
            raw = self.encode(field)
            data[field["at"] : field["at"] + len(raw)] = raw
        return bytes(data)


def _make_map(declared: Mapping[str, Any], tensor: TensorMemory) -> TensorMap:
    dtype = declared.get("dtype", tensor.declared["dtype"])
    fields = {name: declared[name] for name in MAP_FIELDS if name in declared}
    place = tensor.memory, dtype, declared["dims"], declared["strides_bytes"]
    if "im2col" in declared:
        return Im2colMap(*place, **declared["im2col"], **fields)
    return TensorMap(*place, box=declared["box"], **fields)


def _encode_scalar(parameter: Mapping[str, Any]) -> bytes:
    kind, value = SCALAR_TYPES[parameter["type"]], parameter["scalar"]
    with np.errstate(all="ignore"):
        if kind.kind == "f":
            return np.array(float(value)).astype(kind.dtype).tobytes()
    return np.array(value, kind.dtype).tobytes()
