"""Accesses to what prerequisite grids work on must be ordered behind griddepcontrol.wait.

The end of those grids is one event of a domain of its own, as if they were a cluster. A warp learns
of it by waiting, or from a warp that has waited, through barriers and the like (PTX ISA §9.7.13.13:
the wait makes their accesses visible to the grid, but blocks only the executing thread).
"""

from __future__ import annotations

from ...errors import Trap
from .actor import Actor
from .clock import Domain, Message
from .global_shadow import GlobalShadow
from .grains import Cells
from .order import Same
from .warp_clock import WarpClock


class Prerequisites:
    """The grids before a dependent launch."""

    def __init__(self, domain: Domain):
        self._domain = domain
        self._ended = Message(domain)

    def guarded(self, shadow: GlobalShadow | None, name: str) -> AwaitedShadow:
        """The shadow of an array that these grids work on; the array's own shadow is None if the
        kernel does not write it."""
        return AwaitedShadow(shadow, name, self._domain.number)

    def waited(self, clock: WarpClock) -> None:
        """Notes that a warp has executed griddepcontrol.wait."""
        clock.learn(self._ended)


class AwaitedShadow:
    """Refuses an agent that does not know that grid `number` has ended, and then marks as `shadow`
    does."""

    def __init__(self, shadow: GlobalShadow | None, name: str, number: int):
        self._shadow, self._name, self._number = shadow, name, number

    def read(self, index: Cells, size: int, actor: Actor, what: str) -> None:
        """Judges and notes a read of these bytes, in accesses of ``size``."""
        self._require(actor, what)
        if self._shadow is not None:
            self._shadow.read(index, size, actor, what)

    def write(
        self, index: Cells, size: int, actor: Actor, what: str, same: Same | None = None
    ) -> None:
        """Judges and notes a write of them; ``same()`` tells which of the bytes keep their
        value."""
        self._require(actor, what)
        if self._shadow is not None:
            self._shadow.write(index, size, actor, what, same)

    def _require(self, actor: Actor, what: str) -> None:
        if self._number not in actor.others:
            raise Trap(
                "dependent-launch",
                f"{what} touches {self._name}, and no griddepcontrol.wait is ordered before it: a"
                " prerequisite grid may still work on it",
            )
