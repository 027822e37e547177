"""The 16 named barriers of a CTA (PTX ISA §9.7.13.1, bar and barrier{.cta})."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import Trap
from ..interface import Cta, Warp

REDUCTIONS = {
    "popc": lambda flags: sum(flags),
    "and": lambda flags: all(flags),
    "or": lambda flags: any(flags),
}


KEPT = 4
"""Phases whose flags are remembered, for threads that come back late."""


class NamedBarrier:
    """Arrivals of one barrier; it completes at the expected number of threads and resets itself.

    generation: how often it has completed. A thread that arrives waits for the next generation.
    reduces: whether the arrivals of this phase give flags.
    """

    def __init__(self, cta: Cta, number: int):
        self.cta, self.number = cta, number
        self.arrived = 0
        self.expected: int | None = None
        self.reduces = False
        self.generation = 0
        self._flags: list[bool] = []
        self._results: dict[int, list[bool]] = {}

    @property
    def needed(self) -> int:
        """Threads that complete the phase: the stated number, or all threads still alive."""
        return self.cta.live_threads if self.expected is None else self.expected

    def arrive(
        self,
        warp: Warp,
        threads: int,
        expected: int | None,
        flags: Sequence[bool] | None = None,
    ) -> int:
        """Count `threads` arrivals of a warp; returns the generation to wait for.

        expected: the thread count of the instruction, None for all threads of the CTA.
        flags: the predicate of each arriving thread, for `.red`, else None.
        """
        self._check(expected, flags is not None)
        self.expected, self.reduces = expected, flags is not None
        self.arrived += threads
        warp.launch.events.barrier_arrived(self, warp, False)
        self._flags.extend(flags or ())
        ticket = self.generation + 1
        self.try_complete()
        return ticket

    def _check(self, expected: int | None, reduces: bool) -> None:
        if expected is not None and (expected <= 0 or expected % 32):
            raise Trap(
                "protocol",
                f"barrier {self.number}: the thread count must be a positive"
                f" multiple of 32, got {expected}",
            )
        if self.arrived and expected != self.expected:
            raise Trap(
                "protocol",
                f"barrier {self.number}: all arrivals of a phase must state the"
                f" same thread count, got {expected or 'all'} after {self.expected or 'all'}",
            )
        if self.arrived and reduces is not self.reduces:
            raise Trap(
                "protocol",
                f"barrier {self.number}: .red does not go together with .sync and .arrive in one"
                " phase",
            )

    def try_complete(self) -> None:
        """Complete the phase if every expected thread has arrived; Trap if too many have."""
        if not self.arrived or self.arrived < self.needed:
            return
        if self.arrived > self.needed and self.expected is not None:
            raise Trap(
                "protocol",
                f"barrier {self.number}: {self.arrived} threads arrived where"
                f" {self.needed} are expected",
            )
        self.generation += 1
        self._results[self.generation] = self._flags
        self._results.pop(self.generation - KEPT, None)
        self.cta.launch.events.barrier_completed(self)
        self.arrived, self.expected, self._flags = 0, None, []
        self.cta.wake(self)

    def result(self, generation: int, reduction: str) -> int | bool:
        """The reduction of the flags given in the phase that ended as `generation`."""
        return REDUCTIONS[reduction](self._results[generation])

    def describe(self) -> str:
        """The state of the barrier, for a deadlock report."""
        return f"barrier {self.number} with {self.arrived} of {self.needed} threads arrived"
