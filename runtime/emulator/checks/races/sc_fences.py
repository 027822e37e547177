"""The order of fence.sc, as far as what is read and written tells of it.

PTX ISA §8.9: fence.sc operations are in one order, in which each synchronizes with the later ones.
Which of two comes first is open, unless an access behind the one comes, at its place in memory,
before a write ahead of the other: a read of what was there before that write, or an older write.
Then that order holds in each run that sees the same values, and only then a kernel can rely on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...interface import Cta, Warp
from .clock import ELSEWHERE, OWN_CLUSTER, OWN_CTA, Message
from .known import Lanes
from .warp_clock import WarpClock

Place = tuple[int, int]


class _Fence(NamedTuple):
    """One that a warp has executed: how far its scope reaches, and what precedes it."""

    cta: Cta
    reach: int
    message: Message


class ScFences:
    """clock: of a warp. _last: by warp, its newest; _behind: by place, those whose warps have
    accessed it since; _before: by warp, those that come before its next one."""

    def __init__(self, clock: Callable[[Warp], WarpClock]):
        self._clock = clock
        self._last: dict[Warp, _Fence] = {}
        self._behind: dict[Place, dict[Warp, _Fence]] = {}
        self._before: dict[Warp, dict[Warp, _Fence]] = {}

    def reads(self, warp: Warp, place: Place) -> None:
        """A strong read."""
        if warp in self._last:
            self._behind.setdefault(place, {})[warp] = self._last[warp]

    def writes(self, warp: Warp | None, place: Place) -> None:
        """A strong write, None of an operation."""
        behind = self._behind.get(place)
        if warp is not None and behind:
            self._before.setdefault(warp, {}).update(behind)
        if warp is not None:
            self.reads(warp, place)

    def fenced(self, warp: Warp, lanes: Lanes, reach: int) -> None:
        """fence.sc by lanes, of a scope that reaches so far."""
        clock = self._clock(warp)
        for fence in self._before.pop(warp, {}).values():
            if _distance(fence.cta, warp.cta) <= min(reach, fence.reach):
                clock.acquire(fence.message, lanes)
        self._last[warp] = _Fence(warp.cta, reach, clock.release(lanes))


def _distance(one: Cta, other: Cta) -> int:
    if one is other:
        return OWN_CTA
    return OWN_CLUSTER if one.cluster is other.cluster else ELSEWHERE
