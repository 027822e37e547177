"""`tile.mma` on CUDA cores: each thread reads its rows of A and B and uses FMA.

A step of K is as deep as the widest load of an operand whose K lies together: 16 bytes of each row.
Of an operand whose rows lie together, a step reads vectors of them for each of its K. Steps are
written out, up to `PRODUCTS_MAX` products of a thread; a deeper tile loops over them.

    for each step of K                   acc[r][c] = fma(a[r][k], b[c][k], acc[r][c])
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from ....dialects import llvm
from ....dialects.layout import BANK_LINE_BYTES, LINEAR, SPAN_BYTES, UNIT_BYTES, TileLayout
from ....dialects.mlir import arith, ir, vector
from ....dialects.tile import MmaOp
from ....dialects.tile.sums import ViewMmaOp
from ....dialects.tile_types import SmemType
from ... import build
from ...clone import constant_of
from ..scope.scope import Scope, place_of
from .sums import ThreadSums

PRODUCTS_MAX = 1024


@dataclass
class Operand:
    """One operand's tile as a thread reads it: the rows `starts` after its own place `at`.

    `start` is the tile's first byte, `vector` how many elements a load takes: along K where the
    tile is K-major, else along rows.
    """

    layout: TileLayout
    element: ir.Type
    start: ir.Value
    at: ir.Value
    starts: list[int]
    vector: int
    lines: dict[tuple[int, ...], ir.Value] = field(default_factory=dict)

    @property
    def step(self) -> int:
        """K that a load of a row has."""
        return self.vector if self.layout.major == "k" else 1

    @property
    def period(self) -> int:
        """K after which addresses repeat, but for a constant: what a loop may go on by."""
        layout = self.layout
        if layout.swizzle == LINEAR:
            return self.step
        if layout.major == "k":
            return layout.span
        return max(1, _pattern_bytes(layout) // layout.span_bytes)

    def read(self, first: ir.Value | None, k: int, depth: int) -> list[list[ir.Value]]:
        """`depth` lists, one for each K from `first + k` on, of the thread's elements there."""
        if self.layout.major == "k":
            rows = [self._load(first, start, k) for start in self.starts]
            return [[row[number] for row in rows] for number in range(depth)]
        return [
            [
                each
                for start in self.starts[:: self.vector]
                for each in self._load(first, start, k + number)
            ]
            for number in range(depth)
        ]

    def _load(self, first: ir.Value | None, start: int, k: int) -> list[ir.Value]:
        """A vector of elements from row `start` and K `first + k` on, widened to what is summed."""
        size = self.vector * self.layout.element_bytes
        pointer = build.shared_at(self._address(first, start, k))
        if self.vector == 1:
            return [widened(llvm.load(self.element, pointer, alignment=size))]
        type_ = ir.VectorType.get([self.vector], self.element)
        loaded = llvm.load(type_, pointer, alignment=size)
        return [widened(vector.ExtractOp(loaded, [], [at]).result) for at in range(self.vector)]

    def _address(self, first: ir.Value | None, start: int, k: int) -> ir.Value:
        if self.layout.major == "k":
            base, constant = self._in_row(start, k)
        else:
            base, constant = self._in_column(start, k)
        if first is not None:
            base = base + first * self._loop_pitch()
        return base + constant

    def _loop_pitch(self) -> int:
        """Bytes for each K that a loop goes on by, in whole periods."""
        layout = self.layout
        if layout.major == "k" and layout.swizzle != LINEAR:
            return layout.chunk_bytes // layout.span
        return layout.element_bytes if layout.major == "k" else layout.span_bytes

    def _in_row(self, start: int, k: int) -> tuple[ir.Value, int]:
        """The address in a K-major tile: (bytes that depend on the thread's place, constant
        bytes)."""
        layout, span = self.layout, self.layout.span_bytes
        chunk, within = divmod(k * layout.element_bytes, span)
        unit, byte = divmod(within, UNIT_BYTES)
        known = chunk * layout.chunk_bytes + (within if layout.swizzle == LINEAR else byte)
        if layout.swizzle == LINEAR:
            return self._base((), lambda: self.start + self.at * span), known + start * span
        aligned = start * span % _pattern_bytes(layout) == 0
        row = self.at if aligned else self.at + start
        base = self._base(
            (unit, 0 if aligned else start),
            lambda: self.start + row * span + _swizzled(layout, row, build.constant(unit)),
        )
        return base, known + (start * span if aligned else 0)

    def _in_column(self, start: int, k: int) -> tuple[ir.Value, int]:
        """The same for an MN-major tile."""
        layout, span = self.layout, self.layout.span_bytes
        size = layout.element_bytes
        if layout.swizzle == LINEAR:
            return self._base((), lambda: self.start + self.at * size), k * span + start * size
        aligned = start * size % span == 0
        row = self.at if aligned else self.at + start
        line = k * span // BANK_LINE_BYTES % (SPAN_BYTES[layout.swizzle] // UNIT_BYTES)

        def base() -> ir.Value:
            byte = row * size
            unit = byte % span // UNIT_BYTES
            place = (unit ^ line) * UNIT_BYTES + byte % UNIT_BYTES
            return self.start + byte // span * layout.chunk_bytes + place

        known = k * span + (start * size // span * layout.chunk_bytes if aligned else 0)
        return self._base((line, 0 if aligned else start), base), known

    def _base(self, key: tuple[int, ...], make: Callable[[], ir.Value]) -> ir.Value:
        """What loads with the same key share, computed once in a step."""
        if key not in self.lines:
            self.lines[key] = make()
        return self.lines[key]


def lower_fma(scope: Scope, op: MmaOp) -> None:
    """All products of the tile."""
    sums = ThreadSums.of(scope, op.acc)
    values = first_sums(op, sums)
    a, b = _operands(op, sums)
    step, depth = math.lcm(a.step, b.step), op.a.type.layout.k
    part = _part(depth, sums.share.m * sums.share.n, math.lcm(step, a.period, b.period))
    if part == depth:
        sums.store(_multiply(sums, values, a, b, None, step, part))
        return
    sums.store(values)
    with build.loop(build.constant(0), depth, part) as first:
        sums.store(_multiply(sums, sums.load(), a, b, first, step, part))


def first_sums(op: MmaOp | ViewMmaOp, sums: ThreadSums) -> list[ir.Value]:
    """The sums so far, or zero where the MMA does not add."""
    values = sums.load()
    if constant_of(op.accumulate):
        return values
    zero = arith.ConstantOp(sums.element, ir.FloatAttr.get(sums.element, 0.0)).result
    return [arith.select(op.accumulate, value, zero) for value in values]


def _operands(op: MmaOp, sums: ThreadSums) -> tuple[Operand, Operand]:
    share = sums.share
    a = _operand(op.a, sums.row, share.row_starts(), share.m_group)
    b = _operand(op.b, sums.column, share.column_starts(), share.n_group)
    return a, b


def _operand(tile: ir.Value[SmemType], place: ir.Value, starts: list[int], group: int) -> Operand:
    layout = tile.type.layout
    along_k = math.gcd(UNIT_BYTES // layout.element_bytes, layout.k)
    vector_ = along_k if layout.major == "k" else group
    return Operand(layout, tile.type.element, place_of(tile), place * group, starts, vector_)


def _part(depth: int, products: int, unit: int) -> int:
    """K of the steps that are written out: all, or whole units of it that divide it."""
    if depth * products <= PRODUCTS_MAX or depth % unit:
        return depth
    units = depth // unit
    most = max(1, PRODUCTS_MAX // products // unit)
    return unit * max(each for each in range(1, most + 1) if units % each == 0)


def _multiply(
    sums: ThreadSums,
    values: list[ir.Value],
    a: Operand,
    b: Operand,
    first: ir.Value | None,
    step: int,
    depth: int,
) -> list[ir.Value]:
    """The sums after `depth` of K."""
    a.lines.clear()
    b.lines.clear()
    columns = sums.share.n
    for k in range(0, depth, step):
        for of_a, of_b in zip(_step(a, first, k, step), _step(b, first, k, step), strict=True):
            values = [
                fused(of_a[at // columns], of_b[at % columns], value)
                for at, value in enumerate(values)
            ]
    return values


def _step(operand: Operand, first: ir.Value | None, k: int, step: int) -> list[list[ir.Value]]:
    """The elements of a step, load by load along K."""
    size = operand.step
    return [each for at in range(k, k + step, size) for each in operand.read(first, at, size)]


def fused(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """`a * b + c`, rounded once."""
    return llvm.fma(a, b, c)


def widened(value: ir.Value) -> ir.Value:
    """An element as what it is summed in: f32, or f64."""
    if isinstance(value.type, ir.F32Type | ir.F64Type):
        return value
    return arith.extf(ir.F32Type.get(), value)


def _pattern_bytes(layout: TileLayout) -> int:
    """Bytes after which a swizzle repeats; without one, nothing depends on the place."""
    if layout.swizzle == "none":
        return 1
    return BANK_LINE_BYTES * (SPAN_BYTES[layout.swizzle] // UNIT_BYTES)


def _swizzled(layout: TileLayout, row: ir.Value, unit: ir.Value) -> ir.Value:
    """The byte in a row's span where a unit lies."""
    mask = SPAN_BYTES[layout.swizzle] // UNIT_BYTES - 1
    if not mask:
        return unit * UNIT_BYTES
    line = row * layout.span_bytes // BANK_LINE_BYTES % (mask + 1)
    return (unit ^ line) * UNIT_BYTES
