"""The strong write of another agent that the last one of each byte came behind.

Strong writes, as the sums of several CTAs, race with no other, and nothing orders them. Who reads
them by an ordinary load must be ordered behind each, not only behind the last one, which may be its
own. An `atom` that returns a value has observed those before it, and whoever is ordered behind it
is behind them (PTX ISA §8.9.5): so the last of several that draw tickets may reset their counter.
"""

from __future__ import annotations

import numpy as np

from ...truth import any_of
from .actor import Actor
from .grains import Cells, Grains, bytes_of
from .last_writes import LastWrites


class EarlierWrites:
    """marks: who wrote and when, and 1 + the lane; None as long as no byte has had two."""

    def __init__(self, size: int):
        self._size = size
        self.marks: Grains | None = None

    def beside(self, last: Grains, actor: Actor) -> tuple[Grains, ...]:
        """Marks of writes that what the actor does must be ordered behind."""
        return (last,) if self.marks is None or actor.strong else (last, self.marks)

    def observed(self, index: Cells, size: int) -> None:
        """An atom returns what was written to these cells, and replaces it."""
        if self.marks is not None:
            self.marks.put(index, size, 0, 0, 0)

    def note(
        self, last: Grains | LastWrites, lanes: np.ndarray, index: Cells, size: int, writer: int
    ) -> None:
        """This strong writer (negative) replaces the marks of these cells in ``last``."""
        if last.is_blank(index, size):
            return
        who, when = last.fine(index, size)
        other = (who < 0) & (who != writer)
        if not any_of(other):
            return
        if self.marks is None:
            self.marks = Grains(self._size, np.int64, np.int64, np.uint8)
        at = bytes_of(index, size)[other]
        self.marks.put(at, 1, who[other], when[other], lanes[at])
