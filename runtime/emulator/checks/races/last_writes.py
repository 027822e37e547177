"""The last writer of each byte of a CTA's shared memory.

Copies fill the stages of a ring again and again. Such a run of words is kept as one, and its words
are marked only when somebody asks for single ones.
"""

from __future__ import annotations

import numpy as np

from .grains import WORD, Block, Cells, Grains, Runs, Span, row_span


class LastWrites:
    """A mark of each byte says who wrote it and when; all are zero at first. around(span): the run
    that holds all bytes of a span, or None."""

    def __init__(self, size: int):
        self._marks, self._runs = Grains(size, np.int32, np.int64), Runs()
        self._renewed: set[Span] = set()
        self.around = self._runs.around

    def put(self, cells: Cells, size: int, who: int, when: int) -> None:
        """The cells of ``size`` bytes are written."""
        row = row_span(cells)
        if row is not None and self._runs.renew(row, who, when):
            self._renewed.add(row)
            return
        self._settled().put(cells, size, who, when)
        self._runs.put(cells, size, who, when)

    def is_blank(self, cells: Cells, size: int) -> bool:
        """Whether nobody is known to have written the cells."""
        return self._settled().is_blank(cells, size)

    def coarse(self, cells: Cells, size: int) -> list[np.ndarray] | None:
        """Who and when, by words; see `Grains.coarse`."""
        return self._settled().coarse(cells, size)

    def fine(self, cells: Cells, size: int) -> list[np.ndarray]:
        """Who and when, by bytes; see `Grains.fine`."""
        return self._settled().fine(cells, size)

    def _settled(self) -> Grains:
        """The marks of all words, up to date."""
        for low, high in self._renewed:
            run = self._runs.around((low, high))
            assert run is not None  # only `put` drops runs, behind this
            self._marks.put(Block(low // WORD, ((high - low) // WORD,), (1,)), WORD, *run[1:])
        self._renewed.clear()
        return self._marks
