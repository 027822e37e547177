"""Marks the bytes that a compare-and-swap wrote last."""

from __future__ import annotations

import numpy as np

from ...truth import all_of
from .actor import Actor
from .grains import Cells, bytes_of


class Compared:
    """The bytes that a compare-and-swap wrote last.

    A loop around a compare-and-swap begins with a plain read, which nothing orders: the swap finds
    out whether the value was outdated. So the read and the swap do not race (CUDA's own atomicAdd
    of bf16 pairs is such a loop).
    """

    def __init__(self, size: int):
        self._size = size
        self._last: np.ndarray | None = None

    def excuses(self, index: Cells, size: int, actor: Actor) -> bool:
        """Whether a read of the cells of ``size`` bytes need not be ordered behind their writes."""
        if self._last is None or actor.strong or actor.asynchronous:
            return False
        return all_of(self._last[bytes_of(index, size)])

    def written(self, index: Cells, size: int, actor: Actor) -> None:
        """Notes that the cells have been written."""
        if self._last is None and actor.comparing:
            self._last = np.zeros(self._size, bool)
        if self._last is not None:
            self._last[bytes_of(index, size)] = actor.comparing
