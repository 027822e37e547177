"""The memory of a program's tensors, by address."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

ALIGNMENT = 256
"""Of what CUDA allocates."""


@dataclass(frozen=True)
class Block:
    """The bytes of a tensor's storage."""

    address: int
    size: int

    def bytes(self) -> np.ndarray:
        """The bytes as they are in memory, not copied."""
        return np.ctypeslib.as_array((ctypes.c_uint8 * self.size).from_address(self.address))


class TensorMemory:
    """Storages of torch that a program has seen, kept alive while a launch may name them."""

    def __init__(self) -> None:
        self._storages: dict[int, Any] = {}
        self._starts: dict[int, int] = {}

    def note(self, tensor: Any) -> None:
        """A tensor that a kernel may be given."""
        storage = tensor.untyped_storage()
        if storage.nbytes():
            self._storages[storage.data_ptr()] = storage
            self._starts[tensor.data_ptr()] = storage.data_ptr()

    def blocks(self) -> list[Block]:
        """Every storage."""
        return [Block(address, storage.nbytes()) for address, storage in self._storages.items()]

    def block_at(self, address: int) -> Block | None:
        """The storage in which an address lies."""
        for start, storage in self._storages.items():
            if start <= address < start + storage.nbytes():
                return Block(start, storage.nbytes())
        return None

    def block_of_map(self, address: int) -> Block | None:
        """The storage of a tensor map that begins at an address: the one where it lies. Maps of
        ragged tensors begin a multiple of a great power of two before theirs."""
        inside = self.block_at(address)
        if inside is not None or not self._starts:
            return inside
        start = max(self._starts, key=lambda start: _twos(start - address))
        return self.block_at(self._starts[start])


def _twos(number: int) -> int:
    """The greatest power of two that divides it."""
    return number & -number
