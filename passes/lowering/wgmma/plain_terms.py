"""f32 as three bf16 of its own magnitude, of A in registers and of B in shared memory, for wgmma.

    first     all that bf16 holds of an element, cut off
    second    the same of what is left
    third     what is left of that: first + second + third is the element

That is exact unless something lies below what bf16 holds (2^-133), or is no number. Threads learn
so as they split: what is left of the third one are its low bits, or it is NaN.

A thread of an MMA with A in registers has 4 elements of a row for each 16 of K. Which elements of K
meet is free, as long as A's are B's: of a row a lane of four takes a quarter of the tile's K, so
that it loads 16 bytes at once.

    register of A           slot of K        element of K
    words[half of K, row]   2q, 2q + 1       K/4 * q + 4 * (which 16) + 2 * half, and the next
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ....dialects import llvm, sm
from ....dialects.layout import CORE_ROWS, UNIT_BYTES, TileLayout
from ....dialects.mlir import arith, ir, vector
from ....dialects.terms import PLAIN_TERMS, TERM_DTYPE
from ....dialects.tile_types import SmemType, integers_of
from ... import build
from ...base import defining_op, walk
from ...places import ROW_DISTANCE
from ...team import Team
from ..operands.fragment_loads import element_offset
from ..operands.units import unit_offset
from ..registers.bf16_parts import CUT
from ..scope.scope import Scope

QUAD, PAIR, HALVES = 4, 2, 2
MMA_K = TERM_DTYPE.k_per_mma
UNIT = UNIT_BYTES // 4
"""Elements of f32 that a thread loads at once: those of an MMA's K that it has of a row."""
LOW_HALF = 0xFFFF


@dataclass
class Lost:
    """What splitting has lost so far: bits after the third part, and NaN where some are none."""

    bits: ir.Value
    probe: ir.Value

    @staticmethod
    def nothing() -> Lost:
        return Lost(build.constant(0), build.f32(0.0))

    def note(self, left: Sequence[ir.Value]) -> None:
        """What is left of a pair before it is cut for the last time."""
        for each in left:
            self.bits = arith.ori(self.bits, llvm.bitcast(build.i32(), each))
            self.probe = llvm.fma(each, build.f32(0.0), self.probe)

    def any(self) -> ir.Value:
        """Whether an element of this thread is not the sum of its parts."""
        low = arith.andi(self.bits, build.constant(LOW_HALF))
        some = arith.cmpi(arith.CmpIPredicate.ne, low, build.constant(0))
        unordered = arith.CmpFPredicate.UNO
        return arith.ori(some, arith.cmpf(unordered, self.probe, self.probe))


def split_pair(words: Sequence[ir.Value], lost: Lost) -> Sequence[ir.Value]:
    """(first, second, third) of two elements, each as the word of a pair of bf16."""
    f32 = ir.F32Type.get()
    values: list[ir.Value] = [llvm.bitcast(f32, word) for word in words]
    packed = [sm.CutBf16Op.of(*values).bits]
    for _ in range(2):
        low = arith.shli(packed[-1], build.constant(16))
        high = arith.andi(packed[-1], build.constant(build.signed(CUT)))
        cut = [llvm.bitcast(f32, each) for each in (low, high)]
        values = [arith.subf(value, each) for value, each in zip(values, cut, strict=True)]
        packed.append(sm.CutBf16Op.of(*values).bits)
    lost.note(values)
    return packed


def load_four(layout: TileLayout, start: ir.Value, line: Any, quad: Any, block: Any) -> list[Any]:
    """The 4 elements that lane `quad` of four has of a line, for the MMA of that number."""
    share = layout.k // QUAD
    if layout.major == "k":
        unit = quad * (share // UNIT) + block
        pointer = build.shared_at(start + unit_offset(layout, line, unit))
        type_ = ir.VectorType.get([UNIT], build.i32())
        words = llvm.load(type_, pointer, alignment=UNIT_BYTES)
        return [vector.ExtractOp(words, [], [at]).result for at in range(UNIT)]
    first, behind = block * UNIT, quad * share * layout.span_bytes
    if share % CORE_ROWS:
        first, behind = quad * share + block * UNIT, 0
    return [
        llvm.load(
            build.i32(),
            build.shared_at(start + behind + element_offset(layout, line, first + at)),
            alignment=layout.element_bytes,
        )
        for at in range(UNIT)
    ]


def fragment_terms(
    layout: TileLayout, start: ir.Value, row: ir.Value, lane: ir.Value, lost: Lost
) -> list[list[ir.Value]]:
    """By the MMAs along K, then by terms: the registers of 64 rows of A, this thread's row is the
    first of `row` and 8 after it."""
    made = []
    for block in range(layout.k // MMA_K):
        rows = [
            load_four(layout, start, row + ROW_DISTANCE * half, lane % QUAD, build.constant(block))
            for half in range(HALVES)
        ]
        pairs = [
            split_pair(words[PAIR * half :][:PAIR], lost)
            for half in range(HALVES)
            for words in rows
        ]
        type_ = ir.VectorType.get([len(pairs)], build.i32())
        made.append(
            [vector.FromElementsOp(type_, list(words)).result for words in zip(*pairs, strict=True)]
        )
    return made


class TermTile(NamedTuple):
    """The terms of a tile of B: how each lies, and its bytes in the first slot."""

    tile: SmemType
    offsets: list[int]

    @property
    def layout(self) -> TileLayout:
        return self.tile.layout

    def behind(self, term: int, k: int) -> int:
        """Bytes from the first term to a place in another one."""
        return self.offsets[term] - self.offsets[0] + self.layout.offset(0, k)

    def write(
        self, tile: TileLayout, start: ir.Value, which: ir.Value, team: Team, lost: Lost
    ) -> None:
        """Have the team split a tile: a thread has a line and 16 elements of its K at a time."""
        count = tile.mn * (tile.k // MMA_K)
        for first in range(0, count, team.threads):
            number = team.thread + first
            inside = None
            if first + team.threads > count:
                inside = build.less(number, count)
                number = arith.minui(number, build.constant(count - 1))
            line, block = number % tile.mn, number // tile.mn
            fours = [load_four(tile, start, line, quad, block) for quad in range(QUAD)]
            self._store(which, line, block, fours, lost, inside)

    def _store(
        self,
        which: ir.Value,
        line: Any,
        block: Any,
        fours: list[list[ir.Value]],
        lost: Lost,
        inside: ir.Value | None,
    ) -> None:
        """Their terms: each half of the K of an MMA is 16 bytes."""
        type_ = ir.VectorType.get([QUAD], build.i32())
        units = []
        for half in range(HALVES):
            pairs = [split_pair(words[PAIR * half :][:PAIR], lost) for words in fours]
            units += [
                (half, term, vector.FromElementsOp(type_, list(words)).result)
                for term, words in enumerate(zip(*pairs, strict=True))
            ]
        with build.when(inside):
            for half, term, words in units:
                offset = unit_offset(self.layout, line, block * HALVES + half)
                start = which * self.layout.slot_bytes + self.offsets[term]
                pointer = build.shared_at(start + offset)
                llvm.store(words, pointer, alignment=UNIT_BYTES)


def term_tiles(scope: Scope) -> list[TermTile]:
    """The term tiles of B, and of a second B."""
    (op,) = walk(scope.kernel, sm.TermsOp)
    memory = defining_op(op.memory)
    tiles, offsets, count = memory.memory.type.tiles, integers_of(memory.offsets), len(PLAIN_TERMS)
    starts = range(0, len(tiles), count)
    return [TermTile(tiles[at], offsets[at : at + count]) for at in starts]
