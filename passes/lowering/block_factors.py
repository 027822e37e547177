"""The scales, of 128 elements of K, that threads multiply what they hold of a product by.

A thread of a warpgroup has two rows of each atom, 8 apart, and two neighbours in every 8 columns
(`places`). It reads a scale for each row that it has, or one where 128 rows share it, and likewise
for columns. Rows and columns behind the last one read its scale; nobody stores what they make.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...dialects.dtypes import BLOCKWISE
from ...dialects.mlir import arith, ir, llvm
from ...dialects.tile_blockwise import BlockwiseMmaOp
from ...dialects.tile_types import integers_of
from .. import build
from ..places import ATOM_M, COLUMNS, ROWS_APART, column_in, held_row, row_in
from ..team import Team
from .elements import element_pointer, slice_of
from .scope import Scope

GROUP, PAIR = COLUMNS.shape[1], 2


@dataclass(frozen=True)
class Scales:
    """The scales of one operand in the block of K of a step: the operand's rows are `lines`."""

    view: ir.Value[ir.MemRefType]
    form: str
    block: ir.Value
    is_inside: ir.Value | None

    def of_lines(self, first: ir.Value, count: int = 1) -> list[ir.Value]:
        """Those of `count` lines from `first` on, which is a multiple of it."""
        if self.form == "1x128":
            return self._each(first, count)
        return [self.of_block(first // BLOCKWISE)] * count

    def of_block(self, number: ir.Value) -> ir.Value:
        """The one of 128 lines."""
        blocks, pitch = self.view.type.shape
        offset = arith.minui(number, build.constant(blocks - 1)) * pitch + self.block
        return self._read(offset, 1)[0]

    def _each(self, first: ir.Value, count: int) -> list[ir.Value]:
        lines = self.view.type.shape[1]
        width = count if lines % count == 0 else 1
        starts = [first + at for at in range(0, count, width)]
        last = build.constant(lines - width)
        at = [self.block * lines + arith.minui(start, last) for start in starts]
        return [each for offset in at for each in self._read(offset, width)]

    def _read(self, offset: ir.Value, width: int) -> list[ir.Value]:
        element = self.view.type.element_type
        type_ = element if width == 1 else ir.VectorType.get([width], element)
        pointer = element_pointer(self.view, build.widen(offset))
        value = llvm.load(type_, pointer, alignment=width * 4)
        found = [slice_of(value, at, 1) for at in range(width)]
        if self.is_inside is None:
            return found
        zero = arith.ConstantOp(element, ir.FloatAttr.get(element, 0.0)).result
        return [arith.select(self.is_inside, each, zero) for each in found]


@dataclass
class Factors:
    """What each of a thread's elements is multiplied by."""

    rows: dict[tuple[int, int], ir.Value]
    columns: dict[int, ir.Value]
    made: dict[tuple[ir.Value, ir.Value], ir.Value] = field(default_factory=dict)

    @staticmethod
    def of(scope: Scope, op: BlockwiseMmaOp) -> Factors:
        """Read the scales of a step, where the op stands."""
        return Factors(_of_rows(scope, op), _of_columns(scope, op))

    def at(self, atom: int, row: int, column: int) -> ir.Value:
        """The factor of an element of an atom, so many rows and columns behind the first one."""
        of_row, of_column = self.rows[atom, row], self.columns[column]
        if (of_row, of_column) not in self.made:
            self.made[of_row, of_column] = arith.mulf(of_row, of_column)
        return self.made[of_row, of_column]


def _of_rows(scope: Scope, op: BlockwiseMmaOp) -> dict[tuple[int, int], ir.Value]:
    """By atom and row behind the first: the two that a thread has of each."""
    scales, (m, _) = _scales(scope, op, "a"), op.acc.type.shape
    count = m // scope.warpgroups(op.acc.type)
    origin, team = build.as_i32(op.i) * m, Team.of(op)
    places = [(atom, row) for atom in range(count // ATOM_M) for row in (0, ROWS_APART)]
    if scales.form != "1x128" and BLOCKWISE % m == 0:
        return dict.fromkeys(places, scales.of_block(origin // BLOCKWISE))
    first = origin + held_row(team.thread, m, count) + row_in(COLUMNS, lane=team.lane)
    return {(atom, row): scales.of_lines(first + (atom * ATOM_M + row))[0] for atom, row in places}


def _of_columns(scope: Scope, op: BlockwiseMmaOp) -> dict[int, ir.Value]:
    """By column behind the first: two neighbours in every 8."""
    scales, (_, n) = _scales(scope, op, "b"), op.acc.type.shape
    origin, groups = build.as_i32(op.j) * n, range(0, n, GROUP)
    if scales.form == "1x128":
        first = origin + column_in(COLUMNS, lane=Team.of(op).lane)
        pairs = [(group, scales.of_lines(first + group, PAIR)) for group in groups]
        return {group + at: pair[at] for group, pair in pairs for at in range(PAIR)}
    found = _of_blocks(scales, origin, n)
    return {group + at: found[group] for group in groups for at in range(PAIR)}


def _of_blocks(scales: Scales, origin: ir.Value, n: int) -> dict[int, ir.Value]:
    """By the first column of each 8: a tile may begin and end within 128 columns."""
    first = origin // BLOCKWISE
    if BLOCKWISE % n == 0:
        return dict.fromkeys(range(0, n, GROUP), scales.of_block(first))
    count = -(-n // BLOCKWISE) + (n % BLOCKWISE != 0)
    of_block = [scales.of_block(first + number) for number in range(count)]
    if n % BLOCKWISE == 0:
        return {column: of_block[column // BLOCKWISE] for column in range(0, n, GROUP)}
    within, found = origin % BLOCKWISE, {}
    for column in range(0, n, GROUP):
        value = of_block[column // BLOCKWISE]
        if column // BLOCKWISE + 1 < count:
            ahead = build.less(within + column % BLOCKWISE, BLOCKWISE)
            value = arith.select(ahead, value, of_block[column // BLOCKWISE + 1])
        found[column] = value
    return found


def _scales(scope: Scope, op: BlockwiseMmaOp, name: str) -> Scales:
    """Those of a step: where K is split, steps behind the last have none, and add nothing."""
    view, form = getattr(op, f"{name}_scales"), getattr(op, f"{name}_form").value
    together = BLOCKWISE // op.a.type.layout.k
    block, blocks = build.as_i32(op.k) // together, view.type.shape[form != "1x128"]
    if integers_of(scope.kernel.cluster)[2] == 1:
        return Scales(view, form, block, None)
    inside = build.less(block, blocks)
    return Scales(view, form, arith.minui(block, build.constant(blocks - 1)), inside)
