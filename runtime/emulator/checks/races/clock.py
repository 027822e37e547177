"""Vector clocks: what a warp, or an operation that it issued, knows of everybody else's accesses.

Within a cluster every agent is a component: a warp, the copies that signal one mbarrier, or the
operations of one kind that a warp has issued. An event is a component and a time; an agent knows
it if its entry for the component has reached the time. A clock has these rows of entries:

- HAPPENED: done before in every order of events, whatever the memory model makes of it;
- OVER: accesses that are over, so that their bytes of shared memory may be overwritten;
- KNOWN: ordered before, for the generic proxy;
- ASYNC: also behind a proxy fence of shared memory, so visible there to the async proxy;
- ASYNC_GLOBAL: the same in global memory;
- OUT: tensor memory accesses behind ``tcgen05.fence::before_thread_sync`` or a commit;
- RELEASED: what a release fence covers, all that a relaxed operation passes on inside its CTA;
- RELEASED_CLUSTER, RELEASED_FAR: the same by fences whose scope reaches the other CTAs of the
  cluster, and other clusters.

Those up to OUT travel in messages. What is known of other clusters travels along by their number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

HAPPENED, OVER, KNOWN, ASYNC, ASYNC_GLOBAL, OUT, RELEASED, RELEASED_CLUSTER, RELEASED_FAR = range(9)
TRAVELLING = OUT + 1
OWN_CTA, OWN_CLUSTER, ELSEWHERE = range(3)
"""How far a scope reaches, or how far from each other two threads are."""
REACH = {"cta": OWN_CTA, "cluster": OWN_CLUSTER, "gpu": ELSEWHERE, "sys": ELSEWHERE}
_STEP = 32

Event = tuple[int, int]
"""A component and a time."""
Rows = np.ndarray


class Domain:
    """The components of one cluster. number: the cluster's, unique in the launch; away: by CTA
    rank, those of its warps for accesses to the shared memory of other CTAs."""

    def __init__(self, number: int, expected: int):
        self.number = number
        self.away: dict[int, list[int]] = {}
        self.width = -(-(expected + 1) // _STEP) * _STEP
        self._names: list[Callable[[], str]] = [lambda: "nobody"]

    def component(self, name: Callable[[], str]) -> int:
        """A new component; ``name()`` completes "the write by …"."""
        self._names.append(name)
        if len(self._names) > self.width:
            self.width += _STEP
        return len(self._names) - 1

    def is_away(self, component: int) -> bool:
        """Whether it stands for accesses of a warp to the memory of other CTAs."""
        return any(component in components for components in self.away.values())

    def name(self, component: int) -> str:
        """Who the component is."""
        return self._names[component]()


def fitted(rows: Rows, width: int) -> Rows:
    """``rows`` with at least ``width`` entries a row; entries behind the old end are zero."""
    if rows.shape[1] >= width:
        return rows
    wider = np.zeros((len(rows), width), np.int64)
    wider[:, : rows.shape[1]] = rows
    return wider


def _raise_to(rows: Rows, other: Rows) -> Rows:
    """Entry-wise maximum of the travelling rows, in place where the widths allow."""
    rows = fitted(rows, other.shape[1])
    part = rows[:TRAVELLING, : other.shape[1]]
    np.maximum(part, other, out=part)
    return rows


def _raise_happened(rows: Rows, other: Rows) -> Rows:
    """The same of the row HAPPENED alone."""
    rows = fitted(rows, other.shape[1])
    part = rows[HAPPENED, : other.shape[1]]
    np.maximum(part, other[HAPPENED], out=part)
    return rows


class Message:
    """What a release passes on. rows: int64[6, width]; others: rows by cluster number."""

    __slots__ = ("domain", "others", "rows")

    def __init__(self, domain: Domain, rows: Rows | None = None, others: dict | None = None):
        self.domain = domain
        self.rows = np.zeros((TRAVELLING, domain.width), np.int64) if rows is None else rows
        self.others = others or {}

    def note(self, event: Event, *, generic: bool) -> None:
        """An operation is complete; one of the async proxy needs no proxy fence."""
        component, time = event
        self.rows = fitted(self.rows, self.domain.width)
        column = self.rows[: KNOWN + 1 if generic else TRAVELLING, component]
        np.maximum(column, time, out=column)

    def happened(self, component: int, time: int) -> None:
        """Something has come that orders no accesses."""
        self.rows = fitted(self.rows, self.domain.width)
        self.rows[HAPPENED, component] = max(self.rows[HAPPENED, component], time)

    def join(self, other: Message) -> None:
        """Add what another message of the same cluster, or of another one, passes on."""
        if other.domain is self.domain:
            self.rows = _raise_to(self.rows, other.rows)
        self.others = _merged(self, other)

    def copy(self) -> Message:
        return Message(self.domain, self.rows.copy(), dict(self.others))

    def saw(self, other: Message) -> None:
        """Add what has happened by another message of the same cluster, and nothing that orders
        accesses."""
        if other.domain is self.domain:
            self.rows = _raise_happened(self.rows, other.rows)

    def happening(self) -> Message:
        """Of it only what has happened, nothing that orders accesses."""
        message = Message(self.domain, np.zeros(self.rows.shape, np.int64))
        message.rows[HAPPENED] = self.rows[HAPPENED]
        return message


def joined(messages: list[Message]) -> Message | None:
    """One message for all of them, which it uses up; None if there are none."""
    if not messages:
        return None
    first, *others = messages
    for message in others:
        first.join(message)
    return first


def _merged(own: Message | WarpClock, other: Message) -> dict:
    """What is known of third clusters, by number."""
    if not other.others and other.domain is own.domain:
        return own.others
    merged, found = dict(own.others), dict(other.others)
    if other.domain is not own.domain:
        found[other.domain.number] = other.rows
    for number, rows in found.items():
        if number != own.domain.number:
            known = merged.get(number)
            merged[number] = rows if known is None else _raise_to(known.copy(), rows)
    return merged


def _fenced(rows: Rows) -> Rows:
    """Of another cluster: what is known there is behind a proxy fence of global memory."""
    fenced = rows.copy()
    np.maximum(fenced[ASYNC_GLOBAL], fenced[KNOWN], out=fenced[ASYNC_GLOBAL])
    return fenced


class WarpClock:
    """The clock of one warp.

    own: its component; time: of its accesses from now on; together: when its lanes last executed a
    synchronising instruction, or took in a message, which may be of one of them; rank: of its CTA;
    initialised: barriers whose initialisation is known to come before; met: CTAs that are known to
    have started.
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
            self.wide()[: KNOWN + 1, self._away] = self.time
        return self._away

    # -- passing on and taking in --------------------------------------------------------------

    def release(self, *, relaxed: bool = False, distance: int = OWN_CTA) -> Message:
        """What a release operation passes on; of a relaxed one what an earlier fence covers, whose
        scope must reach as far as ``distance``.

        What a ``tcgen05.fence`` covers travels along with either.
        """
        message = self._passing_on(RELEASED + distance if relaxed else None)
        self.tick()
        return message

    def release_narrow(self) -> Message:
        """What a release of the scope of a CTA passes on to another CTA of the cluster: that
        accesses are over; of what they wrote only what a wider fence covers."""
        message = self._passing_on(RELEASED_CLUSTER, first=KNOWN)
        self.tick()
        return message

    def releases(self, *, relaxed: bool, reach: int) -> tuple[Message, Message, Message]:
        """What a release passes on to its own CTA, its own cluster and to others, which its scope,
        or that of an earlier fence, must reach."""
        messages: list[Message] = []
        for distance in (OWN_CTA, OWN_CLUSTER, ELSEWHERE):
            if messages and not relaxed and distance <= reach:
                messages.append(messages[-1])
            else:
                covered = relaxed or distance > reach
                messages.append(self._passing_on(RELEASED + distance if covered else None))
        self.tick()
        return messages[0], messages[1], messages[2]

    def _passing_on(self, covered: int | None, first: int = OVER) -> Message:
        rows = self.rows[:TRAVELLING].copy()
        if covered is not None:
            np.minimum(rows[first:OUT], self.rows[covered], out=rows[first:OUT])
        return Message(self.domain, rows, self.others)

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
        self.come_together()
        if message.domain is self.domain:
            self.rows = _raise_to(self.rows, message.rows)
        self.others = _merged(self, message)

    def learn(self, message: Message) -> None:
        """Take in what is known of other clusters; the lanes don't meet for it."""
        self.others = _merged(self, message)

    def saw(self, message: Message) -> None:
        """What the message says has happened, and nothing that orders accesses."""
        if message.domain is self.domain:
            self.rows = _raise_happened(self.rows, message.rows)

    def _hold(self, message: Message, distance: int) -> None:
        if message.domain is self.domain:
            self.saw(message)
            part = self.rows[OUT, : message.rows.shape[1]]
            np.maximum(part, message.rows[OUT], out=part)
        self._pending.setdefault(distance, Message(self.domain)).join(message)

    # -- fences --------------------------------------------------------------------------------

    def fence_release(self, reach: int) -> None:
        """``fence.release``: relaxed operations that follow pass on what precedes it, as far as
        its scope reaches."""
        for row in range(RELEASED, RELEASED + reach + 1):
            np.maximum(self.rows[row], self.rows[KNOWN], out=self.rows[row])
        self.tick()

    def fence_acquire(self, reach: int) -> None:
        """``fence.acquire``: what relaxed reads have seen is taken in, as far as its scope
        reaches."""
        for distance in range(reach + 1):
            message = self._pending.pop(distance, None)
            if message is not None:
                self.acquire(message)

    def fence_proxy(self, rows: tuple[int, ...], *, alone: bool, own_only: bool = False) -> None:
        """``fence.proxy.async``: what precedes it is visible to the async proxy, in the memories
        of these rows.

        alone: some lanes execute it; of the warp's own accesses to shared memory it covers those
        before its lanes last came together (which lanes wrote since, the marks of the memory tell;
        those of global memory do not). own_only: it is restricted to the shared memory of its CTA.
        """
        mine = [self.own, self._away] if self._away else self.own
        others = self.domain.away.get(self._rank, []) if own_only else []
        for row in rows:
            covered = self.wide()[row]
            before, elsewhere = covered[mine], covered[others]
            np.maximum(covered, self.rows[KNOWN], out=covered)
            if alone and row == ASYNC:
                covered[mine] = np.maximum(before, self.together)
            if others:
                covered[others] = elsewhere
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
