"""The product of two f32 tiles in shared memory by fma of threads, in the fragments of wgmma.

For the few steps whose elements are not the sums of their terms (`plain_terms`): what is no number
and what ends below bf16 is multiplied as f32 multiplies it. A thread has two rows of each 64, and
pairs of every 8 columns.
"""

from __future__ import annotations

from ....dialects import llvm
from ....dialects.layout import CORE_ROWS, TileLayout
from ....dialects.mlir import arith, ir, scf
from ....dialects.record import record
from ... import build
from ...places import COLUMNS, PAIR_EVERY, behind
from ..operands.fragment_loads import element_offset
from ..registers.register_accumulator import joined_parts, parts

TOGETHER = 32
"""Columns that a thread sums at once: as many registers as are left beside those of MMAs."""


@record
class Tile:
    """An f32 tile in shared memory, and a thread's first line of it."""

    layout: TileLayout
    start: ir.Value
    first: ir.Value

    def load(self, behind_first: int, k: ir.Value) -> ir.Value:
        """The element of a line so far after the first; every 8 lines of K repeat a swizzle."""
        layout, line, start = self.layout, self.first, self.start
        if layout.major == "k":
            start = start + behind_first // CORE_ROWS * CORE_ROWS * layout.span_bytes
            behind_first %= CORE_ROWS
        pointer = build.shared_at(start + element_offset(layout, line + behind_first, k))
        return llvm.load(ir.F32Type.get(), pointer, alignment=layout.element_bytes)


def add_plainly(a: Tile, bs: list[Tile], slot: ir.Value, struct: ir.Type) -> None:
    """`sums += a * b^T` of 64 rows in f32, of the sums in a slot; `bs` are side by side."""
    sums, made = parts(llvm.load(struct, slot)), []
    for b in bs:
        for first in range(0, b.layout.mn, TOGETHER):
            last = min(first + TOGETHER, b.layout.mn)
            product = _product(a, b, range(first, last, PAIR_EVERY))
            before = sums[len(made) :][: len(product)]
            made += [arith.addf(one, other) for one, other in zip(before, product, strict=True)]
    llvm.store(joined_parts(struct, made), slot)


def _product(a: Tile, b: Tile, columns: range) -> list[ir.Value]:
    """The product of a thread's rows and the columns after each of them, four elements at a
    time."""
    places = [
        (row, first + column)
        for first in columns
        for row, column in map(behind, range(COLUMNS.values))
    ]
    start, end, one = (build.constant(each) for each in (0, a.layout.k, 1))
    loop = scf.ForOp(start, end, one, iter_args=[build.f32(0.0)] * len(places))
    with ir.InsertionPoint(loop.body):
        k = loop.induction_variable
        rows = {row: a.load(row, k) for row in sorted({row for row, _ in places})}
        of_b = {column: b.load(column, k) for column in sorted({each for _, each in places})}
        held = zip(places, loop.inner_iter_args, strict=True)
        made = [llvm.fma(rows[row], of_b[column], each) for (row, column), each in held]
        scf.YieldOp(made)
    return list(loop.results)
