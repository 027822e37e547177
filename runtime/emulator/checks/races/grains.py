"""Numbers for each byte of a memory, kept by words of 8 bytes for as long as their bytes agree.

Engines move whole words, so that what they leave is an eighth of what single bytes would take.
"""

from __future__ import annotations

import numpy as np

WORD = 8


class Grains:
    """`len(dtypes)` numbers a byte, all zero at first.

    Cells are runs of `size` bytes, a power of two, numbered from the start of the memory. Of a word
    that is split its bytes have the numbers, else the word has.
    """

    def __init__(self, size: int, *dtypes: type):
        self._words = [np.zeros(-(-size // WORD), dtype) for dtype in dtypes]
        self._bytes: list[np.ndarray] = []
        self._split: np.ndarray | None = None

    def coarse(self, cells: np.ndarray, size: int) -> list[np.ndarray] | None:
        """The numbers of the words that the cells consist of; None if one of them is split, or
        cells are smaller than words."""
        words = words_of(cells, size)
        if words is None or (self._split is not None and self._split[words].any()):
            return None
        return [numbers[words] for numbers in self._words]

    def fine(self, cells: np.ndarray, size: int) -> list[np.ndarray]:
        """The numbers of all bytes of the cells, in order."""
        at = bytes_of(cells, size)
        if self._split is None:
            return [numbers[at >> 3] for numbers in self._words]
        split = self._split[at >> 3]
        if split.all():
            return [own[at] for own in self._bytes]
        both = zip(self._bytes, self._words, strict=True)
        return [np.where(split, own[at], numbers[at >> 3]) for own, numbers in both]

    def put(self, cells: np.ndarray, size: int, *values: np.ndarray | int) -> None:
        """Give the cells these numbers: one for all, or an array with that of each word, of each
        byte where cells are smaller."""
        words = words_of(cells, size)
        if words is not None:
            for numbers, value in zip(self._words, values, strict=True):
                numbers[words] = value
            if self._split is not None:
                self._split[words] = False
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


def words_of(cells: np.ndarray, size: int) -> np.ndarray | None:
    """The numbers of the words that cells consist of; None if they are smaller than words."""
    if size < WORD:
        return None
    if size == WORD:
        return cells
    return (cells.reshape(-1, 1) * (size // WORD) + np.arange(size // WORD)).reshape(-1)


def bytes_of(cells: np.ndarray, size: int) -> np.ndarray:
    """int64: the offsets of the bytes of cells, in order."""
    return (cells.reshape(-1, 1) * size + np.arange(size)).reshape(-1)
