"""Waits for an mbarrier whose answer decides nothing, seen in the text.

`mbarrier.try_wait` and `test_wait` answer no while the phase is not complete, try_wait after a time
that PTX leaves open (§9.7.13.15.16). Who goes on without looking at the answer has not waited. In
most orders of events the phase is complete by then, so that nothing else tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ..ptx.flows import LANES, flow_of
from ..ptx.pending_loads import successors
from ..ptx.program import Program

UNCHECKED = "unchecked-wait"
_WAITS = ("mbarrier.try_wait", "mbarrier.test_wait")


@lru_cache(maxsize=32)
def unchecked_waits(program: Program) -> tuple[tuple[str, str], ...]:
    """(category, message) of each; once a program."""
    return tuple(_unchecked(program))


def _unchecked(program: Program) -> Iterator[tuple[str, str]]:
    for pc, source in enumerate(program.source):
        if not source.opcode.startswith(_WAITS) or _is_asked_again(program, pc):
            continue
        if not _decides(program, pc):
            yield (
                UNCHECKED,
                f"ptx:{source.line}: nothing looks at the answer of `{source.text}`, which may"
                f" be no",
            )


def _is_asked_again(program: Program, pc: int) -> bool:
    """Whether the same wait follows at once."""
    again = program.source[pc + 1 : pc + 2]
    return any(each.text == program.source[pc].text for each in again)


def _decides(program: Program, wait: int) -> bool:
    """Whether the answer gets into a guard, or where it can't be followed, on any path."""
    work = [(pc, frozenset(flow_of(program, wait).results)) for pc in successors(program, wait)]
    known = set()
    while work:
        pc, held = here = work.pop()
        if not held or here in known:
            continue
        known.add(here)
        flow = flow_of(program, pc)
        reads = held.intersection(slot for slots in flow.sources for slot in slots)
        if flow.guard in held or (reads and flow.kind != LANES):
            return True
        after = held | set(flow.results) if reads else held - set(flow.results)
        work += [(following, after) for following in successors(program, pc)]
    return False
