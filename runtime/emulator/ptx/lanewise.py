"""Stretches of instructions that compute registers from registers, each lane from its own values.

Nothing outside the warp sees the order inside a stretch. Those of its instructions that do the same
and whose operands are there are therefore executed as one, on the lanes of all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from ..errors import Trap
from ..interface import Warp
from .lanes import FULL, WARP_SIZE
from .mentions import outside
from .program import Program
from .registry import Step

LONGEST = 128
"""Instructions of a stretch."""
OFTEN = 24
"""Times that a stretch is executed before its instructions' results are handed on directly."""
LEAST_SAVED = 4
"""Executions that a stretch must save to be worth its preparation."""


Link = Callable[[Warp, dict[int, np.ndarray]], None]
"""Executes a group with all lanes, which hands on its results as slabs."""


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

    def __init__(self, program: Program, groups: list[list[int]], pcs: range):
        self._groups, self._pcs, self.end = groups, pcs, pcs.stop
        self._steps = [(members, _alone(_step(program, members))) for members in groups]
        self._chain: list[tuple[list[int], Link]] = []
        self._runs = 0

    def run(self, warp: Warp, program: Program) -> None:
        """Execute it with all lanes; a Trap is one of the instruction that it comes from."""
        self._runs += 1
        if not self._chain and self._runs >= OFTEN:
            self._chain = _chained(program, self._groups, self._pcs)
        slabs: dict[int, np.ndarray] = {}
        for members, link in self._chain or self._steps:
            try:
                link(warp, slabs)
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
    return Stretch(program, groups, pcs)


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


# -- results that go from one group to the next ------------------------------------------------


Source = tuple[int, slice]
"""Rows of a slab, which are the operands of a group; a slab has the results of one, by row."""


def _alone(step: Step) -> Link:
    return lambda warp, slabs: step(warp, FULL)


class _Chain:
    """Plans the groups of a stretch. made: the slab and row that a register is from; kept: the
    registers that are written; operands: what each group that is executed as one reads."""

    def __init__(self, kept: set[int]):
        self.made: dict[int, tuple[int, int]] = {}
        self.kept = kept
        self.slabs = 0

    def operands(self, each: list[Lanewise]) -> list[tuple[tuple[int, ...], Source | None]]:
        """What a group reads: registers, or where these are rows of a slab at equal distances."""
        found = []
        for slots in zip(*(one.reads for one in each), strict=True):
            found.append((slots, self._source(slots)))
            if found[-1][1] is None:
                self.kept |= set(slots)
        return found

    def _source(self, slots: tuple[int, ...]) -> Source | None:
        if any(slot not in self.made for slot in slots):
            return None
        slab, first = self.made[slots[0]]
        places = [self.made[slot][1] for slot in slots]
        step = places[1] - first
        end = first + step * len(places)
        alike = all(self.made[slot][0] == slab for slot in slots)
        if not alike or not step or places != list(range(first, end, step)):
            return None
        return slab, slice(first, None if end < 0 else end, step)

    def give(self, each: list[Lanewise]) -> range:
        """The numbers of the slabs of a group's results."""
        first, self.slabs = self.slabs, self.slabs + len(each[0].writes)
        for row, one in enumerate(each):
            self.made |= {slot: (first + n, row) for n, slot in enumerate(one.writes)}
        return range(first, self.slabs)

    def forget(self, each: list[Lanewise]) -> None:
        """Instructions that are executed one by one read and write registers."""
        self.kept |= {slot for one in each for slot in one.reads}
        for one in each:
            for slot in one.writes:
                self.made.pop(slot, None)


def _chained(program: Program, groups: list[list[int]], pcs: range) -> list[tuple[list[int], Link]]:
    """The steps, with operands that are results of one group taken from there.

    A register that only the stretch names, and that all its readers take so, is not written.
    """
    chain = _Chain(outside(program, pcs))
    plans: list[tuple[list[int], tuple[Any, range, list[Lanewise]] | None]] = []
    for members in groups:
        each = [program.lanewise[pc] for pc in members]
        if len(members) == 1 or each[0].function is None:
            chain.forget(each)
            plans.append((members, None))
            continue
        operands = chain.operands(each)
        plans.append((members, (operands, chain.give(each), each)))
    links = []
    for members, plan in plans:
        link = _link(*plan, chain.kept) if plan else _alone(_step(program, members))
        links.append((members, link))
    return links


def _link(
    operands: list[tuple[tuple[int, ...], Source | None]],
    numbers: range,
    each: list[Lanewise],
    kept: set[int],
) -> Link:
    function, reads = each[0].function, [_operand(*operand) for operand in operands]
    assert function is not None  # copies are no group
    outputs = []
    for place, number in enumerate(numbers):
        targets = enumerate(one.writes[place] for one in each)
        outputs.append((number, [(row, slot) for row, slot in targets if slot in kept]))

    def link(warp: Warp, slabs: dict[int, np.ndarray]) -> None:
        regs = warp.regs
        found = function(*[read(regs, slabs) for read in reads])
        for (number, wanted), values in zip(
            outputs, (found,) if len(outputs) == 1 else found, strict=True
        ):
            rows = slabs[number] = values.reshape(-1, WARP_SIZE)
            for row, slot in wanted:
                regs[slot] = rows[row]

    return link


def _operand(slots: tuple[int, ...], source: Source | None) -> Callable[[list, dict], np.ndarray]:
    """A function (registers, slabs) → the operands of a group, one behind the other."""
    if source is None:
        read = itemgetter(*slots)
        return lambda regs, slabs: np.concatenate(read(regs))
    number, rows = source
    return lambda regs, slabs: slabs[number][rows].reshape(-1)
