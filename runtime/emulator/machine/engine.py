"""Asynchronous operations in flight: copies, tensor-core work, commit arrivals.

An instruction submits an `EngineOp`; the scheduler runs it later, at a time that the seed
picks, once all operations in `after` are done. Nothing else may run it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import Trap
from ..interface import Cta, Launch, Warp
from ..interface import EngineOp as Operation
from .signals import Signal


class Pieces(NamedTuple):
    """Where bytes lie: `sizes` at each of `starts`, uint64[n] and int64[n]. lanes: who asks for
    each where threads do; None where an engine moves them one after the other."""

    starts: np.ndarray
    sizes: np.ndarray
    lanes: np.ndarray | None = None


class Move(NamedTuple):
    """What an operation moves, for profiles: the memory, `read` or `write`, and bytes.

    pieces: where, if that is known; rows: of one size, in which a copy engine moves the bytes.
    """

    memory: str
    direction: str
    amount: int
    pieces: Pieces | None = None
    rows: int = 0


Moves = tuple[Move, ...]


class Asked(Protocol):
    """Says what an operation moves."""

    def __call__(self) -> Moves: ...


Stream = tuple[str, int | None]
"""A kind of operation and the lane that issues it, None for the whole warp."""


def moves_nothing() -> Moves:
    """The moved bytes of operations that only order or signal: none."""
    return ()


class EngineOp:
    """One asynchronous operation.

    name: shown in deadlock reports, e.g. `tma load 128x64 bf16 -> 0x400`, or what makes it.
    run: performs the whole operation (reads, writes, arrivals); may raise Trap.
    after: operations that must be done before.
    notifies: CTAs whose waiting threads shall look again afterwards (waits for an mbarrier need
    none: its phase wakes them).
    touches: CTAs that must not exit before it is done: it uses their shared or tensor memory.
    agent: the engine (`tma`, `tensor core` …), for reports.
    moves: what it moves, asked only by profiles, when it is done.
    What orders it: signals: CTA and window offset of the mbarrier whose phase tells of its
    completion; stream: else the operations of a thread, or a warp, that are waited for together;
    joins: it tells of those of the stream before it; commits: its arrival passes on what the
    issuing warp knew; generic: it accesses memory through the generic proxy. marks: what checks
    keep of it.
    `origin` (kernel place of the issuer, keywords of `Trap.locate`), its `line`, and `signal` (the
    same for reports) are known after `submit`.
    """

    __slots__ = (
        "_name",
        "_place",
        "after",
        "agent",
        "commits",
        "done",
        "generic",
        "joins",
        "line",
        "marks",
        "moves",
        "notifies",
        "run",
        "signal",
        "signals",
        "stream",
        "successors",
        "touches",
        "waits_for",
    )

    def __init__(
        self,
        name: str | Callable[[], str],
        run: Callable[[], None],
        after: tuple[Operation, ...] = (),
        *,
        agent: str = "",
        notifies: tuple[Cta, ...] = (),
        touches: tuple[Cta, ...] = (),
        moves: Asked = moves_nothing,
        signals: tuple[Cta, int] | None = None,
        stream: Stream | None = None,
        joins: bool = False,
        commits: bool = False,
        generic: bool = False,
    ):
        self._name, self.agent = name, agent
        self.run: Callable[[], None] = run
        self.after: tuple[Operation, ...] = after
        self.notifies, self.touches = notifies, touches
        self.moves: Asked = moves
        self.signals: tuple[Any, int] | None = signals
        self.stream, self.joins = stream, joins
        self.commits, self.generic = commits, generic
        self.marks: Any = None
        self.done = False
        self.line = 0
        self._place: tuple[Warp, int, np.ndarray] | None = None
        self.signal: Any = None  # a `Signal`
        self.successors: list[Any] = []
        self.waits_for = 0

    @property
    def name(self) -> str:
        return self._name if isinstance(self._name, str) else self._name()

    def issued_by(self, warp: Warp) -> None:
        """Remember where the warp is."""
        split = warp.split
        self.line = warp.program.source[split.pc].line
        self._place = warp, split.pc, split.mask
        self.signal = Signal(self.agent, warp.cta.index, warp.index, split.pc)

    @property
    def place(self) -> int:
        """The pc from which it was issued."""
        assert self._place is not None  # a warp has
        return self._place[1]

    def stand_at(self, pc: int) -> None:
        """From now on it is one that the same lanes issued at another pc."""
        assert self._place is not None  # a warp has
        warp, _, mask = self._place
        self.line, self._place = warp.program.source[pc].line, (warp, pc, mask)

    @property
    def origin(self) -> dict[str, Any]:
        if self._place is None:
            return {}
        warp, pc, mask = self._place
        return warp.place_at(pc, mask)


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
            op.issued_by(warp)
        self.outstanding[op] = None
        self._launch.events.submitted(op)
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
            self._launch.events.began(op)
            op.run()
        except Trap as trap:
            raise trap.locate(**op.origin) from None
        self._finish(op)

    def _finish(self, op: EngineOp) -> None:
        op.done = True
        del self.outstanding[op]
        self._launch.events.completed(op)
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
                    f" ptx:{op.line or None} by cta {op.origin.get('cta')}) still needs its"
                    f" memory or barriers; wait for its completion first",
                )
