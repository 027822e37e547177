"""Stretches of instructions that compute registers from registers, each lane from its own values.

Nothing outside the warp sees the order inside a stretch. Those of its instructions that do the same
and whose operands are there are therefore executed as one, on the lanes of all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from ..errors import Trap
from ..interface import Warp
from .lanes import FULL, WARP_SIZE
from .program import Program
from .registry import Step

LONGEST = 128
"""Instructions of a stretch."""
LEAST_SAVED = 4
"""Executions that a stretch must save to be worth its preparation."""


@dataclass(frozen=True)
class Lanewise:
    """What an instruction computes.

    key: equal for instructions that do the same. function: takes the raw bits of the operands, flat
    arrays of any length, and returns an array as long or, for several writes, one for each; None
    for a copy of a register. reads, writes: register slots, of up to 64 bits.
    """

    key: Hashable
    function: Callable | None
    reads: tuple[int, ...]
    writes: tuple[int, ...]


class Stretch:
    """A stretch of a program: instructions in a row, up to the pc ``end``.

    steps: of each, the instructions that it executes and what reads their operands.
    """

    def __init__(self, steps: list[tuple[list[int], Step]], end: int):
        self._steps, self.end = steps, end

    def run(self, warp: Warp, program: Program) -> None:
        """Execute it with all lanes; a Trap is one of the instruction that it comes from."""
        for members, step in self._steps:
            try:
                step(warp, FULL)
            except Trap:
                warp.split.pc = _culprit(warp, program, members)
                raise


def _culprit(warp: Warp, program: Program, members: list[int]) -> int:
    """The first instruction with an operand that is no array: a register that is under way."""
    for pc in members:
        if not all(type(warp.regs[slot]) is np.ndarray for slot in program.lanewise[pc].reads):
            return pc
    return members[0]


def join_stretches(program: Program) -> None:
    """Find the stretches of a program."""
    program.stretches = [None] * len(program.code)
    first = 0
    while first < len(program.code):
        end = _end(program, first)
        stretch = _stretch(program, range(first, end))
        if stretch is not None:
            program.stretches[first] = stretch
        first = max(end, first + 1)


def _end(program: Program, first: int) -> int:
    end = first
    while end in program.lanewise and end - first < LONGEST:
        end += 1
    return end


def _stretch(program: Program, pcs: range) -> Stretch | None:
    groups = _groups(program, pcs)
    if len(pcs) - len(groups) < LEAST_SAVED:
        return None
    return Stretch([(members, _step(program, members)) for members in groups], pcs.stop)


def _groups(program: Program, pcs: Sequence[int]) -> list[list[int]]:
    """The instructions that are executed as one, in an order that their registers allow."""
    groups: dict[tuple, list[int]] = defaultdict(list)
    written: dict[int, int] = {}
    used: dict[int, int] = {}
    for pc in pcs:
        each = program.lanewise[pc]
        behind = [written.get(slot, 0) for slot in each.reads]
        behind += [used.get(slot, 0) for slot in each.writes]
        level = 1 + max(behind, default=0)
        for slot in (*each.reads, *each.writes):
            used[slot] = max(level, used.get(slot, 0))
        written.update(dict.fromkeys(each.writes, level))
        groups[level, each.key].append(pc)
    return [groups[key] for key in sorted(groups, key=itemgetter(0))]


def _step(program: Program, members: list[int]) -> Step:
    if len(members) == 1:
        return program.code[members[0]][0]
    each = [program.lanewise[pc] for pc in members]
    function, count = each[0].function, len(each[0].writes)
    if function is None:
        return _copy(each)
    reads = [itemgetter(*slots) for slots in zip(*(one.reads for one in each), strict=True)]
    targets = list(zip(*(one.writes for one in each), strict=True))

    def step(warp: Warp, mask: np.ndarray) -> None:
        regs = warp.regs
        found = function(*[np.concatenate(read(regs)) for read in reads])
        for slots, values in zip(targets, (found,) if count == 1 else found, strict=True):
            for slot, value in zip(slots, values.reshape(-1, WARP_SIZE), strict=True):
                regs[slot] = value

    return step


def _copy(copies: list[Lanewise]) -> Step:
    """Registers as they are: those that are under way stay so."""
    pairs = [(copy.writes[0], copy.reads[0]) for copy in copies]

    def step(warp: Warp, mask: np.ndarray) -> None:
        regs = warp.regs
        for target, source in pairs:
            regs[target] = regs[source]

    return step
