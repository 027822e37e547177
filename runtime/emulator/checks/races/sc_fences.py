"""The order of fence.sc operations, as far as what is read and written reveals it.

PTX ISA §8.9: fence.sc operations are in a single order, in which each synchronizes with the later
ones. Which of two comes first is open, unless a strong access that follows one of them in causality
order precedes, at its place in memory, a strong access that precedes the other: a write precedes a
read of its value and later writes, and a read of an older value precedes the write. Then that order
holds in each run that sees the same values, because in the other order a read would precede the
write that it reads. Only then may a kernel rely on it. Barriers count: a thread that draws a ticket
after one reveals the fences of all threads that arrived there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...interface import Cta, Warp
from .clock import ELSEWHERE, OWN_CLUSTER, OWN_CTA, Message
from .fences_known import NO_FENCES, Fences, FencesKnown, newest
from .known import Known, Lanes
from .lane_times import releasing
from .warp_clock import WarpClock

Place = tuple[int, int]


class _Fence(NamedTuple):
    """A fence that a warp has executed: its number, how far its scope reaches, and what precedes
    it."""

    number: int
    cta: Cta
    reach: int
    message: Message


class ScFences:
    """clock: that of a warp. _number: the number of fences so far; _accessed, _written: by place,
    the fences that an access, or a write, of it follows."""

    def __init__(self, clock: Callable[[Warp], WarpClock]):
        self._clock = clock
        self._number = 0
        self._accessed: dict[Place, Fences] = {}
        self._written: dict[Place, Fences] = {}

    @property
    def any(self) -> bool:
        """Whether a fence.sc has been executed."""
        return self._number > 0

    def reads(self, warp: Warp, lanes: Lanes, place: Place) -> None:
        """A strong read."""
        if self.any:
            self._learn(warp, lanes, self._written.get(place, {}))
            self._leave(self._accessed, warp, lanes, place)

    def writes(self, warp: Warp | None, lanes: Lanes, place: Place) -> None:
        """A strong write; the warp is None for an operation."""
        if self.any and warp is not None:
            lanes = lanes or releasing(warp)
            self._learn(warp, lanes, self._accessed.get(place, {}))
            self._leave(self._accessed, warp, lanes, place)
            self._leave(self._written, warp, lanes, place)

    def _learn(self, warp: Warp, lanes: Lanes, first: Fences) -> None:
        """Lanes follow an access that follows these fences."""
        known = self._clock(warp).known
        if all(newest(each.fences.first, first) == each.fences.first for each in known.of(lanes)):
            return
        for each in known.taking(lanes):
            each.fences = each.fences._replace(first=newest(each.fences.first, first))

    def _leave(self, at: dict[Place, Fences], warp: Warp, lanes: Lanes, place: Place) -> None:
        for known in self._clock(warp).known.of(lanes):
            if known.fences.behind:
                at[place] = newest(at.get(place, {}), known.fences.behind)

    def fenced(self, warp: Warp, lanes: Lanes, reach: int) -> None:
        """Lanes execute fence.sc with a scope that reaches so far."""
        clock = self._clock(warp)
        found = [known.fences.first for known in clock.known.of(lanes)]
        reached = {
            who: fence
            for first in found
            for who, fence in first.items()
            if _distance(fence.cta, warp.cta) <= min(reach, fence.reach)
        }
        for fence in reached.values():
            clock.acquire(fence.message, lanes)
        self._number += 1
        message = clock.release(lanes)
        message.fences = NO_FENCES
        fence = _Fence(self._number, warp.cta, reach, message)
        for known in clock.known.taking(lanes):
            _follow(known, {(warp, lanes, reach): fence}, reached)


def _follow(known: Known, fence: Fences, reached: Fences) -> None:
    """What follows is behind this fence, and so behind what the fence has reached."""
    first = {who: each for who, each in known.fences.first.items() if reached.get(who) is not each}
    known.fences = FencesKnown(newest(known.fences.behind, fence), first)


def _distance(one: Cta, other: Cta) -> int:
    if one is other:
        return OWN_CTA
    return OWN_CLUSTER if one.cluster is other.cluster else ELSEWHERE
