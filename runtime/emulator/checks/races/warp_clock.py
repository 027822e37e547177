"""The clock of one warp: what it passes on by releases and fences, and takes in by acquires."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .clock import (
    ASYNC_GLOBAL,
    ELSEWHERE,
    KNOWN,
    OUT,
    OVER,
    OWN_CLUSTER,
    OWN_CTA,
    RELEASED,
    RELEASED_CLUSTER,
    RELEASED_FAR,
    TRAVELLING,
    Domain,
    Event,
    Message,
    Rows,
    fitted,
    merged,
    raise_happened,
    raise_to,
)

Lanes = tuple[int, ...] | None
"""Lanes that execute an instruction, None for all."""
LANES = 34
"""Numbers of lanes in tables: 1 + the lane, and what stands for none and for all."""


def _fenced(rows: Rows) -> Rows:
    """Of another cluster: what is known there is behind a proxy fence of global memory."""
    fenced = rows.copy()
    np.maximum(fenced[ASYNC_GLOBAL], fenced[KNOWN], out=fenced[ASYNC_GLOBAL])
    return fenced


class WarpClock:
    """The clock of one warp.

    own: its component; time: of its accesses from now on; together: up to when all lanes know the
    accesses of the others; rank: of its CTA; initialised: barriers whose initialisation is known to
    come before; met: CTAs that are known to have started; _fenced: by row and 1 + the lane, the
    time of what its own fences cover, at 0 up to when lanes had met at the newest; _ahead: lanes
    whose proxy fences cover more than the rows.
    """

    def __init__(self, domain: Domain, name: Callable[[], str], rank: int = 0):
        self.domain, self._name, self._rank = domain, name, rank
        self.own, self._away = domain.component(name), 0
        self.time = 1
        self.rows = np.zeros((RELEASED_FAR + 1, domain.width), np.int64)
        self.rows[: KNOWN + 1, self.own] = 1
        self.others: dict[int, Rows] = {}
        self.streams: dict[str, list[int]] = {}
        self.together = 0
        self.initialised: set[Any] = set()
        self.met: set[Any] = set()
        self._pending: dict[int, Message] = {}
        self._fenced = np.zeros((RELEASED_FAR + 1, LANES), np.int64)
        self._ahead: set[int] = set()
        domain.lanes[self.own] = np.zeros(LANES, np.int64)

    def wide(self) -> Rows:
        """All rows, wide enough for every component of the domain."""
        self.rows = fitted(self.rows, self.domain.width)
        return self.rows

    def row(self, kind: int) -> np.ndarray:
        """One row, wide enough for every component of the domain."""
        return self.wide()[kind]

    def tick(self) -> None:
        """What follows is not covered by what has been passed on so far."""
        self.time += 1
        self.rows[: KNOWN + 1, self.own] = self.time
        if self._away:
            self.rows[: KNOWN + 1, self._away] = self.time

    def away(self) -> int:
        """Its component for accesses to the shared memory of other CTAs: a proxy fence restricted
        to .shared::cta does not cover them."""
        if not self._away:
            self._away = self.domain.component(self._name)
            self.domain.away.setdefault(self._rank, []).append(self._away)
            self.domain.lanes[self._away] = self.domain.lanes[self.own]
            self.wide()[: KNOWN + 1, self._away] = self.time
        return self._away

    # -- passing on and taking in --------------------------------------------------------------

    def release(
        self, lanes: Lanes = None, *, relaxed: bool = False, distance: int = OWN_CTA
    ) -> Message:
        """What a release operation of lanes passes on; of a relaxed one what an earlier fence of
        theirs covers, whose scope must reach as far as ``distance``.

        What a ``tcgen05.fence`` covers travels along with either.
        """
        message = self._passing_on(lanes, RELEASED + distance if relaxed else None)
        self.tick()
        return message

    def release_narrow(self, lanes: Lanes) -> Message:
        """What a release of the scope of a CTA passes on to another CTA of the cluster: that
        accesses are over; of what they wrote only what a wider fence covers."""
        message = self._passing_on(lanes, RELEASED_CLUSTER, first=KNOWN)
        self.tick()
        return message

    def releases(
        self, lanes: Lanes, *, relaxed: bool, reach: int
    ) -> tuple[Message, Message, Message]:
        """What a release passes on to its own CTA, its own cluster and to others, which its scope,
        or that of an earlier fence, must reach."""
        messages: list[Message] = []
        for distance in (OWN_CTA, OWN_CLUSTER, ELSEWHERE):
            if messages and not relaxed and distance <= reach:
                messages.append(messages[-1])
            else:
                covered = relaxed or distance > reach
                messages.append(self._passing_on(lanes, RELEASED + distance if covered else None))
        self.tick()
        return messages[0], messages[1], messages[2]

    def _passing_on(self, lanes: Lanes, covered: int | None, first: int = OVER) -> Message:
        if lanes is not None or self._ahead:
            for lane in self._ahead if lanes is None else lanes:
                self.domain.lane(self.own, lane)
        rows = self.wide()[:TRAVELLING].copy()
        if covered is not None:
            np.minimum(rows[first:OUT], self.rows[covered], out=rows[first:OUT])
        if lanes is not None or self._ahead:
            self._tell_lanes_apart(rows, lanes, covered, first)
        return Message(self.domain, rows, self.others)

    def _tell_lanes_apart(self, rows: Rows, lanes: Lanes, covered: int | None, first: int) -> None:
        """What lanes have done themselves, and of the others what came before they met."""
        own = self.rows[OVER:OUT, self.own]
        if lanes is not None:
            limits = np.full(len(own), self.together)
            if covered is not None:
                limits[first - OVER :] = np.minimum(self.together, self._fenced[covered, 0])
            rows[OVER:OUT, self._mine] = np.minimum(rows[OVER:OUT, self._mine], limits[:, None])
        for lane in self._ahead if lanes is None else lanes:
            times = np.maximum(own, self._fenced[OVER:OUT, lane + 1])
            if covered is not None:
                part = times[first - OVER :]
                np.minimum(part, self._fenced[covered, lane + 1], out=part)
            component = self.domain.lane(self.own, lane)
            np.maximum(rows[OVER:OUT, component], times, out=rows[OVER:OUT, component])

    @property
    def _mine(self) -> list[int]:
        return [self.own, self._away] if self._away else [self.own]

    def happening(self) -> Message:
        """What an operation passes on that orders no accesses: only that this has happened."""
        message = Message(self.domain, self.rows[:TRAVELLING]).happening()
        self.tick()
        return message

    def acquire(self, message: Message, *, relaxed: bool = False, distance: int = OWN_CTA) -> None:
        """Take in a message; after a relaxed read only once a fence follows, whose scope must
        reach as far as it comes from (``distance``)."""
        if relaxed:
            self._hold(message, distance)
            return
        if message.domain is self.domain:
            self.rows = raise_to(self.rows, message.rows)
            if self.own < message.rows.shape[1]:
                self.together = max(self.together, int(message.rows[KNOWN, self.own]))
        self.tick()
        self.others = merged(self.domain, self.others, message)

    def learn(self, message: Message) -> None:
        """Take in what is known of other clusters; the lanes don't meet for it."""
        self.others = merged(self.domain, self.others, message)

    def saw(self, message: Message) -> None:
        """What the message says has happened, and nothing that orders accesses."""
        if message.domain is self.domain:
            self.rows = raise_happened(self.rows, message.rows)

    def _hold(self, message: Message, distance: int) -> None:
        if message.domain is self.domain:
            self.saw(message)
            part = self.rows[OUT, : message.rows.shape[1]]
            np.maximum(part, message.rows[OUT], out=part)
        self._pending.setdefault(distance, Message(self.domain)).join(message)

    # -- fences --------------------------------------------------------------------------------

    def fence_release(self, lanes: Lanes, reach: int) -> None:
        """``fence.release`` by lanes: relaxed operations of theirs that follow pass on what
        precedes it, as far as its scope reaches."""
        chosen = slice(1, None) if lanes is None else [lane + 1 for lane in lanes]
        for row in range(RELEASED, RELEASED + reach + 1):
            before = self.rows[row, self._mine]
            np.maximum(self.rows[row], self.rows[KNOWN], out=self.rows[row])
            self._fenced[row, chosen], self._fenced[row, 0] = self.time, self.together
            if lanes is not None:
                self.rows[row, self._mine] = np.maximum(before, self.together)
        self.tick()

    def fence_acquire(self, reach: int) -> None:
        """``fence.acquire``: what relaxed reads have seen is taken in, as far as its scope
        reaches."""
        for distance in range(reach + 1):
            message = self._pending.pop(distance, None)
            if message is not None:
                self.acquire(message)

    def fence_proxy(self, lanes: Lanes, rows: tuple[int, ...], *, own_only: bool = False) -> None:
        """``fence.proxy.async`` by lanes: what precedes it is visible to the async proxy, in the
        memories of these rows.

        Of the warp's own accesses it covers those of the lanes, and those of others before they
        met. own_only: it is restricted to the shared memory of its CTA.
        """
        others = self.domain.away.get(self._rank, []) if own_only else []
        for row in rows:
            covered = self.wide()[row]
            before, elsewhere = covered[self._mine], covered[others]
            np.maximum(covered, self.rows[KNOWN], out=covered)
            if lanes is not None:
                covered[self._mine] = np.maximum(before, self.together)
                self._fenced[row, [lane + 1 for lane in lanes]] = self.time
            if others:
                covered[others] = elsewhere
        if lanes is None:
            self._ahead.clear()
        else:
            self._ahead.update(lanes)
        if ASYNC_GLOBAL in rows:
            self.others = {number: _fenced(known) for number, known in self.others.items()}
        self.tick()

    def come_together(self) -> None:
        """All lanes of the warp execute a synchronising instruction."""
        self.together = self.time
        self.tick()

    def fence_before(self) -> None:
        """``tcgen05.fence::before_thread_sync``."""
        self.rows[OUT, self.own] = self.time
        self.tick()

    # -- operations of the async proxy ---------------------------------------------------------

    def stream(self, kind: str, name: Callable[[], str]) -> Event:
        """The next event of the warp's operations of a kind; they are ordered by waits alone."""
        if kind not in self.streams:
            self.streams[kind] = [self.domain.component(name), 0]
        stream = self.streams[kind]
        stream[1] += 1
        return stream[0], stream[1]

    def latest(self, kind: str) -> Event | None:
        """The newest event of a kind, None if there is none."""
        stream = self.streams.get(kind)
        return None if stream is None else (stream[0], stream[1])

    def observe(self, event: Event, *, generic: bool) -> None:
        """The warp has waited for an operation; one of the async proxy needs no proxy fence."""
        self._note(event, slice(KNOWN + 1 if generic else ASYNC_GLOBAL + 1))

    def note_released(self, event: Event) -> None:
        """A fence for this event alone: relaxed operations that follow pass it on, inside the
        cluster."""
        self._note(event, slice(RELEASED, RELEASED_CLUSTER + 1))

    def _note(self, event: Event, kinds: slice) -> None:
        component, time = event
        self.rows = fitted(self.rows, self.domain.width)
        column = self.rows[kinds, component]
        np.maximum(column, time, out=column)
