"""Which registers the rest of a kernel may read before it writes them, by its paths."""

from __future__ import annotations

from .pending_loads import register_slots, successors
from .program import Program


def live_registers(program: Program) -> list[int]:
    """By pc, as bits, the registers that a path from there reads before it writes them in every
    lane; found once a program, and whole before it is kept: launches of other threads share it."""
    if program.live is None:
        program.live = _live(program)
    return program.live


def never_written(program: Program) -> list[int]:
    """The registers that a path from the start reads before anything has written them."""
    if program.unwritten is None:
        first = live_registers(program)[0]
        program.unwritten = [slot for slot in program.poisoned if first >> slot & 1]
    return program.unwritten


def _live(program: Program) -> list[int]:
    count = len(program.source)
    reads, kept = zip(*(_of(program, pc) for pc in range(count)), strict=True)
    following = [tuple(successors(program, pc)) for pc in range(count)]
    before: list[list[int]] = [[] for _ in range(count)]
    for pc, targets in enumerate(following):
        for target in targets:
            before[target].append(pc)
    live, work = [0] * count, list(range(count))
    while work:
        pc = work.pop()
        behind = 0
        for target in following[pc]:
            behind |= live[target]
        here = reads[pc] | behind & kept[pc]
        if here != live[pc]:
            live[pc] = here
            work += before[pc]
    return live


def _of(program: Program, pc: int) -> tuple[int, int]:
    """The registers that an instruction reads, and those that it leaves as they are, as bits."""
    reads, writes = program.registers[pc]
    guard = register_slots(program.scope_of(pc), program.source[pc].guard)
    return _bits(reads | guard), ~(0 if guard else _bits(writes))


def _bits(slots: frozenset[int] | set[int]) -> int:
    return sum(1 << slot for slot in slots)
