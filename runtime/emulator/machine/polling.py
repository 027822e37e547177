"""Waits that end by their time limits, where nothing else can run: how often they may.

`mbarrier.try_wait` may give up, and its thread then does something else and asks again. That may be
what everybody waits for, however often it takes. So it goes on while something changes: a byte of
memory, what an mbarrier lacks, or a register. Where all that polls comes back to the same state, a
few rounds more are allowed, for the order of the threads is drawn anew in each; where registers
alone change, as of a loop that counts or reads a clock to give up by itself, some thousand. Then it
is a deadlock.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..interface import Launch, Warp
from .spinning import Changes, state_of

SAME_ROUNDS = 64
"""Rounds that change nothing, after which waits that may end by a time limit are a deadlock."""
COUNTED_ROUNDS = 5_000
"""Rounds that change nothing but registers."""


class Polling:
    """The rounds since a thread was last woken. Watches memory until it is ended."""

    def __init__(self, launch: Launch):
        self._changes = Changes(launch)
        self._seen: set[int] = set()
        self._same = self._rounds = 0

    def end(self) -> None:
        """Hear of no more accesses."""
        self._changes.end()

    def again(self, warps: Iterable[Warp]) -> bool:
        """Whether the waits of `warps` may end by their time limits once more."""
        if self._changes.any():
            self._seen.clear()
            self._same = self._rounds = 0
        state = hash(tuple(state_of(warp) for warp in warps))
        self._rounds += 1
        if state in self._seen:
            self._same += 1
        self._seen.add(state)
        self._changes.forget()
        return self._same <= SAME_ROUNDS and self._rounds <= COUNTED_ROUNDS
