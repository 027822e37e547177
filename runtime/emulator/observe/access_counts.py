"""Counts, for each instruction, what its accesses to shared and to global memory take."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interface import Cta, EngineOp, Launch
from ..machine.engine import Move
from ..ptx.addresses import CONST_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_SIZE
from .bank_conflicts import (
    PASS_BYTES,
    Matrices,
    Passes,
    count_passes,
    joined,
    matrix_passes,
    row_passes,
)
from .global_requests import Footprint, Requests, split_requests
from .profile import Conflicts

SHARED, DISTRIBUTED, GLOBAL = "shared", "distributed shared", "global"
WINDOWS = {
    SHARED_WINDOW: SHARED,
    LOCAL_WINDOW: "local",
    PARAM_WINDOW: "param",
    CONST_WINDOW: "const",
}
RANK_SHIFT = 24


class AccessCounts:
    """conflicts: of shared memory, by pc; requests: of global memory, by pc and direction."""

    def __init__(self, launch: Launch):
        self._launch = launch
        self._footprint = Footprint(launch)
        self._conflicts: dict[int, Conflicts] = {}
        self._requests: dict[tuple[int, str], Requests] = {}
        self._matrices: dict[Any, Matrices] = {}
        self._read: dict[int, list[Matrices]] = {}

    @property
    def conflicts(self) -> list[Conflicts]:
        """In the order of the PTX."""
        return [self._conflicts[pc] for pc in sorted(self._conflicts)]

    @property
    def requests(self) -> list[Requests]:
        """In the order of the PTX."""
        return [self._requests[key] for key in sorted(self._requests)]

    def unique_sectors(self) -> dict[str, int]:
        """Different sectors of global memory that were read, and that were written."""
        return {direction: self._footprint.sectors(direction) for direction in ("read", "write")}

    # -- threads -----------------------------------------------------------------------------

    def count_lanes(
        self, pc: int, memories: np.ndarray, addresses: np.ndarray, lanes: np.ndarray, size: int,
        direction: str,
    ) -> None:  # fmt: skip
        """An instruction of a warp: `size` bytes at each address, uint64[k], by lanes, int64[k]."""
        banked = (memories == SHARED) | (memories == DISTRIBUTED)
        if banked.any():
            self._add(pc, count_passes(addresses[banked], lanes[banked], size))
        outside = memories == GLOBAL
        if outside.any():
            sizes = np.full(int(outside.sum()), size)
            self._ask(pc, direction, addresses[outside], sizes, True)

    # -- engines -----------------------------------------------------------------------------

    def operand_read(self, words: np.ndarray, descriptor: Any, what: str) -> None:
        """The operation under way reads an operand by its 8x8 matrices."""
        key = descriptor, what, words.shape
        if key not in self._matrices:
            self._matrices[key] = matrix_passes(words)
        op = self._launch.engines.current
        if op is not None and op.signal is not None:
            self._read.setdefault(id(op), []).append(self._matrices[key])

    def count_operation(self, op: EngineOp, moves: tuple[Move, ...]) -> None:
        """A completed operation of an engine and what it has moved."""
        matrices = self._read.pop(id(op), [])
        if op.signal is None:
            return
        pc = op.signal.pc
        for move in moves:
            if move.memory == GLOBAL and move.pieces is not None:
                starts, sizes, lanes = move.pieces
                self._ask(pc, move.direction, starts, sizes, lanes is not None)
        passes = [found for move in moves if (found := _passes_of(move, matrices))]
        if passes:
            self._add(pc, joined(passes))

    def _add(self, pc: int, passes: Passes) -> None:
        source = self._launch.program.source[pc]
        found = self._conflicts.setdefault(pc, Conflicts(source.line, source.text))
        found.executions += 1
        found.passes += passes.needed
        found.least_passes += passes.least
        found.worst_ways = max(found.worst_ways, passes.ways)

    def _ask(
        self, pc: int, direction: str, starts: np.ndarray, sizes: np.ndarray, together: bool
    ) -> None:
        asked = split_requests(starts, sizes, together)
        if not len(asked.low):
            return
        source = self._launch.program.source[pc]
        key = pc, direction
        if key not in self._requests:
            self._requests[key] = Requests(source.line, source.text, direction)
        self._requests[key].add(asked, int(sizes.sum()))
        for each in direction.split("+"):
            self._footprint.add(each, asked)


def _passes_of(move: Move, matrices: list[Matrices]) -> Passes | None:
    """Passes of an engine's move; an operand in shared memory takes those of its matrices."""
    if move.memory not in (SHARED, DISTRIBUTED) or not move.amount:
        return None
    if move.pieces is not None and move.pieces.lanes is not None:
        return count_passes(move.pieces.starts, move.pieces.lanes, int(move.pieces.sizes[0]))
    if move.rows:
        return row_passes(move.amount, move.rows)
    if not matrices:
        return None
    count, needed, ways = zip(*matrices, strict=True)
    least = -(-move.amount // PASS_BYTES)
    return Passes(round(least * sum(needed) / sum(count)), least, max(ways))


def memories_of(space: str, addresses: np.ndarray, cta: Cta) -> np.ndarray:
    """The memory of each address, str[k] (PTX ISA §5.1: windows of generic addresses)."""
    if space in (SHARED, "shared::cta"):
        return np.full(len(addresses), SHARED, object)
    if space == "shared::cluster":
        return _by_rank(addresses, cta)
    if space != "generic":
        return np.full(len(addresses), space.partition("::")[0], object)
    found = np.full(len(addresses), GLOBAL, object)
    for base, memory in WINDOWS.items():
        inside = (addresses >= base) & (addresses < base + WINDOW_SIZE)
        found[inside] = memory
    shared = found == SHARED
    found[shared] = _by_rank(addresses[shared] - np.uint64(SHARED_WINDOW), cta)
    return found


def _by_rank(addresses: np.ndarray, cta: Cta) -> np.ndarray:
    own = addresses >> np.uint64(RANK_SHIFT) == cta.rank
    return np.where(own, SHARED, DISTRIBUTED).astype(object)
