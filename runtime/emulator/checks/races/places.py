"""What strong accesses to a place in memory pass on from its writers to its readers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...interface import EngineOp, Launch, Warp
from .clock import REACH
from .known import Lanes
from .lane_times import releasing
from .releases import Published
from .sc_fences import Place, ScFences

ACQUIRES = ("acquire", "acq_rel")
RELEASES = ("release", "acq_rel")


class Places:
    """By region and offset, what the last strong store left there. races: a `tracker.Races`;
    _released: what warps have released there."""

    def __init__(self, races: Any, launch: Launch):
        self._races, self._launch = races, launch
        self._locations: dict[Place, Published] = {}
        self._released: dict[Warp, dict[tuple[Place, Lanes], Published]] = {}
        self._fences = ScFences(races.clock)

    def loaded(self, region: object, offsets: np.ndarray, lanes: np.ndarray | None) -> None:
        """A strong load by a warp: its lanes acquire what the places that they read pass on, or
        hold it for a later fence. lanes: 1 + the lane of each offset."""
        warp = self._launch.current_warp
        if warp is None or self._races.operation is not None:
            return
        everyone = releasing(warp)
        places = dict.fromkeys(offsets.tolist())
        for offset in places:
            key = id(region), offset
            published = self._locations.get(key)
            if published is None and not self._fences.any:
                continue
            readers = everyone
            if lanes is not None and len(places) > 1:
                readers = tuple((lanes[offsets == offset].astype(int) - 1).tolist())
            if published is not None:
                self._take_in(warp, readers, published)
            self._fences.reads(warp, readers, key)

    def _take_in(self, warp: Warp, lanes: Lanes, published: Published) -> None:
        distance, strong = published.distance(warp.cta), self._launch.strong
        message = published.messages[distance]
        if distance > REACH[strong.scope]:
            self._races.clock(warp).saw(message)
            return
        relaxed = strong.order not in ACQUIRES
        self._races.clock(warp).acquire(message, lanes, relaxed=relaxed, distance=distance)

    def fenced(self, warp: Warp, lanes: Lanes, scope: str) -> None:
        """Lanes execute fence.sc."""
        self._fences.fenced(warp, lanes, REACH[scope])

    def stored(self, region: object, offsets: np.ndarray, lanes: np.ndarray | None) -> None:
        """A strong store by a warp, or a late one: the places pass on what it releases, and if
        several lanes store to a place, what the last one releases. lanes: 1 + the lane of each
        offset."""
        places = dict(zip(offsets.tolist(), range(len(offsets)), strict=True))
        if lanes is None or len(places) == 1 or self._launch.strong.updating:
            self._put(region, list(places), None)
            return
        for offset, last in places.items():
            self._put(region, [offset], (int(lanes[last]) - 1,))

    def _put(self, region: object, offsets: list[int], lanes: tuple[int, ...] | None) -> None:
        """lanes: those that store, None for all that execute the instruction."""
        published = self._published(lanes)
        if published is None:
            return
        for offset in offsets:
            key = (id(region), offset)
            self._fences.writes(self._launch.current_warp, lanes, key)
            left = self._with_own_releases(key, lanes, published)
            earlier = self._locations.get(key)
            if self._launch.strong.updating and earlier is not None:
                left = left.continued(earlier)
            self._locations[key] = left

    def _with_own_releases(self, key: Place, lanes: Lanes, published: Published) -> Published:
        """A release by a thread and a later strong write of the same thread to the place form a
        release pattern (PTX ISA §8.8): the write passes on what the thread had released before."""
        warp = self._launch.current_warp
        if warp is None or self._races.operation is not None:
            return published
        who = key, lanes or releasing(warp)
        if self._launch.strong.order in RELEASES:
            self._released.setdefault(warp, {})[who] = published
            return published
        earlier = self._released.get(warp, {}).get(who)
        return published if earlier is None else published.continued(earlier)

    def forget(self, warp: Warp) -> None:
        """Forgets a warp that has exited."""
        self._released.pop(warp, None)

    def _published(self, lanes: tuple[int, ...] | None) -> Published | None:
        """A late store releases what its warp knew when it was issued."""
        strong, op, warp = self._launch.strong, self._races.operation, self._launch.current_warp
        releases = strong.order in RELEASES
        if op is not None:
            return _published_late(op) if releases and op.commits else None
        if warp is None:
            return None
        messages = self._races.clock(warp).releases(
            lanes or releasing(warp), relaxed=not releases, reach=REACH[strong.scope]
        )
        return Published(warp.cta, messages)


def _published_late(op: EngineOp) -> Published | None:
    meant = op.marks
    if meant is None or meant.event is None or meant.issuer is None:
        return None
    message = meant.clock.copy()
    message.note(meant.event, generic=op.generic)
    return Published(meant.issuer, (message, message, message))
