"""Who wrote and who read each byte of an array in global memory last; see `shadow`."""

from __future__ import annotations

import numpy as np

from ...errors import Trap
from ...machine.memory import Region
from ...truth import any_of
from .actor import LINE_BITS, Actor
from .clock import ASYNC_GLOBAL, KNOWN, OVER, Domain
from .compared import Compared
from .earlier_writes import EarlierWrites
from .grains import Cells, Grains, bytes_of
from .idle_reads import IdleReads
from .lane_times import uncovered
from .lanes_of_bytes import lane_of_each, note_lanes
from .order import (
    CLUSTER_SHIFT,
    COMPONENT_MASK,
    Lanes,
    Same,
    conflicts,
    harmful,
    visible_row,
)
from .reads import LastReads
from .verdicts import Past, between_lanes, split_when


class GlobalShadow:
    """The marks of one array in global memory that the kernel may write, by bytes from its start.

    Of reads, and of strong writes, the last ones of two agents are kept for each byte.
    """

    def __init__(self, region: Region, domains: list[Domain], idle: IdleReads):
        size = len(region.data)
        self._size, self._domains, self._name, self._idle = size, domains, region.name, idle
        self._writes: Grains | None = None
        self._earlier = EarlierWrites(size)
        self._lanes = np.zeros(size, np.uint8)
        self._reads = LastReads(size)
        self._compared = Compared(size)

    def read(self, index: Cells, size: int, actor: Actor, what: str) -> None:
        """Judges and notes a read of the cells of ``size`` bytes (a power of two) with these
        numbers."""
        if self._writes is not None and actor.incoherent:
            self._refuse_written(self._writes, (index, size), what)
        elif self._writes is not None and not self._compared.excuses(index, size, actor):
            about = "write", what, None
            self._check_lanes(self._writes, (index, size), actor, about)
            for marks in self._earlier.beside(self._writes, actor):
                self._check(marks, (index, size), actor, visible_row(actor), about)
        if not actor.updating:  # then it writes them, too
            self._reads.note(index, size, self._sign(actor), actor)

    def write(
        self, index: Cells, size: int, actor: Actor, what: str, same: Same | None = None
    ) -> None:
        """Judges and notes a write of them; ``same()`` tells which of the bytes keep their
        value."""
        if self._writes is None:
            self._writes = Grains(self._size, np.int64, np.int64)
        cells, about = (index, size), ("write", what, same)
        self._check_lanes(self._writes, cells, actor, about)
        for marks in self._earlier.beside(self._writes, actor):
            self._check(marks, cells, actor, visible_row(actor), about)
        for marks in () if actor.comparing else self._reads.marks():
            self._check(marks, cells, actor, OVER, ("read", what, same))
        self._compared.written(index, size, actor)
        if actor.telling:
            self._earlier.observed(index, size)
        elif actor.strong:
            self._earlier.note(self._writes, self._lanes, index, size, self._sign(actor))
        self._writes.put(index, size, self._sign(actor), actor.when)
        note_lanes(self._lanes, index, size, actor)

    def _check_lanes(
        self, writes: Grains, cells: tuple[Cells, int], actor: Actor, about: tuple
    ) -> None:
        """Traps for a write of another lane of the warp since its lanes last met."""
        if actor.lanes is None or actor.strong or writes.is_blank(*cells):
            return
        own, since = self._sign(actor), (actor.together + 1) << LINE_BITS
        by_words = writes.coarse(*cells)
        if by_words and not any_of((by_words[0] == own) & (by_words[1] >= since)):
            return
        who, when = writes.fine(*cells)
        writers = self._lanes[bytes_of(*cells)]
        recent = (who == own) & (when >= since) & (writers != 0)
        recent &= writers != lane_of_each(actor, *cells)
        domain, row = actor.domain, actor.rows[KNOWN]
        own_marks = actor.own, when
        bad = harmful(uncovered(recent, own_marks, writers, domain, row), about[2])
        if bad is not None:
            at, lane = int(bytes_of(*cells)[bad]), int(writers[bad]) - 1
            name = self._writer(own).replace(" of cta", f" lane {lane} of cta")
            other = f"the write by {name} (ptx:{split_when(int(when[bad]))[1]})"
            raise between_lanes(about[1], f"byte {at} of {self._name}", other)

    def _refuse_written(self, writes: Grains, cells: tuple[Cells, int], what: str) -> None:
        """Traps if anybody has written: nothing orders ld.global.nc behind a write of the same
        kernel (PTX ISA §8.1: the memory consistency model does not apply to it)."""
        if writes.is_blank(*cells):
            return
        who, when = writes.fine(*cells)
        if any_of(who):
            first = int((who != 0).argmax())
            other, line = self._writer(int(who[first])), split_when(int(when[first]))[1]
            raise Trap(
                "race",
                f"{what} of byte {int(bytes_of(*cells)[first])} of {self._name} by ld.global.nc"
                f" meets the write by {other} (ptx:{line}): that cache is not coherent, and nothing"
                f" orders the two; load what the kernel writes without .nc",
            )

    def _writer(self, who: int) -> str:
        return self._domains[abs(who) >> CLUSTER_SHIFT].name(abs(who) & COMPONENT_MASK)

    @staticmethod
    def _sign(actor: Actor) -> int:
        who = actor.domain.number << CLUSTER_SHIFT | actor.own
        return -who if actor.strong else who

    def _check(
        self, marks: Grains, cells: tuple[Cells, int], actor: Actor, kind: int, about: tuple
    ) -> None:
        if marks.is_blank(*cells):
            return
        by_words = marks.coarse(*cells)
        if by_words is not None:
            who, when = by_words[0], by_words[1]
            if not any(True for _ in conflicts(who, when, actor, kind)):
                return
        past, what, same = about
        who, when, *known = marks.fine(*cells)
        lanes = Lanes(known[0] if known else self._lanes[bytes_of(*cells)], self._domains)
        for flags in conflicts(who, when, actor, kind, lanes):
            bad, left = harmful(flags, same), flags
            while bad is not None:
                mark = int(who[bad]), int(when[bad])
                alike = left & (who == mark[0]) & (when == mark[1])
                offsets = bytes_of(*cells)
                trap = self._refusal(int(offsets[bad]), past, mark, actor, what)
                reads = what.startswith("the read"), past == "read"
                if not self._is_idle(trap, reads, mark, actor, offsets[alike]):
                    raise trap
                left = left & ~alike
                bad = harmful(left, same)

    def _is_idle(
        self,
        trap: Trap,
        reads: tuple[bool, bool],
        mark: tuple[int, int],
        actor: Actor,
        offsets: np.ndarray,
    ) -> bool:
        """Whether one of the two accesses is an ordinary read whose value is not used. reads:
        whether the access now is a read, and the one before."""
        now, before = reads[0] and not actor.strong, reads[1] and mark[0] > 0
        if actor.asynchronous or not (now or before):
            return False
        if not now and self._reads.are_forgotten(offsets):
            return False
        return self._idle.excuses(trap, None if now else mark, offsets)

    @staticmethod
    def _apart(actor: Actor, line: int) -> str:
        if actor.reaches and actor.reaches.mixes(line, actor.asynchronous):
            return "only one of the two is made by the async proxy"
        return "the scope of one does not include the other"

    def _refusal(self, at: int, past: str, mark: tuple[int, int], actor: Actor, what: str) -> Trap:
        who, (_, line) = abs(mark[0]), split_when(mark[1])
        cluster, component = who >> CLUSTER_SHIFT, who & COMPONENT_MASK
        other = f"the {past} by {self._domains[cluster].name(component)} (ptx:{line})"
        if actor.strong and mark[0] < 0:
            other += f", and {self._apart(actor, line)} (PTX ISA section 8.7.1)"
        place = f"byte {at} of {self._name}"
        lane = 0 if past == "read" else int(self._lanes[at])
        lanes = self._domains[cluster].lanes.get(component)
        event = Past(actor, component, mark[1], cluster, lanes, lane)
        return event.refusal(what, place, other, ASYNC_GLOBAL)
