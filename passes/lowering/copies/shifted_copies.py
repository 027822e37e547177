"""Operand tiles copied by threads from rows that start anywhere in 16 bytes.

A thread takes two neighbouring units of every `step`-th row. It loads the three aligned units of
global memory that they lie in, moves their bytes into place in registers and stores both:

    shift   bytes from an aligned unit to the first element asked for; the same in all rows of a
            thread, since `step` rows are a multiple of 16 bytes
    limit   where the last aligned unit starts that lies wholly in the tensor: no load goes further,
            and what the last row has beyond it is loaded again, element by element
    edge    a tile that hangs over the view: what lies outside is zero

Loads of all tiles of a slot are under way before the first is stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ....dialects import llvm
from ....dialects.layout import TileLayout
from ....dialects.mlir import arith, ir, vector
from ....dialects.pipe import SetRegistersOp
from ....dialects.tile.loads import CopyTogetherOp
from ... import build
from ...base import walk
from ...copy_width import SHIFTED_UNITS, UNIT_BYTES
from ...team import Team
from ..operands.units import unit_offset
from ..registers.elements import slice_of
from ..scope.scope import Scope, place_of
from .source import Source

UNITS = SHIFTED_UNITS
WORD_BYTES = 4
WORDS = UNIT_BYTES // WORD_BYTES
# Of a thread under way, 12 registers each; the second where setmaxnreg leaves it fewer.
ROWS_MAX, FEW_ROWS_MAX = 8, 6

Words = list[ir.Value]


def lower_copy_together(scope: Scope, op: CopyTogetherOp) -> None:
    """Copy as many rows at a time as a thread has registers for."""
    copies = [ShiftedCopy.of(scope, copy) for copy in op.body.blocks[0].operations]
    rows = [(copy, number) for copy in copies for number in range(copy.rows)]
    most = FEW_ROWS_MAX if walk(scope.kernel, SetRegistersOp) else ROWS_MAX
    for start in range(0, len(rows), most):
        batch = rows[start : start + most]
        loaded = [copy.load(number) for copy, number in batch]
        for copy in dict.fromkeys(copy for copy, _ in batch):
            pairs = zip(batch, loaded, strict=True)
            copy.store({number: words for (of, number), words in pairs if of is copy})
    for copy in copies:
        copy.reload_end()


@dataclass(frozen=True, eq=False)
class ShiftedCopy:
    """The part of one thread: units `unit` and the next of every `step`-th row from `row` on.

    `aligned` is the offset (bytes) of the aligned unit of the first row in the tensor, `places`
    where its two units go (bytes of shared memory).
    """

    scope: Scope
    source: Source
    layout: TileLayout
    step: int
    row: ir.Value
    unit: ir.Value
    shift: ir.Value
    aligned: ir.Value
    places: tuple[ir.Value, ...]

    @staticmethod
    def of(scope: Scope, op: Any) -> ShiftedCopy:
        """The part of the current thread of a `tile.copy`."""
        source, layout, start = Source.of(scope, op), op.tile.type.layout, place_of(op.tile)
        in_row, team = layout.contiguous * layout.element_bytes // (UNITS * UNIT_BYTES), Team.of(op)
        row, unit = team.thread // in_row, team.thread % in_row * UNITS
        column = source.first_column * layout.element_bytes + unit * UNIT_BYTES
        first = (source.first_row + row) * source.pitch_bytes + column
        shift = first % UNIT_BYTES
        units = [unit + index for index in range(UNITS)]
        places = tuple(unit_offset(layout, row, each) + start for each in units)
        step = team.threads // in_row
        aligned = first - shift
        return ShiftedCopy(scope, source, layout, step, row, unit, shift, aligned, places)

    @property
    def rows(self) -> int:
        """Rows that a thread has, of the tile or below it."""
        return -(-self.layout.rows // self.step)

    @property
    def limit(self) -> int:
        """Where the last aligned unit of the tensor starts that is whole."""
        return (self.source.size_bytes // UNIT_BYTES - 1) * UNIT_BYTES

    def load(self, number: int) -> Words:
        """The aligned units of a row."""
        start = number * self.step * self.source.pitch_bytes
        offsets = [self.aligned + (start + each * UNIT_BYTES) for each in range(UNITS + 1)]
        return [word for offset in offsets for word in self._load_unit(offset)]

    def _load_unit(self, offset: ir.Value) -> Words:
        inside = build.widen(arith.minui(offset, build.constant(self.limit)))
        pointer = build.element_pointer(self.source.pointer, ir.IntegerType.get_signless(8), inside)
        unit = llvm.load(_unit_type(), pointer, alignment=UNIT_BYTES)
        return [slice_of(unit, index, 1) for index in range(WORDS)]

    def store(self, loaded: dict[int, Words]) -> None:
        """Store rows, given by their number, with zeros for what lies outside the view."""
        moved = {number: self._moved(words) for number, words in loaded.items()}
        edge = self._at_edge()
        with build.when(None if edge is None else edge ^ build.true()):
            for number, words in moved.items():
                self._store_row(number, words)
        if edge is None:
            return
        with build.when(edge):
            masks = self._masks()
            for number, words in moved.items():
                self._store_row(number, self._masked(number, words, masks))

    def _moved(self, words: Words) -> Words:
        """The bytes from `shift` on: by two words, by one, by bytes, as rows can need."""
        known = math.gcd(self.source.pitch_bytes, UNIT_BYTES)
        needed = UNITS * WORDS + (known <= WORD_BYTES) + (known < WORD_BYTES)
        words = self._moved_by(2, words, needed)
        if known <= WORD_BYTES:
            words = self._moved_by(1, words, UNITS * WORDS + (known < WORD_BYTES))
        if known < WORD_BYTES:
            bits = self.shift % WORD_BYTES * 8
            words = [llvm.fshr(high, low, bits) for low, high in pairwise(words)]
        return words

    def _moved_by(self, count: int, words: Words, needed: int) -> Words:
        """Words from the `count`-th on where that bit of the shift is set."""
        bit = self.shift // (count * WORD_BYTES) % 2
        moves = build.equal(bit, 1)
        return [arith.select(moves, words[index + count], words[index]) for index in range(needed)]

    def _store_row(self, number: int, words: Words) -> None:
        below = number * self.step
        partial = below + self.step > self.layout.rows
        with build.when(build.less(self.row + below, self.layout.rows) if partial else None):
            for index, place in enumerate(self.places):
                unit = words[index * WORDS : (index + 1) * WORDS]
                to = build.shared_at(place + below * self.layout.span_bytes)
                value = vector.FromElementsOp(_unit_type(), unit).result
                llvm.store(value, to, alignment=UNIT_BYTES)

    def _at_edge(self) -> ir.Value | None:
        """Whether the tile hangs over the view, or has the end of a tensor of no whole units."""
        source, layout = self.source, self.layout
        first, height = source.first_row, source.known_rows
        rows = None if source.whole_rows else _over(first, layout.rows, height)
        if source.size_bytes % UNIT_BYTES:
            rows = _over(first, layout.rows, height - 1)
        if source.whole_columns:
            return rows
        columns = _over(source.first_column, layout.contiguous, source.known_columns)
        return columns if rows is None else arith.ori(rows, columns)

    def _masks(self) -> Words:
        """Ones for the bytes of each word that are columns of the view."""
        source, item = self.source, self.layout.element_bytes
        first = source.first_column * item + self.unit * UNIT_BYTES
        valid = build.constant(source.known_columns * item) - first
        masks = []
        for index in range(UNITS * WORDS):
            more = arith.maxsi(valid - index * WORD_BYTES, build.constant(0))
            bits = arith.minsi(more, build.constant(WORD_BYTES)) * 8
            ones = arith.shli(build.constant(1, build.i64()), build.widen(bits))
            masks.append(arith.trunci(build.i32(), ones - 1))
        return masks

    def _masked(self, number: int, words: Words, masks: Words) -> Words:
        words = [arith.andi(word, mask) for word, mask in zip(words, masks, strict=True)]
        if self.source.whole_rows:
            return words
        row = self.source.first_row + self.row + number * self.step
        inside = build.less(row, self.source.known_rows)
        return [arith.select(inside, word, build.constant(0)) for word in words]

    def reload_end(self) -> None:
        """The thread of the last row stores what is beyond `limit` once more."""
        source = self.source
        if source.size_bytes % UNIT_BYTES == 0:
            return
        row = build.constant(source.known_rows - 1) - source.first_row
        below = row - self.row
        end = self.aligned + below * source.pitch_bytes
        mine = build.both(build.less(row, self.layout.rows), build.equal(row % self.step, self.row))
        beyond = _over(end, UNITS * UNIT_BYTES, self.limit)
        with build.when(build.both(mine, beyond)):
            self._load_elements(row, below * self.layout.span_bytes)

    def _load_elements(self, row: ir.Value, below: ir.Value) -> None:
        """Both units of a row of the tile, `below` bytes after the first row's."""
        source, item = self.source, self.layout.element_bytes
        in_unit = UNIT_BYTES // item
        with build.loop(build.constant(0), in_unit, source.width) as at:
            for index, place in enumerate(self.places):
                column = (self.unit + index) * in_unit + at
                to = place + below + at * item
                value = source.read_part(row, column)
                llvm.store(value, build.shared_at(to), alignment=source.width * item)


def _over(first: ir.Value, extent: int, end: int) -> ir.Value:
    """Whether `extent` from `first` on goes beyond `end`."""
    return build.less(first + extent, end + 1) ^ build.true()


def _unit_type() -> ir.Type:
    return ir.VectorType.get([WORDS], build.i32())
