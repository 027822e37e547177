"""`tile.lane_mma`: lanes that share an element, as in a GEMV kernel.

A step of K goes round the lanes in turns, so that a load of a warp is of whole lines:

    turn 0   lane 0: k = 0 .. 7   lane 1: 8 .. 15   …   lane 31: 248 .. 255
    turn 1   lane 0: 256 .. 263   …

A turn has as many neighbours as the widest load of an operand, up to 16 bytes, has elements. All
loads of B in a step stand before the first product, so that they are under way together. Rows
beyond a view's are read as its last one, and K beyond it counts as zero on both sides, as in
`tile.view_mma`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ....dialects import llvm, sm
from ....dialects.layout import UNIT_BYTES
from ....dialects.mlir import arith, ir
from ....dialects.tile.sums import DualLaneMmaOp, LaneMmaOp
from ....dialects.tile_types import element_bytes, extent_of
from ... import build
from ...batches import step_bytes
from ...team import Team
from ..registers.elements import slice_of
from ..scope.scope import Scope, lowered_parts
from ..tiles.groups import placed_row, row_of_whole
from .mma import first_sums, fused, widened
from .sums import ThreadSums
from .views import strides_in


class Rows(NamedTuple):
    """A thread's rows of a view: `width` neighbours along K a load, `once` where nobody
    else reads them."""

    type: ir.MemRefType
    pointer: ir.Value
    rows: list[ir.Value]
    width: int
    once: bool
    strides: tuple[int | ir.Value, int | ir.Value]

    def load(self, place: Place, count: int) -> list[list[ir.Value]]:
        """For each row, load `count` adjacent elements from a place on."""
        return [
            [place.kept(self._load(row, place.k + at)) for at in range(0, count, self.width)]
            for row in self.rows
        ]

    def _load(self, row: ir.Value, k: ir.Value) -> ir.Value:
        element, (pitch, step) = self.type.element_type, self.strides
        offset = build.widen(row) * pitch + build.widen(k) * step
        pointer = build.element_pointer(self.pointer, element, offset)
        if self.width == 1:
            return llvm.load(element, pointer)
        type_ = ir.VectorType.get([self.width], element)
        if self.once and self.width * element_bytes(element) == UNIT_BYTES:
            return sm.LoadOnceOp.of(pointer, value=type_).value
        return llvm.load(type_, pointer, alignment=self.width * element_bytes(element))


class Place(NamedTuple):
    """Where a turn of a lane begins along K, and whether that is inside the views; None: always."""

    k: ir.Value
    inside: ir.Value | None

    def kept(self, value: ir.Value) -> ir.Value:
        """What was read there, zero outside."""
        if self.inside is None:
            return value
        zero = arith.ConstantOp(value.type, _zero(value.type)).result
        return arith.select(self.inside, value, zero)


def lower_lane_fma(scope: Scope, op: LaneMmaOp) -> None:
    """One step of K."""
    sums, each = ThreadSums.of(scope, op.acc), op.depth.value // op.lanes.value
    m, n = op.acc.type.shape
    bs = [op.b, op.b2] if isinstance(op, DualLaneMmaOp) else [op.b]
    rows, columns = sums.share.row_starts(), sums.share.column_starts()
    columns = columns[: len(columns) // len(bs)]
    of_a = _rows(scope, op.a, (op.i, m, sums.row), rows, each, once=False)
    tile = (op.j, n // len(bs), sums.column)
    of_b = [_rows(scope, b, tile, columns, each, once=True) for b in bs]
    width = max(view.width for view in (of_a, *of_b))
    places = [_place(op, turn, width) for turn in range(each // width)]
    loaded = [[row for view in of_b for row in view.load(place, width)] for place in places]
    values = first_sums(op, sums)
    for place, rows_of_b in zip(places, loaded, strict=True):
        a = [_elements(row) for row in of_a.load(place, width)]
        b = [_elements(row) for row in rows_of_b]
        for k in range(width):
            values = [
                fused(a[at // len(b)][k], b[at % len(b)][k], value)
                for at, value in enumerate(values)
            ]
    sums.store(values)


def _elements(loads: list[ir.Value]) -> list[ir.Value]:
    """The neighbours of a row that loads gave, as they are summed."""
    found = []
    for value in loads:
        count = value.type.shape[0] if isinstance(value.type, ir.VectorType) else 1
        found += [widened(slice_of(value, at, 1)) for at in range(count)]
    return found


def _place(op: LaneMmaOp, turn: int, width: int) -> Place:
    """Where a turn of this thread's lane begins; the last place inside for one that is outside.

    Its neighbours lie inside together: their number divides that of the views.
    """
    lanes, depth, extent = op.lanes.value, op.depth.value, op.a.type.shape[1]
    lane = Team.of(op).thread % lanes
    k = build.as_i32(op.k) * depth + (lane * width + turn * lanes * width)
    if extent % depth == 0:
        return Place(k, None)
    return Place(arith.minui(k, build.constant(extent - width)), build.less(k, extent))


def _rows(
    scope: Scope,
    view: ir.Value[ir.MemRefType],
    tile: tuple[ir.Value, int, ir.Value],
    starts: list[int],
    each: int,
    once: bool,
) -> Rows:
    """The thread's rows of a tile, (index, extent, the thread's place), none beyond the last."""
    index, extent, place = tile
    type_ = ir.MemRefType(view.type)
    first = row_of_whole(view, build.as_i32(index) * extent + place)
    last = build.as_value(scope.extent(extent_of(type_, 0)) - 1)
    rows = [placed_row(view, arith.minui(first + start, last)) for start in starts]
    strides = strides_in(scope, type_)
    return Rows(type_, lowered_parts(view)[0], rows, _width(view, each), once, strides)


def _width(view: ir.Value[ir.MemRefType], each: int) -> int:
    """Neighbours along K in the widest load: they divide K, what a lane has of a step, and the
    bytes from row to row and from matrix to matrix."""
    (pitch, step), _ = view.type.get_strides_and_offset()
    if step != 1:
        return 1
    size = element_bytes(view.type.element_type)
    lengths = (pitch, view.type.shape[1], each & -each)
    return math.gcd(UNIT_BYTES, step_bytes(view), *(size * length for length in lengths)) // size


def _zero(type_: ir.Type) -> ir.Attribute:
    if not isinstance(type_, ir.VectorType):
        return ir.FloatAttr.get(type_, 0.0)
    element = ir.FloatAttr.get(ir.VectorType(type_).element_type, 0.0)
    return ir.DenseElementsAttr.get_splat(type_, element)
