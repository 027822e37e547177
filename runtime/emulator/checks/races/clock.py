"""Vector clocks: what a warp, or an operation that it issued, knows of everybody else's accesses.

Within a cluster every agent is a component of the clock: a warp, the copies that signal one
mbarrier, or the operations of one kind that a warp has issued. An event is a component and a time.
An agent knows the event if its entry for the component has reached the time. A clock has these rows
of entries:

- HAPPENED: what has been done before in every order of events, whatever the memory model says;
- OVER: accesses that are over, so that their bytes of shared memory may be overwritten;
- KNOWN: accesses that are ordered before, for the generic proxy;
- ASYNC: those that are also behind a proxy fence of shared memory, so visible to the async proxy;
- ASYNC_GLOBAL: the same in global memory;
- OUT: tensor memory accesses behind ``tcgen05.fence::before_thread_sync`` or a commit;
- RELEASED: what a release fence covers: all that a relaxed operation passes on inside its CTA;
- RELEASED_CLUSTER, RELEASED_FAR: the same by fences whose scope reaches the other CTAs of the
  cluster, and other clusters.

The rows up to OUT travel in messages. What is known of other clusters travels along by their
number.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np

from .fences_known import NO_FENCES, FencesKnown

HAPPENED, OVER, KNOWN, ASYNC, ASYNC_GLOBAL, OUT, RELEASED, RELEASED_CLUSTER, RELEASED_FAR = range(9)
TRAVELLING = OUT + 1
OWN_CTA, OWN_CLUSTER, ELSEWHERE = range(3)
"""How far a scope reaches, or how far apart two threads are."""
REACH = {"cta": OWN_CTA, "cluster": OWN_CLUSTER, "gpu": ELSEWHERE, "sys": ELSEWHERE}
LANES = 34
"""The number of lanes in tables: 1 + the lane, and entries that stand for no lane and for all
lanes."""
CP_ASYNC = "cp.async"
"""The kind of operations by which the lanes of a warp copy individually."""
_STEP = 32

Event = tuple[int, int]
"""A component and a time."""
Rows = np.ndarray
AsWarning = Callable[[str], AbstractContextManager[None]]
"""`SharedRules.as_warning`: within its context, breaking a rule is only a warning, since libraries
ship such code."""


class Domain:
    """The components of one cluster.

    number: the cluster's number, unique in the launch. away: by CTA rank, the components of its
    warps for accesses to the shared memory of other CTAs. lanes: by a warp's component, those of
    its lanes that have released alone (`lane_times`), by 1 + the lane; for the copies of a warp
    (`CP_ASYNC`), those of lanes whose copies were waited for alone. aligned: by a warp's component,
    the time from which on its accesses follow a wgmma.wait_group of all lanes.
    """

    def __init__(self, number: int, expected: int):
        self.number = number
        self.away: dict[int, list[int]] = {}
        self.lanes: dict[int, np.ndarray] = {}
        self.aligned: dict[int, list[int]] = {}
        self.width = -(-(expected + 1) // _STEP) * _STEP
        self._names = ["nobody"]

    def component(self, name: str) -> int:
        """Adds a component; its name completes the phrase "the write by …"."""
        self._names.append(name)
        if len(self._names) > self.width:
            self.width += _STEP
        return len(self._names) - 1

    def is_away(self, component: int) -> bool:
        """Whether the component stands for accesses of a warp to the memory of other CTAs."""
        return any(component in components for components in self.away.values())

    def separate_lanes(self, component: int) -> None:
        """Allows the component's lanes to have components of their own."""
        self.lanes.setdefault(component, np.zeros(LANES, np.int64))

    def lane(self, component: int, lane: int) -> int:
        """The component of a lane of a warp that has one; `away` components share it."""
        table = self.lanes[component]
        if not table[lane + 1]:
            table[lane + 1] = self.component(self._names[component])
        return int(table[lane + 1])

    def name(self, component: int) -> str:
        """The name of the component."""
        return self._names[component]


