"""Straight code that one lane executes, recalled.

One thread of a warp goes through a ring of stages, a loop of slices or a list of tiles, and so do
the elected threads of all other CTAs. What they compute on the way, registers from registers, has
mostly been computed before: the same values give the same results again. Integer code that is
executed often becomes Python instead (`lane_trace`).
"""

from __future__ import annotations

import numpy as np

from ..errors import Trap
from ..interface import Warp
from .program import Program

LEAST, LONGEST = 3, 64
"""Instructions of a run that is worth recalling."""
MOST_RESULTS = 512
"""Results that are kept of each run."""
TRIALS = 32
"""Misses after which a run that is seldom recalled is given up."""


class Recall:
    """Instructions in a row, up to the pc ``end``, each lane of which computes registers from its
    own. inside: the pcs behind the first."""

    def __init__(self, program: Program, first: int, end: int):
        self.first, self.end, self.length = first, end, end - first
        self.inside = frozenset(range(first + 1, end))
        reads, writes = _registers(program, range(first, end))
        self._reads, self._writes = [slot for slot in reads if not _is_one(program, slot)], writes
        self._known: dict[tuple, list] = {}
        self._hits = self._misses = 0

    @property
    def _pays(self) -> bool:
        """Whether it is recalled often enough."""
        return self._misses < TRIALS or self._misses < self._hits

    def run(self, warp: Warp, mask: np.ndarray, lane: int) -> bool:
        """Execute it in one lane, which is that of the mask; False where that must be done one by
        one: it does not pay, or a register is under way."""
        return self._pays and self._recall(warp, mask, lane)

    def _recall(self, warp: Warp, mask: np.ndarray, lane: int) -> bool:
        regs = warp.regs
        try:
            key = lane, *[regs[slot].item(lane) for slot in self._reads]
            left = [regs[slot].copy() for slot in self._writes]
        except Trap:
            return False
        results = self._known.get(key)
        if results is None:
            self._learn(warp, mask, lane, key)
            return True
        self._hits += 1
        for slot, array, value in zip(self._writes, left, results, strict=True):
            array[lane] = value
            regs[slot] = array
        return True

    def _learn(self, warp: Warp, mask: np.ndarray, lane: int, key: tuple) -> None:
        self._misses += 1
        code, split = warp.launch.code, warp.split
        for pc in range(self.first, self.end):
            split.pc = pc
            code[pc][0](warp, mask)
        if len(self._known) == MOST_RESULTS:
            self._known.clear()
        self._known[key] = [warp.regs[slot].item(lane) for slot in self._writes]


def _registers(program: Program, pcs: range) -> tuple[list[int], list[int]]:
    """The registers that instructions in a row read before they write them, and those that they
    write."""
    reads: dict[int, None] = {}
    writes: dict[int, None] = {}
    for pc in pcs:
        taken, given = program.computing[pc]
        reads.update((slot, None) for slot in taken if slot not in writes)
        writes.update(dict.fromkeys(given))
    return list(reads), list(writes)


def _is_one(program: Program, slot: int) -> bool:
    """Whether it holds one and the same number in every lane of every warp."""
    array = program.constants.get(slot)
    return array is not None and bool((array == array[0]).all())


def find_recalls(program: Program) -> None:
    """Find the runs of a program that may pay: each starts behind something else, or at a label,
    and ends before one."""
    program.recalls = [None] * len(program.code)
    end, labels = len(program.code), program.labelled()
    for pc in reversed(range(len(program.code))):
        if pc not in program.computing:
            end = pc
        elif pc - 1 not in program.computing or pc in labels:
            if end - pc >= LEAST:
                program.recalls[pc] = Recall(program, pc, min(end, pc + LONGEST))
            end = pc
