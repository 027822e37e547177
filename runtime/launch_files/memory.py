"""Tensors as the bytes that the kernel sees: strides, packing, poison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .contents import make_contents
from .element_types import ELEMENT_TYPES, ElementType
from .tensor_rules import Tensor, bytes_of, strides_of

POISON = 0xFF
"""The byte in every place that nothing fills: NaN in the float formats that have one."""
PACKED_BITS = 4


@dataclass(frozen=True)
class TensorMemory:
    """A declared tensor and its memory, uint8[bytes] from the first element to the last."""

    declared: Tensor
    memory: np.ndarray

    @property
    def kind(self) -> ElementType:
        """The element type."""
        return ELEMENT_TYPES[self.declared["dtype"]]

    def elements(self) -> np.ndarray:
        """A copy of the elements, shape as declared, e2m1 one a byte."""
        return self._view(self._cells()).copy()

    def view(self) -> np.ndarray:
        """The elements in the kernel's memory; of e2m1 the bytes that the tensor spans."""
        return self.memory if self.kind.bits == PACKED_BITS else self._view(self.memory)

    def fill(self, values: np.ndarray) -> None:
        """Write all elements; the bytes between them stay."""
        cells = self._cells()
        self._view(cells)[...] = values
        if self.kind.bits == PACKED_BITS:
            self.memory[...] = cells[0::2] & 15 | cells[1::2] << 4

    def _cells(self) -> np.ndarray:
        if self.kind.bits != PACKED_BITS:
            return self.memory
        return np.stack([self.memory & 15, self.memory >> 4], axis=1).reshape(-1)

    def _view(self, cells: np.ndarray) -> np.ndarray:
        dtype, declared = self.kind.dtype, self.declared
        steps = [stride * dtype.itemsize for stride in strides_of(declared)]
        return np.ndarray(declared["shape"], dtype, cells, 0, steps)


def make_memories(launch: Mapping[str, Any], folder: Path) -> dict[str, TensorMemory]:
    """The tensors of a launch by name: inputs filled and read-only, outputs poisoned."""
    memories = {}
    for i, declared in enumerate(launch["tensors"]):
        tensor = TensorMemory(declared, np.full(bytes_of(declared), POISON, np.uint8))
        if declared["role"] != "output":
            tensor.fill(make_contents(declared, folder, f"tensors[{i}].contents"))
        tensor.memory.flags.writeable = declared["role"] != "input"
        memories[declared["name"]] = tensor
    return memories
