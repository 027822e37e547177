"""Who accesses memory, and what it knows of everybody else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...interface import Cta, Warp
from .clock import Domain, Event, Message
from .known import Known, Lanes, LanesKnown
from .reaches import Home, Reaches

LINE_BITS = 20
"""The bits of a mark that hold the PTX line."""
_NOTHING = np.zeros(1, np.int64)


@dataclass(slots=True)
class Actor:
    """The agent that accesses memory now.

    own: the component of its accesses; when: their mark. rows: what it knows (`clock`); others: the
    same by number of another cluster. asynchronous: it accesses memory through the async proxy.

    updating: the access is an atomic read-modify-write; comparing: a compare-and-swap, see
    `Compared`; telling: one that returns what it has replaced. incoherent: it is ld.global.nc.

    lanes: uint8[accesses], 1 + the lane of each access, where known. together: when the lanes of
    the warp last executed a synchronising instruction. warp: what lanes of the warp know, if some
    know more than others. home: the CTA of a strong access by a warp, if `reaches` keeps track
    of narrow scopes or of copies that reduce.
    """

    domain: Domain
    own: int
    when: int
    rows: np.ndarray
    others: dict[int, np.ndarray]
    strong: bool = False
    home: Home | None = None
    reaches: Reaches | None = None
    asynchronous: bool = False
    updating: bool = False
    comparing: bool = False
    telling: bool = False
    incoherent: bool = False
    lanes: np.ndarray | None = None
    together: int = 0
    warp: LanesKnown | None = None

    def knows(self, kind: int, cluster: int | None = None) -> np.ndarray:
        """One row of what the agent knows, of its own cluster or of another."""
        return self._row(self, kind, cluster)

    def others_know(self, kind: int, cluster: int | None = None) -> list[np.ndarray]:
        """The same of what any lane of its warp knows."""
        known = self.warp.all if self.warp else []
        return [self._row(each, kind, cluster) for each in known]

    def _row(self, known: Actor | Known, kind: int, cluster: int | None) -> np.ndarray:
        if cluster is None or cluster == self.domain.number:
            return known.rows[kind]
        rows = known.others.get(cluster)
        return _NOTHING if rows is None else rows[kind]


class PendingOperation:
    """What is kept of an asynchronous operation. clock: what its warp knew at issue; issuer: the
    warp's CTA; issued: the component and time of the issue; event: the event of its completion;
    lanes: the lanes whose copies it completes, None for all."""

    __slots__ = ("clock", "event", "issued", "issuer", "lanes")

    def __init__(self, clock: Message, issuer: Cta | None, issued: Event = (0, 0)):
        self.clock, self.issuer, self.issued = clock, issuer, issued
        self.event: Event | None = None
        self.lanes: Lanes = None

    def events(self) -> list[Event]:
        """The events of its completion, one per lane if it does not belong to all lanes."""
        if self.event is None or self.lanes is None:
            return [self.event] if self.event else []
        component, time = self.event
        return [(self.clock.domain.lane(component, lane), time) for lane in self.lanes]


def line_of(warp: Warp) -> int:
    """The PTX line that a warp executes."""
    return warp.program.source[warp.split.pc].line


def describe(warp: Warp) -> str:
    """Describes a warp as the other party of a race."""
    return f"warp {warp.index} of cta {warp.cta.index}"
