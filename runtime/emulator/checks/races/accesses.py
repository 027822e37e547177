"""Accesses to a region, judged by who is known to have touched it before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...interface import Cta, Launch, Warp
from ...machine.events import Watcher
from ...machine.memory import Region
from ...ptx.lanes import FULL, WARP_SIZE

_WORD = 8
_LANES = np.arange(1, WARP_SIZE + 1, dtype=np.uint8)


class Accesses(Watcher):
    """races: a `tracker.Races`; shadow: the region's marks; owner: whose shared memory it is."""

    def __init__(self, races: Any, launch: Launch, shadow: Any, owner: Cta | None = None):
        self._races, self._launch = races, launch
        self.shadow, self._owner = shadow, owner

    # -- of threads, and of operations as if by threads --------------------------------------

    def loading(self, region: Region, addresses: np.ndarray, index: np.ndarray, size: int) -> None:
        actor = self._races.actor(owner=self._owner)
        if actor is None:
            return
        offsets = region.offsets(addresses)
        actor.lanes = _lanes_of(self._launch.mask, len(offsets))
        if self._launch.strong is not None:
            self._races.places.loaded(region, offsets)
        cells = self.shadow.cells(offsets, size)
        self.shadow.read(cells, size, actor, f"the read of {size} bytes")

    def storing(
        self, region: Region, addresses: np.ndarray, size: int, values: np.ndarray, who: Any
    ) -> None:
        actor = self._races.actor(owner=self._owner)
        if actor is None:
            return
        offsets = region.offsets(addresses)
        actor.lanes = _lanes_of(who and who[1], len(offsets))
        cells, what = self.shadow.cells(offsets, size), f"the write of {size} bytes"
        self.shadow.write(cells, size, actor, what, lambda: _same(region.data, offsets, values))
        if self._launch.strong is not None:
            self._races.places.stored(region, offsets)

    def reading(self, region: Region, at: int, size: int) -> None:
        actor = self._races.actor()
        if actor is not None:
            self.shadow.read(np.arange(at, at + size), 1, actor, f"the read of {size} bytes")

    def writing(self, region: Region, at: int, values: np.ndarray) -> None:
        actor, size = self._races.actor(), len(values)
        if actor is None:
            return
        index, what = np.arange(at, at + size), f"the write of {size} bytes"
        self.shadow.write(index, 1, actor, what, lambda: region.data[at : at + size] == values)

    # -- of engines --------------------------------------------------------------------------

    def reading_box(self, region: Region, view: np.ndarray) -> None:
        actor = self._races.actor()
        if actor is not None:
            index = _offsets_in(region.data, view).reshape(-1)
            self.shadow.read(index, 1, actor, "the read of a tensor copy")

    def writing_box(self, region: Region, view: np.ndarray, same: Callable | None) -> None:
        actor = self._races.actor()
        if actor is not None:
            index = _offsets_in(region.data, view).reshape(-1)
            self.shadow.write(index, 1, actor, "the write of a tensor copy", same)

    def reading_words(
        self, words: np.ndarray, what: str, span: tuple[int, int], partly: bool
    ) -> None:
        actor = self._races.actor()
        if actor is not None:
            self.shadow.read(words, _WORD, actor, what)

    def writing_words(self, words: np.ndarray, span: tuple[int, int]) -> None:
        actor = self._races.actor()
        if actor is not None:
            self.shadow.write(words, _WORD, actor, "an asynchronous write")

    def copying(
        self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int, line: int
    ) -> None:
        actor = self._races.actor()
        if actor is not None:
            cells = (offsets[:, None] + np.arange(size)).reshape(-1)
            self.shadow.write(cells, 1, actor, "the write of cp.async")


def _lanes_of(mask: np.ndarray | None, count: int) -> np.ndarray | None:
    """uint8[count]: 1 + the lanes of a mask; None if it is not of these accesses."""
    if mask is FULL and count == WARP_SIZE:
        return _LANES
    if mask is None or np.count_nonzero(mask) != count:
        return None
    return _LANES[mask]


def _same(data: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> np.ndarray:
    """bool[bytes]: which bytes already have the values that are written."""
    new = np.ascontiguousarray(values).view(np.uint8).reshape(len(offsets), -1)
    old = data[offsets[:, None] + np.arange(new.shape[1])]
    return (old == new).reshape(-1)


def _offsets_in(data: np.ndarray, view: np.ndarray) -> np.ndarray:
    """int64, the shape of the view: where its bytes lie in ``data``."""
    start = view.__array_interface__["data"][0] - data.__array_interface__["data"][0]
    offsets = np.int64(start)
    for axis, (length, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        steps = np.arange(length) * stride
        offsets = offsets + steps.reshape(-1, *(1,) * (view.ndim - axis - 1))
    return offsets
