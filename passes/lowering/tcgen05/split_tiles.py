"""f32 tiles as the sum of bf16 terms in shared memory, which MMAs multiply (`dialects.terms`).

    llvm.load       8 elements along K of a line of A or B, which a thread has
    bf16 terms      top, first, second, third (`bf16_parts`)
    llvm.store      16 bytes of each, K-major and swizzled
    fence, meeting  before MMAs read them, by the async proxy

Threads share the units of 8 elements of both tiles: neighbours along K where the f32 tile is
K-major, else neighbours along M or N, so that their accesses lie in different banks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ....dialects import sm
from ....dialects.layout import UNIT_BYTES, TileLayout
from ....dialects.mlir import ir, llvm, vector
from ....dialects.terms import FIRST, NINE_PRODUCTS, TERM_DTYPE, TERMS, TOP
from ....dialects.tile import MmaOp
from ....dialects.tile.scales import smem_operands
from ....dialects.tile_types import SmemType, integers_of
from ... import build
from ...base import defining_op, walk
from ...team import Team
from ..barriers.operand_tiles import descriptor_type
from ..operands.descriptors import encode_bytes
from ..operands.fragment_loads import element_offset
from ..operands.mma_operands import advance, descriptor_at
from ..operands.units import unit_offset
from ..registers.bf16_parts import pieces_of
from ..scope.scope import Scope, place_of

UNIT = UNIT_BYTES // TERM_DTYPE.bytes
"""Elements of a term that a thread writes at once."""
IN_F32 = UNIT_BYTES // 4
TOGETHER = 2  # units that a thread loads before it writes: as many registers as ptxas has left


class Terms(NamedTuple):
    """The terms of one operand: how each lies, and their bytes in the first slot."""

    tile: SmemType
    offsets: list[int]

    def byte(self, term: int, which: ir.Value) -> ir.Value:
        """Where a term begins in a slot."""
        return which * self.tile.layout.slot_bytes + self.offsets[term]

    def descriptor(self, scope: Scope, which: ir.Value) -> ir.Value:
        """That of the first term in a slot."""
        first = descriptor_at(descriptor_type(scope.target, self.tile), self.offsets[0])
        return advance(first, which * encode_bytes(self.tile.layout.slot_bytes))

    def behind(self, term: int, line: int, k: int) -> int:
        """Bytes from the first term to a place in another one."""
        return self.offsets[term] - self.offsets[0] + self.tile.layout.offset(line, k)


class TermProduct(NamedTuple):
    """The product of two terms at a K: whether it is the first one of its power of 2^-8, and the
    bytes from the descriptors of A and of B."""

    power: int
    begins: bool
    a_offset: int
    b_offset: int


def terms_in(scope: Scope) -> list[Terms]:
    """Those of A, of B, and of a second B."""
    (op,) = walk(scope.kernel, sm.TermsOp)
    memory = defining_op(op.memory)
    tiles, offsets, count = memory.memory.type.tiles, integers_of(memory.offsets), len(TERMS)
    return [Terms(tiles[at], offsets[at : at + count]) for at in range(0, len(tiles), count)]


def term_products(a: Terms, b: Terms, line: int = 0) -> Iterator[TermProduct]:
    """All nine, each along K, of the rows of A from `line` on; the least power first."""
    ks = range(0, a.tile.layout.k, TERM_DTYPE.k_per_mma)
    for power, pairs in enumerate(NINE_PRODUCTS):
        for of_a, of_b in pairs:
            for k in ks:
                begins = (of_a, of_b) == pairs[0] and k == 0
                yield TermProduct(power, begins, a.behind(of_a, line, k), b.behind(of_b, 0, k))


def write_terms(scope: Scope, op: MmaOp, which: ir.Value) -> None:
    """Have the team write those of an MMA's tiles, so that the async proxy sees them once all have
    met behind."""
    team = Team.of(op)
    for tile, terms in zip(smem_operands(op), terms_in(scope), strict=True):
        _write(team, tile, terms, which)
    build.fence("async_shared")


def _write(team: Team, tile: ir.Value[SmemType], terms: Terms, which: ir.Value) -> None:
    layout, start = tile.type.layout, place_of(tile)
    count = layout.mn * layout.k // UNIT
    whole = count // team.threads
    numbers = [team.thread + at * team.threads for at in range(whole)]
    for at in range(0, whole, TOGETHER):
        places = [_place(layout, number) for number in numbers[at : at + TOGETHER]]
        loaded = [_load(layout, start, *place) for place in places]
        for place, words in zip(places, loaded, strict=True):
            _store(terms, which, *place, words)
    if whole * team.threads < count:
        number = team.thread + whole * team.threads
        with build.when(build.less(number, count)):
            place = _place(layout, number)
            _store(terms, which, *place, _load(layout, start, *place))


def _place(layout: TileLayout, number: ir.Value) -> tuple[Any, Any]:
    """(line, unit along K) of a unit."""
    if layout.major == "k":
        along = layout.k // UNIT
        return number // along, number % along
    return number % layout.mn, number // layout.mn


def _load(layout: TileLayout, start: ir.Value, line: Any, unit: Any) -> list[ir.Value]:
    """The words of 8 elements along K."""
    if layout.major == "k":
        type_ = ir.VectorType.get([IN_F32], build.i32())
        halves = [
            llvm.load(
                type_,
                build.shared_at(start + unit_offset(layout, line, unit * 2 + half)),
                alignment=UNIT_BYTES,
            )
            for half in range(UNIT // IN_F32)
        ]
        return [vector.ExtractOp(each, [], [at]).result for each in halves for at in range(IN_F32)]
    return [
        llvm.load(
            build.i32(),
            build.shared_at(start + element_offset(layout, line, unit * UNIT + at)),
            alignment=layout.element_bytes,
        )
        for at in range(UNIT)
    ]


def _store(terms: Terms, which: ir.Value, line: Any, unit: Any, words: list[ir.Value]) -> None:
    """Their terms, 16 bytes of each."""
    pieces = [pieces_of(word) for word in words]
    tops = [llvm.bitcast(ir.F32Type.get(), word) for word in words]
    offset = unit_offset(terms.tile.layout, line, unit)
    type_ = ir.VectorType.get([UNIT // 2], build.i32())
    for term in TERMS:
        values = tops if term == TOP else [each[term - FIRST] for each in pieces]
        pairs = zip(values[::2], values[1::2], strict=True)
        packed = vector.FromElementsOp(type_, [sm.CutBf16Op.of(*pair).bits for pair in pairs])
        at = build.shared_at(terms.byte(term, which) + offset)
        llvm.store(packed.result, at, alignment=UNIT_BYTES)
