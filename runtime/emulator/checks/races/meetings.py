"""What arrivals at a named barrier, or at that of a cluster, pass on to those who wait.

The barrier of a cluster waits for all threads that have not exited (PTX ISA §9.7.13.3). So its
completion says that the accesses of threads that have exited are over. Nothing promises that what
they wrote is visible.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...interface import Cta, Launch, Warp
from .actor import line_of
from .actors import Actors
from .clock import HAPPENED, OWN_CLUSTER, OWN_CTA, Event, Message, joined
from .lane_times import lanes_of_mask, releasing
from .verdicts import early_arrival
from .warp_clock import WarpClock

KEPT = 4
"""Generations whose arrivals are remembered, for waiters that come back late."""


class Meeting:
    """One barrier: what has arrived in its current phase, and what earlier phases pass on. Arrivals
    are kept by event, with the PTX line; _gone: what threads that have exited pass on."""

    def __init__(self):
        self._arrivals: list[Message] = []
        self._messages: dict[int, Message | None] = {}
        self._arriving: list[tuple[Event, int]] = []
        self._before: list[tuple[Event, int]] = []
        self._gone: Message | None = None

    def leave(self, message: Message) -> None:
        """Notes that threads exit, for which none of its phases waits."""
        self._gone = message if self._gone is None else joined([self._gone, message])

    def arrive(self, message: Message, event: Event, line: int) -> None:
        self._arrivals.append(message)
        self._arriving.append((event, line))

    def unmet(self, happened: np.ndarray) -> tuple[Event, int] | None:
        """An arrival at the previous phase that need not precede the one now, by what is known to
        have happened; None if there is none."""
        for event, line in self._before:
            if happened[event[0]] < event[1]:
                return event, line
        return None

    def complete(self, generation: int) -> None:
        """The phase that is `generation` from now on is complete."""
        gone = [] if self._gone is None else [self._gone]
        self._messages[generation] = joined([*self._arrivals, *gone])
        self._messages.pop(generation - KEPT, None)
        self._arrivals = []
        self._before, self._arriving = self._arriving, []

    def message(self, generation: int) -> Message | None:
        """What the arrivals of a phase pass on; None if that is nothing, or too long ago."""
        return self._messages.get(generation)


class Meetings(Actors):
    """The meetings of threads, in the barriers of a launch and in those of warps."""

    def __init__(self, launch: Launch):
        super().__init__(launch)
        self._meetings: dict[Any, Meeting] = {}

    def forget_meetings(self, cta: Cta) -> None:
        """Forgets a CTA that has exited."""
        for barrier in cta.barriers:
            self._meetings.pop(barrier, None)

    def converged(self, warp: Warp, mask: np.ndarray) -> None:
        clock, lanes = self._clocks[warp], lanes_of_mask(warp, mask)
        if lanes is None:
            clock.come_together()
        else:
            clock.acquire(clock.release(lanes), lanes)

    def barrier_arrived(self, barrier: Any, warp: Warp, relaxed: bool) -> None:
        clock, meeting = self._clocks[warp], self._meetings.setdefault(barrier, Meeting())
        distance = OWN_CLUSTER if barrier is warp.cta.cluster else OWN_CTA
        if distance == OWN_CTA:
            self._require_met(barrier, meeting, clock)
        event = clock.own, clock.time
        message = clock.release(releasing(warp), relaxed=relaxed, distance=distance)
        meeting.arrive(message, event, line_of(warp))

    def _require_met(self, barrier: Any, meeting: Meeting, clock: WarpClock) -> None:
        """Traps if an arrival at a named barrier might have counted for the phase before: a phase
        ends with the number of threads that it expects, whichever they are (PTX ISA §9.7.13.1)."""
        early = meeting.unmet(clock.row(HAPPENED))
        if early is not None:
            raise early_arrival(barrier, clock.domain.name(early[0][0]), early[1])

    def barrier_completed(self, barrier: Any) -> None:
        self._meetings.setdefault(barrier, Meeting()).complete(barrier.generation)

    def barrier_waited(self, barrier: Any, warp: Warp, generation: int) -> None:
        message = self._meetings[barrier].message(generation)
        if message is not None:
            self._clocks[warp].acquire(message, releasing(warp))

    def warp_exiting(self, warp: Warp) -> None:
        cluster = warp.cta.cluster
        if len(cluster.ctas) > 1:
            message = self._clocks[warp].release_narrow(None)
            self._meetings.setdefault(cluster, Meeting()).leave(message)
