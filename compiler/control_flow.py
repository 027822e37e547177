"""Loops in a list of instructions with jumps, for the inspection of PTX and SASS.

A loop is a natural loop: the blocks that reach a back edge without passing its header, where a back
edge goes to a block that dominates its source. Position in the text plays no part, so blocks that
the assembler moved out of line are counted where they run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..dialects.record import record


@record
class Instruction:
    """One instruction: `text` without its guard, indices it may jump to, whether the next runs."""

    text: str
    targets: tuple[int, ...] = ()
    falls_through: bool = True


@record
class Loop:
    """Instructions of one loop in text order, `depth` 1 for an outermost one."""

    instructions: tuple[str, ...]
    depth: int

    def count(self, pattern: str) -> int:
        """How many of its instructions match a regular expression from their start."""
        return sum(1 for text in self.instructions if re.match(pattern, text))


def innermost_loop(program: Sequence[Instruction], pattern: str) -> Loop | None:
    """The innermost loop around an instruction that matches, None when none lies in a loop.

    Of several, such as a prologue's and the steady one, the deepest; then the one with the most
    matching instructions; then the longest.
    """
    blocks = _split(program)
    loops = _natural_loops(blocks, _successors(program, blocks))
    marked = [
        number
        for number, block in enumerate(blocks)
        if any(re.match(pattern, program[index].text) for index in block)
    ]
    around = [[loop for loop in loops if number in loop] for number in marked]
    found = [_as_loop(program, blocks, min(each, key=len), len(each)) for each in around if each]
    return max(found, default=None, key=lambda loop: _rank(loop, pattern))


def _rank(loop: Loop, pattern: str) -> tuple[int, int, int]:
    return loop.depth, loop.count(pattern), len(loop.instructions)


def _as_loop(
    program: Sequence[Instruction], blocks: list[range], members: set[int], depth: int
) -> Loop:
    texts = [program[index].text for number in sorted(members) for index in blocks[number]]
    return Loop(tuple(texts), depth)


def _split(program: Sequence[Instruction]) -> list[range]:
    """Basic blocks as ranges of instruction indices."""
    starts = {0}
    for index, instruction in enumerate(program):
        starts.update(instruction.targets)
        if instruction.targets or not instruction.falls_through:
            starts.add(index + 1)
    ordered = sorted(start for start in starts if start < len(program))
    ends = [*ordered[1:], len(program)][: len(ordered)]
    return [range(start, end) for start, end in zip(ordered, ends, strict=True)]


def _successors(program: Sequence[Instruction], blocks: list[range]) -> list[list[int]]:
    number_of = {block.start: number for number, block in enumerate(blocks)}
    successors = []
    for block in blocks:
        last = program[block[-1]]
        targets = [*last.targets, *([block.stop] if last.falls_through else [])]
        successors.append([number_of[target] for target in targets if target in number_of])
    return successors


def _natural_loops(blocks: list[range], successors: list[list[int]]) -> list[set[int]]:
    """The blocks of every loop; loops that share a header are one."""
    predecessors: list[list[int]] = [[] for _ in blocks]
    for number, followers in enumerate(successors):
        for follower in followers:
            predecessors[follower].append(number)
    dominators = _dominators(successors, predecessors)
    loops: dict[int, set[int]] = {}
    for number, followers in enumerate(successors):
        for header in followers:
            if header in dominators.get(number, ()):
                loops.setdefault(header, {header}).update(_body(header, number, predecessors))
    return list(loops.values())


def _body(header: int, source: int, predecessors: list[list[int]]) -> set[int]:
    found, waiting = {header}, [source]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += predecessors[number]
    return found


def _dominators(
    successors: list[list[int]], predecessors: list[list[int]]
) -> dict[int, frozenset[int]]:
    """For every block that the entry reaches: the blocks on all ways to it."""
    order = _reverse_postorder(successors)
    everything = frozenset(order)
    dominators = dict.fromkeys(order, everything)
    if order:
        dominators[order[0]] = frozenset({order[0]})
    changed = True
    while changed:
        changed = False
        for number in order[1:]:
            ways = [dominators[each] for each in predecessors[number] if each in dominators]
            found = frozenset.intersection(*ways) | {number}
            changed = changed or found != dominators[number]
            dominators[number] = found
    return dominators


def _reverse_postorder(successors: list[list[int]]) -> list[int]:
    seen: set[int] = set()
    postorder: list[int] = []
    stack = [(0, iter(successors[0]))] if successors else []
    seen.add(0)
    while stack:
        number, followers = stack[-1]
        follower = next((each for each in followers if each not in seen), None)
        if follower is None:
            postorder.append(number)
            stack.pop()
        else:
            seen.add(follower)
            stack.append((follower, iter(successors[follower])))
    return postorder[::-1]
