"""Records what runs when: instructions of warps, waits, asynchronous operations, barrier phases.

The clock counts warp instructions and completed operations: each takes one tick, and one happens
at a time. So the order is exact, and durations are steps of the emulator, not time on a chip.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..interface import Cta, EngineOp, Launch, Split, Warp
from ..machine.mbarrier import Mbarrier
from ..machine.waits import wait_title
from ..ptx.origins import Origins
from ..ptx.registry import Blocked, Step
from .observer import Observer

MAX_SLICES = 1_000_000
"""Slices and arrows that are kept; later ones are counted only."""


class Track(NamedTuple):
    """One line of the picture. kind: `warp`, `engine` or `mbarrier`; key: which one of them, of a
    warp (its index, whether it shows the lanes that wait for others of their warp)."""

    cta: tuple[int, int, int]
    kind: str
    key: Any


class Slice(NamedTuple):
    """Something that lasts from tick `start` to `end`."""

    track: Track
    start: int
    end: int
    name: str
    details: dict[str, Any]


class Arrow(NamedTuple):
    """At tick `at`, the slice that ends on `source` signalled what goes on at `target`."""

    source: Track
    target: Track
    at: int


class Tracer(Observer):
    """Collects `slices` and `arrows`. `now` is the clock, `dropped` what did not fit."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self._source = launch.program.source
        self._origins = Origins(launch.program.text)
        self.now = 0
        self.dropped = 0
        self.slices: list[Slice] = []
        self.arrows: list[Arrow] = []
        self._run: list[Any] | None = None
        self._waits: dict[Warp, dict[Split, tuple[int, Blocked, int]]] = {}
        self._issued: dict[EngineOp, int] = {}
        self._phases: dict[Track, tuple[int, int]] = {}

    def wrap(self, pc: int, step: Step) -> Step:
        def traced(warp: Warp, mask: Any) -> Any:
            split = warp.split
            if warp in self._waits:
                self._end_waits(warp, split)
            self._extend_run(warp, pc)
            signal = step(warp, mask)
            self.now += 1
            if isinstance(signal, Blocked):
                self._waits.setdefault(warp, {})[split] = (self.now, signal, pc)
            return signal

        return traced

    def submitted(self, op: EngineOp) -> None:
        self._issued[op] = self.now

    def completed(self, op: EngineOp) -> None:
        start = self._issued.pop(op, self.now)
        self.now += 1
        self._keep(Slice(op_track(op), start, self.now, op.name, self._op_details(op)))

    def signalled(self, cta: Cta, offset: int, barrier: Mbarrier, phase: int) -> None:
        track = Track(cta.index, "mbarrier", offset)
        began, _ = self._phases.setdefault(track, (self.now, phase))
        op = self._launch.engines.current
        if self._launch.current_warp is None and op is not None:
            self._keep_arrow(Arrow(op_track(op), track, self.now))
        if barrier.phase != phase:
            self._keep(Slice(track, began, self.now + 1, f"phase {phase}", {}))
            self._phases[track] = self.now + 1, barrier.phase

    def finish(self) -> None:
        """End everything that is still open: the launch is over, or has failed."""
        self._end_run()
        for warp in list(self._waits):
            self._end_waits(warp, None, everything=True)
        for op, start in self._issued.items():
            details = {**self._op_details(op), "unfinished": True}
            self._keep(Slice(op_track(op), start, self.now, op.name, details))
        for track, (began, phase) in self._phases.items():
            self._keep(Slice(track, began, self.now, f"phase {phase}, not complete", {}))

    # -- runs of instructions ----------------------------------------------------------------

    def _extend_run(self, warp: Warp, pc: int) -> None:
        run = self._run
        if run is not None and run[0] is warp and run[2] == self.now:
            run[2], run[4] = self.now + 1, pc
            return
        self._end_run()
        self._run = [warp, self.now, self.now + 1, pc, pc]

    def _end_run(self) -> None:
        if self._run is None:
            return
        warp, start, end, first, last = self._run
        lines = f"ptx:{self._source[first].line}–{self._source[last].line}"
        details = {"instructions": end - start, "first": self._source[first].text}
        details |= self._origin(self._source[first].line)
        self._keep(Slice(warp_track(warp), start, end, lines, details))
        self._run = None

    # -- waits -------------------------------------------------------------------------------

    def _end_waits(self, warp: Warp, split: Split | None, everything: bool = False) -> None:
        """End the wait of a split that runs again, and of those that it has absorbed."""
        waits = self._waits[warp]
        over = [each for each in waits if each is split or each not in warp.splits or everything]
        for each in over:
            start, reason, pc = waits.pop(each)
            source = self._source[pc]
            details = {"ptx_line": source.line, "instruction": source.text, "kind": reason.kind}
            details |= self._origin(source.line)
            title = f"wait: {wait_title(reason)}"
            track = warp_track(warp, idle=reason.kind == "convergence")
            self._keep(Slice(track, start, self.now, title, details))
        if not waits:
            del self._waits[warp]

    # -- bookkeeping -------------------------------------------------------------------------

    def _op_details(self, op: EngineOp) -> dict[str, Any]:
        if op.signal is None:
            return {}
        line = self._source[op.signal.pc].line
        return {"warp": op.signal.warp, "ptx_line": line, **self._origin(line)}

    def _origin(self, line: int) -> dict[str, Any]:
        """Where a line of the PTX comes from, if the text says it."""
        place = self._origins.of(line)
        return {"from": place} if place else {}

    def _keep(self, item: Slice) -> None:
        if item.end <= item.start:
            return
        if len(self.slices) < MAX_SLICES:
            self.slices.append(item)
        else:
            self.dropped += 1

    def _keep_arrow(self, item: Arrow) -> None:
        if len(self.arrows) < MAX_SLICES:
            self.arrows.append(item)
        else:
            self.dropped += 1


def warp_track(warp: Warp, idle: bool = False) -> Track:
    return Track(warp.cta.index, "warp", (warp.index, idle))


def op_track(op: EngineOp) -> Track:
    cta = op.signal.cta if op.signal is not None else (0, 0, 0)
    return Track(cta, "engine", op.agent or "engine")
