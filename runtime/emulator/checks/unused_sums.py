"""Sums of products that nothing is done with while their neighbours are stored, seen in the text.

Which of the sums a thread rounds, packs and stores is no rule of PTX: each is a sum. Where one of
them is taken twice another is taken never, and its register reaches neither a store nor anything
else that can be seen. Sums at the end of a list say nothing: columns that a matrix does not have.
So it is with loads in such kernels: compilers leave none of which nothing is used, but for those
that meet sums of such columns, as a bias does, or give them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, reduce
from operator import or_
from typing import NamedTuple

from ..ptx.flows import LANES, LOAD, SHUFFLE, flow_of
from ..ptx.pending_loads import names_in, register_slots, successors
from ..ptx.program import Program

UNUSED = "unused-sums"
UNUSED_LOAD = "unused-load"
_LOADS = ("ld.global.", "ld.shared.", "ld.shared::cta.", "ldmatrix.")
FEW = 4
"""What is left out is told where there are so many times as many sums, or more."""
_PURE = (LANES, SHUFFLE, LOAD)
_OF_MMA = 4
"""Operands of `mma.sync`: the sums, A, B and the sums before."""


class _Step(NamedTuple):
    """What an instruction needs for each of its results that is needed: results, sources."""

    results: frozenset[int]
    sources: frozenset[int]


@lru_cache(maxsize=32)
def unused_sums(program: Program) -> tuple[tuple[str, str], ...]:
    """(category, message) of each; once a program."""
    products = [pc for pc in range(len(program.source)) if _is_product(program, pc)]
    return tuple(_unused(program, products)) if products else ()


def _is_product(program: Program, pc: int) -> bool:
    return program.source[pc].opcode.startswith(("tcgen05.ld.", "wgmma.mma_async", "mma.sync"))


def _unused(program: Program, products: list[int]) -> Iterator[tuple[str, str]]:
    steps = [_steps_at(program, pc) for pc in range(len(program.source))]
    needed = _needed_behind(program, steps)
    for pc in products:
        sums = _list_of(program, pc, 0)
        left = [at for at, slot in enumerate(sums) if not needed[pc] & _bits(_whole([slot]))]
        columns = sorted(range(len(sums)), key=_column_in(program.source[pc].opcode))
        is_tail = set(left) == set(columns[len(sums) - len(left) :])
        if left and not is_tail and len(left) * FEW <= len(sums):
            source, which = program.source[pc], ", ".join(map(str, left))
            yield (
                UNUSED,
                f"ptx:{source.line}: {len(left)} of the {len(sums)} registers of `{source.opcode}`,"
                f" number {which} (from 0), reach no store and nothing else, and the others do",
            )
    loads = [pc for pc in range(len(program.source)) if _is_left(program, pc, needed[pc])]
    if not loads:
        return
    all_steps = [each for of_one in steps for each in of_one or ()]
    of_sums = _reached({slot for pc in products for slot in _list_of(program, pc, 0)}, all_steps)
    for pc in loads:
        if not of_sums & _reached(program.registers[pc][1], all_steps):
            source = program.source[pc]
            yield (
                UNUSED_LOAD,
                f"ptx:{source.line}: what `{source.opcode}` loads reaches no store and nothing"
                " else: another value is taken in its place, or none need be loaded",
            )


def _is_left(program: Program, pc: int, needed: int) -> bool:
    """Whether it loads what is not needed behind it."""
    results = program.registers[pc][1]
    is_load = program.source[pc].opcode.startswith(_LOADS)
    return is_load and bool(results) and not needed & _bits(_whole(results))


def _column_in(opcode: str) -> Callable[[int], tuple[int, int]]:
    """By its place in the list, what orders a sum by its column: wgmma has two columns of a row,
    then those of the row that is eight below."""
    if opcode.startswith("wgmma.") and ".f16.f16.f16" not in opcode:
        return lambda at: (at // 4, at % 2)
    return lambda at: (at, 0)


def _list_of(program: Program, pc: int, operand: int) -> list[int]:
    """The registers of an operand, in their order."""
    scope = program.scope_of(pc)
    names = names_in(program.source[pc].operands[operand])
    return [slot for name in names for slot in sorted(register_slots(scope, name))]


def _needed_behind(program: Program, steps: list[tuple[_Step, ...] | None]) -> list[int]:
    """By pc, the halves of registers, as bits, whose values behind it get on some path to an
    instruction that does more than compute: 2 * slot and, of the upper 32 bits of 64, 2 * slot + 1.

    A register that holds sums may have held something else before, such as the zero that several
    products begin with, so it counts where a value is read.
    """
    count = len(program.source)
    following = [tuple(successors(program, pc)) for pc in range(count)]
    effects = [_effect(program, pc, steps[pc]) for pc in range(count)]
    ahead, behind, changed = [0] * count, [0] * count, True
    while changed:
        changed = False
        for pc in reversed(range(count)):
            out = reduce(or_, [ahead[each] for each in following[pc]], 0)
            replaced, always, computed = effects[pc]
            into = out & ~replaced | always
            for results, sources in computed:
                if results & out:
                    into |= sources
            changed |= into != ahead[pc]
            ahead[pc], behind[pc] = into, out
    return behind


def _effect(
    program: Program, pc: int, steps: tuple[_Step, ...] | None
) -> tuple[int, int, list[tuple[int, int]]]:
    """What an instruction replaces, what it needs in any case, and what for which result."""
    reads, writes = program.registers[pc]
    source = program.source[pc]
    guard = register_slots(program.scope_of(pc), source.guard)
    own = set(writes) if source.opcode.startswith("wgmma.mma_async") else set[int]()
    replaced = 0 if guard else _bits(_whole(set(writes) - own))
    if steps is None:
        return replaced, _bits(_whole((set(reads) - own) | guard)), []
    return replaced, 0, [(_bits(each.results), _bits(each.sources)) for each in steps]


def _bits(numbers: Iterable[int]) -> int:
    return reduce(or_, [1 << each for each in numbers], 0)


def _steps_at(program: Program, pc: int) -> tuple[_Step, ...] | None:
    """What an instruction computes of what; None if it does more."""
    source = program.source[pc]
    if flow_of(program, pc).kind in _PURE or source.opcode.startswith("mma.sync"):
        guard = register_slots(program.scope_of(pc), source.guard)
        return tuple(_steps_of(program, pc, guard))
    return None


def _steps_of(program: Program, pc: int, guard: set[int]) -> Iterator[_Step]:
    """What the results need, element by element where pairs are made, computed and taken apart."""
    source = program.source[pc]
    reads, writes = program.registers[pc]
    in_parts = source.opcode == "mov.b64" or source.opcode.startswith("mma.sync")
    lists = [_list_of(program, pc, at) for at in range(len(source.operands) if in_parts else 0)]
    if source.opcode.startswith("mma.sync") and len(lists) >= _OF_MMA:
        yield _Step(_whole(lists[0]), _whole((reads - set(lists[3])) | guard))
        for new, old in zip(lists[0], lists[3], strict=False):
            yield _Step(_whole([new]), _whole([old]))
    elif source.opcode == "mov.b64" and [len(each) for each in lists] == [1, 2]:
        for half, element in enumerate(lists[1]):
            yield _Step(frozenset({2 * lists[0][0] + half}), _whole([element, *guard]))
    elif source.opcode == "mov.b64" and [len(each) for each in lists] == [2, 1]:
        for half, element in enumerate(lists[0]):
            yield _Step(_whole([element]), frozenset({2 * lists[1][0] + half}) | _whole(guard))
    elif source.opcode.endswith(".f32x2"):
        for half in (0, 1):
            sources = frozenset(2 * slot + half for slot in reads)
            yield _Step(frozenset(2 * slot + half for slot in writes), sources | _whole(guard))
    else:
        yield _Step(_whole(writes), _whole(reads | guard))


def _whole(slots: Iterable[int]) -> frozenset[int]:
    """Both halves of registers."""
    halves = set[int]()
    for slot in slots:
        halves |= {2 * slot, 2 * slot + 1}
    return frozenset(halves)


def _reached(slots: Iterable[int], steps: list[_Step]) -> set[int]:
    """The halves of registers, and of all that is computed of them."""
    return _closed(set(_whole(slots)), [_Step(each.sources, each.results) for each in steps])


def _closed(needed: set[int], steps: list[_Step]) -> set[int]:
    """With all that leads to them."""
    by_result: dict[int, list[_Step]] = {}
    for step in steps:
        for slot in step.results:
            by_result.setdefault(slot, []).append(step)
    work = list(needed)
    while work:
        for step in by_result.get(work.pop(), ()):
            new = step.sources - needed
            needed |= new
            work += new
    return needed
