"""Operand tiles copied into shared memory by threads, in units of 16 bytes.

A thread loads several units before it stores the first, so that their latencies overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...dialects.layout import TileLayout
from ...dialects.mlir import arith, ir, llvm, vector
from ...dialects.tile import CopyOp, LoadOp
from . import build as b
from .frame import Frame
from .operands import UNIT_BYTES, unit_offset

# Of a thread, at once: a unit is 4 registers, and each of its loads has an address.
UNITS_MAX, LOADS_MAX = 8, 16
Unit = tuple[ir.Value, ir.Value]


def lower_load(frame: Frame, op: LoadOp) -> None:
    """All threads copy the tile into its buffer."""
    start = b.constant(frame.plan.buffers[op.tile])
    _copy_tile(frame, op, start)
    frame.tiles[op.tile] = start


def lower_copy(frame: Frame, op: CopyOp) -> None:
    """The producer's threads copy the tile into the acquired slot."""
    _copy_tile(frame, op, frame.tiles[op.tile])


def _copy_tile(frame: Frame, op: LoadOp | CopyOp, start: ir.Value) -> None:
    """Threads copy units to shared byte `start` on; elements outside the view are zero."""
    layout = op.tile.type.layout
    source = _Source.of(frame, op)
    with _units(frame, layout, source.units_under_way) as units:
        values = [source.read_unit(row, column) for row, column in units]
        for (row, column), value in zip(units, values, strict=True):
            address = frame.shared_at(b.add(unit_offset(layout, row, column), start))
            llvm.store(value, address, alignment=UNIT_BYTES)


@contextmanager
def _units(frame: Frame, layout: TileLayout, most: int) -> Iterator[list[Unit]]:
    """Emit the body for every (row, unit of the row), up to `most` at a time in each thread.

    Neighbouring threads take neighbouring units of global memory where their number in a row is a
    power of two; else each takes whole rows, so that no K step divides.
    """
    in_row = layout.contiguous * layout.element_bytes // UNIT_BYTES
    team = frame.team
    if in_row & (in_row - 1) == 0:
        units = layout.rows * in_row
        count = _at_a_time(units // team.threads if units % team.threads == 0 else 1, most)
        with b.loop(team.thread, units, count * team.threads) as first:
            each = [b.add(first, index * team.threads) for index in range(count)]
            yield [(b.div(unit, in_row), b.rem(unit, in_row)) for unit in each]
        return
    count = _at_a_time(in_row, most)
    with (
        b.loop(team.thread, layout.rows, team.threads) as row,
        b.loop(b.constant(0), in_row, count) as column,
    ):
        yield [(row, b.add(column, index)) for index in range(count)]


def _at_a_time(units: int, most: int) -> int:
    """The largest divisor of `units` up to `most`."""
    return max(count for count in range(1, most + 1) if units % count == 0)


@dataclass
class _Source:
    """Where a tile's elements are in global memory."""

    pointer: ir.Value
    element: ir.Type
    element_bytes: int
    rows: int
    contiguous: int
    pitch: int
    first_row: ir.Value
    first_column: ir.Value
    whole_rows: bool
    whole_columns: bool

    @staticmethod
    def of(frame: Frame, op: LoadOp | CopyOp) -> _Source:
        layout, view = op.tile.type.layout, op.view.type
        strides, _ = view.get_strides_and_offset()
        inner = 1 if layout.major == "k" else 0
        tile_indices = [frame.index(op.i), frame.index(op.j)]
        rows, contiguous = view.shape[1 - inner], view.shape[inner]
        return _Source(
            pointer=frame.parameters[op.view, None],
            element=view.element_type,
            element_bytes=layout.element_bytes,
            rows=rows,
            contiguous=contiguous,
            pitch=strides[1 - inner],
            first_row=b.mul(tile_indices[1 - inner], layout.rows),
            first_column=b.mul(tile_indices[inner], layout.contiguous),
            whole_rows=frame.is_whole(rows, layout.rows, "mk"[1 - inner]),
            whole_columns=frame.is_whole(contiguous, layout.contiguous, "mk"[inner]),
        )

    @property
    def width(self) -> int:
        """Elements of one load: rows start and end at whole multiples of them."""
        width = UNIT_BYTES // self.element_bytes
        while self.pitch % width or self.contiguous % width:
            width //= 2
        return width

    @property
    def units_under_way(self) -> int:
        """Units that a thread loads before it stores one."""
        loads = UNIT_BYTES // (self.width * self.element_bytes)
        return min(UNITS_MAX, LOADS_MAX // loads)

    def read_unit(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """16 bytes of one row, as a vector of elements."""
        count = UNIT_BYTES // self.element_bytes
        row = b.add(self.first_row, row)
        column = b.add(self.first_column, b.mul(column, count))
        inside = None if self.whole_rows else b.less(row, self.rows)
        start = b.mul(b.widen(row), self.pitch)
        parts = [
            self._read_part(start, b.add(column, at), inside) for at in range(0, count, self.width)
        ]
        return parts[0] if len(parts) == 1 else _joined(parts, count)

    def _read_part(self, start: ir.Value, column: ir.Value, inside: ir.Value | None) -> ir.Value:
        """One load of `width` elements, which lie wholly inside or outside."""
        if not self.whole_columns:
            inside = b.both(inside, b.less(column, self.contiguous))
        width = self.width
        type_ = self.element if width == 1 else ir.VectorType.get([width], self.element)
        offset = b.add(start, b.widen(column))
        return self._read(offset, type_, width * self.element_bytes, inside)

    def _read(
        self, offset: ir.Value, type_: ir.Type, alignment: int, inside: ir.Value | None
    ) -> ir.Value:
        """Load at an element offset, or zero: outside lanes read element 0 and drop it."""
        if inside is not None:
            offset = arith.select(inside, offset, b.constant(0, b.i64()))
        pointer = b.element_pointer(self.pointer, self.element, offset)
        value = llvm.load(type_, pointer, alignment=alignment)
        if inside is None:
            return value
        return arith.select(inside, value, _zero(type_))


def _zero(type_: ir.Type) -> ir.Value:
    if not isinstance(type_, ir.VectorType):
        return arith.ConstantOp(type_, ir.FloatAttr.get(type_, 0.0)).result
    vector_type = ir.VectorType(type_)
    zero = ir.FloatAttr.get(vector_type.element_type, 0.0)
    return arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, zero)).result


def _joined(parts: list[ir.Value], count: int) -> ir.Value:
    """The vector of `count` elements that the parts make up."""
    elements = [element for part in parts for element in _elements(part)]
    type_ = ir.VectorType.get([count], elements[0].type)
    return vector.FromElementsOp(type_, elements).result


def _elements(part: ir.Value) -> list[ir.Value]:
    if not isinstance(part.type, ir.VectorType):
        return [part]
    (width,) = ir.VectorType(part.type).shape
    return [vector.ExtractOp(part, [], [index]).result for index in range(width)]
