"""The strong write of another agent that preceded the last one of each byte.

Strong writes, such as those of sums of several CTAs, do not race with each other, and nothing
orders them. An ordinary load must be ordered behind each of them, and not only behind the last one,
which may be the reader's own. An `atom` that returns a value has observed the writes before it, and
whoever is ordered behind the `atom` is ordered behind them (PTX ISA §8.9.5). So the last of several
threads that draw tickets may reset their counter.
"""

from __future__ import annotations

import numpy as np

from ...truth import any_of
from .actor import Actor
from .grains import Cells, Grains, bytes_of
from .last_writes import LastWrites


class EarlierWrites:
    """marks: who wrote and when, and 1 + the lane; None as long as no byte has had two writers."""

    def __init__(self, size: int):
        self._size = size
        self.marks: Grains | None = None

    def beside(self, last: Grains, actor: Actor) -> tuple[Grains, ...]:
        """The marks of writes behind which the agent's access must be ordered as well."""
        return (last,) if self.marks is None or actor.strong else (last, self.marks)

    def observed(self, index: Cells, size: int) -> None:
        """Notes that an `atom` returns what was written to these cells, and replaces it."""
        if self.marks is not None:
            self.marks.put(index, size, 0, 0, 0)

    def note(
        self, last: Grains | LastWrites, lanes: np.ndarray, index: Cells, size: int, writer: int
    ) -> None:
        """Notes that this strong writer (negative) replaces the marks of these cells in
        ``last``."""
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
