"""What arrivals at a named barrier, or that of a cluster, pass on to those who wait."""

from __future__ import annotations

import numpy as np

from .clock import Event, Message, joined

KEPT = 4
"""Generations whose arrivals are remembered, for waiters that come back late."""


class Meeting:
    """One barrier: what has arrived in its current phase, and what earlier phases pass on. Those
    who arrive are told by event, with the PTX line."""

    def __init__(self):
        self._arrivals: list[Message] = []
        self._messages: dict[int, Message | None] = {}
        self._arriving: list[tuple[Event, int]] = []
        self._before: list[tuple[Event, int]] = []

    def arrive(self, message: Message, event: Event, line: int) -> None:
        self._arrivals.append(message)
        self._arriving.append((event, line))

    def unmet(self, happened: np.ndarray) -> tuple[Event, int] | None:
        """An arrival at the phase before that one who arrives now need not come behind, by what is
        known to have happened; None if there is none."""
        for event, line in self._before:
            if happened[event[0]] < event[1]:
                return event, line
        return None

    def complete(self, generation: int) -> None:
        """The phase that is `generation` from now on is complete."""
        self._messages[generation] = joined(self._arrivals)
        self._messages.pop(generation - KEPT, None)
        self._arrivals = []
        self._before, self._arriving = self._arriving, []

    def message(self, generation: int) -> Message | None:
        """What its arrivals pass on, None if that is nothing or too long ago."""
        return self._messages.get(generation)
