"""Counts what a launch moves, where shared memory stalls, how barriers are used, who runs what."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interface import Cta, EngineOp, Launch, Warp
from ..machine.mbarrier import Mbarrier
from ..machine.waits import wait_title
from ..ptx.accesses import MemoryAccess
from ..ptx.registry import Blocked, Step, Yield
from .access_counts import AccessCounts, memories_of
from .observer import Observer
from .operations import COUNTS, unit_of
from .profile import THREADS, BarrierUse, Profile, Role, warp_text


class Profiler(Observer):
    """Fills a `Profile`; `finish()` returns it."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self._profile = Profile()
        self._size = len(launch.program.source)
        self._executed: dict[int, list[int]] = {}
        self._accesses = AccessCounts(launch)
        self._barriers: dict[Any, BarrierUse] = {}

    # -- what happens ------------------------------------------------------------------------

    def wrap(self, pc: int, step: Step) -> Step:
        step = self._with_operations(pc, step)
        access = self._launch.program.accesses.get(pc)

        def counted(warp: Warp, mask: np.ndarray) -> Any:
            moved = access and self._moved(access, warp, mask)
            signal = step(warp, mask)
            if isinstance(signal, Blocked):
                self._suspended(signal)
                if not isinstance(signal, Yield):
                    return signal
            self._row(warp)[pc] += 1
            if access and moved:
                self._count_access(pc, access, *moved)
            return signal

        return counted

    def _with_operations(self, pc: int, step: Step) -> Step:
        """The same step, which also counts the operations that it stands for, if it has any."""
        unit = unit_of(self._launch.program.source[pc].opcode)
        if unit is None:
            return step
        counts, done = self._launch.engine_counts, self._profile.operations

        def counted(warp: Warp, mask: np.ndarray) -> Any:
            before = sum(counts[name] for name in COUNTS)
            signal = step(warp, mask)
            if unit.by_lane is None:
                done[unit.name, unit.type] += sum(counts[name] for name in COUNTS) - before
            else:
                done[unit.name, unit.type] += unit.by_lane * int(mask.sum())
            return signal

        return counted

    def completed(self, op: EngineOp) -> None:
        moves = op.moves()
        for move in moves:
            self._profile.bytes[move.memory, move.direction, op.agent] += move.amount
        self._accesses.count_operation(op, moves)

    def operand_read(
        self, cta: Cta, words: np.ndarray, descriptor: Any, what: str, elements: str
    ) -> None:
        self._accesses.operand_read(words, descriptor, what)

    def signalled(self, cta: Cta, offset: int, barrier: Mbarrier, phase: int) -> None:
        use = self._mbarrier(offset)
        use.signals += 1
        use.phases += barrier.phase != phase

    def waited(self, offset: int, answered: bool) -> None:
        use = self._mbarrier(offset)
        use.waits += 1
        use.suspended += not answered

    def finish(self) -> Profile:
        """The profile of everything so far."""
        profile = self._profile
        profile.conflicts = self._accesses.conflicts
        profile.requests = self._accesses.requests
        profile.unique_sectors = self._accesses.unique_sectors()
        profile.barriers = sorted(self._barriers.values(), key=lambda use: use.name)
        profile.roles = self._roles()
        return profile

    # -- barriers ----------------------------------------------------------------------------

    def _mbarrier(self, offset: int) -> BarrierUse:
        if offset not in self._barriers:
            name = self._launch.barrier_name(offset)
            self._barriers[offset] = BarrierUse(name or f"mbarrier 0x{offset:x}")
        return self._barriers[offset]

    def _suspended(self, reason: Blocked) -> None:
        """Waits of mbarriers are counted by `waited`."""
        if isinstance(reason, Yield) or reason.subject is None:
            return
        title = wait_title(reason)
        use = self._barriers.setdefault(title, BarrierUse(title))
        use.waits += 1
        use.suspended += 1

    # -- instructions ------------------------------------------------------------------------

    def _row(self, warp: Warp) -> list[int]:
        row = self._executed.get(warp.index)
        if row is None:
            row = self._executed[warp.index] = [0] * self._size
        return row

    def _roles(self) -> list[Role]:
        """By the names that the launch was given; without, warps that run the same instructions."""
        groups: dict[Any, list[int]] = {}
        for warp, row in sorted(self._executed.items()):
            named = self._launch.names.roles.get(warp)
            groups.setdefault(named or tuple(map(bool, row)), []).append(warp)
        return [self._role(key, warps) for key, warps in groups.items()]

    def _role(self, key: Any, warps: list[int]) -> Role:
        word = "warp" if len(warps) == 1 else "warps"
        role = Role(key if isinstance(key, str) else f"{word} {warp_text(warps)}", warps)
        for warp in warps:
            for source, count in zip(
                self._launch.program.source, self._executed[warp], strict=True
            ):
                if count:
                    role.instructions[source.opcode] += count
        return role

    # -- accesses ----------------------------------------------------------------------------

    def _moved(self, access: MemoryAccess, warp: Warp, mask: np.ndarray) -> tuple:
        """(warp, lanes int64[k], addresses uint64[k]), read before the step changes registers."""
        if access.address is None:
            return warp, None, None
        lanes = np.flatnonzero(mask if access.lanes is None else access.lanes)
        return warp, lanes, access.address(warp)[lanes]

    def _count_access(
        self, pc: int, access: MemoryAccess, warp: Warp, lanes: Any, addresses: Any
    ) -> None:
        if addresses is None:
            self._count_bytes(access, access.space, access.size)
            return
        memories = memories_of(access.space, addresses, warp.cta)
        for memory in np.unique(memories):
            self._count_bytes(access, str(memory), access.size * int((memories == memory).sum()))
        direction = "+".join(access.directions)
        self._accesses.count_lanes(pc, memories, addresses, lanes, access.size, direction)

    def _count_bytes(self, access: MemoryAccess, memory: str, amount: int) -> None:
        for direction in access.directions:
            self._profile.bytes[memory, direction, THREADS] += amount
