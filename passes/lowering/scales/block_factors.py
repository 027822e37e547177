"""Scales of 128 elements of K, by which threads multiply the products that they hold.

A thread of a warpgroup has two rows of each atom, 8 apart, and two neighbours in every 8 columns
(`places`). It reads a scale for each row that it has, or one where 128 rows share it, and likewise
for columns. Rows and columns past the last one read its scale; nobody stores what they make.

Scales that came to shared memory with their tiles are read there. For others L2 takes longer to
answer than MMAs take. So a step asks for those of the next one, which lie in slots after those of
the sums, and the first step of a tile asks for its own, too. A warpgroup asks before its MMAs, or
while they run (`asks_late`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ....dialects import llvm
from ....dialects.dtypes import BLOCKWISE, BLOCKWISE_FORMS
from ....dialects.held_registers import holds_scales, of_sums, scales_one_by_one
from ....dialects.mlir import arith, ir, scf
from ....dialects.tile import AccumulatorOp
from ....dialects.tile.blockwise import BLOCKWISE_MMAS, BlockwiseMmaOp, BlockwisePairMmaOp
from ....dialects.tile_types import SmemType, integers_of
from ... import build
from ...base import is_swapped
from ...clone import constant_of
from ...places import ATOM_M, COLUMNS, ROW_DISTANCE, behind, column_in, held_row, row_in
from ...team import Team
from ..registers.register_accumulator import stack_slots
from ..scope.scope import Scope, lowered_parts
from ..tiles.groups import column_of_whole
from .block_scales import Scales, Vector

GROUP, PAIR = COLUMNS.shape[1], 2
HELD_MAX = 160  # registers of sums and a product beside factors of several scales of columns


@dataclass
class Factors:
    """What each of a thread's elements is multiplied by: scales by the line after the first, of
    rows and of columns, and their products.

    A thread reads those in shared memory `ahead`, while MMAs run, where it has registers for them.
    It multiplies by them `apart` where it has none for products of scales.
    """

    sides: tuple[Scales | Vector, Scales | Vector]
    starts: tuple[ir.Value, ir.Value]
    ahead: bool
    known: list[dict[int, ir.Value]]
    asking: list[Asking]
    asks_late: bool
    apart: bool
    made: dict[tuple[ir.Value, ir.Value], ir.Value] = field(default_factory=dict)

    @staticmethod
    def of(scope: Scope, op: BlockwiseMmaOp | BlockwisePairMmaOp) -> Factors:
        """The scales of a step that come from views; those of the next one are asked for, or will
        be: `asks_late`."""
        sides, starts = scales_of(scope, op), starts_of(scope, op)
        slots = iter(lowered_parts(op.acc)[_atoms(scope, op.acc) :])
        together, step = BLOCKWISE // op.a.type.layout.k, build.as_i32(op.k)
        asking = [
            Asking(each, start, [next(slots) for _ in range(each.count)], step, together)
            for each, start in zip(sides, starts, strict=True)
            if isinstance(each, Scales)
        ]
        if asking and not follows(op):
            with build.when(begins(op)):
                for each in asking:
                    each.ask(0)
        now = {id(each.scales): each.held() for each in asking}
        known = [
            each.spread(start, now[id(each)]) if isinstance(each, Scales) else {}
            for each, start in zip(sides, starts, strict=True)
        ]
        late = asks_late(scope, op)
        if not late:
            _ask_for_next(asking)
        ahead, apart = reads_ahead(scope, op), multiplies_one_by_one(scope, op)
        return Factors(sides, starts, ahead, known, asking, late, apart)

    @property
    def has_vectors(self) -> bool:
        """Whether some are in shared memory."""
        return any(isinstance(side, Vector) for side in self.sides)

    def read_rows(self) -> None:
        """The scales of all of a thread's rows, if they are in shared memory."""
        self._read_vector(0)

    def read_columns(self) -> None:
        """The scales of all of a thread's columns, if they are in shared memory."""
        self._read_vector(1)

    def _read_vector(self, number: int) -> None:
        side = self.sides[number]
        if isinstance(side, Vector):
            self.known[number] = side.read(self.starts[number])

    def ask_late(self, atoms: int, elements: int) -> None:
        """For the scales of the next step, which take the registers of this one's, after the
        factors of so many elements of each atom that a thread has."""
        if not self.asks_late:
            return
        for atom in range(atoms):
            for number in range(elements):
                self.at(atom, *behind(number))
        _ask_for_next(self.asking)

    def of_sides(self, atom: int, row: int, column: int) -> tuple[ir.Value, ir.Value]:
        """The scales of an element of an atom, so many rows and columns after the first one."""
        rows, columns = self.known
        return rows[atom * ATOM_M + row], columns[column]

    def at(self, atom: int, row: int, column: int) -> ir.Value:
        """The factor of such an element."""
        of_row, of_column = self.of_sides(atom, row, column)
        if (of_row, of_column) not in self.made:
            self.made[of_row, of_column] = arith.mulf(of_row, of_column)
        return self.made[of_row, of_column]


