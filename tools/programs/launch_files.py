"""A launch that a program asks for, as a launch file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...runtime.errors import LaunchError
from .memory import ALIGNMENT, Block, TensorMemory
from .tensor_maps import MAP_BYTES, read_map

ADDRESS_BYTES = 8
LEAST_ADDRESS = 1 << 22
"""Numbers below are no addresses of the host's heap: executables at a fixed address begin here, and
their heap follows them."""


@dataclass(frozen=True)
class Asked:
    """A launch that a program asks for. text: the PTX; parameters: the bytes of each."""

    kernel: str
    text: str
    grid: list[int]
    block: list[int]
    cluster: list[int]
    shared_bytes: int
    parameters: Sequence[bytes]
    cooperative: bool = False


def launch_file(asked: Asked, memory: TensorMemory) -> LaunchFile:
    """The launch file that says the same."""
    made = LaunchFile(asked, memory)
    for raw in asked.parameters:
        made.add(raw)
    return made


class LaunchFile:
    """Its fields as they grow with the parameters; blocks: the memory of its tensors, by name."""

    def __init__(self, asked: Asked, memory: TensorMemory):
        self._asked, self._memory = asked, memory
        self.blocks: dict[str, Block] = {}
        self._maps: dict[str, dict[str, Any]] = {}
        self._parameters: list[dict[str, Any]] = []

    def fields(self) -> dict[str, Any]:
        """What the file says; `contents` are arrays."""
        asked = self._asked
        fields = {
            "schema": 1,
            "entry": asked.kernel,
            "grid": asked.grid,
            "block": asked.block,
            "cluster": asked.cluster,
            "shared_bytes": asked.shared_bytes,
            "tensors": [_tensor(name, block) for name, block in self.blocks.items()],
            "tensor_maps": list(self._maps.values()),
            "parameters": self._parameters,
        }
        if asked.cooperative:
            fields["resident"] = int(np.prod(asked.grid))
        return fields

    def add(self, raw: bytes) -> None:
        """The next parameter."""
        pieces = list(self._pieces(raw))
        if len(pieces) == 1:
            self._parameters.append({key: pieces[0][key] for key in pieces[0] if key != "at"})
        else:
            self._parameters.append({"struct": pieces, "size_bytes": len(raw)})

    def _pieces(self, raw: bytes) -> Iterable[dict[str, Any]]:
        """Tensor maps, addresses of tensors, and the bytes between."""
        at, plain = 0, 0
        while at + ADDRESS_BYTES <= len(raw):
            found, size = self._found(raw, at)
            if found is None:
                at += ADDRESS_BYTES
                continue
            if plain < at:
                yield {"at": plain, "hex": raw[plain:at].hex()}
            yield {"at": at, **found}
            at = plain = at + size
        if plain < len(raw) or not raw:
            yield {"at": plain, "hex": raw[plain:].hex()}

    def _found(self, raw: bytes, at: int) -> tuple[dict[str, Any] | None, int]:
        described = read_map(raw[at : at + MAP_BYTES]) if at % 64 == 0 else None
        if described is not None:
            return {"tensor_map": self._map(described)}, MAP_BYTES
        address = int.from_bytes(raw[at : at + ADDRESS_BYTES], "little")
        return self._address(address), ADDRESS_BYTES

    def _address(self, address: int) -> dict[str, Any] | None:
        block = self._memory.block_at(address) if address >= LEAST_ADDRESS else None
        if block is None:
            return None
        pointed = self._pointed(block, address - block.address)
        if pointed:
            return {"pointer_array": pointed}
        return {"pointer": self._tensor(block), "offset_bytes": address - block.address}

    def _pointed(self, block: Block, offset: int) -> list[str]:
        """The tensors whose addresses the bytes from there on are, if all are."""
        held = block.bytes()[offset:]
        if held.nbytes % ADDRESS_BYTES or held.nbytes > 4096 * ADDRESS_BYTES:
            return []
        numbers = held.view(np.uint64).tolist()
        found = [self._memory.block_at(number) for number in numbers if number >= LEAST_ADDRESS]
        if len(found) < len(numbers) or not all(found):
            return []
        blocks = [each for each in found if each is not None]
        if any(each.address != number for each, number in zip(blocks, numbers, strict=True)):
            return []
        return [self._tensor(each) for each in blocks]

    def _tensor(self, block: Block) -> str:
        for name, known in self.blocks.items():
            if known == block:
                return name
        name = f"t{len(self.blocks)}"
        self.blocks[name] = block
        return name

    def _map(self, described: dict[str, Any]) -> str:
        address = described.pop("address")
        block = self._memory.block_of_map(address)
        if block is None:
            raise LaunchError(
                f"a tensor map must be of a tensor of torch, got address {address:#x}"
            )
        place = {"tensor": self._tensor(block), "offset_bytes": address - block.address}
        name = f"m{len(self._maps)}"
        self._maps[name] = {"name": name, **place, **described}
        return name


def _tensor(name: str, block: Block) -> dict[str, Any]:
    return {
        "name": name,
        "role": "inout",
        "dtype": "u8",
        "shape": [block.size],
        "align": ALIGNMENT,
        "offset_bytes": block.address % ALIGNMENT,
        "contents": block.bytes(),
    }
