"""Compares two roles' programs op by op, and finds the values in which they differ.

words    stack slots of a word, as where a role is in a ring. A word is paired with one that the
         other program reads and writes at the same places. What a loop of the second program does
         first, where the first program's loop does it last, is done before the loop instead. Words
         without a pair stay beside those of the first program
others   ops that do more than compute are paired in their order, with what they say of themselves,
         their types and their regions
values   an operand is the same if it is paired or computed of the same; else it is selected

Nothing is changed here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....dialects.mlir import ir

LOAD, STORE, SLOT, LOOP = "llvm.load", "llvm.store", "llvm.alloca", "scf.for"
COMPUTING = "arith."
MEETINGS = ("sm.named_barrier", "sm.any_barrier")
"""Ops whose `id` differs, since each role meets at a barrier of its own."""


class DifferentError(Exception):
    """The programs are no twins."""


class Touch(NamedTuple):
    """A load or a store of a word: in which block, after how many paired ops of it."""

    block: int
    behind: int
    op: ir.Operation

    @property
    def place(self) -> tuple[int, int, str]:
        return self.block, self.behind, self.op.name


class Change(NamedTuple):
    """An operand of the first program's op that is `value` in the second."""

    op: ir.Operation
    operand: int
    value: ir.Value


Touches = dict[ir.Value, list[Touch]]
Pair = tuple[ir.Operation, ir.Operation]