def fitted(rows: Rows, width: int) -> Rows:
    """``rows`` with at least ``width`` entries per row; entries beyond the old end are zero."""
    if rows.shape[1] >= width:
        return rows
    wider = np.zeros((len(rows), width), np.int64)
    wider[:, : rows.shape[1]] = rows
    return wider


def raise_to(rows: Rows, other: Rows) -> Rows:
    """Raises the travelling rows to their entry-wise maximum with others, in place where the widths
    allow."""
    rows = fitted(rows, other.shape[1])
    part = rows[:TRAVELLING, : other.shape[1]]
    np.maximum(part, other, out=part)
    return rows


def raise_happened(rows: Rows, other: Rows) -> Rows:
    """The same for the row HAPPENED alone."""
    rows = fitted(rows, other.shape[1])
    part = rows[HAPPENED, : other.shape[1]]
    np.maximum(part, other[HAPPENED], out=part)
    return rows


class Message:
    """What a release passes on. rows: int64[6, width]; others: rows by cluster number; fences: the
    `fence.sc` operations that it is behind."""

    __slots__ = ("domain", "fences", "others", "rows")

    def __init__(
        self, domain: Domain, rows: Rows | None = None, others: dict[int, Rows] | None = None,
        fences: FencesKnown = NO_FENCES,
    ):  # fmt: skip
        self.domain, self.fences = domain, fences
        self.rows = np.zeros((TRAVELLING, domain.width), np.int64) if rows is None else rows
        self.others = others or {}

    def of(self, domain: Domain) -> Rows | None:
        """What the message passes on about a cluster. A message of another cluster may bring back
        what came from here. None if there is nothing."""
        return self.rows if self.domain is domain else self.others.get(domain.number)

    def note(self, event: Event, *, generic: bool) -> None:
        """Notes that an operation is complete; an operation of the async proxy needs no proxy
        fence."""
        component, time = event
        self.rows = fitted(self.rows, self.domain.width)
        column = self.rows[: KNOWN + 1 if generic else TRAVELLING, component]
        np.maximum(column, time, out=column)

    def happened(self, component: int, time: int) -> None:
        """Notes that something has happened that orders no accesses."""
        self.rows = fitted(self.rows, self.domain.width)
        self.rows[HAPPENED, component] = max(self.rows[HAPPENED, component], time)

    def join(self, other: Message) -> None:
        """Adds what another message passes on, of the same cluster or of another one."""
        own = other.of(self.domain)
        if own is not None:
            self.rows = raise_to(self.rows, own)
        self.others = merged(self.domain, self.others, other)
        self.fences = self.fences.joined(other.fences)

    def copy(self) -> Message:
        return Message(self.domain, self.rows.copy(), dict(self.others), self.fences)

    def saw(self, other: Message) -> None:
        """Adds what has happened in the cluster according to another message, without ordering
        accesses."""
        own = other.of(self.domain)
        if own is not None:
            self.rows = raise_happened(self.rows, own)

    def happening(self) -> Message:
        """The part of the message that says what has happened, and orders no accesses."""
        message = Message(self.domain, np.zeros(self.rows.shape, np.int64))
        message.rows[HAPPENED] = self.rows[HAPPENED]
        return message


def joined(messages: list[Message]) -> Message | None:
    """One message for all of them, which are used up; None if there are none."""
    if not messages:
        return None
    first, *others = messages
    for message in others:
        first.join(message)
    return first


def merged(domain: Domain, others: dict[int, Rows], other: Message) -> dict[int, Rows]:
    """What is known of third clusters, by number: from a cluster's own knowledge and from a
    message."""
    if not other.others and other.domain is domain:
        return others
    merged, found = dict(others), dict(other.others)
    if other.domain is not domain:
        found[other.domain.number] = other.rows
    for number, rows in found.items():
        if number != domain.number:
            known = merged.get(number)
            merged[number] = rows if known is None else raise_to(known.copy(), rows)
    return merged
