"""Group scales and zero points of narrow weights, which a lane reads from global memory.

A row of scales is that of a column of C. Where weights are B of mma.sync, a lane has of each 8
columns the sums of two neighbours, whose scales it multiplies by, and widens weights of one, whose
zero point it subtracts. Where they are A of wgmma, it has the sums of two rows of each 64, 8 apart,
and widens weights of these. Where they are A of tcgen05.mma, it has the same sums, and widens
weights of the one row of its lane.

L2 takes longer to answer than the MMAs of a step take. So a step asks for what the next one needs,
which lies in slots after those of the sums, and the first step of a tile asks for its own, too.
Groups past the last one have the scale 0, and columns past the last one its own; nobody stores
what they make.

Scales of all of K that wgmma needs only when the sums are complete (`scaled_rows`) stay in their
slots: the first step asks for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....dialects import llvm
from ....dialects.mlir import arith, ir
from ....dialects.target import WARP_THREADS, WARPGROUP_WARPS
from ....dialects.tile import AccumulatorOp
from ....dialects.tile.weights import ExchangedWeightMmaOp, WeightMmaOp
from ....dialects.tile_types import element_bytes, integers_of
from ... import build
from ...places import ATOM_M, COLUMNS, ROW_DISTANCE, behind, column_in, held_row, row_in
from ...team import Team
from ...warp_grids import warp_tile
from ...weights import segment
from ..registers.elements import slice_of
from ..registers.warp_accumulator import ATOM_N, FRAGMENT, WarpSums
from ..registers.widened_words import zero_words
from ..scope.scope import Scope, element_pointer, lowered_parts
from .block_factors import begins, follows

PAIR, QUAD = 2, 4
LOAD_BYTES = 16


class GroupScales(NamedTuple):
    """The scales and zero points of a step, by parts of a group."""

    lines: Lines
    scales: Sequence[ir.Value]
    points: Sequence[ir.Value]
    wide: str

    @staticmethod
    def of(scope: Scope, op: WeightMmaOp) -> GroupScales:
        """The scales of a step; also loads those of the next one."""
        reads = _Reads.of(scope, op)
        types = _types(op, reads.lines)
        slots = _slots(op.acc, len(types))
        step = build.as_i32(op.k)
        if not follows(op):
            with build.when(begins(op)):
                _ask(reads, slots, step)
        now = [llvm.load(type_, slot) for slot, type_ in zip(slots, types, strict=True)]
        if not awaits_sums(op):
            _ask(reads, slots, step + 1)
        count = reads.parts * len(reads.lines.scaled)
        wide = "bf16" if str(op.sides[1][1].element) == "bf16" else "f16"
        return GroupScales(reads.lines, now[:count], now[count:], wide)

    def factors(self, part: int) -> list[ir.Value]:
        """The scales of the lane's lines of the accumulator, in f32."""
        first, count = part * len(self.lines.scaled), len(self.lines.scaled)
        return [_single(each) for each in self.scales[first : first + count]]

    def zeros(self, part: int) -> list[ir.Value] | None:
        """The zero points of the lane's lines of weights, or None."""
        if not self.points:
            return None
        first, count = part * len(self.lines.shifted), len(self.lines.shifted)
        return [zero_words(each, self.wide) for each in self.points[first : first + count]]


def hold_scales(scope: Scope, op: AccumulatorOp) -> list[ir.Value]:
    """Slots for the scales and zero points of a step, where an MMA of weights has some."""
    mma = _mma_of(op.acc)
    types = [] if mma is None else _types(mma, Lines.of(scope, mma))
    return [llvm.alloca(build.pointer(), build.constant(1), type_) for type_ in types]


def awaits_sums(op: WeightMmaOp) -> bool:
    """Whether scales are of all of K, and MMAs add to the sums that they multiply at last."""
    transposed = isinstance(op, ExchangedWeightMmaOp) and op.scales is not None
    return transposed and op.group.value == _extent(op)


