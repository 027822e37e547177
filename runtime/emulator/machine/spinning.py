"""Warps that repeat themselves for ever: loops that ask memory for what nobody will write.

A warp that comes back to a state, while no byte of memory has another value than before and no
barrier, operation or start of a cluster has happened meanwhile, goes through the same states again
and again. Where that holds of every warp that runs, nothing ever happens any more. It is looked for
once a launch has been quiet for some time, and for a short time only: to compare states costs much.
What counts its rounds, or reads a clock, has another state each time, and ends by itself or at the
scheduler's limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..interface import Launch, Split, Warp
from ..truth import any_of
from .events import Watcher
from .memory import Region

QUIET_STEPS = 20_000
"""Instructions without an event, after which it is looked for warps that repeat themselves."""
ROUNDS = 64
"""How often each warp that runs may be asked for its state before that is given up."""
APART = 32
"""Quanta between two equal states of a warp whose lanes have diverged: its splits run in turn."""


Ask = tuple[int, Region, int, int]
"""An instruction that reads: pc, memory, the first byte there, and bytes."""


class _Asked(Watcher):
    """What the warps read while it is looked for a loop, and whether anybody changes a byte."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self.changed = False
        self.reads: dict[Warp, dict[int, tuple[Region, int, int]]] = {}

    def loading(self, region: Region, addresses: np.ndarray, index: np.ndarray, size: int) -> None:
        warp = self._launch.current_warp
        if warp is not None:
            at = int(region.offsets(addresses)[0])
            self.reads.setdefault(warp, {})[warp.split.pc] = region, at, size

    def storing(
        self, region: Region, addresses: np.ndarray, size: int, values: np.ndarray, who: Any
    ) -> None:
        offsets = region.offsets(addresses)
        new = np.ascontiguousarray(values).view(np.uint8).reshape(len(offsets), -1)
        self.changed |= any_of(region.data[offsets[:, None] + np.arange(size)] != new)

    def writing(self, region: Region, at: int, values: np.ndarray) -> None:
        self.changed |= not np.array_equal(region.data[at : at + len(values)], values)


class Changes:
    """What has changed in a launch since the start, or since `forget`: bytes of memory that threads
    share, what mbarriers lack. reads: what warps have read."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self._asked = _Asked(launch)
        self._regions = list(_memories(launch))
        for region in self._regions:
            region.watch(self._asked)
        self.forget()

    @property
    def reads(self) -> dict[Warp, dict[int, tuple[Region, int, int]]]:
        return self._asked.reads

    def end(self) -> None:
        """Hear of no more accesses."""
        for region in self._regions:
            region.unwatch(self._asked)

    def forget(self) -> None:
        """Begin anew."""
        self._asked.changed = False
        self._barriers, self._clock = self._launch.barrier_changes, self._launch.clock_reads

    def any(self) -> bool:
        return self._asked.changed or self._launch.barrier_changes != self._barriers

    def clock_was_read(self) -> bool:
        return self._launch.clock_reads != self._clock


class Spinning:
    """One look at a launch. found: every warp that runs repeats itself."""

    def __init__(self, launch: Launch):
        self._changes = Changes(launch)
        self._states: dict[Warp, dict[int, int]] = {}
        self._quanta: dict[Warp, int] = {}
        self._again: set[Warp] = set()

    def end(self) -> None:
        """Hear of no more accesses."""
        self._changes.end()

    def is_over(self, running: list[Warp]) -> bool:
        """Whether something has changed, somebody has read a clock, or the warps that run have been
        asked often enough."""
        moved = self._changes.any() or self._changes.clock_was_read()
        return moved or sum(self._quanta.values()) > ROUNDS * (len(running) + 4)

    def found(self, warp: Warp, running: list[Warp]) -> bool:
        """A warp has run for a quantum, and the look is not over: whether this shows that nothing
        happens any more. One that only counts what ran before shows nothing."""
        if not warp.ran:
            return False
        quantum = self._quanta[warp] = self._quanta.get(warp, 0) + 1
        first = self._states.setdefault(warp, {}).setdefault(state_of(warp), quantum)
        if quantum - first >= (APART if len(warp.splits) > 1 else 1):
            self._again.add(warp)
        return self._again.issuperset(running)

    def asks(self, warp: Warp) -> list[Ask]:
        """What a warp reads again and again, in the order of the text."""
        return [(pc, *read) for pc, read in sorted(self._changes.reads.get(warp, {}).items())]


def _memories(launch: Launch) -> Iterator[Region]:
    yield from (region for region in launch.global_memory.regions if region.writable)
    for cta in launch.scheduler.ctas:
        yield cta.shared


def state_of(warp: Warp) -> int:
    """All of a warp that decides what it does next, as one number."""
    splits = sorted(
        (split.pc, split.mask.tobytes(), _calls(split), split.parked_at) for split in warp.splits
    )
    registers = [each.tobytes() for each in warp.regs if isinstance(each, np.ndarray)]
    return hash((str(splits), warp.local.frames.tobytes(), *registers))


def _calls(split: Split) -> tuple[int, ...]:
    calls, stack = [], split.stack
    while stack:
        calls.append(stack[0])
        stack = stack[-1]
    return tuple(calls)
