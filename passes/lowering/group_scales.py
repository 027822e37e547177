"""The scales and zero points of groups of weights that a lane reads from global memory.

Of each 8 columns a lane has the sums of two neighbours, whose scales it multiplies by, and widens
weights of one, whose zero point it subtracts. A row of scales is that of a column of C.

L2 takes longer to answer than the MMAs of a step take. So a step asks for what the next one needs,
which lies in slots behind those of the sums, and the first step of a tile asks for its own, too.
Groups behind the last one have the scale 0, and columns behind the last one its own; nobody stores
what they make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...dialects.mlir import arith, ir, llvm
from ...dialects.target import WARP_THREADS
from ...dialects.tile import AccumulatorOp
from ...dialects.tile_types import element_bytes, integers_of
from ...dialects.tile_weights import WeightMmaOp
from .. import build
from ..places import column_in
from ..team import Team
from ..warp_grids import warp_tile
from ..weights import segment
from .block_factors import begins, follows
from .elements import element_pointer, slice_of
from .scope import Scope, lowered_parts
from .warp_accumulator import ATOM_M, ATOM_N, FRAGMENT, WarpSums
from .widened_words import zero_words

PAIR, QUAD = 2, 4
LOAD_BYTES = 16


@dataclass(frozen=True)
class GroupScales:
    """Of a step, by part of a group: what its columns are multiplied by, and what is subtracted."""

    parts: int
    atoms: int
    scales: Sequence[ir.Value]
    points: Sequence[ir.Value]
    wide: str

    @staticmethod
    def of(scope: Scope, op: WeightMmaOp, held: WarpSums) -> GroupScales:
        """Those of a step, and ask for those of the next one."""
        reads = _Reads.of(scope, op, held)
        slots, types = _slots(op, held), _types(op, reads.atoms)
        step = build.as_i32(op.k)
        if not follows(op):
            with build.when(begins(op)):
                _ask(reads, slots, step)
        now = [llvm.load(type_, slot) for slot, type_ in zip(slots, types, strict=True)]
        _ask(reads, slots, step + 1)
        count = reads.parts * reads.atoms * PAIR
        wide = "bf16" if str(op.a.type.element) == "bf16" else "f16"
        return GroupScales(reads.parts, reads.atoms, now[:count], now[count:], wide)

    def factors(self, part: int) -> list[tuple[ir.Value, ir.Value]]:
        """Of each 8 columns the scales of the lane's two, in f32."""
        first = part * self.atoms * PAIR
        values = [_single(each) for each in self.scales[first : first + self.atoms * PAIR]]
        return list(zip(values[::PAIR], values[1::PAIR], strict=True))

    def zeros(self, part: int) -> list[ir.Value] | None:
        """Of each 8 columns what is subtracted from the lane's one; None for nothing."""
        if not self.points:
            return None
        first = part * self.atoms
        return [zero_words(each, self.wide) for each in self.points[first : first + self.atoms]]


