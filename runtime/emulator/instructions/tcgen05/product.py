"""What one tcgen05.mma computes: where its operands and its accumulator lie, and the product.

The operands are read when the operation runs, which is later than its issue.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...errors import Trap
from ...interface import Cta
from ...machine.engine import Move, Moves
from ...tensor.accumulator import Accumulator, Products
from ...tensor.descriptor import InstructionDescriptor, SharedDescriptor
from ...tensor.shared_operands import (
    Operand,
    check_inside,
    gather,
    gather_words,
    operand_at,
    rows_from,
)
from ...tensor.spans import HALF_LANES, Claim, Span
from ...tensor.tensor_core import Block, accumulate, data_path, dense_layout, multiply, to_float32
from ...tensor.tensor_engine import tensor_engine
from ...tensor.tensor_memory import LANES, TensorMemory
from ...tensor.zero_columns import column_shift, zero_columns
from .collector import Usage

_WORD_BITS = 32
WORD_BYTES = 4
_UNORDERED = ("tcgen05.ld", "tcgen05.st", "tcgen05.mma")
"""Accesses under way that the accumulator may not meet."""
_UNORDERED_OPERAND = ("tcgen05.st", "tcgen05.mma")
"""Those that an operand in tensor memory may not meet."""


@dataclass(frozen=True)
class Place:
    """A tensor memory address split up."""

    lane: int
    column: int


@dataclass(eq=False)
class Multiply:
    """One issued operation; ``ctas`` is the CTA or the pair, even rank first; collector: what it
    does with the buffer of an operand; shifts: whether it leaves operand A shifted (`.ashift`)."""

    ctas: tuple[Cta, ...]
    descriptor: InstructionDescriptor
    d: Place
    a: SharedDescriptor | Place
    b: SharedDescriptor
    add: bool
    scale: int
    disabled: np.ndarray | None
    collector: Usage
    shifts: bool

    @property
    def group(self) -> int:
        return len(self.ctas)

    @cached_property
    def operand_a(self) -> Operand:
        """Where each CTA's rows of A lie, of an operand in shared memory."""
        assert isinstance(self.a, SharedDescriptor)
        d, rows = self.descriptor, self.descriptor.m // self.group
        return operand_at(self.a, rows, d.stored_k, d.a, d.a_transposed, "A")

    @cached_property
    def operand_b(self) -> Operand:
        """Where each CTA's rows of B lie."""
        d, rows = self.descriptor, self.descriptor.n // self.group
        return operand_at(self.b, rows, d.k, d.b, d.b_transposed, "B")

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Where D lies."""
        return data_path(self.layout, self.descriptor.n)

    @cached_property
    def places(self) -> list[tuple[TensorMemory, slice, slice]]:
        """The memory, lanes and columns of each block of D."""
        return [self._place_of(block) for block in self.blocks]

    @cached_property
    def layout(self) -> str:
        """Letter of the data-path layout."""
        return dense_layout(self.descriptor.m, self.group, self.descriptor.stationary)

    @property
    def half(self) -> int | None:
        """Which half of each 32 lanes the rows of M=64 take; None for all lanes."""
        return self.d.lane // HALF_LANES if self.layout == "F" else None

    @cached_property
    def d_columns(self) -> int:
        """Tensor memory columns of the accumulator."""
        columns = self.blocks[0].columns
        return columns.stop - columns.start

    @cached_property
    def sums(self) -> Claim:
        """The accumulator, of which products of the same shape are pipelined."""
        first = self.d.column
        span = Span(0, LANES, first, first + self.d_columns, self.half)
        return Claim(span, "tcgen05.mma accumulator", _UNORDERED, self.d_shape)

    @property
    def d_shape(self) -> tuple[int, int, int]:
        """What products must share to be pipelined: accumulator and shape (PTX §9.7.16.6.2)."""
        return self.d.column, self.descriptor.m, self.descriptor.n

    @cached_property
    def access(self) -> Claim:
        """The access to it."""
        return Claim(self.sums.span, "tcgen05.mma", ())

    @property
    def a_columns(self) -> int:
        """Tensor memory columns of operand A."""
        return self.descriptor.stored_k * self.descriptor.a.bits // _WORD_BITS

    @property
    def a_access(self) -> Claim:
        """The access to operand A in tensor memory."""
        assert isinstance(self.a, Place)
        span = Span(0, LANES, self.a.column, self.a.column + self.a_columns, self.half)
        against = ("tcgen05.ld", *_UNORDERED_OPERAND) if self.shifts else _UNORDERED_OPERAND
        shape = ("A", *self.d_shape)
        return Claim(span, "tcgen05.mma operand A", against, shape, reads=not self.shifts)

    def announce(self, line: int) -> None:
        """Tell that it is issued, by a PTX line."""
        operands = (self.a, self.b) if isinstance(self.a, SharedDescriptor) else None
        leader = self.ctas[0]
        events, sums = leader.launch.events, self.sums.span
        events.product_issued(leader, line, sums, self.add, operands, self.form)

    @property
    def form(self) -> tuple[Hashable, ...]:
        """What says what is multiplied, but for the operands' places."""
        disabled = None if self.disabled is None else self.disabled.tobytes()
        return self.descriptor, self.scale, disabled

    def shift_a(self) -> None:
        """Let A's rows move down by one, but for the last of each 32 lanes."""
        assert isinstance(self.a, Place)
        columns = slice(self.a.column, self.a.column + self.a_columns)
        for cta in self.ctas:
            tensor_engine(cta).memory.shift_down(slice(0, LANES), columns)

    def describe(self) -> str:
        d = self.descriptor
        return f"mma {d.m}x{d.n}x{d.k} {d.kind} -> column {self.d.column}"

    def moves(self) -> Moves:
        """For profiles: both operands, and the accumulator (written, and read to add to it)."""
        d, result = self.descriptor, self.descriptor.m * self.d_columns * WORD_BYTES
        a_memory = "tensor" if isinstance(self.a, Place) else "shared"
        return (
            Move(a_memory, "read", d.m * d.stored_k * d.a.bits // 8),
            Move("shared", "read", d.n * d.k * d.b.bits // 8),
            Move("tensor", "read", result if self.add else 0),
            Move("tensor", "write", result),
        )

    def run(self) -> None:
        """Read both operands, multiply, update the accumulator."""
        if isinstance(self.a, Place):
            self._run_in_blocks(self.a)
            return
        if self._may_wait:
            a, b = gather_words(self.ctas, self.operand_a), gather_words(self.ctas, self.operand_b)
            self.join_products(a, b, 1)
            return
        product = multiply(self.descriptor, self._read_a(), self._read_b())
        for block in self.blocks:
            self._write(block, product[block.rows, block.columns])

    @property
    def _may_wait(self) -> bool:
        """Whether the product may be formed with those before and behind it."""
        return self.descriptor.accumulator == "f32" and self.disabled is None and not self.scale

    @cached_property
    def is_plain(self) -> bool:
        """Whether it only multiplies two operands in shared memory and adds the product."""
        alone = isinstance(self.a, Place) or self.collector.use != "discard"
        return type(self) is Multiply and self._may_wait and not alone

    def collected(self, buffer: str) -> tuple[tuple, list[np.ndarray]]:
        """The operand that a collector buffer keeps: its form, and its words."""
        d = self.descriptor
        if buffer != "a":
            form, operand = (d.b, d.n, d.k, d.b_transposed), self.operand_b
        elif isinstance(self.a, Place):
            form = d.a, d.m, d.stored_k, d.a_transposed
            return form, [self._words_of(block, self.a).copy() for block in self.blocks]
        else:
            form, operand = (d.a, d.m, d.stored_k, d.a_transposed), self.operand_a
        for cta in self.ctas:
            check_inside(cta, operand)
        return form, [cta.shared.words[operand.words] for cta in self.ctas]

    def join_products(self, a: list[np.ndarray], b: list[np.ndarray], count: int) -> None:
        """Leave the product to be formed later, and those that follow it; a, b: the words of their
        operands in each CTA."""
        what, d, done, add = "tcgen05.mma accumulator", self.descriptor, 0, self.add
        sums = [memory.sums(lanes, columns, add, what) for memory, lanes, columns in self.places]
        while done < count:
            products = self._products(sums, add)
            taken = min(count - done, products.room)
            if taken < count:
                part = slice(done, done + taken), count
                pieces = _part(a, *part, d.a_transposed), _part(b, *part, d.b_transposed)
                products.join(*pieces, taken)
            else:
                products.join(a, b, taken)
            if not products.room:
                for each in sums:
                    each.words()
            done, add = done + taken, True

    def _products(self, sums: list[Accumulator], add: bool) -> Products:
        """The pending products that the next one joins."""
        waiting = sums[0].waiting
        known = add and waiting and all(each.waiting is waiting for each in sums)
        if waiting is not None and known and waiting.takes(self.descriptor, self.blocks):
            return waiting
        products = Products(self.descriptor, self.blocks)
        for each, block in zip(sums, self.blocks, strict=True):
            each.await_products(products, block, add)
        return products

    def _place_of(self, block: Block) -> tuple[TensorMemory, slice, slice]:
        first = self.d.column + block.first_column
        lanes, columns = _shifted(block.lanes, self.d.lane), slice(first, first + self.d_columns)
        return tensor_engine(self.ctas[block.cta]).memory, lanes, columns

    def _run_in_blocks(self, a: Place) -> None:
        """The lanes that hold a block of D take the rows of A from themselves: where several groups
        of lanes work on the same rows, each has its own copy."""
        b = self._read_b()
        rows = [self._read_lanes(block, a) for block in self.blocks]
        for block, left in zip(self.blocks, rows, strict=True):
            self._write(block, multiply(self.descriptor, left, b[block.columns]))

    def _read_a(self) -> np.ndarray:
        if isinstance(self.a, Place):
            return self._read_tensor_memory(self.a)
        return gather(self.ctas, self.operand_a)

    def _read_b(self) -> np.ndarray:
        return gather(self.ctas, self.operand_b)

    def _read_tensor_memory(self, place: Place) -> np.ndarray:
        return np.concatenate([self._read_lanes(block, place) for block in self.blocks])

    def _read_lanes(self, block: Block, place: Place) -> np.ndarray:
        return to_float32(self._words_of(block, place), self.descriptor.a.name)

    def _words_of(self, block: Block, place: Place) -> np.ndarray:
        columns = slice(place.column, place.column + self.a_columns)
        lanes = _shifted(block.lanes, place.lane)
        memory = tensor_engine(self.ctas[block.cta]).memory
        memory.require_written(lanes, columns, "tcgen05.mma operand A")
        return np.ascontiguousarray(memory.part(lanes, columns))

    def _write(self, block: Block, product: np.ndarray) -> None:
        memory, lanes, columns = self._place_of(block)
        if self.disabled is None:
            self._update(memory, lanes, columns, product)
            return
        kept = np.flatnonzero(~self.disabled[block.cta][lanes])
        for row in kept:
            lane = slice(lanes.start + int(row), lanes.start + int(row) + 1)
            self._update(memory, lane, columns, product[row : row + 1])

    def _update(
        self, memory: TensorMemory, lanes: slice, columns: slice, product: np.ndarray
    ) -> None:
        if self.add:
            memory.require_written(lanes, columns, "tcgen05.mma accumulator")
        words, name = memory.accumulator(lanes, columns).words(), self.descriptor.accumulator
        accumulate(words, product, name, self.add, self.scale)
        memory.mark_written(lanes, columns)


@dataclass(eq=False)
class StationaryMultiply(Multiply):
    """An operation with ``.ws`` and a zero-column mask descriptor, ``mask``."""

    mask: int

    def __post_init__(self) -> None:
        """Refuse a bad descriptor where the operation is issued."""
        d = self.descriptor
        zero_columns(self.mask, d.m, d.n)
        self._shift = column_shift(self.mask, d.m, d.most_shift)
        if self._shift and d.b_transposed:
            raise Trap("unmodelled", "a column shift of an N-major operand B (PTX ISA section "
                                     "9.7.16.4.3)")  # fmt: skip

    @property
    def _may_wait(self) -> bool:
        return False

    @property
    def form(self) -> tuple[Hashable, ...]:
        return *super().form, self.mask

    def _read_b(self) -> np.ndarray:
        zero = zero_columns(self.mask, self.descriptor.m, self.descriptor.n)
        return np.where(zero[:, None], np.float32(0), gather(self.ctas, self._used_b))

    @cached_property
    def _used_b(self) -> Operand:
        """The columns of B behind the shift."""
        d = self.descriptor
        whole = operand_at(self.b, d.n + self._shift, d.k, d.b, d.b_transposed, "B")
        return rows_from(whole, self._shift) if self._shift else whole


def _part(words: list[np.ndarray], pieces: slice, count: int, transposed: bool) -> list[np.ndarray]:
    """Some of ``count`` equal pieces along K of the words of each CTA."""
    axis = 0 if transposed else 1
    width = words[0].shape[axis] // count
    part = slice(pieces.start * width, pieces.stop * width)
    return [each[part] if transposed else each[:, part] for each in words]


def _shifted(lanes: slice, by: int) -> slice:
    return slice(lanes.start + by, lanes.stop + by)
