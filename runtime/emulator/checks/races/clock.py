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
from contextlib import AbstractContextManager

import numpy as np

from .fences_known import NO_FENCES, FencesKnown

HAPPENED, OVER, KNOWN, ASYNC, ASYNC_GLOBAL, OUT, RELEASED, RELEASED_CLUSTER, RELEASED_FAR = range(9)
TRAVELLING = OUT + 1
OWN_CTA, OWN_CLUSTER, ELSEWHERE = range(3)
"""How far a scope reaches, or how far from each other two threads are."""
REACH = {"cta": OWN_CTA, "cluster": OWN_CLUSTER, "gpu": ELSEWHERE, "sys": ELSEWHERE}
LANES = 34
"""Numbers of lanes in tables: 1 + the lane, and what stands for none and for all."""
CP_ASYNC = "cp.async"
"""The kind of operations by which lanes of a warp copy, each for itself."""
_STEP = 32

Event = tuple[int, int]
"""A component and a time."""
Rows = np.ndarray
ToldOf = Callable[[str], AbstractContextManager[None]]
"""`SharedRules.told_of`: what breaks a rule within is a warning where libraries ship it."""


class Domain:
    """The components of one cluster. number: the cluster's, unique in the launch; away: by CTA
    rank, those of its warps for accesses to the shared memory of other CTAs; lanes: by a warp's
    component those of its lanes that have released alone (`lane_times`), by 1 + the lane. That of
    a warp's copies (`CP_ASYNC`) has them for lanes whose copies were waited for alone. aligned: by
    a warp's component, from when on its accesses come behind a wgmma.wait_group of all lanes."""

    def __init__(self, number: int, expected: int):
        self.number = number
        self.away: dict[int, list[int]] = {}
        self.lanes: dict[int, np.ndarray] = {}
        self.aligned: dict[int, list[int]] = {}
        self.width = -(-(expected + 1) // _STEP) * _STEP
        self._names = ["nobody"]

    def component(self, name: str) -> int:
        """A new component; its name completes "the write by …"."""
        self._names.append(name)
        if len(self._names) > self.width:
            self.width += _STEP
        return len(self._names) - 1

    def is_away(self, component: int) -> bool:
        """Whether it stands for accesses of a warp to the memory of other CTAs."""
        return any(component in components for components in self.away.values())

    def tell_lanes_apart(self, component: int) -> None:
        """Its lanes may have components of their own."""
        self.lanes.setdefault(component, np.zeros(LANES, np.int64))

    def lane(self, component: int, lane: int) -> int:
        """The component of a lane of the warp that has one; `away` ones share it."""
        table = self.lanes[component]
        if not table[lane + 1]:
            table[lane + 1] = self.component(self._names[component])
        return int(table[lane + 1])

    def name(self, component: int) -> str:
        """Who the component is."""
        return self._names[component]


def fitted(rows: Rows, width: int) -> Rows:
    """``rows`` with at least ``width`` entries a row; entries behind the old end are zero."""
    if rows.shape[1] >= width:
        return rows
    wider = np.zeros((len(rows), width), np.int64)
    wider[:, : rows.shape[1]] = rows
    return wider


def raise_to(rows: Rows, other: Rows) -> Rows:
    """Entry-wise maximum of the travelling rows, in place where the widths allow."""
    rows = fitted(rows, other.shape[1])
    part = rows[:TRAVELLING, : other.shape[1]]
    np.maximum(part, other, out=part)
    return rows


def raise_happened(rows: Rows, other: Rows) -> Rows:
    """The same of the row HAPPENED alone."""
    rows = fitted(rows, other.shape[1])
    part = rows[HAPPENED, : other.shape[1]]
    np.maximum(part, other[HAPPENED], out=part)
    return rows


class Message:
    """What a release passes on. rows: int64[6, width]; others: rows by cluster number; fences: of
    `fence.sc`, what it comes behind."""

    __slots__ = ("domain", "fences", "others", "rows")

    def __init__(
        self, domain: Domain, rows: Rows | None = None, others: dict[int, Rows] | None = None,
        fences: FencesKnown = NO_FENCES,
    ):  # fmt: skip
        self.domain, self.fences = domain, fences
        self.rows = np.zeros((TRAVELLING, domain.width), np.int64) if rows is None else rows
        self.others = others or {}

    def of(self, domain: Domain) -> Rows | None:
        """What it passes on of a cluster's own; of another one's it may have come back from there.
        None if that is nothing."""
        return self.rows if self.domain is domain else self.others.get(domain.number)

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
        own = other.of(self.domain)
        if own is not None:
            self.rows = raise_to(self.rows, own)
        self.others = merged(self.domain, self.others, other)
        self.fences = self.fences.joined(other.fences)

    def copy(self) -> Message:
        return Message(self.domain, self.rows.copy(), dict(self.others), self.fences)

    def saw(self, other: Message) -> None:
        """Add what has happened in the cluster by another message, and nothing that orders
        accesses."""
        own = other.of(self.domain)
        if own is not None:
            self.rows = raise_happened(self.rows, own)

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


def merged(domain: Domain, others: dict[int, Rows], other: Message) -> dict[int, Rows]:
    """What is known of third clusters, by number: of a cluster's own, and by a message."""
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
