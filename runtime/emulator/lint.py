"""What the text of a kernel alone shows: legal, and seldom meant.

`tcgen05.ld` is asynchronous: its registers hold the data behind `tcgen05.wait::ld`. PTX respects a
true dependency on them also before (§9.7.16.6.4), but nothing that a compiler puts between, as a
copy made by an inline asm, is safe. So a use on any path before the wait is a suspicion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from . import ptx

if TYPE_CHECKING:
    from .program import Program

_LOAD, _WAIT = "tcgen05.ld.", "tcgen05.wait::ld"
_ENDS = ("ret", "exit", "trap", "brx")
EARLY_USE = "early-use"


@lru_cache(maxsize=32)
def suspicions(program: Program) -> tuple[tuple[str, str], ...]:
    """(category, message) of each thing found; once a program."""
    if not any(each.opcode.startswith(_LOAD) for each in program.source):
        return ()
    return tuple((EARLY_USE, message) for message in _early_uses(program))


def _early_uses(program: Program) -> Iterator[str]:
    """Forward flow of the registers, one bit a slot, whose load is not waited for."""
    slots = [_slots(program, pc) for pc in range(len(program.source))]
    pending = _pending(program, slots)
    for pc, instruction in enumerate(program.source):
        if pending[pc] & slots[pc] and not instruction.opcode.startswith((_LOAD, _WAIT)):
            yield (
                f"ptx:{instruction.line}: `{instruction.text}` uses a register of tcgen05.ld"
                " before tcgen05.wait::ld"
            )


def _pending(program: Program, slots: list[int]) -> list[int]:
    pending, work = [0] * len(slots), list(range(len(slots)))
    while work:
        pc = work.pop()
        after = pending[pc]
        if program.source[pc].opcode.startswith(_LOAD):
            after |= slots[pc]
        elif program.source[pc].opcode.startswith(_WAIT):
            after = 0
        for following in _successors(program, pc):
            if after & ~pending[following]:
                pending[following] |= after
                work.append(following)
    return pending


def _successors(program: Program, pc: int) -> Iterator[int]:
    source, scope = program.source[pc], program.scope_of(pc)
    mnemonic = source.opcode.split(".")[0]
    goes_on = mnemonic not in (*_ENDS, "bra") or source.guard is not None
    if goes_on and pc + 1 < len(program.source):
        yield pc + 1
    for name in _targets(scope, mnemonic, source):
        yield scope.label(name)


def _targets(scope: Any, mnemonic: str, source: ptx.Instruction) -> tuple[str, ...]:
    if mnemonic == "bra":
        return (source.operands[0].name,)
    return scope.table(source.operands[1].name) if mnemonic == "brx" else ()


def _slots(program: Program, pc: int) -> int:
    """The registers that an instruction names, as bits; of tcgen05.ld only its results."""
    source, scope = program.source[pc], program.scope_of(pc)
    operands = source.operands[:1] if source.opcode.startswith(_LOAD) else source.operands
    bits = 0
    for name in _names(operands):
        register = scope.register(name)
        bits |= 1 << register.slot if register else 0
    return bits


def _names(item: Any) -> Iterator[str]:
    if isinstance(item, tuple):
        for each in item:
            yield from _names(each)
    elif isinstance(item, str):
        yield item
    elif is_dataclass(item):
        for field in fields(item):
            yield from _names(getattr(item, field.name))
