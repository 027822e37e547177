"""Counts what a launch moves, where shared memory stalls, how barriers are used, who runs what."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interface import Cta, EngineOp, Launch, Warp
from ..machine.mbarrier import Mbarrier
from ..machine.waits import wait_title
from ..ptx.accesses import MemoryAccess
from ..ptx.addresses import CONST_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_SIZE
from ..ptx.registry import Blocked, Step, Yield
from .bank_conflicts import count_passes
from .observer import Observer
from .profile import THREADS, BarrierUse, Conflicts, Profile, Role, warp_text

SHARED, DISTRIBUTED = "shared", "distributed shared"
WINDOWS = {
    SHARED_WINDOW: SHARED,
    LOCAL_WINDOW: "local",
    PARAM_WINDOW: "param",
    CONST_WINDOW: "const",
}
RANK_SHIFT = 24


class Profiler(Observer):
    """Fills a `Profile`; `finish()` returns it."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self._profile = Profile()
        self._size = len(launch.program.source)
        self._executed: dict[int, list[int]] = {}
        self._conflicts: dict[int, Conflicts] = {}
        self._barriers: dict[Any, BarrierUse] = {}

    # -- what happens ------------------------------------------------------------------------

    def wrap(self, pc: int, step: Step) -> Step:
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

    def completed(self, op: EngineOp) -> None:
        for memory, direction, amount in op.moves():
            self._profile.bytes[memory, direction, op.agent] += amount

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
        profile.conflicts = [self._conflicts[pc] for pc in sorted(self._conflicts)]
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
        memories = _memories(access.space, addresses, warp.cta)
        for memory in np.unique(memories):
            self._count_bytes(access, str(memory), access.size * int((memories == memory).sum()))
        banked = (memories == SHARED) | (memories == DISTRIBUTED)
        if banked.any():
            self._count_passes(pc, addresses[banked], lanes[banked], access.size)

    def _count_bytes(self, access: MemoryAccess, memory: str, amount: int) -> None:
        for direction in access.directions:
            self._profile.bytes[memory, direction, THREADS] += amount

    def _count_passes(self, pc: int, addresses: np.ndarray, lanes: np.ndarray, size: int) -> None:
        source = self._launch.program.source[pc]
        found = self._conflicts.setdefault(pc, Conflicts(source.line, source.text))
        passes = count_passes(addresses, lanes, size)
        found.executions += 1
        found.passes += passes.needed
        found.least_passes += passes.least
        found.worst_ways = max(found.worst_ways, passes.ways)


def _memories(space: str, addresses: np.ndarray, cta: Cta) -> np.ndarray:
    """The memory of each address, str[k] (PTX ISA §5.1: windows of generic addresses)."""
    if space in (SHARED, "shared::cta"):
        return np.full(len(addresses), SHARED, object)
    if space == "shared::cluster":
        return _by_rank(addresses, cta)
    if space != "generic":
        return np.full(len(addresses), space.partition("::")[0], object)
    found = np.full(len(addresses), "global", object)
    for base, memory in WINDOWS.items():
        inside = (addresses >= base) & (addresses < base + WINDOW_SIZE)
        found[inside] = memory
    shared = found == SHARED
    found[shared] = _by_rank(addresses[shared] - np.uint64(SHARED_WINDOW), cta)
    return found


def _by_rank(addresses: np.ndarray, cta: Cta) -> np.ndarray:
    own = addresses >> np.uint64(RANK_SHIFT) == cta.rank
    return np.where(own, SHARED, DISTRIBUTED).astype(object)
