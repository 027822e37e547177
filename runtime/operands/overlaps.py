"""Outputs that share memory with other tensors of a launch.

A thread may write an element that another one has still to read, so an output has memory to itself.
The only exception is an operand of the epilogue that lies exactly as the only output does: there
each element is read by the thread that writes it, before it does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from ..element_types import ITEM_BYTES
from ..errors import LaunchError

OF_EPILOGUE = re.compile(r"e\d+")
MAX_WORK = 100_000
"""Steps in which numpy looks for an element that two arrays share."""


class Extent(NamedTuple):
    """Where a tensor lies: its address in bytes, and sizes and strides, those of 1 left out."""

    address: int
    item_bytes: int
    dims: tuple[tuple[int, int], ...]

    @staticmethod
    def of(declared: Mapping[str, Any], address: int) -> Extent:
        """A tensor of a manifest, whose sizes are all known, at an address."""
        item = ITEM_BYTES[declared["dtype"]]
        pairs = zip(declared["shape"], declared["strides"], strict=True)
        return Extent(address, item, tuple((n, step * item) for n, step in pairs if n != 1))

    @property
    def end(self) -> int:
        """The address past the last byte."""
        if any(size == 0 for size, _ in self.dims):
            return self.address
        return self.address + self.item_bytes + sum((size - 1) * step for size, step in self.dims)

    def meets(self, other: Extent) -> bool:
        """Whether the two have a byte in common; True where that takes long to find out."""
        if self.end <= other.address or other.end <= self.address:
            return False
        try:
            mine, others, work = self._array(), other._array(), cast(Any, MAX_WORK)
            return bool(np.shares_memory(mine, others, max_work=work))
        except np.exceptions.TooHardError:
            return True

    def _array(self) -> np.ndarray:
        """An array of numpy that has these addresses, at which nobody may look."""
        return np.asarray(_At(self))


class _At:
    def __init__(self, extent: Extent):
        self.__array_interface__ = {
            "data": (extent.address, False),
            "shape": tuple(size for size, _ in extent.dims),
            "strides": tuple(step for _, step in extent.dims),
            "typestr": f"|V{extent.item_bytes}",
            "version": 3,
        }


def check_no_overlap(manifest: Mapping[str, Any], addresses: Mapping[str, int]) -> None:
    """Raise LaunchError where an output shares memory that another thread may read or write.

    addresses: of every tensor's first element, in bytes; on a GPU they are not looked at.
    """
    NoOverlapCheck(manifest)(addresses)


class NoOverlapCheck:
    """`check_no_overlap` for many sets of addresses, of which few come near each other."""

    def __init__(self, manifest: Mapping[str, Any]):
        self._tensors = {each["name"]: each for each in manifest["tensors"]}
        spans = {name: Extent.of(each, 0).end for name, each in self._tensors.items()}
        outputs = [name for name, each in self._tensors.items() if each["role"] == "output"]
        self._several = len(outputs) > 1
        self._pairs = [
            (output, spans[output], other, spans[other])
            for output in outputs
            for other in spans
            if other != output
        ]

    def __call__(self, addresses: Mapping[str, int]) -> None:
        """addresses: as for `check_no_overlap`."""
        for output, bytes_of_output, other, bytes_of_other in self._pairs:
            begin, start = addresses[output], addresses[other]
            if begin < start + bytes_of_other and start < begin + bytes_of_output:
                self._check(output, other, addresses)

    def _check(self, output: str, other: str, addresses: Mapping[str, int]) -> None:
        written, read = (Extent.of(self._tensors[e], addresses[e]) for e in (output, other))
        alone = not self._several and OF_EPILOGUE.fullmatch(other)
        if written.meets(read) and not (alone and read == written):
            _refuse(output, other, self._several)


def _refuse(output: str, other: str, several: bool) -> None:
    rule = f"tensor '{output}': must share no memory with '{other}'"
    why = "as several outputs are stored one after another" if several else "which threads read"
    raise LaunchError(f"{rule}, {why} while it is written, got one that does; pass another out=")