class Twins:
    """Two programs compared; raises `DifferentError` where they are no twins.

    mapping: what each value of the second program is in the first
    pairs: ops of both, words included
    changes: operands to select
    own: touches of words without a pair, in the second program's order
    moved: ops on words that go before a loop of the first program, by loop
    doubled: words that both programs use, each in its own way
    dropped: stack slots of the second program that nobody needs
    """

    def __init__(self, first: ir.Block, second: ir.Block) -> None:
        self.mapping: dict[ir.Value, ir.Value] = {}
        self.pairs: list[Pair] = []
        self.changes: list[Change] = []
        self.own: list[Touch] = []
        self.moved: dict[ir.Operation, list[ir.Operation]] = {}
        self.doubled: list[ir.Value] = []
        self.dropped: list[ir.Value] = []
        self._order: tuple[dict[ir.Operation, int], dict[ir.Operation, int]] = ({}, {})
        self._touches: tuple[Touches, Touches] = ({}, {})
        self._starts: list[list[ir.Operation]] = []
        self._loops: dict[int, tuple[ir.Operation, range]] = {}
        self._whole = first
        self._computed: set[ir.Operation] = set()
        self._slots: set[ir.Operation] = set()
        self._pair_blocks(first, second)
        self._pair_words()
        for one, other in self.pairs:
            self._compare_operands(one, other)
        self._check_values()

    def computes(self, value: ir.Value) -> bool:
        """Whether a value of the second program's is only computed, so that it can be again."""
        op = op_of(value)
        return op is not None and op in self._order[1] and computes(op)

    def before(self, value: ir.Value, op: ir.Operation) -> bool:
        """Whether a value that the first program has stands before one of its ops."""
        made, order = op_of(value), self._order[0]
        if made is None or made not in order:
            return True
        while op.block != made.block:
            op = op.parent.operation
            if op not in order:
                return False
        return order[made] < order[op]

    def place(self, touch: Touch) -> ir.Operation:
        """The op of the first program in front of which a touch of the second's belongs."""
        return self._starts[touch.block][touch.behind]

    def _pair_blocks(self, first: ir.Block, second: ir.Block) -> None:
        number = len(self._starts)
        self.mapping.update(zip(second.arguments, first.arguments, strict=True))
        self._starts.append([])
        ops = [self._listed(block, number, at) for at, block in enumerate((first, second))]
        _require([op.name for op in ops[0]] == [op.name for op in ops[1]])
        for one, other in zip(*ops, strict=True):
            self._pair(one, other)

    def _listed(self, block: ir.Block, number: int, at: int) -> list[ir.Operation]:
        """The ops of a block that do more than compute; those of words are noted apart."""
        listed: list[ir.Operation] = []
        order, starts = self._order[at], [] if at else self._starts[number]
        for op in [each.operation for each in list(block.operations)]:
            order[op] = len(order)
            if len(starts) == len(listed):
                starts.append(op)
            name = op.name
            word = _word_of(op) if name in (LOAD, STORE) else None
            if word is not None:
                self._touches[at].setdefault(word, []).append(Touch(number, len(listed), op))
            elif not name.startswith(COMPUTING):
                listed.append(op)
        return listed

    def _pair(self, one: ir.Operation, other: ir.Operation) -> None:
        made = list(one.results), list(other.results)
        _require(len(one.operands) == len(other.operands) and len(made[0]) == len(made[1]))
        for mine, theirs in zip(*made, strict=True):
            _require(mine.type == theirs.type)
            self.mapping[theirs] = mine
        _require(_attributes_of(one) == _attributes_of(other))
        self.pairs.append((one, other))
        if not len(one.regions):
            return
        for mine, theirs in zip(one.regions, other.regions, strict=True):
            blocks = list(mine.blocks), list(theirs.blocks)
            _require(len(blocks[0]) == len(blocks[1]))
            for first, second in zip(*blocks, strict=True):
                number = len(self._starts)
                self._pair_blocks(first, second)
                if one.name == LOOP:
                    self._loops[number] = one, range(number, len(self._starts))

    def _pair_words(self) -> None:
        first, second = self._touches
        _require(all(self._is_private(word) for word in {**first, **second}))
        shared = [word for word in second if word in first]
        for word in shared:
            if not self._pair_word(word, word):
                self.doubled.append(word)
        free = [word for word in first if word not in second]
        for word in [word for word in second if word not in first]:
            mine = next((each for each in free if self._pair_word(each, word)), None)
            if mine is None:
                self.own += second[word]
            else:
                free.remove(mine)
                self.dropped.append(word)
        self.own += [touch for word in self.doubled for touch in second[word]]
        self.own.sort(key=lambda touch: self._order[1][touch.op])
        for ops in self.moved.values():
            ops.sort(key=self._order[1].__getitem__)

    def _is_private(self, word: ir.Value) -> bool:
        """Whether no other program has the word, which begins with a constant."""
        inside = [touch.op for found in self._touches for touch in found.get(word, ())]
        others = [op for use in word.uses if (op := use.owner.operation) not in inside]
        return others == [beginning(word)]

    def _pair_word(self, mine: ir.Value, word: ir.Value) -> bool:
        first, second = self._touches[0][mine], self._touches[1][word]
        moved: list[Touch] = []
        if _places(first) != _places(second):
            second, moved = self._with_its_start_last(second)
        if _places(first) != _places(second) or _text(mine) != _text(word):
            return False
        for touch in moved:
            loop, _ = self._loops[touch.block]
            self.moved.setdefault(loop, []).append(touch.op)
        for one, other in zip(first, second, strict=True):
            self.pairs.append((one.op, other.op))
            self.mapping.update(zip(other.op.results, one.op.results, strict=True))
        self.mapping[word] = mine
        return True

    def _with_its_start_last(self, touches: list[Touch]) -> tuple[list[Touch], list[Touch]]:
        """The touches, with those that a loop begins with at its end; and these.

        Only of a word that nobody reads after the loop, which then has moved on once more. A loop
        that runs again would read it: its programs stay two.
        """
        block = touches[0].block
        start = [touch for touch in touches if (touch.block, touch.behind) == (block, 0)]
        loop, inside = self._loops.get(block, (None, ()))
        if not all(touch.block in inside for touch in touches) or not start:
            return touches, []
        _require(loop is not None and loop.block == self._whole)
        end = len(self._starts[block]) - 1
        own = [touch for touch in touches if touch.block == block and touch.behind]
        own += [touch._replace(behind=end) for touch in start]
        return own + [touch for touch in touches if touch.block != block], start

    def _compare_operands(self, one: ir.Operation, other: ir.Operation) -> None:
        for number, (a, b) in enumerate(zip(one.operands, other.operands, strict=True)):
            if not self._is_same(a, b):
                _require(a.type == b.type and isinstance(a.type, ir.IntegerType | ir.IndexType))
                self.changes.append(Change(one, number, b))

    def _is_same(self, a: ir.Value, b: ir.Value) -> bool:
        """Whether `b` is `a` in the first program, once operands of that are selected."""
        if a == b or b in self.mapping:
            return self.mapping.get(b, b) == a
        one, other = op_of(a), op_of(b)
        if one is None or other is None or one.name != other.name:
            return False
        if a.type != b.type or _attributes_of(one) != _attributes_of(other):
            return False
        if one.name == SLOT:
            _require(one not in self._slots and self._is_of_the_second(b))
            self._slots.add(one)
            self.dropped.append(b)
        elif computes(one) and one in self._order[0] and one not in self._computed:
            self._computed.add(one)
            self._compare_operands(one, other)
        else:
            return False
        self.mapping[b] = a
        return True

    def _is_of_the_second(self, slot: ir.Value) -> bool:
        return all(use.owner.operation in self._order[1] for use in slot.uses)

    def _check_values(self) -> None:
        """What is to be selected, or done elsewhere, must be known or can be computed there."""
        own: list[ir.Value] = [result for touch in self.own for result in touch.op.results]
        for change in self.changes:
            self._check_value(change.value, change.op, own)
        self._check_touches([(touch.op, self.place(touch)) for touch in self.own])
        for loop, ops in self.moved.items():
            self._check_touches([(op, loop) for op in ops])

    def _check_touches(self, touches: list[tuple[ir.Operation, ir.Operation]]) -> None:
        """What is stored must be there in front of its place, or be loaded by a touch before."""
        known: list[ir.Value] = []
        for touch, place in touches:
            for value in touch.operands:
                self._check_value(value, place, known)
            known += touch.results

    def _check_value(self, value: ir.Value, op: ir.Operation, known: list[ir.Value]) -> None:
        mine, made = self.mapping.get(value), op_of(value)
        if value in known or (mine is not None and self.before(mine, op)):
            return
        if mine is None and made not in self._order[1]:
            return
        _require(made is not None and computes(made))
        for operand in made.operands if made else ():
            self._check_value(operand, op, known)


