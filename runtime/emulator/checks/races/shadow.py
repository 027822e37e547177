"""Who wrote and who read each byte last, and whether the next access is ordered behind them.

A mark is two numbers. `who` is the component (with the cluster's number for global memory). It is
negative if the access was strong (PTX ISA §8.7: two strong accesses never race, except as `reaches`
says), and 0 for nobody. `when` is ``time << 20 | PTX line``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np

from ...machine.shared_access import Words
from ...truth import any_of
from ..fences.proxy import AFAR, CLOCKED, SharedProxy
from .actor import LINE_BITS, Actor
from .clock import ASYNC, KNOWN, OVER, AsWarning, Domain
from .compared import Compared
from .earlier_writes import EarlierWrites
from .grains import Cells, Run, Span, bytes_of, row_span, span_of
from .lane_times import uncovered
from .lanes_of_bytes import lane_of_each, note_lanes
from .last_writes import LastWrites
from .order import (
    Same,
    flags_of,
    harmful,
    unordered,
)
from .reads import AgentReads
from .verdicts import LINE_MASK, Past, between_lanes, limit, split_when

Warn = Callable[[str, str], None]


class SharedShadow:
    """The marks of one CTA's shared memory of ``size`` bytes; offsets are those of its window.

    proxy: knows the writing threads that have not executed a proxy fence since. warn: is called for
    a write that only other threads have fenced. as_warning: as in `SharedRules`.
    """

    def __init__(
        self,
        size: int,
        domain: Domain,
        name: str,
        proxy: SharedProxy,
        warn: Warn,
        as_warning: AsWarning,
    ):
        self._size = -size % 16 + size
        self._domain, self._name, self._proxy, self._warn = domain, name, proxy, warn
        self._as_warning = as_warning
        self._tags = proxy.tags
        self._writes = LastWrites(self._size)
        self._earlier = EarlierWrites(self._size)
        self._lanes = np.zeros(self._size, np.uint8)
        self._compared = Compared(self._size)
        self._reads: dict[int, AgentReads] = {}

    def read(
        self, index: Cells, size: int, actor: Actor, what: str, span: Span | None = None
    ) -> None:
        """Judges and notes a read of the cells of ``size`` bytes (a power of two) with these
        numbers, which lie in the span."""
        run = self._writes.around(span) if span else None
        if run is not None and self._knows(run, actor):
            self._note_fences(index, size, actor, what)
        elif not self._compared.excuses(index, size, actor):
            self._check_writes(index, size, actor, what)
            self._check_earlier(index, size, actor, what)
        reader = -actor.own if actor.strong else actor.own
        reads = self._reads.get(reader)
        if reads is None:
            reads = self._reads[reader] = AgentReads(self._size)
        reads.note(index, size, actor, span, run and run.span)

    @staticmethod
    def _knows(run: Run, actor: Actor) -> bool:
        """Whether an agent that is not a thread is ordered behind the access that marked a run."""
        if actor.lanes is not None:
            return False
        visible = actor.rows[ASYNC if actor.asynchronous else KNOWN]
        return (actor.strong and run.who < 0) or run.when < limit(visible, abs(run.who))

    def write(
        self, index: Cells, size: int, actor: Actor, what: str, same: Same | None = None
    ) -> None:
        """Judges and notes a write of them; ``same()`` tells which of the bytes keep their
        value."""
        row = row_span(index)
        run = self._writes.around(row) if row else None
        if run is not None and self._knows(run, actor):
            self._note_fences(index, size, actor, what)
        else:
            self._check_writes(index, size, actor, what, same, overwrites=True)
            self._check_earlier(index, size, actor, what)
        if not actor.comparing:
            self._check_reads(index, size, actor, what)
        self._compared.written(index, size, actor)
        who = -actor.own if actor.strong else actor.own
        if actor.telling:
            self._earlier.observed(index, size)
        elif actor.strong:
            self._earlier.note(self._writes, self._lanes, index, size, who)
        self._writes.put(index, size, who, actor.when)
        if not actor.asynchronous:
            note_lanes(self._lanes, index, size, actor)

    def awaited(
        self, index: np.ndarray, size: int, lanes: np.ndarray, stream: int, event: tuple[int, int]
    ) -> None:
        """Lanes (1 + each) have waited for their copies into these cells, of component `stream`:
        from this event on they are writes of the lanes themselves."""
        who, when = self._writes.fine(index, size)
        written = self._lanes[bytes_of(index, size)] == np.repeat(lanes, size)
        own = (written & (who == stream)).reshape(-1, size).all(axis=1)
        if any_of(own):
            component, time = event
            line = int(when[np.repeat(own, size).argmax()]) & LINE_MASK
            self._writes.put(index[own], size, component, time << LINE_BITS | line)

    def superseded(self, words: Words, span: Span) -> None:
        """The async proxy has written these 8-byte words: no fence is awaited there any more."""
        if self._proxy.unfenced_in(*span):
            self._proxy.written_words(words)

    def _check_writes(
        self,
        index: Cells,
        size: int,
        actor: Actor,
        what: str,
        same: Same | None = None,
        *,
        overwrites: bool = False,
    ) -> None:
        visible = actor.rows[ASYNC if actor.asynchronous else KNOWN]
        by_words = self._writes.coarse(index, size)
        if by_words is not None and self._in_order(by_words[0], by_words[1], actor, visible):
            self._note_fences(index, size, actor, what)
            return
        who, when = self._writes.fine(index, size)
        if actor.lanes is not None and not actor.strong:
            self._check_lanes(index, size, actor, what, (who, when, same))
        bad = self._unordered((who, when), (index, size), actor, visible)
        if bad is None:
            self._note_fences(index, size, actor, what)
            return
        unknown = self._unordered((who, when), (index, size), actor, actor.rows[KNOWN])
        if overwrites and unknown is not None:
            live = self._unordered((who, when), (index, size), actor, actor.rows[OVER])
            bad &= ~unknown | flags_of(live, len(bad))
        while (at := harmful(bad, same)) is not None:
            mark = int(who[at]), int(when[at])
            self._refuse(int(bytes_of(index, size)[at]), "write", mark, actor, what)
            bad = bad & ((who != mark[0]) | (when != mark[1]))

    def _check_earlier(self, index: Cells, size: int, actor: Actor, what: str) -> None:
        """Traps if the access is not ordered behind strong writes that preceded the last one."""
        marks = self._earlier.marks
        if marks is None or actor.strong or marks.is_blank(index, size):
            return
        who, when, lanes = marks.fine(index, size)
        row = actor.rows[KNOWN]
        bad = unordered(who, when, actor, row)
        if bad is not None:
            bad = uncovered(bad, (who, when), lanes, self._domain, row)
        if bad is not None:
            at = int(bad.argmax())
            mark = int(who[at]), int(when[at])
            self._refuse(int(bytes_of(index, size)[at]), "write", mark, actor, what)

    def _unordered(
        self, marks: tuple, cells: tuple[Cells, int], actor: Actor, row: np.ndarray
    ) -> np.ndarray | None:
        """`unordered` for writes, by the lanes that wrote."""
        bad = unordered(marks[0], marks[1], actor, row)
        if bad is None:
            return None
        return uncovered(bad, marks, self._lanes[bytes_of(*cells)], self._domain, row)

    @staticmethod
    def _in_order(who: np.ndarray, when: np.ndarray, actor: Actor, visible: np.ndarray) -> bool:
        """Whether no byte needs a closer look."""
        if actor.lanes is not None and not actor.strong and any_of(_recent(who, when, actor)):
            return False
        return unordered(who, when, actor, visible) is None

    def _note_fences(self, index: Cells, size: int, actor: Actor, what: str) -> None:
        """The ISA requires a proxy fence on the way; in practice the writer itself executes one."""
        if not actor.asynchronous or not self._proxy.unfenced:
            return
        waiting = self._tags[bytes_of(index, size)]
        threads = (waiting != 0) & (waiting < AFAR)
        if not any_of(threads):
            return
        first = int(threads.argmax())
        warp, lane = divmod(int(waiting[first]) - 1, 32)
        line = split_when(int(self._writes.fine(index, size)[1][first]))[1]
        self._warn(
            "proxy-fence",
            f"{what} follows a write by warp {warp} lane {lane} (ptx:{line}) behind a"
            f" fence.proxy.async of other threads alone; the writer should execute it before it"
            f" synchronises",
        )

    def _check_lanes(self, index: Cells, size: int, actor: Actor, what: str, past: tuple) -> None:
        """Traps for a write of another lane of the warp since its lanes last met."""
        who, when, same = past
        recent = _recent(who, when, actor)
        if not any_of(recent):
            return
        writers = self._lanes[bytes_of(index, size)]
        recent &= (writers != 0) & (writers != lane_of_each(actor, index, size))
        row = actor.rows[KNOWN]
        bad = harmful(uncovered(recent, (who, when), writers, self._domain, row), same)
        if bad is None:
            return
        at, lane = int(bytes_of(index, size)[bad]), int(writers[bad]) - 1
        name = self._domain.name(actor.own).replace(" of cta", f" lane {lane} of cta")
        other = f"the write by {name} (ptx:{split_when(int(when[bad]))[1]})"
        raise between_lanes(what, f"shared offset 0x{at:x}", other)

    def _check_reads(self, index: Cells, size: int, actor: Actor, what: str) -> None:
        span, over = None, actor.rows[OVER]
        for reader, reads in self._reads.items():
            unknown = limit(over, abs(reader))
            if reads.latest < unknown or (actor.strong and reader < 0):
                continue
            span = span or span_of(index, size)
            if not reads.may_meet(span, unknown):
                continue
            marks = reads.marks()
            when = (marks.coarse(index, size) or marks.fine(index, size))[0]
            if when.max() >= unknown:
                when, lanes = marks.fine(index, size)
                bad = uncovered(when >= unknown, (reader, when), lanes, self._domain, over)
                if bad is not None:
                    first = int(np.where(bad, when, 0).argmax())
                    at = int(bytes_of(index, size)[first])
                    self._refuse(at, "read", (reader, int(when[first])), actor, what)

    def _refuse(self, at: int, past: str, mark: tuple[int, int], actor: Actor, what: str) -> None:
        """Traps, or warns of what libraries ship."""
        component, (_, line) = abs(mark[0]), split_when(mark[1])
        name = self._domain.name(component)
        if past == "write" and self._tags[at] == CLOCKED and name.startswith("warp"):
            name = f"cp.async of {name}"
        other = f"the {past} by {name} (ptx:{line})"
        place = f"shared offset 0x{at:x} of {self._name}"
        lane = 0 if past == "read" else int(self._lanes[at])
        lanes = self._domain.lanes.get(component)
        past_event = Past(actor, component, mark[1], lanes=lanes, lane=lane)
        if past_event.is_known(KNOWN) and 0 < self._tags[at] < AFAR:
            other = other.replace(" of cta", f" lane {(int(self._tags[at]) - 1) % 32} of cta")
        fenced = not actor.asynchronous or self._tags[at] == 0
        shipped = past_event.is_shipped(what, other, fenced=fenced)
        with self._as_warning(shipped) if shipped else nullcontext():
            raise past_event.refusal(what, place, other, ASYNC)


def _recent(who: np.ndarray, when: np.ndarray, actor: Actor) -> np.ndarray:
    """Marks of the agent itself since the lanes of its warp last met."""
    return (who == actor.own) & (when >= (actor.together + 1) << LINE_BITS)
