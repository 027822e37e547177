"""What barriers and places in memory hold for those who acquire."""

from __future__ import annotations

from dataclasses import dataclass

from ...interface import Cta
from ...machine.mbarrier import Mbarrier
from .clock import ELSEWHERE, HAPPENED, OWN_CLUSTER, OWN_CTA, Domain, Event, Message


class BarrierClock:
    """What the arrivals at a barrier pass on. pending: in the current phase; done: in completed
    phases; made: its initialisations, of which there are several if warps initialise it alike.

    waiters: by component, the time at which a warp saw the newest phase complete, and its line.
    """

    __slots__ = ("base", "component", "done", "made", "pending", "waiters")

    def __init__(self, component: int, base: int):
        self.component, self.base = component, base
        self.made: tuple[Event, ...] = ()
        self.pending: Message | None = None
        self.done: Message | None = None
        self.waiters: dict[int, tuple[int, int]] = {}

    def time(self, barrier: Mbarrier) -> int:
        """The time of the barrier's own component: that of what signals the phase in which the
        barrier is."""
        return self.base + barrier.phase + 1

    def arrived(self, barrier: Mbarrier, domain: Domain) -> int:
        """An operation of another CTA has signalled the phase. Only those who wait for that phase
        know it: having waited for the operation elsewhere is not enough."""
        time = self.time(barrier)
        message = Message(domain)
        message.happened(self.component, time)
        self.arrive(message)
        return time

    def saw(self, component: int, time: int, line: int) -> None:
        """A warp has been told that the newest phase is complete."""
        self.waiters.setdefault(component, (time, line))

    def late_waiter(self) -> tuple[int, int] | None:
        """(component, line) of a waiter that may fall behind the phase that is complete now,
        because none of the arrivals at it follows the waiter's view of the phase before."""
        happened = None if self.pending is None else self.pending.rows[HAPPENED]
        for component, (time, line) in self.waiters.items():
            if happened is None or component >= len(happened) or happened[component] < time:
                return component, line
        return None

    def unseen_by(self, message: Message) -> int | None:
        """The line of a wait that has seen the previous phase complete, if nothing orders such a
        wait before an arrival that passes on this message."""
        happened = message.rows[HAPPENED]
        for component, (time, _) in self.waiters.items():
            if component < len(happened) and happened[component] >= time:
                return None
        return next((line for _, line in self.waiters.values()), None)

    def arrive(self, message: Message) -> None:
        """Adds what an arrival passes on; the message belongs to the barrier from now on."""
        if self.pending is None:
            if self.done is None:
                self.pending = message
                return
            self.pending = self.done.copy()
        self.pending.join(message)

    def end_operation(self, meant: Message, event: Event, *, commits: bool, generic: bool) -> None:
        """An operation is complete whose warp knew ``meant`` at issue; a commit passes that on."""
        if self.pending is None:
            self.pending = Message(meant.domain) if self.done is None else self.done.copy()
        if commits:
            self.pending.join(meant)
        else:
            self.pending.saw(meant)
        self.pending.note(event, generic=generic)

    def complete(self) -> None:
        """The phase is complete: waiters may take in what its arrivals passed on."""
        self.waiters.clear()
        if self.pending is not None:
            self.done, self.pending = self.pending, None


@dataclass(frozen=True, slots=True)
class Published:
    """What a place in memory passes on to the CTA that wrote it last, to its cluster, and to
    others."""

    writer: Cta
    messages: tuple[Message, Message, Message]

    def distance(self, reader: Cta) -> int:
        """How far the reader is from the writer."""
        if reader is self.writer:
            return OWN_CTA
        return OWN_CLUSTER if reader.cluster is self.writer.cluster else ELSEWHERE

    def continued(self, earlier: Published) -> Published:
        """After an atomic update, what the place passed on before is passed on, too."""
        own = [message.copy() for message in self.messages]
        first = earlier.distance(self.writer)
        for distance, message in enumerate(own):
            message.join(earlier.messages[max(first, distance)])
        return Published(self.writer, (own[0], own[1], own[2]))
