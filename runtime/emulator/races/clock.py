"""Vector clocks: what a warp, or an operation that it issued, knows of everybody else's accesses.

Within a cluster every agent is a component: a warp, the copies that signal one mbarrier, or the
operations of one kind that a warp has issued. An event is a component and a time; an agent knows
it if its entry for the component has reached the time. A clock has five rows of entries:

- KNOWN: ordered before, for the generic proxy;
- ASYNC: also behind a proxy fence, so visible to the async proxy;
- OUT: tensor memory accesses behind ``tcgen05.fence::before_thread_sync`` or a commit;
- RELEASED: what a release fence covers, all that a relaxed operation passes on;
- RELEASED_FAR: the same by fences whose scope reaches other clusters.

The first three travel in messages. What is known of other clusters travels along by their number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

KNOWN, ASYNC, OUT, RELEASED, RELEASED_FAR = range(5)
TRAVELLING = 3
_STEP = 32

Event = tuple[int, int]
"""A component and a time."""
Rows = np.ndarray


class Domain:
    """The components of one cluster. number: the cluster's, unique in the launch."""

    def __init__(self, number: int, expected: int):
        self.number = number
        self.width = -(-(expected + 1) // _STEP) * _STEP
        self._names: list[Callable[[], str]] = [lambda: "nobody"]

    def component(self, name: Callable[[], str]) -> int:
        """A new component; ``name()`` completes "the write by …"."""
        self._names.append(name)
        if len(self._names) > self.width:
            self.width += _STEP
        return len(self._names) - 1

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


class Message:
    """What a release passes on. rows: int64[3, width]; others: rows by cluster number."""

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

    def join(self, other: Message) -> None:
        """Add what another message of the same cluster, or of another one, passes on."""
        if other.domain is self.domain:
            self.rows = _raise_to(self.rows, other.rows)
        self.others = _merged(self, other)

    def copy(self) -> Message:
        return Message(self.domain, self.rows.copy(), dict(self.others))


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


class WarpClock:
    """The clock of one warp.

    own: its component; time: of its accesses from now on; together: when its lanes last executed a
    synchronising instruction, or took in a message, which may be of one of them.
    """

    def __init__(self, domain: Domain, name: Callable[[], str]):
        self.domain = domain
        self.own = domain.component(name)
        self.time = 1
        self.rows = np.zeros((RELEASED_FAR + 1, domain.width), np.int64)
        self.rows[KNOWN, self.own] = 1
        self.others: dict[int, Rows] = {}
        self.streams: dict[str, list[int]] = {}
        self.together = 0
        self._pending: dict[bool, Message] = {}

    def row(self, kind: int) -> np.ndarray:
        """One row, wide enough for every component of the domain."""
        self.rows = fitted(self.rows, self.domain.width)
        return self.rows[kind]

    def tick(self) -> None:
        """What follows is not covered by what has been passed on so far."""
        self.time += 1
        self.rows[KNOWN, self.own] = self.time

    # -- passing on and taking in --------------------------------------------------------------

    def release(self, *, relaxed: bool = False) -> Message:
        """What a release operation passes on; of a relaxed one what an earlier fence covers.

        What a ``tcgen05.fence`` covers travels along with either.
        """
        message = self._passing_on(RELEASED if relaxed else None)
        self.tick()
        return message

    def release_far(self, *, relaxed: bool, scope_is_far: bool) -> tuple[Message, Message]:
        """What a release passes on to its own cluster, and to others, which its scope, or that of
        an earlier fence, must reach."""
        near = self._passing_on(RELEASED if relaxed else None)
        far = self._passing_on(RELEASED_FAR if relaxed or not scope_is_far else None)
        self.tick()
        return near, far

    def _passing_on(self, covered: int | None) -> Message:
        rows = self.rows[:TRAVELLING].copy()
        if covered is not None:
            np.minimum(rows[:OUT], self.rows[covered], out=rows[:OUT])
        return Message(self.domain, rows, self.others)

    def acquire(self, message: Message, *, relaxed: bool = False, far: bool = False) -> None:
        """Take in a message; after a relaxed read only once a fence follows, whose scope must
        reach the cluster it is from (``far``)."""
        if relaxed:
            self._hold(message, far)
            return
        self.come_together()
        if message.domain is self.domain:
            self.rows = _raise_to(self.rows, message.rows)
        self.others = _merged(self, message)

    def learn(self, message: Message) -> None:
        """Take in what is known of other clusters; the lanes don't meet for it."""
        self.others = _merged(self, message)

    def _hold(self, message: Message, far: bool) -> None:
        if message.domain is self.domain:
            self.rows = fitted(self.rows, message.rows.shape[1])
            part = self.rows[OUT, : message.rows.shape[1]]
            np.maximum(part, message.rows[OUT], out=part)
        self._pending.setdefault(far, Message(self.domain)).join(message)

    # -- fences --------------------------------------------------------------------------------

    def fence_release(self, *, far: bool) -> None:
        """``fence.release``: relaxed operations that follow pass on what precedes it; ``far``:
        its scope reaches other clusters."""
        for row in (RELEASED, RELEASED_FAR)[: 1 + far]:
            np.maximum(self.rows[row], self.rows[KNOWN], out=self.rows[row])
        self.tick()

    def fence_acquire(self, *, far: bool) -> None:
        """``fence.acquire``: what relaxed reads have seen is taken in."""
        for kind in (False, True)[: 1 + far]:
            message = self._pending.pop(kind, None)
            if message is not None:
                self.acquire(message)

    def fence_proxy(self, *, alone: bool) -> None:
        """``fence.proxy.async``: what precedes it is visible to the async proxy.

        alone: some lanes execute it; of the warp's own accesses it covers those before its lanes
        last came together.
        """
        before = int(self.rows[ASYNC, self.own])
        np.maximum(self.rows[ASYNC], self.rows[KNOWN], out=self.rows[ASYNC])
        if alone:
            self.rows[ASYNC, self.own] = max(before, self.together)
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
        self._note(event, KNOWN)
        if not generic:
            self._note(event, ASYNC)

    def note_released(self, event: Event) -> None:
        """A fence for this event alone: relaxed operations that follow pass it on."""
        self._note(event, RELEASED)

    def _note(self, event: Event, kind: int) -> None:
        row, (component, time) = self.row(kind), event
        row[component] = max(int(row[component]), time)
