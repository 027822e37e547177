"""Of each byte of an array in global memory the last reads of two agents.

Most arrays that tensor copies read are written by nobody: their reads are kept by boxes until
somebody asks for single bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .grains import WORD, Block, Cells, Grains, bytes_of, words_of

MOST_BOXES = 1 << 14
"""Boxes that are kept as such."""


class _Read(NamedTuple):
    """number: how many reads came before it."""

    number: int
    who: int
    when: int


class LastReads:
    """The marks of an array of ``size`` bytes; a mark is who read and when."""

    def __init__(self, size: int):
        self._size = size
        self._boxes: dict[Block, tuple[_Read, _Read | None]] = {}
        self._number = 0
        self._marks: list[Grains] = []

    def note(self, index: Cells, size: int, who: int, when: int) -> None:
        """Somebody reads the cells of ``size`` bytes."""
        if self._marks or not isinstance(index, Block) or len(self._boxes) == MOST_BOXES:
            self.marks()
            self._put(index, size, who, when)
            return
        self._number += 1
        read = _Read(self._number, who, when)
        last, before = self._boxes.get(index, (None, None))
        self._boxes[index] = read, before if last and last.who == who else last

    def marks(self) -> list[Grains]:
        """Those of the last reads, and those of the last ones that others did before."""
        reads = [(read, box) for box, kept in self._boxes.items() for read in kept if read]
        self._boxes.clear()
        for read, box in sorted(reads):
            self._put(box, WORD, read.who, read.when)
        return self._marks

    def _put(self, index: Cells, size: int, who: int, when: int) -> None:
        if not self._marks:
            self._marks = [Grains(self._size, np.int64, np.int64) for _ in range(2)]
        self._keep_other(index, size, who)
        self._marks[0].put(index, size, who, when)

    def _keep_other(self, index: Cells, size: int, own: int) -> None:
        """The last reads of these cells become the ones before, where others did them."""
        last, before = self._marks
        cells, unit, marks = index, size, last.coarse(index, size)
        if marks is None:
            cells, unit, marks = bytes_of(index, size), 1, last.fine(index, size)
        elif size > WORD:
            cells, unit = words_of(index, size), WORD
        who, when = marks
        others = (who != own) & (who != 0)
        if others.all():
            before.put(cells, unit, who, when)
        elif others.any():
            cells = cells.index().reshape(who.shape) if isinstance(cells, Block) else cells
            before.put(cells[others], unit, who[others], when[others])
