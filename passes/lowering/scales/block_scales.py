"""Which scales of 128 elements of K a thread reads of an operand's, and for which lines: from their
view, or from a vector in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

from ....dialects import llvm
from ....dialects.dtypes import BLOCKWISE, BLOCKWISE_FORMS
from ....dialects.mlir import arith, ir
from ....dialects.record import record
from ... import build
from ...groups import form_of_scales
from ..registers.elements import slice_of
from ..scope.scope import element_pointer, place_of

SCALE_BYTES = 4


class Scales(NamedTuple):
    """The scales of one operand for the lines, rows or columns, that a thread has of a product.

    `lines` are where they are after its first one, each the first of `width` neighbours. The tile
    has `extent` of them. K has so many `blocks`. Where it is split, steps past the last one have
    no scales, and add nothing.
    """

    view: ir.Value[ir.MemRefType]
    form: str
    lines: tuple[int, ...]
    width: int
    extent: int
    blocks: int
    is_split: bool

    @property
    def of_each(self) -> bool:
        """Whether every line has one of its own."""
        return self.form == BLOCKWISE_FORMS[0]

    @property
    def is_one(self) -> bool:
        """Whether all lines of a tile share one."""
        return not self.of_each and BLOCKWISE % self.extent == 0

    @property
    def _unit(self) -> int:
        """Lines that share a place in their block: tiles begin at multiples of their extent."""
        return gcd(self.extent, BLOCKWISE)

    @property
    def _blocks(self) -> int:
        """The number of blocks of 128 lines that a tile of a pair may touch, wherever it begins."""
        return (BLOCKWISE - self._unit + self.extent - 1) // BLOCKWISE + 1

    @property
    def count(self) -> int:
        """Scales of a step."""
        if self.is_one:
            return 1
        if self.of_each or self.width == 1:
            return self.width * len(self.lines)
        return self._blocks

    def read(self, start: ir.Value, block: ir.Value) -> list[ir.Value]:
        """Ask for those of a block of K; `start` is the first line."""
        inside = build.less(block, self.blocks) if self.is_split else None
        found = self._read(start, arith.minui(block, build.constant(self.blocks - 1)))
        if inside is None:
            return found
        zero = arith.ConstantOp(found[0].type, ir.FloatAttr.get(found[0].type, 0.0)).result
        return [arith.select(inside, each, zero) for each in found]

    def _read(self, start: ir.Value, block: ir.Value) -> list[ir.Value]:
        whole = self.view.type.shape[1] % self.extent == 0 and not form_of_scales(self.view)
        if self.of_each and whole:
            return self._of_whole(start, block)
        if self.of_each:
            first = block * self.view.type.shape[1] + start
            return [each for line in self.lines for each in self._of_line(first + line)]
        if self.is_one or self.width > 1:
            first = start // BLOCKWISE
            return [self._of_block(first + number, block) for number in range(self.count)]
        return [self._of_block((start + line) // BLOCKWISE, block) for line in self.lines]

    def _of_whole(self, start: ir.Value, block: ir.Value) -> list[ir.Value]:
        """Load the scales of a tile that is inside or outside as a whole, at constant offsets from
        one address."""
        lines = self.view.type.shape[1]
        start = arith.minui(start, build.constant(lines - self.lines[-1] - self.width))
        first = element_pointer(self.view, build.widen(block * lines + start))
        width = self.width if lines % self.width == 0 else 1
        places = [line + at for line in self.lines for at in range(0, self.width, width)]
        return [each for at in places for each in self._load_behind(first, at, width)]

    def _of_line(self, offset: ir.Value) -> list[ir.Value]:
        """Load adjacent scales, in one load if a row of scales consists of whole groups of them.

        After the last line there are those of the next block; after all, the last one.
        """
        blocks, lines = self.view.type.shape
        width = self.width if lines % self.width == 0 else 1
        last, found = build.constant(blocks * lines - width), []
        for at in range(0, self.width, width):
            found += self._load(arith.minui(offset + at, last), width)
        return found

    def _of_block(self, number: ir.Value, block: ir.Value) -> ir.Value:
        blocks, pitch = self.view.type.shape
        number = arith.minui(number, build.constant(blocks - 1))
        return self._load(number * pitch + block, 1)[0]

    def _load(self, offset: ir.Value, width: int) -> list[ir.Value]:
        return self._load_behind(element_pointer(self.view, build.widen(offset)), 0, width)

    def _load_behind(self, first: ir.Value, at: int, width: int) -> list[ir.Value]:
        element = self.view.type.element_type
        type_ = element if width == 1 else ir.VectorType.get([width], element)
        pointer = build.offset_pointer(first, at * SCALE_BYTES) if at else first
        value = llvm.load(type_, pointer, alignment=width * SCALE_BYTES)
        return [slice_of(value, at, 1) for at in range(width)]

    def spread(self, start: ir.Value, values: Sequence[ir.Value]) -> dict[int, ir.Value]:
        """By line after the first, each neighbour by itself."""
        every = [line + at for line in self.lines for at in range(self.width)]
        if self.is_one:
            return dict.fromkeys(every, values[0])
        if self.of_each or self.width == 1:
            return dict(zip(every, values, strict=True))
        units = sorted({line // self._unit * self._unit for line in self.lines})
        places = {first: self._of_place(start, values, first) for first in units}
        return {
            line + at: places[line // self._unit * self._unit]
            for line in self.lines
            for at in range(self.width)
        }

    def _of_place(self, start: ir.Value, values: Sequence[ir.Value], first: int) -> ir.Value:
        """The one of the 128 lines that those from `first` on are in, as many as share a place: a
        tile may begin within 128."""
        number, inside = divmod(first, BLOCKWISE)
        if inside == 0 or number + 1 == len(values):
            return values[number]
        ahead = build.less(start % BLOCKWISE + inside, BLOCKWISE)
        return arith.select(ahead, values[number], values[number + 1])


@record
class Vector:
    """The scales of the lines of a tile, in shared memory."""

    tile: ir.Value
    lines: tuple[int, ...]
    width: int
    is_one: bool = False
    of_each: bool = True
    count: int = 0  # that are asked for before they are needed

    def read(self, start: ir.Value) -> dict[int, ir.Value]:
        """Those of a thread whose first line is `start`, by line after that, each neighbour by
        itself."""
        first = place_of(self.tile) + start * SCALE_BYTES
        found, f32 = {}, ir.F32Type.get()
        type_ = f32 if self.width == 1 else ir.VectorType.get([self.width], f32)
        for line in self.lines:
            pointer = build.shared_at(first + line * SCALE_BYTES)
            value = llvm.load(type_, pointer, alignment=self.width * SCALE_BYTES)
            found |= {line + at: slice_of(value, at, 1) for at in range(self.width)}
        return found