@dataclass
class Asking:
    """Scales that a `step` asks for before they are needed, and that lie in slots until then; so
    many steps have the same ones."""

    scales: Scales
    start: ir.Value
    slots: list[ir.Value]
    step: ir.Value
    together: int

    def ask(self, later: int) -> None:
        """For those of so many steps later."""
        step = self.step + later if later else self.step
        values = self.scales.read(self.start, step // self.together)
        for slot, value in zip(self.slots, values, strict=True):
            llvm.store(value, slot)

    def held(self) -> list[ir.Value]:
        """The factors of this step."""
        return [llvm.load(ir.F32Type.get(), slot) for slot in self.slots]


def _ask_for_next(asking: list[Asking]) -> None:
    for each in asking:
        each.ask(1)


def hold_sums_and_scales(scope: Scope, op: AccumulatorOp) -> list[ir.Value]:
    """Stack slots for the sums that threads hold; after them those for the scales of a step."""
    slots = stack_slots(op.acc.type, _warpgroups(scope, op.acc))
    users = [use.owner.opview for use in op.acc.uses]
    for mma in [user for user in users if isinstance(user, BLOCKWISE_MMAS)][:1]:
        count = sum(each.count for each in scales_of(scope, mma))
        one, f32 = build.constant(1), ir.F32Type.get()
        slots += [llvm.alloca(build.pointer(), one, f32) for _ in range(count)]
    return slots


def atom_slots(scope: Scope, acc: ir.Value) -> list[ir.Value]:
    """The slots of the sums themselves."""
    return lowered_parts(acc)[: _atoms(scope, acc)]


def reads_ahead(scope: Scope, op: BlockwiseMmaOp | BlockwisePairMmaOp) -> bool:
    """Whether a thread has registers for the scales of its columns while MMAs run."""
    columns, (m, n) = scales_of(scope, op)[1], op.acc.type.shape
    held = columns.width * len(columns.lines)
    return isinstance(columns, Scales) or holds_scales(m, n, _warpgroups(scope, op.acc), held)


def multiplies_one_by_one(scope: Scope, op: BlockwiseMmaOp | BlockwisePairMmaOp) -> bool:
    """Whether a product is multiplied by the scales of rows and then of columns, not by factors."""
    columns, (m, n) = scales_of(scope, op)[1], op.acc.type.shape
    return isinstance(columns, Vector) and scales_one_by_one(m, n, _warpgroups(scope, op.acc))


def asks_late(scope: Scope, op: BlockwiseMmaOp | BlockwisePairMmaOp) -> bool:
    """Whether a warpgroup asks for the scales of the next step while its MMAs run: where all
    columns of a tile share one, so that there are few factors, or threads have registers for them.

    MMAs start sooner: 256x128 took 1 to 4 % less on an H200, 192x128 up to 2 %. 128x192, whose
    columns have two or three, took 4 % more at a K of 8192 and beyond.
    """
    columns, (m, n) = scales_of(scope, op)[1], op.acc.type.shape
    held = of_sums(m, n, _warpgroups(scope, op.acc))
    return columns.is_one or (not columns.of_each and held <= HELD_MAX)


def _warpgroups(scope: Scope, acc: ir.Value) -> int:
    return scope.warpgroups(acc.type)  # pyright: ignore[reportArgumentType]


def _atoms(scope: Scope, acc: ir.Value) -> int:
    """Atoms of a warpgroup."""
    (m, _) = acc.type.shape  # pyright: ignore[reportAttributeAccessIssue]
    return m // _warpgroups(scope, acc) // ATOM_M


def begins(op: Any) -> ir.Value | None:
    """Whether it is a tile's first step; None where it is known to be."""
    return None if constant_of(op.accumulate) == 0 else op.accumulate ^ build.true()


def follows(op: Any) -> bool:
    """Whether it is known to be no first step: in a loop that begins after that."""
    known = constant_of(op.accumulate)
    if known is not None:
        return known != 0
    loop, flag = op.operation.parent.opview, op.accumulate.owner
    if not isinstance(loop, scf.ForOp) or isinstance(flag, ir.Block) or flag.name != "arith.cmpi":
        return False
    start, number = constant_of(loop.lowerBound), constant_of(flag.operands[1])
    if start is None or number is None:
        return False
    return flag.operands[0] == loop.induction_variable and start > number


def scales_of(
    scope: Scope, op: BlockwiseMmaOp | BlockwisePairMmaOp
) -> tuple[Scales | Vector, Scales | Vector]:
    """The scales of a thread's rows and columns: two rows of each atom, and pairs of each 8
    columns."""
    (m, n), rows = op.acc.type.shape, _atoms(scope, op.acc) * ATOM_M
    lines = tuple(at + row for at in range(0, rows, ATOM_M) for row in (0, ROW_DISTANCE))
    columns, is_split = tuple(range(0, n, GROUP)), integers_of(scope.kernel.cluster)[2] > 1
    blocks = _blocks(scope, op)

    def side(value: Any, form: str, lines: tuple[int, ...], width: int, extent: int) -> Any:
        if isinstance(value.type, SmemType):
            return Vector(value, lines, width)
        return Scales(value, form, lines, width, extent, blocks, is_split)

    of_a = side(op.a_scales, op.a_form.value, lines, 1, m)
    return of_a, side(op.b_scales, op.b_form.value, columns, PAIR, n)


def _blocks(scope: Scope, op: BlockwiseMmaOp | BlockwisePairMmaOp) -> int:
    """How many blocks of 128 K has: rows of the scales of single rows."""
    of_a = (op.a_form.value == BLOCKWISE_FORMS[0]) != is_swapped(scope.kernel)
    number = 2 if of_a else 3
    view = scope.kernel.body.blocks[0].arguments[number]
    return list(ir.MemRefType(view.type).shape)[-2]


def starts_of(scope: Scope, op: BlockwiseMmaOp | BlockwisePairMmaOp) -> tuple[ir.Value, ir.Value]:
    """The first row and column of a thread, in the tile or in the view that it reads; of the tile,
    where it reads those of 128 lines."""
    (m, n), team, (rows, columns) = op.acc.type.shape, Team.of(op), scales_of(scope, op)
    row, column = _first(rows, op.i, m), _first(columns, op.j, n)
    row = column_of_whole(op.a_scales, row)
    if not rows.is_one:
        held = _atoms(scope, op.acc) * ATOM_M
        by_lanes = scope.target.adds_from_tensor_memory
        row = row + held_row(team.thread, m, held, by_lanes) + row_in(COLUMNS, lane=team.lane)
    if columns.of_each:
        column = column + column_in(COLUMNS, lane=team.lane)
    return row, column


def _first(side: Scales | Vector, place: ir.Value, extent: int) -> ir.Value:
    """The first line of the tile, where it reads."""
    return build.constant(0) if isinstance(side, Vector) else build.as_i32(place) * extent
