"""Finds the agent that accesses memory now: a warp, some of its lanes, or an operation under
way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...interface import Cta, EngineOp, Launch, Warp
from .actor import LINE_BITS, Actor, line_of
from .exits import note_access, note_operation, require_started
from .known import Known, Lanes
from .lane_times import EVERYONE, releasing
from .reaches import Reaches
from .warp_clock import WarpClock

NEVER = 1 << 40
"""The time of the last meeting where no access may be attributed to a lane of a warp."""
Part = tuple[np.ndarray | None, Actor]
"""A part of an access and the agent that does it: bool[accesses], None for all of them, and the
agent."""


class Actors:
    """operation: the one that an engine performs now; _clocks: those of the warps that exist."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self._clocks: dict[Warp, WarpClock] = {}
        self.operation: EngineOp | None = None
        self._engine: Actor | None = None
        self._reaches = Reaches()

    def clock(self, warp: Warp) -> WarpClock:
        """What a warp knows."""
        return self._clocks[warp]

    def warps_of(self, domain: int) -> dict[int, Warp]:
        """By component, the warps of a cluster's CTAs that have not exited."""
        clocks = self._clocks.items()
        return {clock.own: warp for warp, clock in clocks if clock.domain.number == domain}

    def known(self, warp: Warp, lanes: Lanes = None) -> Known:
        """What the lanes of a warp know that access memory or execute an instruction."""
        known = self._clocks[warp].known
        if not known.by_lane:
            return known.common
        return known.least(lanes or releasing(warp))

    def actor(self, warp: Warp | None = None, owner: Cta | None = None) -> Actor | None:
        """The agent that accesses memory now, which belongs to CTA `owner` if it is shared: the
        operation under way, or else the warp."""
        if self.operation is not None:
            return self._operating(self.operation, owner)
        warp = warp or self._launch.current_warp
        if warp is None:
            return None
        clock, strong = self._clocks[warp], self._launch.strong
        when = clock.time << LINE_BITS | line_of(warp)
        own = clock.own
        if owner is not None and owner is not warp.cta:
            what = f"an access to the shared memory of cta {owner.index}"
            self.require_started(warp, owner, what, "reaches for another's memory")
            own = clock.away()
            note_access(owner, (own, clock.time), line_of(warp))
        known = self.known(warp)
        rows = known.wide(clock.domain.width)
        actor = Actor(clock.domain, own, when, rows, known.others, strong is not None)
        actor.together = known.together
        if clock.known.by_lane:
            actor.warp = clock.known
        self._reaches.belongs(own, (clock.domain.number, warp.cta.rank))
        if strong is not None:
            actor.updating, actor.comparing = strong.updating, strong.comparing
            actor.telling = strong.telling
            self._reaches.note(line_of(warp), strong.scope)
            if self._reaches.count:
                actor.home = clock.domain.number, warp.cta.rank
                actor.reaches = self._reaches
        return actor

    def require_started(self, warp: Warp, owner: Cta, what: str, needs: str) -> None:
        """Traps if a warp needs another CTA that may not have been launched yet."""
        warps = (self._clocks[each] for each in owner.warps)
        require_started(self._clocks[warp], owner, warps, what, needs)

    def parted(self, actor: Actor, lanes: np.ndarray | None) -> Iterator[Part]:
        """Splits an access by lanes (1 + the lane of each) into parts whose lanes know the same."""
        actor.lanes = lanes
        if actor.warp is None or lanes is None or lanes[0] == EVERYONE:
            yield None, actor
            return
        found = actor.warp.of_each((lanes.astype(np.int64) - 1).tolist())
        for known, of_it in found.items():
            chosen = np.isin(lanes, [lane + 1 for lane in of_it]) if len(found) > 1 else None
            part = actor if chosen is None else replace(actor, lanes=lanes[chosen])
            part.rows, part.others = known.wide(actor.domain.width), known.others
            part.together = known.together
            yield chosen, part

    def engine(self, owner: Cta | None) -> Actor | None:
        """The agent of an access by an engine, which has no lanes."""
        if self.operation is None:
            return self.actor(owner=owner)
        if self._engine is None or self._engine.strong != (self._launch.strong is not None):
            self._engine = self._operating(self.operation, owner)
        else:
            note_operation(self.operation, owner)
        return self._engine

    def _operating(self, op: EngineOp, owner: Cta | None) -> Actor | None:
        meant = op.marks
        if meant is None or meant.event is None:
            return None
        note_operation(op, owner)
        component, time = meant.event
        when = time << LINE_BITS | op.line
        strong, clock = self._launch.strong is not None, meant.clock
        actor = Actor(clock.domain, component, when, clock.rows, clock.others, strong,
                      asynchronous=not op.generic, together=NEVER)  # fmt: skip
        if strong and actor.asynchronous:
            self._reaches.copies.add(op.line)
        if strong and self._reaches.copies:
            actor.reaches = self._reaches
        return actor
