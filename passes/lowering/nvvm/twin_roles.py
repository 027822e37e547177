"""Merges two roles that run the same program into one, which selects what differs.

    if thread < 128 { … 229480 … }            if thread < 256 {
    if thread - 128 < 128 { … 229472 … }  →     %turn = thread - 128 < 128, of the warp's first lane
                                                … select(%turn, 229472, 229480) … }

Of two consumers in turns everything after this sees one: LLVM, ptxas and the instruction cache.
`twin_programs.py` says which programs are twins. Others stay as they are.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from ....dialects import sm
from ....dialects.mlir import arith, ir
from ....dialects.target import WARPGROUP_THREADS
from ... import build
from ...base import operations_named
from ...clone import Mapping, clone, constant_of
from .barriers import meet
from .twin_programs import MEETINGS, DifferentError, Twins, beginning, computes, op_of

BELOW = 6
"""`ult` among the predicates of arith.cmpi."""


class _Role(NamedTuple):
    """An `if` for `count` threads from `first` on."""

    branch: ir.Operation
    thread: ir.Value
    first: int
    count: int


def fold_twin_roles(kernel: Any) -> bool:
    """Put two roles that stand one after the other together; whether there are twins."""
    folding = _twin_roles(kernel)
    if folding is None:
        return False
    folding.fold()
    second, slots = folding.second.branch, folding.twins.dropped
    del folding  # MLIR's bindings mistake a new op for an old one that goes while it has a name
    _drop(second, slots)
    return True


def _twin_roles(kernel: Any) -> _Folding | None:
    ops = [op.operation for op in list(kernel.body.blocks[0].operations)]
    branches = [number for number, op in enumerate(ops) if op.name == "scf.if"]
    for start, end in pairwise(branches):
        first, second = _role(ops[start]), _role(ops[end])
        if first and second and _are_neighbours(first, second):
            between = ops[start + 1 : end]
            if all(computes(op) for op in between) and not _loads_pieces(first.branch):
                return _compared(first, second, between)
    return None


def _loads_pieces(branch: ir.Operation) -> bool:
    """Whether a role loads a tile ahead piece by piece, as a residual.

    An H200 took 2 % longer for 2048x4096x1024 with a residual where consumers shared their code.
    """
    return len(operations_named(branch, "sm.tma_load")) > 1


def _role(branch: ir.Operation) -> _Role | None:
    """The role whose `if` this is, as `select-instructions` makes it."""
    below = _operands(branch.operands[0], "arith.cmpi")
    if below is None or len(branch.results) or len(branch.regions[1].blocks):
        return None
    moved = _operands(below[0], "arith.subi")
    thread, first = (moved[0], constant_of(moved[1])) if moved else (below[0], 0)
    count = constant_of(below[1])
    if first is None or count is None:
        return None
    condition = ir.OpResult(branch.operands[0]).owner.operation
    ult = ir.IntegerAttr(condition.attributes["predicate"]).value == BELOW
    return _Role(branch, thread, first, count) if ult else None


def _operands(value: ir.Value, name: str) -> list[ir.Value] | None:
    """The operands of the op that a value is of, if the op has that name."""
    op = op_of(value)
    return list(op.operands) if op is not None and op.name == name else None


def _are_neighbours(first: _Role, second: _Role) -> bool:
    """Whether both are whole warpgroups, as many, the second after the first."""
    return (
        first.thread == second.thread
        and first.first + first.count == second.first
        and first.count == second.count
        and first.count % WARPGROUP_THREADS == 0
    )


def _compared(first: _Role, second: _Role, between: list[ir.Operation]) -> _Folding | None:
    try:
        twins = Twins(*(role.branch.regions[0].blocks[0] for role in (first, second)))
    except DifferentError:
        return None
    return _Folding(first, second, between, twins)


class _Folding:
    """The first role becomes both; the second is left as it is, for `_drop`."""

    def __init__(
        self, first: _Role, second: _Role, between: list[ir.Operation], twins: Twins
    ) -> None:
        self.first, self.second, self.between, self.twins = first, second, between, twins

    def fold(self) -> None:
        self._let_both_in()
        for word in self.twins.doubled:
            self._double(word)
        places = [(touch.op, self.twins.place(touch)) for touch in self.twins.own]
        for op, place in places:
            self._repeat(op, place)
        for loop, ops in self.twins.moved.items():
            self._move(ops, loop)
        for op, operand, value in self.twins.changes:
            with ir.InsertionPoint(op), op.location:
                there = self._there(value, op, {})
                op.operands[operand] = arith.select(self.turn, there, op.operands[operand])
        for one, other in self.twins.pairs:
            if one.name in MEETINGS:
                self._meet(one, other)

    def _let_both_in(self) -> None:
        branch, thread, first, count = self.first
        for op in self.between:
            op.move_before(branch)
        with ir.InsertionPoint(branch), branch.location:
            number = thread - first if first else thread
            branch.operands[0] = build.less(number, 2 * count)
        start = ir.InsertionPoint.at_block_begin(branch.regions[0].blocks[0])
        with start, branch.location:
            of_lane = arith.divui(number, build.constant(count))
            turn = sm.ShuffleFromOp.of(of_lane, build.constant(0)).result
            self.turn = build.equal(turn, 1)

    def _double(self, word: ir.Value) -> None:
        """Give the second role a word of its own for one that both use in their own ways."""
        store = beginning(word)
        assert store is not None
        with ir.InsertionPoint.after(store), store.location:
            clone(word.owner, self.twins.mapping)
            clone(store, self.twins.mapping)

    def _repeat(self, touch: ir.Operation, place: ir.Operation) -> None:
        """Let both touch a word that the second role alone looks at."""
        with ir.InsertionPoint(place), touch.location:
            made: Mapping = {}
            for value in touch.operands:
                made[value] = self._there(value, place, made)
            copy = clone(touch, made)
        self.twins.mapping.update(zip(touch.results, copy.results, strict=True))

    def _move(self, ops: list[ir.Operation], loop: ir.Operation) -> None:
        """Do before a loop what the second role's begins with and the first one's ends with."""
        with ir.InsertionPoint(loop), loop.location, build.when(self.turn):
            made: Mapping = {}
            for op in ops:
                for value in op.operands:
                    made[value] = self._there(value, loop, made)
                clone(op, made)

    def _there(self, value: ir.Value, op: ir.Operation, made: Mapping) -> ir.Value:
        """What a value of the second role is in front of an op, computed there if need be."""
        if value in made:
            return made[value]
        known = self.twins.mapping.get(value)
        if known is not None and self.twins.before(known, op):
            return known
        if not self.twins.computes(value):
            return value
        computed = ir.OpResult(value).owner
        for operand in computed.operation.operands:
            made[operand] = self._there(operand, op, made)
        clone(computed, made)
        return made[value]

    def _meet(self, one: ir.Operation, other: ir.Operation) -> None:
        """Each role at its own barrier."""
        numbers = [ir.IntegerAttr(op.attributes["id"]).value for op in (one, other)]
        with ir.InsertionPoint(one), one.location:
            first, second = (build.constant(number) for number in numbers)
            holds = meet(one.opview, arith.select(self.turn, second, first))
        if holds is not None:
            one.results[0].replace_all_uses_with(holds)
        one.erase()


def _drop(branch: ir.Operation, slots: list[ir.Value]) -> None:
    branch.erase()
    for slot in slots:
        for use in list(slot.uses):
            use.owner.operation.erase()
        ir.OpResult(slot).owner.operation.erase()
