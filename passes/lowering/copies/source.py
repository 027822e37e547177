"""Addresses of the elements of an operand tile in global memory, and vector loads."""

from __future__ import annotations

from dataclasses import dataclass

from ....dialects import llvm, sm
from ....dialects.mlir import arith, ir, vector
from ....dialects.tile import CopyOp
from ....dialects.tile_types import element_bytes, extent_of
from ... import build
from ...batches import is_dynamic_step, step_bytes
from ...copy_width import UNIT_BYTES, copy_bytes
from ...whole import INDICES, is_whole
from ..scope.scope import Scope, lowered_parts
from ..tiles.groups import depth_before, depth_in, placed_row, row_of_whole

# Loads of a thread at once: a unit is 4 registers, and each of its loads has an address.
UNITS_MAX, LOADS_MAX = 8, 16
Row = tuple[ir.Value, ir.Value | None]


@dataclass
class Source:
    """Where a tile's elements are in global memory, and how many one load takes (`width`)."""

    pointer: ir.Value
    element: ir.Type
    element_bytes: int
    rows: int | ir.Value
    contiguous: int | ir.Value
    pitch: int | ir.Value
    width: int
    first_row: ir.Value
    first_column: ir.Value
    whole_rows: bool
    whole_columns: bool
    step_bytes: int = 0
    skipped_rows: ir.Value | int = 0
    view: ir.Value | None = None

    @staticmethod
    def of(scope: Scope, op: CopyOp) -> Source:
        layout, view = op.tile.type.layout, op.view.type
        strides, _ = view.get_strides_and_offset()
        inner = 1 if layout.major == "k" else 0
        tile_indices = [build.as_i32(index) for index in (op.i, op.j)]
        rows = depth_in(op.view, scope.extent(extent_of(view, 1 - inner)))
        contiguous = scope.extent(extent_of(view, inner))
        return Source(
            pointer=lowered_parts(op.view)[0],
            element=_carrier(view.element_type),
            element_bytes=layout.element_bytes,
            rows=rows,
            contiguous=contiguous,
            pitch=contiguous if is_dynamic_step(strides[1 - inner]) else strides[1 - inner],
            width=copy_bytes(layout, op.view) // layout.element_bytes,
            first_row=row_of_whole(op.view, tile_indices[1 - inner] * layout.rows),
            first_column=tile_indices[inner] * layout.contiguous,
            whole_rows=is_whole(op, INDICES[1 - inner]),
            whole_columns=is_whole(op, INDICES[inner]),
            step_bytes=step_bytes(op.view),
            skipped_rows=depth_before(op.view),
            view=op.view,
        )

    @property
    def pitch_bytes(self) -> int:
        """From row to row of a view that is copied by shifted units: else a launch may say it."""
        assert isinstance(self.pitch, int)
        return self.pitch * self.element_bytes

    @property
    def known_rows(self) -> int:
        """The rows of a view that is copied by shifted units: else no launch says them."""
        assert isinstance(self.rows, int)  # copy_width shifts no other
        return self.rows

    @property
    def known_columns(self) -> int:
        """The elements of a row of such a view."""
        assert isinstance(self.contiguous, int)
        return self.contiguous

    @property
    def size_bytes(self) -> int:
        """From the first element of the tensor to the end of the last one."""
        return (self.known_rows - 1) * self.pitch_bytes + self.known_columns * self.element_bytes

    @property
    def units_under_way(self) -> int:
        """Units that a thread loads before it stores one."""
        loads = UNIT_BYTES // (self.width * self.element_bytes)
        return min(UNITS_MAX, LOADS_MAX // loads)

    def start_copy(
        self, row: ir.Value, column: ir.Value, to: ir.Value, found: Row | None = None
    ) -> None:
        """Start copying `width` elements, from a column of the tile on; zeros where outside.

        Outside no byte is read (PTX ISA, cp.async, src-size). `found` is what `row` gives for the
        row, where it was asked before.
        """
        start, inside = found or self.row(row)
        column = self.first_column + column
        inside = self._also_in_row(inside, column)
        pointer = build.element_pointer(self.pointer, self.element, start + build.widen(column))
        size = self.width * self.element_bytes
        read = (
            None
            if inside is None
            else arith.select(inside, build.constant(size), build.constant(0))
        )
        cache = "cg" if size == UNIT_BYTES else "ca"
        sm.CpAsyncOp.of(to, pointer, bytes=size, cache=cache, read=read)

    def read_unit(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """16 bytes of one row, as a vector of elements."""
        count = UNIT_BYTES // self.element_bytes
        column = self.first_column + column * count
        start, inside = self.row(row)
        parts = [self._read_part(start, column + at, inside) for at in range(0, count, self.width)]
        return parts[0] if len(parts) == 1 else _joined(parts, count)

    def read_part(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """One load: `width` elements from a column of the tile on."""
        start, inside = self.row(row)
        return self._read_part(start, self.first_column + column, inside)

    def row(self, row: ir.Value) -> Row:
        """Where a row of the tile starts (elements, i64), and whether the view has it."""
        row = self.first_row + row
        inside = None if self.whole_rows else build.less(row, self.rows)
        row = row if self.view is None else placed_row(self.view, row)
        pitch = self.pitch if isinstance(self.pitch, int) else build.widen(self.pitch)
        return build.widen(row + self.skipped_rows) * pitch, inside

    def _also_in_row(self, inside: ir.Value | None, column: ir.Value) -> ir.Value | None:
        if self.whole_columns:
            return inside
        return build.both(inside, build.less(column, self.contiguous))

    def _read_part(self, start: ir.Value, column: ir.Value, inside: ir.Value | None) -> ir.Value:
        """One load of `width` elements, which lie wholly inside or outside."""
        inside = self._also_in_row(inside, column)
        width = self.width
        type_ = self.element if width == 1 else ir.VectorType.get([width], self.element)
        offset = start + build.widen(column)
        return self._read(offset, type_, width * self.element_bytes, inside)

    def _read(
        self, offset: ir.Value, type_: ir.Type, alignment: int, inside: ir.Value | None
    ) -> ir.Value:
        """Load at an element offset, or zero: outside lanes read element 0 and drop it."""
        if inside is not None:
            offset = arith.select(inside, offset, build.constant(0, build.i64()))
        pointer = build.element_pointer(self.pointer, self.element, offset)
        value = llvm.load(type_, pointer, alignment=alignment)
        if inside is None:
            return value
        return arith.select(inside, value, _zero(type_))


def _carrier(element: ir.Type) -> ir.Type:
    """What LLVM moves an element as: it has neither floats of 8 bits nor integers with a sign."""
    return element if element_bytes(element) > 1 else ir.IntegerType.get_signless(8)


def _zero(type_: ir.Type) -> ir.Value:
    if not isinstance(type_, ir.VectorType):
        return arith.ConstantOp(type_, _zero_of(type_)).result
    zero = _zero_of(ir.VectorType(type_).element_type)
    return arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, zero)).result


def _zero_of(element: ir.Type) -> ir.Attribute:
    if isinstance(element, ir.IntegerType):
        return ir.IntegerAttr.get(element, 0)
    return ir.FloatAttr.get(element, 0.0)


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
