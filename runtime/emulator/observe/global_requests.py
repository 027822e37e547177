"""What accesses ask of global memory: requests by size, sectors, and how much of it is new.

A request is what one instruction of a warp, or one row of a box that a copy engine moves, asks of
one line of 128 bytes. L2 and DRAM serve it by sectors of 32 bytes: bytes of a sector that nobody
asked for are moved too. Sources: CUDA C++ Best Practices Guide, coalesced access to global memory
(accesses of a warp become as many 32-byte transactions as they touch); Nsight Compute, memory
tables (a line is four sectors). That a copy engine asks row by row is an inference: the published
times of boxes 16 and 128 bytes wide ("tcgen05 for dummies", v1 and v2) differ by the rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..interface import Launch

LINE, SECTOR = 128, 32
SIZES = (16, 32, 64, LINE)
"""Requests are counted by the first of these that they fit."""


class Asked(NamedTuple):
    """Requests, by line: first and past-the-last byte of their runs int64[n], the number of the
    request of each int64[n], and all sectors that they touch."""

    low: np.ndarray
    high: np.ndarray
    request: np.ndarray
    sectors: int

    def by_size(self) -> Counter[int]:
        """How many requests there are of each of SIZES."""
        sizes = np.bincount(self.request, self.high - self.low)
        found = np.searchsorted(SIZES, sizes)
        return Counter({SIZES[int(bin_)]: int(n) for bin_, n in enumerate(np.bincount(found)) if n})


def split_requests(starts: np.ndarray, sizes: np.ndarray, together: bool) -> Asked:
    """The requests of `sizes` bytes at each of `starts`; together: of lanes of one instruction,
    whose bytes are asked for once."""
    low = starts.astype(np.int64)[sizes > 0]
    high = low + sizes[sizes > 0]
    if together:
        low, high = _merged(low, high)
    low, high, piece = _cut(low, high)
    line = low // LINE
    new = np.ones(len(low), bool)
    new[1:] = (line[1:] != line[:-1]) | (not together and piece[1:] != piece[:-1])
    first, last = low // SECTOR, (high - 1) // SECTOR
    shared = int((~new[1:] & (first[1:] == last[:-1])).sum())
    return Asked(low, high, np.cumsum(new) - 1, int((last - first + 1).sum()) - shared)


def _merged(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same bytes as ascending runs that do not touch each other."""
    if not len(low):
        return low, high
    order = np.argsort(low, kind="stable")
    low, reach = low[order], np.maximum.accumulate(high[order])
    begins = np.append(True, low[1:] > reach[:-1])
    return low[begins], reach[np.append(begins[1:], True)]


def _cut(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Runs cut where a line ends, and the number of the run that each part is of."""
    lines = (high - 1) // LINE - low // LINE + 1
    piece = np.repeat(np.arange(len(low)), lines)
    number = np.arange(len(piece)) - np.repeat(np.cumsum(lines) - lines, lines)
    line = (low // LINE)[piece] + number
    return np.maximum(low[piece], line * LINE), np.minimum(high[piece], (line + 1) * LINE), piece


@dataclass
class Requests:
    """The requests of one instruction. sizes: requests by SIZES; asked: bytes that lanes or rows
    ask for."""

    ptx_line: int
    ptx_text: str
    direction: str
    executions: int = 0
    asked_bytes: int = 0
    sectors: int = 0
    sizes: Counter[int] = field(default_factory=Counter)

    def add(self, found: Asked, asked: int) -> None:
        """Count one execution."""
        self.executions += 1
        self.asked_bytes += asked
        self.sectors += found.sectors
        self.sizes.update(found.by_size())

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        sizes = {str(size): self.sizes[size] for size in SIZES}
        return vars(self) | {"sizes": sizes}


class Footprint:
    """Which sectors of global memory were read, and which written."""

    def __init__(self, launch: Launch):
        self._memory = launch.global_memory
        self._touched: dict[str, dict[int, np.ndarray]] = {"read": {}, "write": {}}

    def add(self, direction: str, asked: Asked) -> None:
        """Note runs of bytes."""
        low, high = asked.low, asked.high
        while len(low):
            region = self._memory.region_at(int(low[0]))
            inside = (low >= region.base) & (low < region.base + len(region.data))
            self._note(direction, region, low[inside], high[inside])
            low, high = low[~inside], high[~inside]

    def _note(self, direction: str, region: Any, low: np.ndarray, high: np.ndarray) -> None:
        base = region.base // SECTOR
        size = (region.base + len(region.data) - 1) // SECTOR - base + 1
        touched = self._touched[direction].setdefault(region.base, np.zeros(size, bool))
        first, last = low // SECTOR - base, np.minimum((high - 1) // SECTOR - base, size - 1)
        for step in range(LINE // SECTOR):  # a run is inside a line
            touched[np.minimum(first + step, last)] = True

    def sectors(self, direction: str) -> int:
        """How many different ones."""
        return sum(int(touched.sum()) for touched in self._touched[direction].values())
