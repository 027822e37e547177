"""Accesses to a region, judged by who is known to have touched it before."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...interface import Cta, Launch, Warp
from ...machine.events import Watcher
from ...machine.memory import Region
from ...machine.shared_access import Words
from ...ptx.lanes import FULL, TOGETHER, WARP_SIZE
from .clock import CP_ASYNC
from .grains import WORD, Block, Cells
from .lane_times import EVERYONE
from .lanes_of_bytes import require_agreement

_LANES = np.arange(1, WARP_SIZE + 1, dtype=np.uint8)


class Accesses(Watcher):
    """Judges the accesses to one region. races: the launch's `tracker.Races`; shadow: the region's
    marks; owner: the CTA whose shared memory it is."""

    def __init__(self, races: Any, launch: Launch, shadow: Any, owner: Cta | None = None):
        self._races, self._launch = races, launch
        self.shadow, self._owner = shadow, owner

    # -- of threads, and of operations as if by threads --------------------------------------

    def loading(self, region: Region, addresses: np.ndarray, index: np.ndarray, size: int) -> None:
        offsets = region.offsets(addresses)
        lanes = _lanes_of(self._launch.mask, len(offsets))
        if self._launch.strong is not None:
            self._races.places.loaded(region, offsets, lanes)
        actor = self._races.actor(owner=self._owner)
        if actor is None:
            return
        actor.incoherent, what = self._launch.incoherent, f"the read of {size} bytes"
        for chosen, part in self._races.parted(actor, lanes):
            read = offsets if chosen is None else offsets[chosen]
            self.shadow.read(*_cells(region, read, size), part, what)

    def storing(
        self, region: Region, addresses: np.ndarray, size: int, values: np.ndarray, who: Any
    ) -> None:
        actor = self._races.actor(owner=self._owner)
        if actor is None:
            return
        offsets, what = region.offsets(addresses), f"the write of {size} bytes"
        lanes = _lanes_of(who and who[1], len(offsets))
        if not actor.strong and len(offsets) > 1:
            require_agreement(offsets, values, lanes, what)
        for chosen, part in self._races.parted(actor, lanes):
            own = offsets if chosen is None else offsets[chosen]
            same = partial(_same, region.data, offsets, values, chosen)
            self.shadow.write(*_cells(region, own, size), part, what, same)
        if self._launch.strong is not None:
            self._races.places.stored(region, offsets, lanes)

    def reading(self, region: Region, at: int, size: int) -> None:
        actor = self._races.actor(owner=self._owner)
        if actor is not None:
            self.shadow.read(*_run(at, size), actor, f"the read of {size} bytes")

    def writing(self, region: Region, at: int, values: np.ndarray) -> None:
        actor, size = self._races.actor(owner=self._owner), len(values)
        if actor is None:
            return
        cells, what = _run(at, size), f"the write of {size} bytes"
        self.shadow.write(*cells, actor, what, lambda: region.data[at : at + size] == values)

    # -- of engines --------------------------------------------------------------------------

    def reading_box(self, region: Region, at: int, view: np.ndarray) -> None:
        actor = self._races.engine(self._owner)
        if actor is not None:
            cells = _cells_in(at, view)
            self.shadow.read(*cells, actor, "the read of a tensor copy")

    def writing_box(self, region: Region, at: int, view: np.ndarray, same: Callable | None) -> None:
        actor = self._races.engine(self._owner)
        if actor is not None:
            cells = _cells_in(at, view)
            self.shadow.write(*cells, actor, "the write of a tensor copy", same)

    def reading_words(self, words: Words, what: str, span: tuple[int, int], partly: bool) -> None:
        actor = self._races.engine(self._owner)
        if actor is not None:
            self.shadow.read(_as_cells(words), WORD, actor, what, span)

    def writing_words(self, words: Words, span: tuple[int, int]) -> None:
        actor = self._races.engine(self._owner)
        if actor is not None:
            self.shadow.write(_as_cells(words), WORD, actor, "an asynchronous write")
        self.shadow.superseded(words, span)

    def copying(
        self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int, line: int
    ) -> None:
        actor = self._races.actor(owner=self._owner)
        if actor is not None:
            actor.lanes = _lanes_of(mask, len(offsets))
            self.shadow.write(*_shifted(offsets, size), actor, "the write of cp.async")

    def copy_awaited(self, warp: Warp, lanes: np.ndarray, offsets: np.ndarray, size: int) -> None:
        clock = self._races.clock(warp)
        stream = clock.latest(CP_ASYNC)
        if stream is not None:
            cells = _shifted(offsets, size)
            self.shadow.awaited(*cells, _LANES[lanes], stream[0], (clock.own, clock.time))


def _lanes_of(mask: np.ndarray | None, count: int) -> np.ndarray | None:
    """uint8[count]: 1 + the number of each lane in a mask; None if the mask does not belong to
    these accesses."""
    if mask is FULL and count == WARP_SIZE:
        return _LANES
    if mask is TOGETHER:
        return np.full(count, EVERYONE, np.uint8)
    if mask is None or np.count_nonzero(mask) != count:
        return None
    return _LANES[mask]


def _same(
    data: np.ndarray, offsets: np.ndarray, values: np.ndarray, chosen: np.ndarray | None = None
) -> np.ndarray:
    """bool[bytes] of the chosen accesses (None for all): which bytes already hold the values that
    are written, or get them from other lanes of the same instruction."""
    new = np.ascontiguousarray(values).view(np.uint8).reshape(len(offsets), -1)
    same = data[offsets[:, None] + np.arange(new.shape[1])] == new
    if chosen is not None:
        same = same[chosen] | np.isin(offsets[chosen], offsets[~chosen])[:, None]
    return same.reshape(-1)


def _cells(region: Region, offsets: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """The cells of accesses of `size` bytes, and their size. The size is 1 if the region does not
    start at a multiple of `size`."""
    if region.base % size:
        return (offsets[:, None] + np.arange(size)).reshape(-1), 1
    return _shifted(offsets, size)


def _as_cells(words: Words) -> Cells:
    if isinstance(words, slice):
        return Block(words.start, (words.stop - words.start,), (1,))
    return words


def _shifted(offsets: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    return offsets >> (size.bit_length() - 1), size


def _run(at: int, size: int) -> tuple[np.ndarray, int]:
    """The cells of a run of consecutive bytes."""
    unit = 1 if (at | size) % WORD else WORD
    return np.arange(at // unit, (at + size) // unit), unit


def _cells_in(start: int, view: np.ndarray) -> tuple[Cells, int]:
    """The cells of a view of a memory's bytes from a start, whose last axis is dense."""
    block = _words_in(start, view.shape, view.strides)
    return (block, WORD) if block else (Block(start, view.shape, view.strides).index(), 1)


@lru_cache(maxsize=1 << 14)
def _words_in(start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Block | None:
    """The words of a view that starts at a byte; None if it does not consist of whole words."""
    *outer, inner = strides
    if inner != 1 or any(each % WORD for each in (start, shape[-1], *outer)):
        return None
    words = (*shape[:-1], shape[-1] // WORD)
    return Block(start // WORD, words, (*(step // WORD for step in outer), 1))
