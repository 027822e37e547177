"""The clock of one warp: what it passes on by releases and fences, and takes in by acquires."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .clock import (
    ASYNC,
    ASYNC_GLOBAL,
    ELSEWHERE,
    KNOWN,
    LANES,
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
    merged,
    raise_happened,
)
from .fences_known import NO_FENCES
from .known import Known, Lanes, LanesKnown


def _fenced(rows: Rows) -> Rows:
    """The rows of another cluster, with what is known there behind a proxy fence of global
    memory."""
    fenced = rows.copy()
    np.maximum(fenced[ASYNC_GLOBAL], fenced[KNOWN], out=fenced[ASYNC_GLOBAL])
    return fenced


class WarpClock:
    """The clock of one warp.

    own: its component; time: that of its accesses from now on. known: what its lanes know; alive:
    the lanes that have not exited, as bits. rank: that of its CTA; met: the CTAs that are known to
    have started. _fenced: by row and 1 + the lane, the time of what the lane's own fences cover,
    and at 0 the time up to which lanes had met at the newest fence. _ahead: lanes whose proxy
    fences cover more than the rows; _covering: lanes whose release fences do.
    """

    def __init__(self, domain: Domain, name: str, rank: int, alive: Callable[[], int]):
        self.domain, self._name, self._rank = domain, name, rank
        self.own, self._away = domain.component(name), 0
        self.time = 1
        rows = np.zeros((RELEASED_FAR + 1, domain.width), np.int64)
        rows[: KNOWN + 1, self.own] = 1
        self.known = LanesKnown(domain, rows, alive)
        self.streams: dict[str, list[int]] = {}
        self.met: set[Any] = set()
        self._fenced = np.zeros((RELEASED_FAR + 1, LANES), np.int64)
        self._ahead: set[int] = set()
        self._covering: set[int] = set()
        domain.separate_lanes(self.own)

    def wide(self) -> Rows:
        """What all lanes know: all rows, wide enough for every component of the domain."""
        return self.known.common.wide(self.domain.width)

    def row(self, kind: int) -> np.ndarray:
        """One row, wide enough for every component of the domain."""
        return self.wide()[kind]

    def tick(self) -> None:
        """What follows is not covered by what has been passed on so far."""
        self.time += 1
        for known in self.known.all:
            known.rows[: KNOWN + 1, self.own] = self.time
            if self._away:
                known.rows[: KNOWN + 1, self._away] = self.time

    def away(self) -> int:
        """The warp's component for accesses to the shared memory of other CTAs: a proxy fence
        restricted to .shared::cta does not cover them."""
        if not self._away:
            self._away = self.domain.component(self._name)
            self.domain.away.setdefault(self._rank, []).append(self._away)
            self.domain.lanes[self._away] = self.domain.lanes[self.own]
            for known in self.known.all:
                known.wide(self.domain.width)[: KNOWN + 1, self._away] = self.time
        return self._away

    # -- passing on and taking in --------------------------------------------------------------

    def release(
        self, lanes: Lanes = None, *, relaxed: bool = False, distance: int = OWN_CTA
    ) -> Message:
        """What a release operation of lanes passes on. For a relaxed operation, what an earlier
        fence of these lanes covers whose scope reaches as far as ``distance``.

        What a ``tcgen05.fence`` covers travels along with either.
        """
        message = self._passing_on(lanes, RELEASED + distance if relaxed else None)
        self.tick()
        return message

    def release_narrow(self, lanes: Lanes) -> Message:
        """What a release with the scope of a CTA passes on to another CTA of the cluster: that
        accesses are over; of what they wrote, only what a wider fence covers."""
        message = self._passing_on(lanes, RELEASED_CLUSTER, first=KNOWN)
        self.tick()
        return message

    def releases(
        self, lanes: Lanes, *, relaxed: bool, reach: int
    ) -> tuple[Message, Message, Message]:
        """What a release passes on to its own CTA, to its own cluster and to others, as far as its
        scope, or that of an earlier fence, reaches."""
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
        apart = self._lanes_apart(lanes, covered)
        for lane in apart:
            self.domain.lane(self.own, lane)
        first_known, *others = self.known.of(lanes)
        if covered is not None:
            others += self.known.fenced_by(lanes)
        message = self._part(first_known, covered, first)
        for known in others:
            message.join(self._part(known, covered, first))
        if lanes is not None or apart:
            self._pass_on_by_lane(message.rows, lanes, covered, first)
        return message

    def _lanes_apart(self, lanes: Lanes, covered: int | None) -> Iterable[int]:
        """The lanes whose own accesses a release passes on differently from the accesses of all
        lanes."""
        if lanes is not None:
            return lanes
        return self._ahead if covered is None else self._ahead | self._covering

    def _part(self, known: Known, covered: int | None, first: int) -> Message:
        rows = known.wide(self.domain.width)[:TRAVELLING].copy()
        if covered is not None:
            np.minimum(rows[first:OUT], known.rows[covered], out=rows[first:OUT])
        if covered is None or first > OVER:
            return Message(self.domain, rows, known.others, known.fences)
        return Message(self.domain, rows, *known.covered.get(covered, ({}, NO_FENCES)))

    def _pass_on_by_lane(self, rows: Rows, lanes: Lanes, covered: int | None, first: int) -> None:
        """Passes on what the lanes have done themselves, and what the others did before they
        met."""
        if lanes is not None:
            together = max(known.together for known in self.known.of(lanes))
            limits = np.full(OUT - OVER, together)
            if covered is not None:
                limits[first - OVER :] = np.minimum(together, self._fenced[covered, 0])
            rows[OVER:OUT, self._mine] = np.minimum(rows[OVER:OUT, self._mine], limits[:, None])
        for lane in self._lanes_apart(lanes, covered):
            (known,) = self.known.of((lane,))
            times = np.maximum(known.rows[OVER:OUT, self.own], self._fenced[OVER:OUT, lane + 1])
            if covered is not None:
                part = times[first - OVER :]
                np.minimum(part, self._fenced[covered, lane + 1], out=part)
            component = self.domain.lane(self.own, lane)
            np.maximum(rows[OVER:OUT, component], times, out=rows[OVER:OUT, component])

    @property
    def _mine(self) -> list[int]:
        return [self.own, self._away] if self._away else [self.own]

    def happening(self) -> Message:
        """What an operation passes on without ordering accesses: only that this has happened."""
        message = Message(self.domain, self.known.common.rows[:TRAVELLING]).happening()
        self.tick()
        return message

    def acquire(
        self, message: Message, lanes: Lanes = None, *, relaxed: bool = False,
        distance: int = OWN_CTA,
    ) -> None:  # fmt: skip
        """Lanes take in a message; after a relaxed read only once a fence of theirs follows, whose
        scope must reach as far as the message comes from (``distance``)."""
        if relaxed or lanes is not None:
            self.saw(message)
        for known in self.known.taking(lanes):
            if relaxed:
                known.hold(message, self.domain, distance)
            else:
                known.take_in(message, self.domain, self.own)
        if not relaxed:
            self.tick()
        if self.known.by_lane:
            self.known.settle()

    def learn(self, message: Message) -> None:
        """Takes in what is known of other clusters; the lanes do not meet for it."""
        for known in self.known.all:
            known.others = merged(self.domain, known.others, message)

    def saw(self, message: Message) -> None:
        """Takes in what has happened according to the message, without ordering accesses."""
        rows = message.of(self.domain)
        if rows is not None:
            for known in self.known.all:
                known.rows = raise_happened(known.rows, rows)

    # -- fences --------------------------------------------------------------------------------

    def fence_release(self, lanes: Lanes, reach: int) -> None:
        """``fence.release`` by lanes: their relaxed operations that follow pass on what precedes
        it, as far as its scope reaches."""
        chosen = slice(1, None) if lanes is None else [lane + 1 for lane in lanes]
        touched = self.known.taking(lanes)
        for row in range(RELEASED, RELEASED + reach + 1):
            self._fenced[row, chosen] = self.time
            self._fenced[row, 0] = max(known.together for known in touched)
            for known in touched:
                self._cover(known, row, lanes)
                known.covered[row] = known.others, known.fences
                known.alone = None if lanes is None else reach
        self.known.fenced_anew(lanes, reach)
        if lanes is not None:
            self._covering.update(lanes)
        elif reach == ELSEWHERE:
            self._covering.clear()
        self.tick()
        if self.known.by_lane:
            self.known.settle()

    def _cover(self, known: Known, row: int, lanes: Lanes) -> None:
        """A fence by lanes covers what is known, and of the warp's own accesses those before they
        met."""
        covered = known.wide(self.domain.width)[row]
        before = covered[self._mine]
        np.maximum(covered, known.rows[KNOWN], out=covered)
        if lanes is not None:
            covered[self._mine] = np.maximum(before, known.together)

    def fence_acquire(self, lanes: Lanes, reach: int) -> None:
        """``fence.acquire`` by lanes: what their relaxed reads have seen is taken in, as far as its
        scope reaches."""
        if not any(known.pending for known in self.known.of(lanes)):
            return
        for known in self.known.taking(lanes):
            for distance in range(reach + 1):
                message = known.pending.pop(distance, None)
                if message is not None:
                    known.take_in(message, self.domain, self.own)
        self.tick()
        if self.known.by_lane:
            self.known.settle()

    def fence_proxy(self, lanes: Lanes, rows: tuple[int, ...], *, own_only: bool = False) -> None:
        """``fence.proxy.async`` by lanes: what precedes it is visible to the async proxy, in the
        memories of these rows.

        Of the warp's own accesses it covers those of the lanes, and those of the others before they
        met. own_only: it is restricted to the shared memory of its CTA.
        """
        away = self.domain.away.get(self._rank, []) if own_only else []
        for known in self.known.of(lanes):
            for row in rows:
                elsewhere = known.wide(self.domain.width)[row, away]
                self._cover(known, row, lanes)
                known.rows[row, away] = elsewhere
            if ASYNC_GLOBAL in rows:
                known.others = {number: _fenced(each) for number, each in known.others.items()}
        if lanes is None:
            self._ahead.clear()
        else:
            for row in rows:
                self._fenced[row, [lane + 1 for lane in lanes]] = self.time
            self._ahead.update(lanes)
        self.tick()

    def come_together(self) -> None:
        """All lanes of the warp execute a synchronising instruction."""
        self.known.meet()
        self.known.common.together = self.time
        for lane in self._ahead:
            component = self.domain.lane(self.own, lane)
            column = self.wide()[ASYNC:OUT, component]
            np.maximum(column, self._fenced[ASYNC:OUT, lane + 1], out=column)
        self._ahead.clear()
        self.tick()

    def align(self) -> None:
        """All lanes execute an instruction that synchronises no memory."""
        self.tick()
        self.domain.aligned.setdefault(self.own, []).append(self.time)

    def fence_before(self) -> None:
        """``tcgen05.fence::before_thread_sync``."""
        for known in self.known.all:
            known.rows[OUT, self.own] = self.time
        self.tick()

    # -- operations of the async proxy ---------------------------------------------------------

    def stream(self, kind: str, name: Callable[[], str]) -> Event:
        """The next event of the warp's operations of a kind; only waits order them."""
        if kind not in self.streams:
            self.streams[kind] = [self.domain.component(name()), 0]
        stream = self.streams[kind]
        stream[1] += 1
        return stream[0], stream[1]

    def latest(self, kind: str) -> Event | None:
        """The newest event of a kind; None if there is none."""
        stream = self.streams.get(kind)
        return None if stream is None else (stream[0], stream[1])

    def observe(self, event: Event, lanes: Lanes = None, *, generic: bool) -> None:
        """Lanes have waited for an operation; one of the async proxy needs no proxy fence."""
        self._note(event, self.known.taking(lanes), slice((KNOWN if generic else ASYNC_GLOBAL) + 1))

    def note_released(self, event: Event) -> None:
        """A fence for this event alone: relaxed operations that follow pass it on inside the
        cluster."""
        self._note(event, self.known.all, slice(RELEASED, RELEASED_CLUSTER + 1))

    def _note(self, event: Event, known: list[Known], kinds: slice) -> None:
        component, time = event
        for each in known:
            column = each.wide(self.domain.width)[kinds, component]
            np.maximum(column, time, out=column)
