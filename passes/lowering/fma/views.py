"""`tile.view_mma`: threads multiply elements that they read from global memory.

Rows beyond the view's are read as its last one, and their sums are dropped by the store. K beyond
the view counts as zero on both sides, so that no infinity there can make a NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....dialects import llvm
from ....dialects.mlir import arith, ir
from ....dialects.tile.sums import ViewMmaOp
from ....dialects.tile_types import extent_of
from ... import build
from ...batches import is_dynamic_step
from ..scope.scope import Scope, lowered_parts
from ..tiles.groups import placed_row, row_of_whole
from .mma import first_sums, fused, widened
from .sums import ThreadSums


class View(NamedTuple):
    """A view's element type, extents and strides, and where the thread's rows begin."""

    type: ir.MemRefType
    pointer: ir.Value
    rows: Sequence[ir.Value]
    strides: tuple[int | ir.Value, int | ir.Value]

    def read(self, k: ir.Value, inside: ir.Value | None) -> list[ir.Value]:
        """One element of each row; zero where `inside` is false."""
        return [widened(self._read(row, k, inside)) for row in self.rows]

    def _read(self, row: ir.Value, k: ir.Value, inside: ir.Value | None) -> ir.Value:
        element, (pitch, step) = self.type.element_type, self.strides
        offset = build.widen(row) * pitch + build.widen(k) * step
        pointer = build.element_pointer(self.pointer, element, offset)
        value = llvm.load(element, pointer)
        if inside is None:
            return value
        zero = arith.ConstantOp(element, ir.FloatAttr.get(element, 0.0)).result
        return arith.select(inside, value, zero)


def lower_view_fma(scope: Scope, op: ViewMmaOp) -> None:
    """One step of K after the other."""
    sums, depth = ThreadSums.of(scope, op.acc), op.depth.value
    a = _view(scope, op.a, op.i, op.acc.type.shape[0], sums.row, sums.share.row_starts())
    b = _view(scope, op.b, op.j, op.acc.type.shape[1], sums.column, sums.share.column_starts())
    values = first_sums(op, sums)
    extent = op.a.type.shape[1]
    for number in range(depth):
        k, inside = build.as_i32(op.k) * depth + number, None
        if extent % depth:
            inside = build.less(k, extent)
            k = arith.minui(k, build.constant(extent - 1))
        of_a, of_b = a.read(k, inside), b.read(k, inside)
        columns = sums.share.n
        values = [
            fused(of_a[at // columns], of_b[at % columns], value) for at, value in enumerate(values)
        ]
    sums.store(values)


def _view(
    scope: Scope,
    view: ir.Value,
    index: ir.Value,
    extent: int,
    place: ir.Value,
    starts: list[int],
) -> View:
    """A view with the thread's rows of tile `index`, none beyond the last."""
    type_ = ir.MemRefType(view.type)
    first = row_of_whole(view, build.as_i32(index) * extent + place)
    last = build.as_value(scope.extent(extent_of(type_, 0)) - 1)
    rows = [placed_row(view, arith.minui(first + start, last)) for start in starts]
    return View(type_, lowered_parts(view)[0], rows, strides_in(scope, type_))


def strides_in(scope: Scope, view: ir.MemRefType) -> tuple[int | ir.Value, int | ir.Value]:
    """Elements from row to row of a view, and along K; i64 where a launch says how many."""
    (pitch, step), _ = view.get_strides_and_offset()
    if not is_dynamic_step(step):
        return pitch, step
    rows = scope.extent(extent_of(view, 0))
    return pitch, rows if isinstance(rows, int) else build.widen(rows)