def scaled_rows(scope: Scope, acc: ir.Value, atom: int, values: list[ir.Value]) -> list[ir.Value]:
    """What a lane has of an MMA's sums, times the scales of its rows if those are of all of K."""
    mma = _mma_of(acc)
    if mma is None or not awaits_sums(mma):
        return values
    types = _types(mma, Lines.of(scope, mma))
    scales = list(zip(_slots(acc, len(types)), types, strict=True))[2 * atom : 2 * atom + 2]
    rows = [_single(llvm.load(type_, slot)) for slot, type_ in scales]
    return [
        arith.mulf(value, rows[behind(number)[0] // ROW_DISTANCE])
        for number, value in enumerate(values)
    ]


class Lines(NamedTuple):
    """Of a lane the rows of scales that its sums have, and those whose weights it widens, each
    after its first one."""

    scaled: tuple[int, ...]
    shifted: tuple[int, ...]

    @staticmethod
    def of(scope: Scope, op: WeightMmaOp) -> Lines:
        """By the fragments of the target's MMA."""
        type_ = op.acc.type
        if isinstance(op, ExchangedWeightMmaOp):
            rows = range(0, type_.shape[0] // scope.warpgroups(type_), ATOM_M)
            lines = tuple(first + row for first in rows for row in (0, ROW_DISTANCE))
            return Lines(lines, (0,) if scope.target.adds_from_tensor_memory else lines)
        columns = range(0, warp_tile(scope.kernel, type_, scope.target).n, ATOM_N)
        return Lines(tuple(first + at for first in columns for at in range(PAIR)), tuple(columns))


def _first_lines(scope: Scope, op: WeightMmaOp) -> tuple[ir.Value, ir.Value]:
    """The first row of scales of a lane's sums, and of its weights."""
    team, type_ = Team.of(op), op.acc.type
    m, n = type_.shape
    if isinstance(op, ExchangedWeightMmaOp):
        start, rows = build.as_i32(op.j) * m, m // scope.warpgroups(type_)
        by_lanes = scope.target.adds_from_tensor_memory
        first = start + held_row(team.thread, m, rows, by_lanes)
        first = first + row_in(COLUMNS, lane=team.lane)
        return first, start + row_of_lane(team, m) if by_lanes else first
    first = build.as_i32(op.j) * n
    first = first + WarpSums.of(scope, op.acc).first_column(team.thread // WARP_THREADS)
    return first + column_in(FRAGMENT, lane=team.lane), first + team.lane // QUAD


def row_of_lane(team: Team, m: int) -> ir.Value:
    """The row of an MMA of `m` rows that a lane of tensor memory has: of 64 rows, 16 in each
    quarter, whose halves have the same."""
    rows = m // WARPGROUP_WARPS
    warp = team.thread // WARP_THREADS % WARPGROUP_WARPS
    return warp * rows + (team.lane if rows == WARP_THREADS else team.lane % rows)


class _Reads(NamedTuple):
    """What a lane reads: of lines after `scaled` and `shifted`, of parts of groups."""

    op: WeightMmaOp
    parts: int
    lines: Lines
    scaled: ir.Value
    shifted: ir.Value
    may_pass: bool

    @staticmethod
    def of(scope: Scope, op: WeightMmaOp) -> _Reads:
        scaled, shifted = _first_lines(scope, op)
        may_pass = bool(_extent(op) % op.depth) or integers_of(scope.kernel.grid)[2] > 1
        return _Reads(op, _parts(op), Lines.of(scope, op), scaled, shifted, may_pass)

    def scales(self, step: ir.Value) -> list[ir.Value]:
        """The scales of a step for the lane's lines of the accumulator, for each part."""
        found = self._read(self.op.scales, self.scaled, self.lines.scaled, step)
        if not self.may_pass:
            return found
        zero = arith.ConstantOp(found[0].type, 0.0).result
        groups = [group for group in self._groups(step) for _ in self.lines.scaled]
        count = self._count
        return [
            arith.select(build.less(group, count), value, zero)
            for group, value in zip(groups, found, strict=True)
        ]

    def points(self, step: ir.Value) -> list[ir.Value]:
        """The zero points of a step, of the lane's lines of weights of each part."""
        if self.op.zeros is None:
            return []
        return self._read(self.op.zeros, self.shifted, self.lines.shifted, step)

    @property
    def _count(self) -> int:
        """How many groups there are."""
        return self.op.scales.type.shape[1]  # pyright: ignore[reportOptionalMemberAccess]

    def _groups(self, step: ir.Value) -> list[ir.Value]:
        """The group of each part of a step."""
        k, group = self.op.depth, self.op.group.value
        if group == _extent(self.op):
            return [build.constant(0)]
        part = k // self.parts
        return [(step * k + part * number) // group for number in range(self.parts)]

    def _read(
        self, view: Any, first: ir.Value, lines: tuple[int, ...], step: ir.Value
    ) -> list[ir.Value]:
        """What a view has for lines after the first one, by part and line."""
        if self._is_whole(view):
            return self._read_whole(view, first, lines, step)
        rows, last = view.type.shape[0], build.constant(self._count - 1)
        found = []
        for group in self._groups(step):
            group = arith.minui(group, last)
            for line in lines:
                row = arith.minui(first + line, build.constant(rows - 1))
                pointer = element_pointer(view, build.widen(row * self._count + group))
                found += _load(view, pointer, 1)
        return found

    def _is_whole(self, view: Any) -> bool:
        """Whether tiles are whole, and the parts of a step whole groups side by side."""
        n, k = self.op.sides[0][1].layout.mn, self.op.depth
        one = self._count == 1
        apart = one or k == self.parts * self.op.group.value
        return view.type.shape[0] % n == 0 and apart and self._count % self.parts == 0

    def _read_whole(
        self, view: Any, first: ir.Value, lines: tuple[int, ...], step: ir.Value
    ) -> list[ir.Value]:
        """The same at constants from one address: the parts of a line by one load."""
        steps = self._count // self.parts
        step = arith.minui(step, build.constant(steps - 1))
        start = element_pointer(view, build.widen(first * self._count + step * self.parts))
        size = element_bytes(view.type.element_type)
        width = next(w for w in (8, 4, 2, 1) if self.parts % w == 0 and w * size <= LOAD_BYTES)
        by_line = []
        for line in lines:
            own: list[ir.Value] = []
            for part in range(0, self.parts, width):
                offset = (line * self._count + part) * size
                own += _load(view, build.offset_pointer(start, offset) if offset else start, width)
            by_line.append(own)
        return [own[part] for part in range(self.parts) for own in by_line]


def _load(view: Any, pointer: ir.Value, width: int) -> list[ir.Value]:
    """Neighbours of a row of a view; integers as bytes without a sign."""
    element = view.type.element_type
    if isinstance(element, ir.IntegerType):
        element = ir.IntegerType.get_signless(8)
    type_ = element if width == 1 else ir.VectorType.get([width], element)
    value = llvm.load(type_, pointer, alignment=width * element_bytes(element))
    return [slice_of(value, at, 1) for at in range(width)]


def _ask(reads: _Reads, slots: list[ir.Value], step: ir.Value) -> None:
    values = [*reads.scales(step), *reads.points(step)]
    for slot, value in zip(slots, values, strict=True):
        llvm.store(value, slot)


def _mma_of(acc: ir.Value) -> WeightMmaOp | None:
    """An MMA of weights with scales into sums, if there is one."""
    users = [use.owner.opview for use in acc.uses]
    mmas = [user for user in users if isinstance(user, WeightMmaOp) and user.scales is not None]
    return mmas[0] if mmas else None


def _slots(acc: ir.Value, count: int) -> list[ir.Value]:
    """The slots that `hold_scales` made, the last ones of the accumulator."""
    return lowered_parts(acc)[-count:]


def _types(op: WeightMmaOp, lines: Lines) -> list[ir.Type]:
    """What each slot holds."""
    view: Any = op.scales
    parts = _parts(op)
    points = 0 if op.zeros is None else parts * len(lines.shifted)
    scales = [view.type.element_type] * (parts * len(lines.scaled))
    return scales + [ir.IntegerType.get_signless(8)] * points


def _parts(op: WeightMmaOp) -> int:
    """Parts of a step that are of one group each."""
    return op.depth // segment(op.depth, op.group.value, _extent(op))


def _extent(op: WeightMmaOp) -> int:
    """All of K."""
    view: Any = op.scales
    return view.type.shape[1] * op.group.value


def _single(value: ir.Value) -> ir.Value:
    """A scale in f32."""
    f32 = ir.F32Type.get()
    return value if value.type == f32 else arith.extf(f32, value)
