"""Reads of global memory that race, and whose values nothing uses.

Where a block of a compiler's has more threads than elements, some threads do what others do, and
only the guards of their stores are false. In a kernel that works in place such a thread may read an
element that its owner stores meanwhile. It gets the old value or the new one, and uses neither.

An instruction's value is followed through its text: as long as it goes from register to register of
the same lane, and then to guarded stores, it is used where such a guard is true. That may turn out
later, so the verdict waits there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ...errors import Trap
from ...interface import Launch, Warp
from ...machine.memory import Region
from ...ptx.flows import LANES, flow_of
from ...ptx.pending_loads import register_slots
from ...ptx.program import Program
from ...ptx.registry import Step
from ...truth import any_of
from .order import CLUSTER_SHIFT, COMPONENT_MASK
from .verdicts import split_when

_SINKS = ("st.", "atom.", "red.")
Refused = WeakKeyDictionary[Warp, list[tuple[np.ndarray, Trap]]]
"""By warp, the lanes that may not execute an instruction, and the Trap if one does."""


class Sink(NamedTuple):
    """A guarded store, or atomic operation, that a value reaches."""

    pc: int
    guard: int
    negated: bool


class IdleReads:
    """The idle reads of one region. races: the `tracker.Races` that knows the components of the
    clocks."""

    def __init__(self, races: Any, launch: Launch, region: Region):
        self._races, self._launch, self._region = races, launch, region
        self._refused: dict[int, Refused] = {}

    def excuses(self, trap: Trap, mark: tuple[int, int] | None, offsets: np.ndarray) -> bool:
        """Whether the value of a racing read of these bytes has not been used; the Trap is raised
        once it is. mark: of an earlier read, None for the load that executes now."""
        current = self._launch.current_warp
        if current is None or self._races.operation is not None:
            return False
        found = ([current], current.split.pc) if mark is None else self._readers(current, *mark)
        if found is None:
            return False
        warps, pc = found
        sinks = sinks_of(current.program, pc)
        if not sinks:  # who loads what nothing takes has another purpose
            return False
        uses = [(warp, sink, self._lanes(warp, pc, offsets)) for warp in warps for sink in sinks]
        if any(self._is_used(*each) for each in uses):
            return False
        trap.locate(**current.place())
        for warp, sink, lanes in uses:
            self._refuse(sink.pc, warp, lanes, trap)
        return True

    def _readers(self, writer: Warp, who: int, when: int) -> tuple[list[Warp], int] | None:
        """The warps and the instruction of an earlier read, if they can be told. Only the last
        readers of a byte are known, so other warps of the cluster may have been some before."""
        warps = self._races.warps_of(who >> CLUSTER_SHIFT)
        loads = loads_by_line(writer.program).get(split_when(when)[1], ())
        if who & COMPONENT_MASK not in warps or len(loads) != 1:
            return None
        return [warp for warp in warps.values() if warp is not writer], loads[0]

    def _lanes(self, warp: Warp, pc: int, offsets: np.ndarray) -> np.ndarray:
        """bool[32]: those that read one of the bytes there."""
        access = warp.program.accesses[pc]
        first = access.address(warp).astype(np.int64) - self._region.base
        at = offsets.reshape(-1, 1)
        return ((at >= first) & (at < first + access.size)).any(axis=0)

    def _is_used(self, warp: Warp, sink: Sink, lanes: np.ndarray) -> bool:
        """Whether one of the lanes executes or has executed the store; False if that is open."""
        guard = warp.regs[sink.guard]
        if self._launch.is_unwritten(sink.guard, guard):
            return False
        return any_of((guard ^ sink.negated) & lanes)

    def _refuse(self, pc: int, warp: Warp, lanes: np.ndarray, trap: Trap) -> None:
        """Raise the Trap once one of the lanes executes the instruction."""
        refused = self._refused.get(pc)
        if refused is None:
            refused = self._refused[pc] = WeakKeyDictionary()
            step, *guard = self._launch.code[pc]
            self._launch.code[pc] = (_refusing(step, refused), *guard)
        traps = refused.setdefault(warp, [])
        if not any((lanes <= known).all() for known, _ in traps):
            traps.append((lanes, trap))


def _refusing(step: Step, refused: Refused) -> Step:
    """The same step, but for those lanes."""

    def refusing(warp: Any, mask: Any) -> Any:
        for lanes, trap in refused.get(warp, ()):
            if any_of(mask & lanes):
                raise trap
        return step(warp, mask)

    return refusing


@lru_cache(maxsize=32)
def loads_by_line(program: Program) -> dict[int, list[int]]:
    """By line of PTX, the pcs of loads."""
    found: dict[int, list[int]] = {}
    for pc, source in enumerate(program.source):
        if source.opcode.startswith("ld."):
            found.setdefault(source.line, []).append(pc)
    return found


@lru_cache(maxsize=256)
def sinks_of(program: Program, pc: int) -> tuple[Sink, ...] | None:
    """The stores that the value of a load reaches, None where it may reach anything else, or where
    a register does not say any more what it was then."""
    reached = _reached(program, pc)
    if reached is None:
        return None
    sinks = [each for each in range(len(program.source)) if _stores(program, each, reached)]
    fixed = register_slots(program.scope_of(pc), program.source[pc].operands[1])
    fixed |= {flow_of(program, each).guard for each in sinks}
    looped = any(_is_in_loop(program, each) for each in (pc, *sinks))
    if looped or any(_writers(program, slot) > 1 for slot in fixed):
        return None
    return tuple(Sink(each, flow_of(program, each).guard, program.code[each][2]) for each in sinks)


def _reached(program: Program, load: int) -> set[int] | None:
    """The registers that hold something of what it loads; None if that gets elsewhere, too."""
    reached, before = set(program.registers[load][1]), 0
    while len(reached) > before:
        before = len(reached)
        for pc in range(len(program.source)):
            reads, writes = program.registers[pc]
            if flow_of(program, pc).guard in reached:
                return None
            if pc == load or not reached & set(reads):
                continue
            if flow_of(program, pc).kind == LANES and ".cc" not in program.source[pc].opcode:
                reached |= set(writes)
            elif not _stores(program, pc, reached):
                return None
    return reached


def _stores(program: Program, pc: int, reached: set[int]) -> bool:
    """Whether it is a guarded store, or atomic operation, of such a value."""
    if not program.source[pc].opcode.startswith(_SINKS) or pc in program.lane_forms:
        return False
    return flow_of(program, pc).guard >= 0 and not reached.isdisjoint(program.registers[pc][0])


def _writers(program: Program, slot: int) -> int:
    return sum(slot in writes for _, writes in program.registers.values())


def _is_in_loop(program: Program, pc: int) -> bool:
    opcodes = (each.opcode for each in program.source)
    if any(each.startswith(("call", "brx")) for each in opcodes):
        return True
    return any(target <= pc <= branch for branch, target in program.branches.items())
