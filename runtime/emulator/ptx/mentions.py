"""Which registers a run of instructions leaves to the rest of a program."""

from __future__ import annotations

from collections import Counter

from .pending_loads import named_slots
from .program import Program


def outside(program: Program, pcs: range) -> set[int]:
    """The registers that instructions in a row write and that something may read that is not of
    them, or they themselves when they run the next time. All of them, if the run has labels inside.
    """
    everywhere, inside = _mentions(program), Counter[int]()
    first, written = set[int](), set[int]()
    for pc in pcs:
        reads, writes = _uses(program, pc)
        inside.update(named_slots(program, pc))
        first |= set(reads) - written
        written |= set(writes)
    if not program.labelled().isdisjoint(pcs[1:]):
        return written
    return {slot for slot in written if slot in first or everywhere[slot] > inside[slot]}


def named_from(program: Program, pcs: range) -> set[int]:
    """The registers that instructions in a row name."""
    return set[int]().union(*(named_slots(program, pc) for pc in pcs))


def _uses(program: Program, pc: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The slots that an instruction of a run reads and writes."""
    if pc in program.branches:
        guard = program.code[pc][1]
        return (() if guard is None else (guard,)), ()
    form = program.lane_forms.get(pc)
    if form is None:
        return program.computing[pc]
    target = () if form.target is None else (form.target,)
    return tuple(value.slot for value in form.values if value.slot >= 0), target


def _mentions(program: Program) -> Counter[int]:
    """How many instructions name each register. Whole before it is kept: launches of other threads
    share the program."""
    if program.mentions is None:
        found = Counter[int]()
        for pc in range(len(program.source)):
            found.update(named_slots(program, pc))
        program.mentions = found
    return program.mentions
