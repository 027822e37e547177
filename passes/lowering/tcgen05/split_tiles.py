"""Splits f32 tiles into terms in shared memory, which MMAs multiply (`dialects.terms`).

    llvm.load       elements along K of a line of A or B, which a thread has: 8 for bf16, 4 for tf32
    terms           bf16: top, first, second, third (`bf16_parts`); tf32: high, low (`split_words`)
    llvm.store      16 bytes of each, K-major and swizzled
    fence, meeting  before MMAs read them, by the async proxy

Threads share the units of so many elements of both tiles: neighbours along K where the f32 tile is
K-major, else neighbours along M or N, so that their accesses lie in different banks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ....dialects import llvm, sm
from ....dialects.layout import UNIT_BYTES, TileLayout
from ....dialects.mlir import ir, vector
from ....dialects.terms import FIRST, ROUNDED, TERMS, TOP, TermForm
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
from ..registers.split_words import rounded_word
from ..scope.scope import Scope, place_of

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
        """The descriptor of the first term in a slot."""
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
    """The terms of A, of B, and of a second B."""
    (op,) = walk(scope.kernel, sm.TermsOp)
    memory = defining_op(op.memory)
    tiles, offsets = memory.memory.type.tiles, integers_of(memory.offsets)
    count = form_in(scope).terms
    return [Terms(tiles[at], offsets[at : at + count]) for at in range(0, len(tiles), count)]


def form_in(scope: Scope) -> TermForm:
    """The form of a kernel's terms."""
    form = scope.target.mma.splits
    assert form is not None  # else nobody has terms
    return form


def term_products(form: TermForm, a: Terms, b: Terms, line: int = 0) -> Iterator[TermProduct]:
    """All of a form, each along K, of the rows of A from `line` on; the least power first."""
    ks = range(0, a.tile.layout.k, form.dtype.k_per_mma)
    for power, pairs in enumerate(form.products):
        for of_a, of_b in pairs:
            for k in ks:
                begins = (of_a, of_b) == pairs[0] and k == 0
                yield TermProduct(power, begins, a.behind(of_a, line, k), b.behind(of_b, 0, k))


def write_terms(scope: Scope, op: MmaOp, which: ir.Value) -> None:
    """Have the team write those of an MMA's tiles, so that the async proxy sees them once all have
    met after."""
    team, form = Team.of(op), form_in(scope)
    for tile, terms in zip(smem_operands(op), terms_in(scope), strict=True):
        _write(team, form, tile, terms, which)
    build.fence("async_shared")


def _write(
    team: Team, form: TermForm, tile: ir.Value[SmemType], terms: Terms, which: ir.Value
) -> None:
    layout, start, unit = tile.type.layout, place_of(tile), UNIT_BYTES // form.dtype.bytes
    count = layout.mn * layout.k // unit
    whole = count // team.threads
    numbers = [team.thread + at * team.threads for at in range(whole)]
    for at in range(0, whole, TOGETHER):
        places = [_place(layout, unit, number) for number in numbers[at : at + TOGETHER]]
        loaded = [_load(layout, unit, start, *place) for place in places]
        for place, words in zip(places, loaded, strict=True):
            _store(form, terms, which, *place, words)
    if whole * team.threads < count:
        number = team.thread + whole * team.threads
        with build.when(build.less(number, count)):
            place = _place(layout, unit, number)
            _store(form, terms, which, *place, _load(layout, unit, start, *place))


def _place(layout: TileLayout, unit: int, number: ir.Value) -> tuple[Any, Any]:
    """(line, unit along K) of a unit of so many elements."""
    if layout.major == "k":
        along = layout.k // unit
        return number // along, number % along
    return number % layout.mn, number // layout.mn


def _load(layout: TileLayout, count: int, start: ir.Value, line: Any, unit: Any) -> list[ir.Value]:
    """The words of `count` elements along K."""
    if layout.major == "k":
        type_, halves = ir.VectorType.get([IN_F32], build.i32()), count // IN_F32
        loaded = [
            llvm.load(
                type_,
                build.shared_at(start + unit_offset(layout, line, unit * halves + half)),
                alignment=UNIT_BYTES,
            )
            for half in range(halves)
        ]
        return [vector.ExtractOp(each, [], [at]).result for each in loaded for at in range(IN_F32)]
    return [
        llvm.load(
            build.i32(),
            build.shared_at(start + element_offset(layout, line, unit * count + at)),
            alignment=layout.element_bytes,
        )
        for at in range(count)
    ]


def _store(
    form: TermForm, terms: Terms, which: ir.Value, line: Any, unit: Any, words: list[ir.Value]
) -> None:
    """Their terms, 16 bytes of each."""
    made = _rounded(words) if form is ROUNDED else _moved_up(words)
    offset = unit_offset(terms.tile.layout, line, unit)
    type_ = ir.VectorType.get([UNIT_BYTES // 4], build.i32())
    for term, packed in enumerate(made):
        at = build.shared_at(terms.byte(term, which) + offset)
        llvm.store(vector.FromElementsOp(type_, packed).result, at, alignment=UNIT_BYTES)


def _moved_up(words: list[ir.Value]) -> Iterator[list[ir.Value]]:
    """Words of two bf16 of each term of elements."""
    pieces = [pieces_of(word) for word in words]
    tops = [llvm.bitcast(ir.F32Type.get(), word) for word in words]
    for term in TERMS:
        values = tops if term == TOP else [each[term - FIRST] for each in pieces]
        pairs = zip(values[::2], values[1::2], strict=True)
        yield [sm.CutBf16Op.of(*pair).bits for pair in pairs]


def _rounded(words: list[ir.Value]) -> Iterator[list[ir.Value]]:
    """Words of one tf32 of each term of elements."""
    yield from (list(each) for each in zip(*map(rounded_word, words), strict=True))