def computes(op: Any) -> bool:
    return op.name.startswith(COMPUTING)


def op_of(value: ir.Value) -> ir.Operation | None:
    """The op that a value is a result of, None for an argument of a block."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def beginning(word: ir.Value) -> ir.Operation | None:
    """The store of a constant that a word begins with, beside its slot."""
    for use in word.uses:
        op = use.owner.operation
        if op.name == STORE and op.block == ir.OpResult(word).owner.operation.block:
            value = op_of(op.operands[0])
            return op if value is not None and value.name == "arith.constant" else None
    return None


def _text(word: ir.Value) -> str:
    """A word's first value."""
    store = beginning(word)
    assert store is not None
    return str(ir.OpResult(store.operands[0]).owner.operation.attributes["value"])


def _places(touches: list[Touch]) -> list[tuple[int, int, str]]:
    return [touch.place for touch in touches]


def _word_of(op: ir.Operation) -> ir.Value | None:
    """The word that a load or a store is of."""
    slot = op.operands[op.name == STORE]
    made = op_of(slot)
    if made is None or made.name != SLOT:
        return None
    held = ir.TypeAttr(made.attributes["elem_type"]).value
    return slot if isinstance(held, ir.IntegerType) else None


def _attributes_of(op: ir.Operation) -> dict[str, ir.Attribute]:
    """An op's attributes, but for the number of the barrier that its role meets at."""
    attributes = op.attributes
    if not len(attributes):
        return {}
    skipped = "id" if op.name in MEETINGS else None
    return {name: attributes[name] for name in attributes if name != skipped}


def _require(holds: bool) -> None:
    if not holds:
        raise DifferentError
