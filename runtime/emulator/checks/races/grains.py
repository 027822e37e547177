"""Numbers for each byte of a memory, kept by words of 8 bytes as long as their bytes agree.

Engines move whole words, so their marks take an eighth of what single bytes would take.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...truth import all_of, any_of

WORD = 8
WIDEST = 128
"""The bytes of the widest cells."""


class Block(NamedTuple):
    """Words at regular distances: the first one, and their extents and strides."""

    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def index(self) -> np.ndarray:
        """int64: the numbers of the words, in order."""
        found = np.int64(self.start) + np.zeros(1, np.int64)
        for length, stride in zip(self.shape, self.strides, strict=True):
            found = found[:, None] + np.arange(length) * stride
            found = found.reshape(-1)
        return found

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """A view of the entries of these words."""
        if self.strides == (1,):
            return numbers[self.start : self.start + self.shape[0]]
        size = numbers.itemsize
        strides = [stride * size for stride in self.strides]
        return np.ndarray(self.shape, numbers.dtype, numbers, self.start * size, strides)


Cells = np.ndarray | Block
"""The numbers of cells; a block consists of words."""
Span = tuple[int, int]
"""The bytes [low, high) in which cells lie."""


def row_span(cells: Cells) -> Span | None:
    """The bytes of consecutive words; None for other cells."""
    if not isinstance(cells, Block) or cells.strides != (1,):
        return None
    return cells.start * WORD, (cells.start + cells.shape[0]) * WORD


def span_of(cells: Cells, size: int) -> Span:
    """The bytes between which cells lie."""
    if (row := row_span(cells)) is not None:
        return row
    if not isinstance(cells, Block):
        return int(cells.min()) * size, (int(cells.max()) + 1) * size
    reach = sum((n - 1) * step for n, step in zip(cells.shape, cells.strides, strict=True))
    return cells.start * WORD, (cells.start + reach + 1) * WORD


MOST_RUNS = 64


class Run(NamedTuple):
    """Consecutive words of these bytes that one access marked."""

    span: Span
    who: int
    when: int


def meet(one: Span, other: Span) -> bool:
    """Whether two spans have a byte in common."""
    return one[0] < other[1] and other[0] < one[1]


class Runs:
    """The last runs, each kept as long as no other access meets it."""

    def __init__(self) -> None:
        self._runs: dict[int, Run] = {}
        self._starts: list[int] = []

    def renew(self, span: Span, who: int, when: int) -> bool:
        """Marks a run again; returns False if its words are not kept as a run."""
        run = self._runs.get(span[0])
        if run is None or run.span != span:
            return False
        self._runs[span[0]] = Run(span, who, when)
        return True

    def put(self, cells: Cells, size: int, who: int, when: int) -> None:
        """Notes that cells are marked."""
        row = row_span(cells)
        if row is not None and self.renew(row, who, when):
            return
        if self._runs:
            self._forget(row or span_of(cells, size))
        if row is not None:
            self._keep(Run(row, who, when))

    def _forget(self, span: Span) -> None:
        for start in [start for start, run in self._runs.items() if meet(run.span, span)]:
            del self._runs[start]
        self._starts = sorted(self._runs)

    def _keep(self, run: Run) -> None:
        if len(self._runs) == MOST_RUNS:
            del self._runs[next(iter(self._runs))]
        self._runs[run.span[0]] = run
        self._starts = sorted(self._runs)

    def around(self, span: Span) -> Run | None:
        """The run that holds all bytes of a span, if there is one."""
        place = bisect_right(self._starts, span[0])
        if not place:
            return None
        run = self._runs[self._starts[place - 1]]
        return run if span[1] <= run.span[1] else None


class Grains:
    """`len(dtypes)` numbers per byte, all zero at first.

    Cells are runs of `size` bytes, a power of two, numbered from the start of the memory. The
    numbers belong to the bytes of a word if it is split, and else to the word.
    """

    def __init__(self, size: int, *dtypes: type):
        self._words = [np.zeros(-(-size // WIDEST) * WIDEST // WORD, dtype) for dtype in dtypes]
        self._bytes: list[np.ndarray] = []
        self._split: np.ndarray | None = None

    def coarse(self, cells: Cells, size: int) -> list[np.ndarray] | None:
        """The numbers of the words that the cells consist of, possibly a view; None if a word is
        split or cells are smaller than words."""
        if size < WORD or (self._split is not None and any_of(_at(self._split, cells, size))):
            return None
        return [_at(numbers, cells, size) for numbers in self._words]

    def is_blank(self, cells: Cells, size: int) -> bool:
        """Whether the first number of all cells is known to be 0."""
        if size < WORD or self._split is not None:
            return False
        first = _at(self._words[0], cells, size)
        return first.tobytes() == _zeros(first.nbytes)

    def fine(self, cells: Cells, size: int) -> list[np.ndarray]:
        """The numbers of all bytes of the cells, in order."""
        at = bytes_of(cells, size)
        if self._split is None:
            return [numbers[at >> 3] for numbers in self._words]
        split = self._split[at >> 3]
        if all_of(split):
            return [own[at] for own in self._bytes]
        both = zip(self._bytes, self._words, strict=True)
        return [np.where(split, own[at], numbers[at >> 3]) for own, numbers in both]

    def put(self, cells: Cells, size: int, *values: np.ndarray | int) -> None:
        """Gives the cells these numbers: one for all, or an array with one per word, or per byte if
        cells are smaller than words."""
        if size >= WORD:
            for numbers, value in zip(self._words, values, strict=True):
                _put(numbers, cells, size, value)
            if self._split is not None:
                _put(self._split, cells, size, False)
            return
        at = bytes_of(cells, size)
        self._split_up(at >> 3)
        for numbers, value in zip(self._bytes, values, strict=True):
            numbers[at] = value

    def _split_up(self, words: np.ndarray) -> None:
        if self._split is None:
            self._split = np.zeros(len(self._words[0]), bool)
            self._bytes = [np.zeros(WORD * len(each), each.dtype) for each in self._words]
        whole = words[~self._split[words]]
        if not len(whole):
            return
        for own, numbers in zip(self._bytes, self._words, strict=True):
            own.reshape(-1, WORD)[whole] = numbers[whole, None]
        self._split[whole] = True


@lru_cache(maxsize=64)
def _zeros(size: int) -> bytes:
    return bytes(size)


def _at(numbers: np.ndarray, cells: Cells, size: int) -> np.ndarray:
    """The numbers of the words of cells, flat if cells are wider than words."""
    if isinstance(cells, Block):
        return cells.of(numbers)
    if size == WORD:
        return numbers[cells]
    return numbers.reshape(-1, size // WORD)[cells].reshape(-1)


def _put(numbers: np.ndarray, cells: Cells, size: int, value: np.ndarray | int | bool) -> None:
    if isinstance(cells, Block):
        cells.of(numbers)[...] = value
    elif size == WORD:
        numbers[cells] = value
    else:
        count = size // WORD
        of_each = value.reshape(-1, count) if isinstance(value, np.ndarray) else value
        numbers.reshape(-1, count)[cells] = of_each


def words_of(cells: Cells, size: int) -> Cells | None:
    """The numbers of the words that cells consist of; None if cells are smaller than words."""
    if size < WORD:
        return None
    if size == WORD:
        return cells
    numbers = cells.index() if isinstance(cells, Block) else cells
    return (numbers.reshape(-1, 1) * (size // WORD) + np.arange(size // WORD)).reshape(-1)


def bytes_of(cells: Cells, size: int) -> np.ndarray:
    """int64: the offsets of the bytes of cells, in order."""
    cells = cells.index() if isinstance(cells, Block) else cells
    return (cells.reshape(-1, 1) * size + np.arange(size)).reshape(-1)
