"""One warp: registers, and the splits that hold its divergent lanes.

A split is a set of lanes at one program counter. The lowest pc (deepest call first) runs
first and splits that meet merge, so structured code reconverges at its join; a parked split
lets the others run, so lanes that wait never starve the lanes they wait for (PTX ISA §3.1,
independent thread scheduling).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import Trap, UnwrittenRead, lane_text
from ..interface import Cta
from ..ptx.addresses import LOCAL_WINDOW
from ..ptx.lane_trace import Left, Trace
from ..ptx.lanes import FULL, canonical, guarded, lanes_in, lanes_to_int
from ..ptx.lanewise import Stretch
from ..ptx.recall import Recall
from ..ptx.registry import CONTROL, JUMP, SWITCH, Blocked, Yield
from ..truth import any_of
from .cta import KEYED, StateBag
from .spaces import GenericSpace
from .undefined import NO_STRETCHES, Undefined, of_new_warp

FAIRNESS_QUANTA = 3
"""Quanta the same split may run on while others of its warp could, before one of them does."""
NOWHERE: frozenset[int] = frozenset()


class Split:
    """Lanes at one pc. stack: `(return pc, frame, outer stack)`, outermost `()`.

    parked_at: the CTA's event count when it was parked, KEYED, or None; reason: why; token: what
    the blocked instruction at pc remembers between retries, None else.
    """

    __slots__ = ("mask", "parked_at", "pc", "reason", "stack", "token")

    def __init__(self, pc: int, mask: np.ndarray, stack: tuple):
        self.pc, self.mask, self.stack = pc, mask, stack
        self.parked_at: int | None = None
        self.reason: Blocked | None = None
        self.token = None

    @property
    def polls(self) -> bool:
        """Parked behind a wait that answered False."""
        return isinstance(self.reason, Yield)

    def priority(self) -> tuple[int, int]:
        """Runs first if smallest: deepest call, then lowest pc."""
        depth, stack = 0, self.stack
        while stack:
            depth, stack = depth + 1, stack[-1]
        return -depth, self.pc


class Warp(StateBag):
    """regs: list of numpy arrays by register slot (never mutated in place: arrays are shared).

    index: the warp's number in its CTA; live: lanes not exited, as a 32-bit integer;
    split: the one that runs now; `split.mask` are its lanes before the guard; _lone: its lane, if
    it has but one; _focused: the mask of which that is known; undefined: which registers are, None
    as long as none is; ran: whether the last quantum was more than the rest of a stretch.
    """

    def __init__(self, cta: Cta, index: int, mask: np.ndarray):
        super().__init__()
        self.cta, self.index = cta, index
        self.launch = cta.launch
        self.program, self._edges = cta.launch.program, cta.launch.edges
        self.live = lanes_to_int(mask)
        self.local = cta.launch.make_local()
        self.generic = self._make_generic()
        self.regs = cta.launch.make_registers(self)
        self.split = Split(0, canonical(mask), ())
        self.splits = [self.split]
        self.parked = False
        self._horizon: float = math.inf
        self._meeting = NOWHERE
        self._lone: int | None = None
        self._focused: np.ndarray | None = None
        self._watching = False
        self._quanta = 0
        self._ahead, self.ran = 0, False
        self.undefined = of_new_warp(self)
        self.launch.events.warp_started(self)

    def _make_generic(self) -> GenericSpace:
        windows = dict(self.cta.generic.windows)
        windows[LOCAL_WINDOW] = (self.local, LOCAL_WINDOW)
        return GenericSpace(self.launch.global_memory, windows)

    # -- running ---------------------------------------------------------------------------

    def run(self, budget: int) -> int:
        """Run at most `budget` instructions; returns how many ran. Stops early when parked.

        A stretch runs at once, which nobody else can see; what of it the budget does not cover
        counts against the next one.
        """
        left = budget - self._ahead
        self._ahead, self.ran = 0, left > 0
        code, stretches = self._code()
        counts, regs = self.launch.counts, self.regs
        split = self._begin_quantum()
        while split is not None and left > 0:
            pc, mask = split.pc, split.mask
            if mask is FULL:
                if stretches[pc] is not None and not self._watching:
                    left -= self._run_stretch(stretches[pc])
                    continue
            elif self._lone is not None and (done := self._run_lone(pc, mask, self._lone)):
                left -= done[0]
                if done[1] is not None:
                    split = self._handle(done[1], mask)
                elif self._watching and (split.pc in self._meeting or split.pc > self._horizon):
                    split = self._reselect()
                continue
            left -= 1
            step, guard, negated = code[pc]
            if guard is not None:
                mask = guarded(mask, regs[guard], negated, self._lone)
            if mask is None:
                split.pc = pc + 1
            else:
                counts[pc] += 1
                try:
                    signal = step(self, mask)
                except UnwrittenRead as trap:
                    self.undefined = self.undefined or Undefined(self, [])
                    signal = self.undefined.load(pc, step, mask, trap)
                    code, stretches = self._code()
                if signal is None:
                    split.pc = pc + 1
                elif signal is SWITCH:
                    split.pc = pc + 1
                    break
                elif signal is not JUMP:
                    split = self._handle(signal, mask)
                    continue
            if self._watching and (split.pc in self._meeting or split.pc > self._horizon):
                split = self._reselect()
        if left < 0:
            self._ahead, left = -left, 0
        return budget - left

    def _code(self) -> tuple[Any, Any]:
        """The steps of the program, and the stretches that run at once."""
        if not self.undefined:
            self.undefined = None
            return self.launch.code, self.launch.stretches
        return self.undefined, NO_STRETCHES

    def _run_stretch(self, stretch: Stretch) -> int:
        """Run it; returns its number of instructions."""
        split = self.split
        first, end = split.pc, stretch.end
        stretch.run(self, self.program)
        self._edges[first] += 1
        self._edges[end] -= 1
        split.pc = end
        return end - first

    def _run_lone(self, pc: int, mask: np.ndarray, lane: int) -> Left | None:
        """Run the trace, or else the recalled run, that starts at a pc in a lone lane; None if it
        does not pay or would meet others inside."""
        launch = self.launch
        if self.undefined is not None:
            return None
        trace = launch.traces[pc]
        if trace is not None and self._is_alone_in(trace):
            left = trace.run(self, lane)
            if left is not None:
                return left
        recall = launch.recalls[pc]
        if recall is None or not self._is_alone_in(recall) or not recall.run(self, mask, lane):
            return None
        self._edges[pc] += 1
        self._edges[recall.end] -= 1
        self.split.pc = recall.end
        return recall.length, None

    def _is_alone_in(self, run: Trace | Recall) -> bool:
        """Whether its lane meets no others inside."""
        return not self._watching or (
            run.end - 1 <= self._horizon and self._meeting.isdisjoint(run.inside)
        )

    def place(self) -> dict:
        """Where the warp is now, as keywords for `Trap.locate`."""
        return self.place_of(self.split, self.split.pc)

    def place_of(self, split: Split, pc: int | None = None) -> dict:
        """The same of a set of lanes: where it is or, without ``pc``, waits."""
        return self.place_at(self.stands_at(split) if pc is None else pc, split.mask)

    def place_at(self, pc: int, mask: np.ndarray) -> dict:
        """The same of lanes that are, or were, at a pc."""
        source = self.program.source[min(pc, len(self.program.source) - 1)]
        return dict(
            kernel=self.program.entry,
            cta=self.cta.index,
            warp=self.index,
            lanes=lanes_to_int(mask),
            line=source.line,
            text=source.text,
        )

    def _handle(self, signal: Any, mask: np.ndarray) -> Split | None:
        split = self.split
        if signal is CONTROL:
            return self._reselect()
        if isinstance(signal, Yield):
            split.pc += 1
        else:
            self._fork_skipped(split, mask)
        split.reason = signal
        if signal.key is None:
            split.parked_at = self.cta.events
        else:
            split.parked_at = KEYED
            self.cta.park(self, split)
        return self._reselect()

    def _fork_skipped(self, split: Split, mask: np.ndarray) -> None:
        """Lanes whose guard is false do not wait with the blocked ones."""
        if mask is split.mask or mask.tobytes() == split.mask.tobytes():
            return
        self.splits.append(Split(split.pc + 1, split.mask & ~mask, split.stack))
        split.mask = mask

    # -- splits ----------------------------------------------------------------------------

    def runnable(self, split: Split) -> bool:
        """False while it is parked and what it waits for has not happened."""
        at = split.parked_at
        return at is None or (at != KEYED and at != self.cta.events)

    def can_run(self) -> bool:
        return any(self.runnable(split) for split in self.splits)

    def _begin_quantum(self) -> Split | None:
        if len(self.splits) == 1:
            return self._reselect()
        self._quanta += 1
        split = self._reselect()
        if split is not None and self._quanta % FAIRNESS_QUANTA == 0:
            split = self._run_another(split)
        return split

    def _run_another(self, split: Split) -> Split:
        others = [other for other in self.splits if other is not split and self.runnable(other)]
        if not others:
            return split
        chosen = self.launch.rng.choice(others)
        return self._focus(chosen, [])

    def _focus(self, split: Split, rivals: list[Split]) -> Split:
        """Let `split` run until it meets another one or passes the lowest of `rivals`."""
        split.parked_at = split.reason = None
        self.split = split
        if split.mask is not self._focused:
            lanes, self._focused = lanes_in(split.mask), split.mask
            self._lone = lanes[0] if len(lanes) == 1 else None
        self._horizon, self._watching = math.inf, len(self.splits) > 1
        if not self._watching:
            self._meeting = NOWHERE
            return split
        self._meeting = frozenset([other.pc for other in self.splits if other is not split])
        if len(rivals) > 1:
            self._horizon = min(
                (other.pc for other in rivals if other is not split and other.stack == split.stack),
                default=math.inf,
            )
        return split

    def _reselect(self) -> Split | None:
        """Merge splits that have met and pick the one to run; None if all are parked or gone."""
        if len(self.splits) == 1:
            split = self.splits[0]
            return self._focus(split, []) if self.runnable(split) else None
        if len({split.pc for split in self.splits}) < len(self.splits):
            self._merge_all()
        ready = [split for split in self.splits if self.runnable(split)]
        if not ready:
            return None
        first = ready[0] if len(ready) == 1 else min(ready, key=Split.priority)
        return self._focus(first, ready)

    def _merge_all(self) -> None:
        met: dict[tuple, Split] = {}
        for split in list(self.splits):
            if split.token is not None:
                continue
            first = met.setdefault((split.pc, split.stack), split)
            if first is not split:
                self._absorb(first, split)

    def _absorb(self, first: Split, other: Split) -> None:
        first.mask = canonical(first.mask | other.mask)
        mine, theirs = first.reason, other.reason
        same = mine is not None and theirs is not None and mine.key == theirs.key
        if not (first.polls and other.polls and same):
            first.parked_at = first.reason = None
        self.splits.remove(other)

    def _move(self, mask: np.ndarray, pc: int, stack: tuple) -> None:
        """Move the lanes of `mask` elsewhere; the other lanes of the split go on behind."""
        split = self.split
        if mask is split.mask or mask.tobytes() == split.mask.tobytes():
            split.pc, split.stack = pc, stack
            return
        split.mask = split.mask & ~mask
        split.pc += 1
        self.splits.append(Split(pc, mask, stack))

    def branch(self, mask: np.ndarray, target: int) -> None:
        """The lanes of `mask` jump to `target`."""
        self._move(mask, target, self.split.stack)

    def call(self, mask: np.ndarray, target: int, on_return: tuple) -> None:
        """The lanes of `mask` enter a function; `on_return` is kept at `stack[1]`."""
        self._move(mask, target, (self.split.pc + 1, on_return, self.split.stack))

    def call_several(self, mask: np.ndarray, targets: list[tuple[int, np.ndarray, tuple]]) -> None:
        """The lanes of `mask` enter several functions: (pc, lanes, on_return) for each."""
        back, stack = self.split.pc + 1, self.split.stack
        entered = [(pc, lanes, (back, kept, stack)) for pc, lanes, kept in targets]
        self._move(mask, entered[0][0], entered[0][2])
        moved = next(split for split in self.splits if any_of(split.mask[mask]))
        moved.mask = canonical(entered[0][1])
        self.splits += [Split(pc, lanes, inner) for pc, lanes, inner in entered[1:]]

    def leave(self, mask: np.ndarray) -> None:
        """The lanes of `mask` go back behind their call."""
        pc, _, outer = self.split.stack
        self._move(mask, pc, outer)

    def scatter(self, mask: np.ndarray, targets: list[tuple[int, np.ndarray]]) -> None:
        """The lanes of `mask` jump to several places: (pc, lanes) for each."""
        stack = self.split.stack
        self._move(mask, targets[0][0], stack)
        moved = next(split for split in self.splits if any_of(split.mask[mask]))
        moved.mask = canonical(targets[0][1])
        self.splits += [Split(pc, lanes, stack) for pc, lanes in targets[1:]]

    def exit_lanes(self, mask: np.ndarray) -> None:
        """The lanes of `mask` end; the other lanes of the split go on behind."""
        split = self.split
        source, gone = self.program.source[split.pc], lanes_to_int(mask)
        split.mask = split.mask & ~mask
        split.pc += 1
        if not any_of(split.mask):
            self.splits.remove(split)
        if self.live == gone:
            self.launch.events.warp_exiting(self)
        self.live &= ~gone
        self.cta.cluster.withdraw(self, gone)
        try:
            self.cta.threads_exited(gone.bit_count())
        except Trap as trap:
            raise trap.locate(lanes=gone, line=source.line, text=source.text) from None

    # -- convergence -----------------------------------------------------------------------

    def missing(self, mask: np.ndarray, wanted: int = 0xFFFFFFFF) -> int:
        """Lanes of `wanted` that are alive and not in `mask`."""
        return wanted & self.live & ~lanes_to_int(mask)

    def stands_at(self, split: Split) -> int:
        """The pc of the instruction that a split is at, or waits behind."""
        return split.pc - 1 if split.polls else split.pc

    def line_of(self, split: Split) -> int:
        """The PTX line that a split is at, or waits behind."""
        return self.program.source[self.stands_at(split)].line

    def describe(self) -> list[str]:
        """One line a split: where it is and for what it waits."""
        return [self._describe_split(split) for split in self.splits]

    def _describe_split(self, split: Split) -> str:
        source = self.program.source[self.stands_at(split)]
        waits = split.reason.describe() if split.reason else "can run"
        return (
            f"cta {self.cta.index} warp {self.index} lanes"
            f" {lane_text(lanes_to_int(split.mask))} at ptx:{source.line}"
            f" `{source.text}`: {waits}"
        )
