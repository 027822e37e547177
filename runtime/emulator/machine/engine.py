"""Asynchronous operations in flight: copies, tensor-core work, commit arrivals.

An instruction submits an `EngineOp`; the scheduler runs it later, at a time that the seed
picks, once all operations in `after` are done. Nothing else may run it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ..checks.races.clock import Message
from ..errors import Trap
from ..interface import Cta, Launch
from .signals import Signal

Moves = tuple[tuple[str, str, int], ...]
"""(memory, `read` or `write`, bytes) of an operation, for profiles."""


def moves_nothing() -> Moves:
    """Of operations that only order or signal."""
    return ()


class EngineOp:
    """One asynchronous operation.

    name: shown in deadlock reports, e.g. `tma load 128x64 bf16 -> 0x400`.
    run: performs the whole operation (reads, writes, arrivals); may raise Trap.
    after: operations that must be done before.
    notifies: CTAs whose waiting threads shall look again afterwards (waits for an mbarrier need
    none: its phase wakes them).
    touches: CTAs that must not exit before it is done: it uses their shared or tensor memory.
    agent: the engine (`tma`, `tensor core` …), for reports.
    moves: what it moves, asked only by profiles, when it is done.
    For the race checks: signals: CTA and window offset of the mbarrier whose phase tells of its
    completion; event: what tells of it else (`Races.stream`); commits: its arrival passes on what
    the issuing warp knew; generic: it accesses memory through the generic proxy; clock: what the
    warp knew, and issuer: its CTA, filled by `submit`.
    `origin` (kernel place of the issuer, keywords of `Trap.locate`) and `signal` (the same for
    reports) are filled by `submit`.
    """

    __slots__ = (
        "after",
        "agent",
        "clock",
        "commits",
        "done",
        "event",
        "generic",
        "issuer",
        "moves",
        "name",
        "notifies",
        "origin",
        "run",
        "signal",
        "signals",
        "successors",
        "touches",
        "waits_for",
    )

    def __init__(
        self,
        name: str,
        run: Callable[[], None],
        after: tuple[EngineOp, ...] = (),
        *,
        agent: str = "",
        notifies: tuple[Cta, ...] = (),
        touches: tuple[Cta, ...] = (),
        moves: Callable[[], Moves] = moves_nothing,
        signals: tuple[Cta, int] | None = None,
        event: tuple[int, int] | None = None,
        commits: bool = False,
        generic: bool = False,
    ):
        self.name, self.run, self.after, self.agent = name, run, after, agent
        self.notifies, self.touches, self.moves = notifies, touches, moves
        self.signals, self.event = signals, event
        self.commits, self.generic = commits, generic
        self.clock: Message | None = None
        self.issuer: Cta | None = None
        self.done = False
        self.origin: dict = {}
        self.signal: Signal | None = None
        self.successors: list[EngineOp] = []
        self.waits_for = 0


class Engines:
    """The operations submitted and not yet done; `current` is the one that ran last."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self.ready: list[EngineOp] = []
        self.outstanding: dict[EngineOp, None] = {}
        self.current: EngineOp | None = None

    def submit(self, op: EngineOp) -> EngineOp:
        """Queue `op`; returns it, so that a later one can name it in `after`."""
        warp = self._launch.current_warp
        if warp is not None:
            op.origin = warp.place()
            op.signal = Signal(op.agent, warp.cta.index, warp.index, warp.split.pc)
        if self._launch.races is not None:
            self._launch.races.submitted(op, warp)
        self.outstanding[op] = None
        for observer in self._launch.observers:
            observer.submitted(op)
        for earlier in op.after:
            if not earlier.done:
                earlier.successors.append(op)
                op.waits_for += 1
        if op.waits_for == 0:
            self.ready.append(op)
        return op

    def run_one(self, rng: random.Random) -> None:
        """Run one ready operation, picked by `rng`."""
        pick = rng.randrange(len(self.ready))
        op = self.ready[pick]
        self.ready[pick] = self.ready[-1]
        self.ready.pop()
        self.current = op
        try:
            self._perform(op)
        except Trap as trap:
            raise trap.locate(**op.origin) from None
        self._finish(op)

    def _perform(self, op: EngineOp) -> None:
        races = self._launch.races
        if races is None:
            op.run()
            return
        races.begin(op)
        try:
            op.run()
        finally:
            races.end()

    def _finish(self, op: EngineOp) -> None:
        op.done = True
        del self.outstanding[op]
        for observer in self._launch.observers:
            observer.completed(op)
        for later in op.successors:
            later.waits_for -= 1
            if later.waits_for == 0:
                self.ready.append(later)
        op.successors.clear()
        op.after = ()
        for cta in op.notifies:
            cta.notify()

    def check_exit(self, cta: Cta) -> None:
        """Trap if an operation under way needs the memory of a CTA that exits now."""
        for op in self.outstanding:
            if cta in op.touches:
                raise Trap(
                    "exited-cta",
                    f"the CTA exits while {op.agent}: {op.name} (issued at"
                    f" ptx:{op.origin.get('line')} by cta {op.origin.get('cta')}) still needs its"
                    f" memory or barriers; wait for its completion first",
                )
