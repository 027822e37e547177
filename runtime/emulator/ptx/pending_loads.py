"""Where the results of tcgen05.ld are still under way: from the load to tcgen05.wait::ld or a use.

`tcgen05.ld` is asynchronous: its registers hold the data behind `tcgen05.wait::ld`. PTX respects a
true dependency on them also before (§9.7.16.6.4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from . import syntax
from .program import Program

LOAD, _WAIT = "tcgen05.ld.", "tcgen05.wait::ld"
_ENDS = ("ret", "exit", "trap", "brx")


def first_uses(program: Program) -> dict[int, set[int]]:
    """By pc, the loads whose results it is the first to use on a path without a wait."""
    source = program.source
    loads = [pc for pc, each in enumerate(source) if each.opcode.startswith(LOAD)]
    if not loads:
        return {}
    results = {load: _slots(program, load) for load in loads}
    uses = [_used(program, pc, results) for pc in range(len(source))]
    pending = pending_loads(program, loads, uses)
    found = {pc: uses[pc] & pending[pc] for pc in range(len(source))}
    return {pc: {load for n, load in enumerate(loads) if bits >> n & 1}
            for pc, bits in found.items() if bits}  # fmt: skip


def _used(program: Program, pc: int, results: dict[int, int]) -> int:
    """The loads that have a result among the registers that an instruction names, as bits."""
    if pc in results:
        return 0
    named = _slots(program, pc)
    return sum(1 << n for n, slots in enumerate(results.values()) if slots & named)


def pending_loads(program: Program, loads: list[int], uses: list[int]) -> list[int]:
    """By pc, the loads that a path without a wait or use leads from, one bit each."""
    bit = {pc: 1 << number for number, pc in enumerate(loads)}
    pending, work = [0] * len(program.source), list(range(len(program.source)))
    while work:
        pc = work.pop()
        waits = program.source[pc].opcode.startswith(_WAIT)
        after = 0 if waits else pending[pc] & ~uses[pc] | bit.get(pc, 0)
        for following in successors(program, pc):
            if after & ~pending[following]:
                pending[following] |= after
                work.append(following)
    return pending


def successors(program: Program, pc: int) -> Iterator[int]:
    source, scope = program.source[pc], program.scope_of(pc)
    mnemonic = source.opcode.split(".")[0]
    goes_on = mnemonic not in (*_ENDS, "bra") or source.guard is not None
    if goes_on and pc + 1 < len(program.source):
        yield pc + 1
    for name in _targets(scope, mnemonic, source):
        target = scope.label(name)
        assert target is not None  # the decoder has seen to it
        yield target


def _targets(scope: Any, mnemonic: str, source: syntax.Instruction) -> tuple[str, ...]:
    if mnemonic not in ("bra", "brx"):
        return ()
    named = source.operands[0 if mnemonic == "bra" else 1]
    assert isinstance(named, syntax.Symbol)  # the decoder has seen to it
    return (named.name,) if mnemonic == "bra" else scope.table(named.name)


def _slots(program: Program, pc: int) -> int:
    """The registers that an instruction names, as bits; of tcgen05.ld only its results."""
    source = program.source[pc]
    operands = source.operands[:1] if source.opcode.startswith(LOAD) else source.operands
    return sum(1 << slot for slot in register_slots(program.scope_of(pc), operands))


def named_slots(program: Program, pc: int) -> set[int]:
    """The registers that an instruction and its guard name."""
    source, scope = program.source[pc], program.scope_of(pc)
    return register_slots(scope, (source.operands, source.guard))


def register_slots(scope: Any, operands: Any) -> set[int]:
    """The registers that operands name."""
    found = set[int]()
    for name in () if operands is None else names_in(operands):
        if vector := scope.vector(name):
            found |= register_slots(scope, vector.elements)
        elif register := scope.register(name):
            found.add(register.slot)
    return found


def names_in(item: Any) -> list[str]:
    """All names and other texts in operands."""
    found: list[str] = []
    _collect(item, found)
    return found


def _collect(item: Any, found: list[str]) -> None:
    kind = type(item)
    if kind is syntax.Symbol:
        found.append(item.name)
    elif kind is tuple:
        for each in item:
            _collect(each, found)
    elif isinstance(item, str):
        found.append(item)
    else:
        for name in _field_names(kind):
            _collect(getattr(item, name), found)


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
