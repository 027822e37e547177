"""What the lanes of a warp know of everybody else's accesses, individually or all together.

PTX orders threads (ISA §8.9): what one lane acquires, the other lanes know only once they meet it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...ptx.lanes import WARP_SIZE
from ...truth import all_of
from .clock import KNOWN, OUT, TRAVELLING, Domain, Message, Rows, fitted, merged, raise_to
from .fences_known import NO_FENCES, FencesKnown

Lanes = tuple[int, ...] | None
"""The lanes that execute an instruction, None for all."""


Elsewhere = tuple[dict[int, Rows], FencesKnown]
"""Rows by cluster number, and fences."""


class Known:
    """What some lanes know.

    rows, others, fences: as in `clock`. together: up to when they know what all lanes of their warp
    did. pending: by distance, what relaxed reads have seen and no fence has taken in yet. covered:
    by row of a release fence, `others` and `fences` at that time. alone: how far such a fence of
    these lanes alone reached, None if there was none. initialised: the barriers whose
    initialisations are all known to precede.
    """

    __slots__ = (
        "alone", "covered", "fences", "initialised", "others", "pending", "rows", "together",
    )  # fmt: skip

    def __init__(self, rows: Rows, together: int = 0):
        self.rows, self.together = rows, together
        self.others: dict[int, Rows] = {}
        self.fences = NO_FENCES
        self.covered: dict[int, Elsewhere] = {}
        self.alone: int | None = None
        self.pending: dict[int, Message] = {}
        self.initialised: set[Any] = set()

    def copy(self) -> Known:
        """A copy for some of the lanes."""
        copy = Known(self.rows.copy(), self.together)
        copy.others, copy.initialised = dict(self.others), set(self.initialised)
        copy.fences, copy.covered, copy.alone = self.fences, dict(self.covered), self.alone
        copy.pending = {distance: each.copy() for distance, each in self.pending.items()}
        return copy

    def wide(self, width: int) -> Rows:
        """All rows, wide enough for every component of a domain."""
        self.rows = fitted(self.rows, width)
        return self.rows

    def take_in(self, message: Message, domain: Domain, own: int) -> None:
        """Lanes of the warp with component `own` acquire a message."""
        rows = message.of(domain)
        if rows is not None:
            self.rows = raise_to(self.rows, rows)
            if own < rows.shape[1]:
                self.together = max(self.together, int(rows[KNOWN, own]))
        self.others = merged(domain, self.others, message)
        self.fences = self.fences.joined(message.fences)

    def hold(self, message: Message, domain: Domain, distance: int) -> None:
        """Notes that a relaxed read has seen a message."""
        rows = message.of(domain)
        if rows is not None:
            self.rows = fitted(self.rows, rows.shape[1])
            part = self.rows[OUT, : rows.shape[1]]
            np.maximum(part, rows[OUT], out=part)
        self.pending.setdefault(distance, Message(domain)).join(message)

    def join(self, other: Known, domain: Domain) -> None:
        """These lanes meet the lanes that know `other`."""
        self.rows = raise_to(self.rows, other.rows[:TRAVELLING])
        self.together = max(self.together, other.together)
        self.others = merged(domain, self.others, Message(domain, other.rows, other.others))
        self.fences = self.fences.joined(other.fences)
        for distance, message in other.pending.items():
            self.pending.setdefault(distance, Message(domain)).join(message)

    def covers(self, other: Known) -> bool:
        """Whether the lanes that know `other` know nothing that these do not."""
        if other.pending or other.together > self.together or other.others.keys() - self.others:
            return False
        if not self.fences.cover(other.fences):
            return False
        pairs = [(other.rows if other.alone is None else other.rows[:TRAVELLING], self.rows)]
        pairs += [(rows, self.others[number]) for number, rows in other.others.items()]
        return all(_is_in(one, two) for one, two in pairs)


class LanesKnown:
    """What the lanes of one warp know.

    common: what all of them know. apart: by lane, what those know that know more, `common`
    included; lanes that acquired together share an entry. all: each entry once. alive: the lanes
    that have not exited, as bits. fenced: what lanes knew when they executed a release fence
    individually, if they know no more than all others now; by lane, and by how far the fence
    reaches.
    """

    def __init__(self, domain: Domain, rows: Rows, alive: Callable[[], int]):
        self._domain, self._alive = domain, alive
        self.common = Known(rows)
        self.by_lane: dict[int, Known] = {}
        self.all: list[Known] = [self.common]
        self.fenced: dict[tuple[int, int], Known] = {}

    def of(self, lanes: Lanes) -> list[Known]:
        """What the lanes know, each entry once."""
        if not self.by_lane:
            return self.all
        return list(self.of_each(self._lanes() if lanes is None else lanes))

    def _lanes(self) -> list[int]:
        alive = self._alive()
        return [lane for lane in range(WARP_SIZE) if alive >> lane & 1]

    def of_each(self, lanes: Iterable[int]) -> dict[Known, list[int]]:
        """The lanes by what they know."""
        found: dict[Known, list[int]] = {}
        for lane in lanes:
            found.setdefault(self.by_lane.get(lane, self.common), []).append(lane)
        return found

    def least(self, lanes: Lanes) -> Known:
        """What every one of the lanes knows at least."""
        found = self.of(lanes)
        return found[0] if len(found) == 1 else self.common

    def fenced_by(self, lanes: Lanes) -> list[Known]:
        """What the lanes knew at release fences of their own, each entry once."""
        found = (known for (lane, _), known in self.fenced.items() if _has(lanes, lane))
        return list(dict.fromkeys(found)) if self.fenced else []

    def fenced_anew(self, lanes: Lanes, reach: int) -> None:
        """Lanes execute another release fence, which covers everything that earlier ones of no
        wider scope covered."""
        for lane, earlier in list(self.fenced):
            if _has(lanes, lane) and earlier <= reach:
                del self.fenced[lane, earlier]

    def taking(self, lanes: Lanes) -> list[Known]:
        """What these lanes know, as entries that no other lane shares, since they are about to
        learn what others do not."""
        if lanes is None:
            return self.all
        shared = {id(self.common)}
        shared |= {id(known) for lane, known in self.by_lane.items() if lane not in lanes}
        found = self.of_each(lanes)
        for known in [known for known in found if id(known) in shared]:
            copy = known.copy()
            self.by_lane.update(dict.fromkeys(found.pop(known), copy))
            found[copy] = []
        self._note()
        return list(found)

    def _note(self) -> None:
        self.all = [self.common, *dict.fromkeys(self.by_lane.values())]

    def settle(self) -> None:
        """Lanes that know no more than all others stop having entries of their own."""
        if self.by_lane.keys() >= set(self._lanes()):
            self._raise_common()
        covered = {lane: known for lane, known in self.by_lane.items() if self.common.covers(known)}
        self._keep_fenced(covered)
        self.by_lane = {lane: known for lane, known in self.by_lane.items() if lane not in covered}
        self._note()

    def _keep_fenced(self, by_lane: dict[int, Known]) -> None:
        """What the fence of a lane covers remains what that lane alone passes on by relaxed
        operations."""
        for lane, known in by_lane.items():
            if known.alone is not None:
                self.fenced[lane, known.alone] = known

    def _raise_common(self) -> None:
        """What every one of the lanes knows becomes what they know in common."""
        first, *others = self.of(None)
        common, width = first.copy(), self._domain.width
        common.pending.clear()
        for known in others:
            common.rows = np.minimum(common.wide(width), known.wide(width))
            common.together = min(common.together, known.together)
            common.initialised &= known.initialised
            common.others = _in_both(common.others, known.others)
            common.fences = common.fences.in_both(known.fences)
            common.covered = {
                row: _covered_by_both(elsewhere, known.covered[row])
                for row, elsewhere in common.covered.items()
                if row in known.covered
            }
        self.common = common

    def meet(self) -> None:
        """All lanes learn what each of them knows."""
        self._keep_fenced(self.by_lane)
        for known in self.all[1:]:
            self.common.join(known, self._domain)
        self.by_lane, self.all = {}, [self.common]


def _is_in(rows: Rows, others: Rows) -> bool:
    """Whether `others`, of which there may be more, have reached these rows."""
    kinds, width = rows.shape
    return all_of(rows <= fitted(others, width)[:kinds, :width])


def _has(lanes: Lanes, lane: int) -> bool:
    return lanes is None or lane in lanes


def _in_both(one: dict[int, Rows], other: dict[int, Rows]) -> dict[int, Rows]:
    return {number: _both(rows, other[number]) for number, rows in one.items() if number in other}


def _covered_by_both(one: Elsewhere, other: Elsewhere) -> Elsewhere:
    return _in_both(one[0], other[0]), one[1].in_both(other[1])


def _both(rows: Rows, others: Rows) -> Rows:
    width = max(rows.shape[1], others.shape[1])
    return np.minimum(fitted(rows, width), fitted(others, width))
