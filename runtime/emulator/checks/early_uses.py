"""What the text of a kernel alone shows: legal, and seldom meant.

`tcgen05.ld` is asynchronous: its registers hold the data behind `tcgen05.wait::ld`. PTX respects a
true dependency on them also before (§9.7.16.6.4), but nothing that a compiler puts between, as a
copy made by an inline asm, is safe. So a use on any path before the wait is a suspicion; a worse
one if no wait follows before the thread tells others that it has read, since the dependency orders
nothing else (§9.7.16.6.4): the reads of other registers may still be under way.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ..ptx.pending_loads import LOAD, first_uses, pending_loads
from ..ptx.program import Program

EARLY_USE, UNWAITED = "early-use", "unwaited-load"
_RELEASES = ("mbarrier.arrive", "bar.sync", "bar.arrive", "bar.cta", "bar.red", "barrier.",
             "tcgen05.fence::before", "tcgen05.dealloc", "fence.acq_rel", "fence.release",
             "fence.sc", "membar.", "st.release", "red.release", "atom.release")  # fmt: skip
"""How a thread tells others that it has read tensor memory."""


@lru_cache(maxsize=32)
def suspicions(program: Program) -> tuple[tuple[str, str], ...]:
    """(category, message) of each thing found; once a program."""
    if not any(each.opcode.startswith(LOAD) for each in program.source):
        return ()
    return tuple(_early_uses(program))


def _early_uses(program: Program) -> Iterator[tuple[str, str]]:
    """One message a load, of the first of its uses that a path without a wait leads to."""
    source, reported, releases = program.source, set(), None
    for pc, loads in sorted(first_uses(program).items()):
        releases = _unwaited(program) if releases is None else releases
        for load in sorted(loads - reported):
            uses = (
                f"ptx:{source[pc].line}: `{source[pc].text}` uses a register of the tcgen05.ld"
                f" of ptx:{source[load].line} before tcgen05.wait::ld"
            )
            release = releases.get(load)
            if release is None:
                yield EARLY_USE, uses
                continue
            yield (
                UNWAITED,
                f"{uses}, and none follows before ptx:{source[release].line}"
                f" `{source[release].text}` tells others that tensor memory has been read",
            )
        reported |= loads


def _unwaited(program: Program) -> dict[int, int]:
    """By load, the first release that a path without tcgen05.wait::ld leads to."""
    source, found = program.source, {}
    loads = [pc for pc, each in enumerate(source) if each.opcode.startswith(LOAD)]
    pending = pending_loads(program, loads, [0] * len(source))
    for pc, each in enumerate(source):
        if pending[pc] and each.opcode.startswith(_RELEASES):
            for number, load in enumerate(loads):
                if pending[pc] >> number & 1:
                    found.setdefault(load, pc)
    return found
