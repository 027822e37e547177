"""What arrivals at a named barrier, or that of a cluster, pass on to those who wait."""

from __future__ import annotations

from .clock import Message, joined

KEPT = 4
"""Generations whose arrivals are remembered, for waiters that come back late."""


class Meeting:
    """One barrier: what has arrived in its current phase, and what earlier phases pass on."""

    def __init__(self):
        self._arrivals: list[Message] = []
        self._messages: dict[int, Message | None] = {}

    def arrive(self, message: Message) -> None:
        self._arrivals.append(message)

    def complete(self, generation: int) -> None:
        """The phase that is `generation` from now on is complete."""
        self._messages[generation] = joined(self._arrivals)
        self._messages.pop(generation - KEPT, None)
        self._arrivals = []

    def message(self, generation: int) -> Message | None:
        """What its arrivals pass on, None if that is nothing or too long ago."""
        return self._messages.get(generation)
