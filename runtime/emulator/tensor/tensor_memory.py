"""Tensor memory of one CTA: 128 lanes x 512 columns of 32 bits, its allocation, its access maps.

An address is ``lane << 16 | column``. Every byte remembers whether it was ever written: a word of
scale factors may be whole only in the bytes that products use.
Source: PTX ISA, tcgen05 sections "Tensor Memory", "Tensor Memory Allocation" and "Matrix
fragments of tcgen05.ld and tcgen05.st".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import Trap, UnwrittenRead
from ..truth import all_of
from .accumulator import Accumulator

LANES = 128
COLUMNS = 512
QUARTER = 32
"""Lanes that one warp reaches and that hold one copy of scale factors."""
WRITTEN = 0xFFFF_FFFF
"""The mark of a word all of whose bytes were written."""
_ALL = np.ones(1, bool)
ALLOCATION_SIZES = (32, 64, 128, 256, 512)


def split_address(address: int) -> tuple[int, int]:
    """(lane, column) of a tensor memory address."""
    return address >> 16, address & 0xFFFF


@dataclass(frozen=True)
class Shape:
    """A shape of tcgen05.ld/st: registers per thread at .x1, columns at .x1, largest .xN."""

    name: str
    registers: int
    columns: int
    largest: int
    lanes: int


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("32x32b", 1, 1, 128, 32),
        Shape("16x64b", 1, 2, 128, 16),
        Shape("16x128b", 2, 4, 64, 16),
        Shape("16x256b", 4, 8, 32, 16),
        Shape("16x32bx2", 1, 1, 128, 16),
    )
}


@lru_cache(maxsize=256)
def register_map(shape: str, registers: int, half_split: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(lane, column) of register r of thread t, both ``int64[registers, 32]``.

    Relative to the access's base lane and column; ``half_split`` is the column offset of threads
    16-31 of shape 16x32bx2 (``immHalfSplitoff``).
    """
    r = np.arange(registers)[:, None]
    t = np.arange(32)[None, :]
    if shape == "32x32b":
        lane, column = t, r
    elif shape == "16x64b":
        lane, column = t % 2 * 8 + t // 4, 2 * r + t // 2 % 2
    elif shape == "16x128b":
        lane, column = t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4
    elif shape == "16x256b":
        lane, column = t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2
    else:
        lane, column = t % 16, r + half_split * (t // 16)
    grid = np.zeros((registers, 32), np.int64)
    return lane + grid, column + grid


def by_row(words: np.ndarray, rows: int) -> np.ndarray:
    """uint8[quarter, row, byte] of scale factors: row m at lane m % 32, column m / 32."""
    parts = words.view(np.uint8).reshape(LANES // QUARTER, QUARTER, -1, 4)
    return parts.transpose(0, 2, 1, 3).reshape(LANES // QUARTER, -1, 4)[:, :rows]


class TensorMemory:
    """Words, written marks and allocation table of one CTA's tensor memory.

    ``words`` is ``uint32[128, 512]``, ``written`` the same with 0xFF in each byte that was written;
    an `accumulator` is kept apart until something else looks at its columns.
    ``poison`` fills the words; ``pick`` chooses among legal places of
    an allocation (a callable from a list of start columns to one of them); ``tracks``: whether
    words that were never written may not be read; ``forgiving``: they may, for now.
    """

    def __init__(self, poison: np.ndarray | None = None, pick=min, tracks: bool = True):
        self._tracks, self.forgiving = tracks, False
        self._words = np.full((LANES, COLUMNS), 0xDEADBEEF, np.uint32) if poison is None else poison
        self._apart: dict[tuple[int, int, int, int], Accumulator] = {}
        self.written = np.zeros((LANES, COLUMNS), np.uint32)
        self.allocations: dict[int, int] = {}
        self.relinquished = False
        self._pick = pick
        self._last_size = COLUMNS
        self._whole: set[tuple[int, int, int, int]] = set()

    @property
    def words(self) -> np.ndarray:
        """All words, up to date."""
        return self.part(slice(0, LANES), slice(0, COLUMNS))

    def part(self, rows: slice, columns: slice) -> np.ndarray:
        """A block of the words, up to date; a view."""
        if self._apart:
            self._settle(_corners(rows, columns))
        return self._words[rows, columns]

    def accumulator(self, rows: slice, columns: slice) -> Accumulator:
        """A block of the words to change in place: one array without gaps, to which a product is
        added several times faster than to rows that lie apart."""
        corners = _corners(rows, columns)
        if corners not in self._apart:
            self._apart[corners] = Accumulator(np.array(self.part(rows, columns), order="C"))
        return self._apart[corners]

    def sums(self, rows: slice, columns: slice, add: bool, what: str) -> Accumulator:
        """The accumulator of a block to which a product is added, or which it replaces."""
        corners = _corners(rows, columns)
        known = self._apart.get(corners)
        if known is not None and corners in self._whole:
            return known
        if add:
            self.require_written(rows, columns, what)
        self.mark_written(rows, columns)
        return self.accumulator(rows, columns)

    def _settle(self, block: tuple[int, int, int, int]) -> None:
        """Put the accumulators that meet a block back to where they belong."""
        for corners in list(self._apart):
            top, bottom, first, end = corners
            if top < block[1] and block[0] < bottom and first < block[3] and block[2] < end:
                self._words[top:bottom, first:end] = self._apart.pop(corners).words()

    def check_allocation(self, columns: int) -> None:
        """Raise ``Trap`` unless an allocation of ``columns`` is legal now."""
        if columns not in ALLOCATION_SIZES:
            raise _refuse(
                f"tcgen05.alloc: the columns must be a power of two in 32..512, got {columns}"
            )
        if self.relinquished:
            raise _refuse("tcgen05.alloc after tcgen05.relinquish_alloc_permit of the same CTA")
        if columns > self._last_size:
            raise _refuse(
                f"tcgen05.alloc: the columns of successive allocations may not increase, "
                f"got {columns} after {self._last_size}"
            )

    def allocate(self, columns: int) -> int | None:
        """Address of a fresh allocation, or None while no room is free. Contents are poison."""
        self.check_allocation(columns)
        starts = [c for c in range(0, COLUMNS, columns) if self._is_free(c, columns)]
        if not starts:
            return None
        start = self._pick(starts)
        self.allocate_at(start, columns)
        return start

    def allocate_at(self, start: int, columns: int) -> None:
        """Allocate exactly these columns (the second CTA of a pair gets the first one's)."""
        if not self._is_free(start, columns):
            raise _refuse(f"tcgen05.alloc: columns {start}..{start + columns - 1} are in use")
        self.allocations[start] = columns
        self._last_size = columns
        self.written[:, start : start + columns] = 0
        self._whole.clear()

    def deallocate(self, address: int, columns: int) -> None:
        """Free a whole earlier allocation; anything else is a ``Trap``."""
        self.check_deallocation(address, columns)
        del self.allocations[split_address(address)[1]]

    def check_deallocation(self, address: int, columns: int) -> None:
        """Raise ``Trap`` unless this is a whole live allocation."""
        lane, column = split_address(address)
        size = None if lane else self.allocations.get(column)
        if size is None:
            raise _refuse(f"tcgen05.dealloc of 0x{address:08x}, which is no live allocation")
        if size != columns:
            raise _refuse(
                f"tcgen05.dealloc of 0x{address:08x}: allocated with {size} columns, got {columns}"
            )

    def relinquish(self) -> None:
        """Give up the right to allocate."""
        self.relinquished = True

    def check_columns(self, first: int, count: int, what: str) -> None:
        """Raise ``Trap`` unless columns [first, first+count) lie in one live allocation."""
        for start, size in self.allocations.items():
            if start <= first and first + count <= start + size:
                return
        raise Trap(
            "out-of-bounds",
            f"{what}: columns {first}..{first + count - 1} are not inside an allocation "
            f"({self._describe_allocations()})",
        )

    def require_written(self, rows: slice, columns: slice, what: str) -> None:
        """Raise ``Trap`` if any word of the block was not written as a whole."""
        if not self._tracks or self.forgiving or _corners(rows, columns) in self._whole:
            return
        whole = self.written[rows, columns] == WRITTEN
        if not all_of(whole):
            self._report_unwritten(whole, rows.start, columns.start, what)

    def mark_written(self, rows: slice, columns: slice) -> None:
        """All words of the block have been written."""
        corners = _corners(rows, columns)
        if corners not in self._whole:
            self.written[rows, columns] = WRITTEN
            self._whole.add(corners)

    def require_factors(self, columns: slice, used: tuple[int, int, int], what: str) -> None:
        """Raise ``Trap`` if a scale factor was never written; used: rows, first byte, bytes."""
        if not self._tracks:
            return
        rows, first, count = used
        written = by_row(self.written[:, columns], rows)[..., first : first + count] != 0
        if not all_of(written):
            quarter, row, byte = (int(at) for at in np.argwhere(~written)[0])
            lane, column = QUARTER * quarter + row % QUARTER, columns.start + row // QUARTER
            raise self._unwritten(lane, column, f"{what}: byte {first + byte} of a word")

    def gather(self, lanes: np.ndarray, columns: np.ndarray, what: str) -> np.ndarray:
        """Words at absolute (lane, column) index arrays [..., registers, threads], of several for a
        register by the first axes; unwritten ones are a ``Trap``."""
        whole = self.written[lanes, columns] == WRITTEN if self._tracks else _ALL
        if not all_of(whole) and not self.forgiving:
            at = tuple(np.argwhere(~whole)[0])
            parts = whole.reshape(-1, *whole.shape[-2:]).all(0).T
            lane, column = np.broadcast_to(lanes, whole.shape)[at], columns[at]
            raise self._unwritten(int(lane), int(column), what, ~parts)
        return self._around(columns)[lanes, columns]

    def _around(self, columns: np.ndarray) -> np.ndarray:
        """The words, up to date in these columns."""
        if self._apart:
            self._settle((0, LANES, int(columns.min()), int(columns.max()) + 1))
        return self._words

    def scatter(
        self,
        lanes: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        marks: np.ndarray | int = WRITTEN,
    ) -> None:
        """Write words at absolute (lane, column) index arrays; marks: their bytes that count."""
        self._around(columns)[lanes, columns] = values
        self.written[lanes, columns] = marks
        if marks is not WRITTEN:
            self._whole.clear()

    def shift_down(self, rows: slice, columns: slice) -> None:
        """Let each lane but the last of a quarter take the words of the lane behind it; rows: whole
        quarters."""
        for first in range(rows.start, rows.stop, QUARTER):
            last = first + QUARTER - 1
            for grid in (self.part(slice(first, last + 1), columns), self.written[:, columns]):
                lanes = grid if len(grid) == QUARTER else grid[first : last + 1]
                lanes[:-1] = lanes[1:].copy()
        self._whole.clear()

    def _is_free(self, first: int, count: int) -> bool:
        return all(
            first + count <= start or start + size <= first
            for start, size in self.allocations.items()
        )

    def _describe_allocations(self) -> str:
        if not self.allocations:
            return "nothing is allocated"
        spans = (f"{s}..{s + n - 1}" for s, n in sorted(self.allocations.items()))
        return "allocated: " + ", ".join(spans)

    def _report_unwritten(self, block: np.ndarray, lane: int, column: int, what: str) -> None:
        at = np.argwhere(~block)[0]
        raise self._unwritten(lane + int(at[0]), column + int(at[1]), what, ~block)

    def _unwritten(self, lane: int, column: int, what: str, words: Any = None) -> Trap:
        """words: bool[threads, registers], those that take what nobody has written."""
        rule = f"tensor memory lane {lane} column {column} was never written"
        return UnwrittenRead(f"{what}: {rule}", self, words)


def _corners(rows: slice, columns: slice) -> tuple[int, int, int, int]:
    return rows.start, rows.stop, columns.start, columns.stop


def _refuse(message: str) -> Trap:
    return Trap("tmem", message)