def hold_scales(scope: Scope, op: AccumulatorOp) -> list[ir.Value]:
    """Slots for the scales and zero points of a step, where an MMA of weights has some."""
    users = [use.owner.opview for use in op.acc.uses]
    mmas = [user for user in users if isinstance(user, WeightMmaOp) and user.scales is not None]
    if not mmas:
        return []
    tile = warp_tile(scope.kernel, op.acc.type, scope.target)
    types = _types(mmas[0], tile.n // ATOM_N)
    return [llvm.alloca(build.pointer(), build.constant(1), type_) for type_ in types]


@dataclass(frozen=True)
class _Reads:
    """What a lane reads: of columns from `scaled` and `shifted` on, of parts of groups."""

    op: WeightMmaOp
    parts: int
    atoms: int
    scaled: ir.Value
    shifted: ir.Value
    may_pass: bool

    @staticmethod
    def of(scope: Scope, op: WeightMmaOp, held: WarpSums) -> _Reads:
        team, tile = Team.of(op), held.tile
        first = build.as_i32(op.j) * op.acc.type.shape[1]
        first = first + held.first_column(team.thread // WARP_THREADS)
        k, depth = op.a.type.layout.k, _extent(op)
        may_pass = bool(depth % k) or integers_of(scope.kernel.grid)[2] > 1
        scaled = first + column_in(FRAGMENT, lane=team.lane)
        shifted = first + team.lane // QUAD
        return _Reads(op, _parts(op), tile.n // ATOM_N, scaled, shifted, may_pass)

    def scales(self, step: ir.Value) -> list[ir.Value]:
        """Those of a step, the lane's two of each 8 columns of each part."""
        columns = [ATOM_N * atom + at for atom in range(self.atoms) for at in range(PAIR)]
        found = self._read(self.op.scales, self.scaled, columns, step)
        if not self.may_pass:
            return found
        zero = arith.ConstantOp(found[0].type, 0.0).result
        groups = [group for group in self._groups(step) for _ in columns]
        count = self._count
        return [
            arith.select(build.less(group, count), value, zero)
            for group, value in zip(groups, found, strict=True)
        ]

    def points(self, step: ir.Value) -> list[ir.Value]:
        """The zero points of a step, of the lane's one of each 8 columns of each part."""
        if self.op.zeros is None:
            return []
        columns = [ATOM_N * atom for atom in range(self.atoms)]
        return self._read(self.op.zeros, self.shifted, columns, step)

    @property
    def _count(self) -> int:
        """How many groups there are."""
        return self.op.scales.type.shape[1]  # pyright: ignore[reportOptionalMemberAccess]

    def _groups(self, step: ir.Value) -> list[ir.Value]:
        """The group of each part of a step."""
        k, group = self.op.a.type.layout.k, self.op.group.value
        if group == _extent(self.op):
            return [build.constant(0)]
        part = k // self.parts
        return [(step * k + part * number) // group for number in range(self.parts)]

    def _read(
        self, view: Any, first: ir.Value, columns: list[int], step: ir.Value
    ) -> list[ir.Value]:
        """What a view has for columns behind the first one, by part and column."""
        if self._is_whole(view):
            return self._read_whole(view, first, columns, step)
        rows, last = view.type.shape[0], build.constant(self._count - 1)
        found = []
        for group in self._groups(step):
            group = arith.minui(group, last)
            for column in columns:
                row = arith.minui(first + column, build.constant(rows - 1))
                pointer = element_pointer(view, build.widen(row * self._count + group))
                found += _load(view, pointer, 1)
        return found

    def _is_whole(self, view: Any) -> bool:
        """Whether tiles are whole, and the parts of a step whole groups side by side."""
        n, k = self.op.acc.type.shape[1], self.op.a.type.layout.k
        one = self._count == 1
        apart = one or k == self.parts * self.op.group.value
        return view.type.shape[0] % n == 0 and apart and self._count % self.parts == 0

    def _read_whole(
        self, view: Any, first: ir.Value, columns: list[int], step: ir.Value
    ) -> list[ir.Value]:
        """The same at constants from one address: the parts of a column by one load."""
        steps = self._count // self.parts
        step = arith.minui(step, build.constant(steps - 1))
        start = element_pointer(view, build.widen(first * self._count + step * self.parts))
        size = element_bytes(view.type.element_type)
        width = next(w for w in (8, 4, 2, 1) if self.parts % w == 0 and w * size <= LOAD_BYTES)
        by_column = []
        for column in columns:
            own: list[ir.Value] = []
            for part in range(0, self.parts, width):
                behind = (column * self._count + part) * size
                own += _load(view, build.offset_pointer(start, behind) if behind else start, width)
            by_column.append(own)
        return [own[part] for part in range(self.parts) for own in by_column]


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


def _slots(op: WeightMmaOp, held: WarpSums) -> list[ir.Value]:
    """Those that `hold_scales` has made."""
    return lowered_parts(op.acc)[held.tile.m // ATOM_M * (held.tile.n // ATOM_N) :]


def _types(op: WeightMmaOp, atoms: int) -> list[ir.Type]:
    """What each slot holds."""
    view: Any = op.scales
    count = _parts(op) * atoms
    points = [] if op.zeros is None else [ir.IntegerType.get_signless(8)] * count
    return [*[view.type.element_type] * (PAIR * count), *points]


def _parts(op: WeightMmaOp) -> int:
    """Parts of a step that are of one group each."""
    k = op.a.type.layout.k
    return k // segment(k, op.group.value, _extent(op))


def _extent(op: WeightMmaOp) -> int:
    """All of K."""
    view: Any = op.scales
    return view.type.shape[1] * op.group.value


def _single(value: ir.Value) -> ir.Value:
    """A scale in f32."""
    f32 = ir.F32Type.get()
    return value if value.type == f32 else arith.extf(f32, value)
