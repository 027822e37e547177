"""What an agent knows of fence.sc operations, wherever they were executed; see `sc_fences`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Fences = Mapping[Any, Any]
"""The newest fences, by the warp and the lanes that executed them, and by how far they reach."""


class FencesKnown(NamedTuple):
    """behind: the fences that precede what the agent does now in causality order; first: those that
    precede any fence.sc that follows, in the order of these fences."""

    behind: Fences
    first: Fences

    def joined(self, other: FencesKnown) -> FencesKnown:
        """What either of the two knows."""
        if other is self or other is NO_FENCES:
            return self
        if self is NO_FENCES:
            return other
        return FencesKnown(newest(self.behind, other.behind), newest(self.first, other.first))

    def in_both(self, other: FencesKnown) -> FencesKnown:
        """What both know."""
        if other is self or NO_FENCES in (self, other):
            return self if other is self else NO_FENCES
        return FencesKnown(*(_in_both(own, their) for own, their in zip(self, other, strict=True)))

    def cover(self, other: FencesKnown) -> bool:
        """Whether the other knows nothing that this one does not."""
        if other is self or other is NO_FENCES:
            return True
        return all(newest(own, their) == own for own, their in zip(self, other, strict=True))


NO_FENCES = FencesKnown({}, {})


def _in_both(one: Fences, other: Fences) -> Fences:
    return {who: fence for who, fence in one.items() if other.get(who) is fence}


def newest(one: Fences, other: Fences) -> Fences:
    """The fences of both; for an agent that is in both, the newer one."""
    if not other or one is other:
        return one
    both = dict(one)
    for who, fence in other.items():
        known = both.get(who)
        if known is None or known.number < fence.number:
            both[who] = fence
    return both
