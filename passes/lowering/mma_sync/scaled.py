"""`tile.scaled_mma` as mma.sync with block scales: each warp multiplies its part of the tile.

    sm.ldmatrix           the rows of A and the columns of B of this warp, 32 bytes of K
    llvm.load             a word of four scales for each row and column, where a lane has it
    sm.scaled_mma_sync    every 16x8 of them; `id` names the byte of the words that K has got to

Scales lie in shared memory as in global memory, in atoms: row r of an atom has its four scales in
the word at byte r % 32 * 16 + r / 32 * 4.
"""

from __future__ import annotations

from typing import Any

from ....dialects import llvm, sm
from ....dialects.dtypes import ScaledMma
from ....dialects.layout import ATOM_BYTES, SCALE_ATOM_BLOCKS, SCALE_ATOM_ROWS, UNIT_BYTES
from ....dialects.mlir import arith, ir
from ....dialects.record import record
from ....dialects.target import WARP_THREADS
from ....dialects.tile.scales import ScaledMmaOp, depth_of, mma_of
from ....dialects.tile_types import SmemType
from ... import build
from ...team import Team
from ..registers.warp_accumulator import ATOM_M, ATOM_N
from ..scope.scope import Scope, place_of
from .mma import begin_sums, operands_of

ROWS = 32  # of an atom that lie 16 bytes apart
WORD_BYTES = 4


@record
class Scales:
    """The scales of an operand of a warp: of `count` MMAs, `step` rows each, from `row` on.

    `row` is this lane's in the first MMA, from the beginning of the tile's first atom.
    """

    tile: ir.Value[SmemType]
    row: ir.Value
    step: int
    count: int

    def words(self, word: int) -> list[ir.Value]:
        """This lane's word of each MMA: the `word`-th four blocks of K."""
        return [self._word(self.row + number * self.step, word) for number in range(self.count)]

    def _word(self, row: ir.Value, word: int) -> ir.Value:
        along_k = self.tile.type.layout.atoms[1]
        atom = row // SCALE_ATOM_ROWS * along_k + word
        within = row % ROWS * UNIT_BYTES + row % SCALE_ATOM_ROWS // ROWS * WORD_BYTES
        address = place_of(self.tile) + atom * ATOM_BYTES + within
        return llvm.load(build.i32(), build.shared_at(address), alignment=WORD_BYTES)


def lower_scaled_mma_sync(scope: Scope, op: ScaledMmaOp) -> None:
    """K by K, as `tile.mma`; a word of scales is loaded when K gets to it."""
    held, mma = begin_sums(scope, op), mma_of(op)
    (a,), (b,) = operands_of(scope, op, held)
    scales = _scales(op, held)
    sums, words = held.load(), [[], []]
    for k in range(0, depth_of(op), mma.k):
        word, byte = divmod(k // mma.block, SCALE_ATOM_BLOCKS)
        if byte == 0:
            kept = _kept(op, word, mma)
            words = [[_masked(each, kept) for each in own.words(word)] for own in scales]
        at, wide = mma.operand_bytes(k), mma.operand_bytes(mma.k)
        _multiply(op, sums, (a.words(at, wide), b.words(at, wide)), words, byte)
    held.store(sums)


def _multiply(op: ScaledMmaOp, sums: list[list[Any]], operands: Any, words: Any, byte: int) -> None:
    mma, types = mma_of(op), {"a_type": op.a_type, "b_type": op.b_type}
    fields = {"kind": mma.kind, "block": mma.block, "scale": mma.scale, **types, "id": byte}
    for row, a, a_word in zip(sums, operands[0], words[0], strict=True):
        for j, (b, b_word) in enumerate(zip(operands[1], words[1], strict=True)):
            made = sm.ScaledMmaSyncOp.of(row[j], a, b, a_word, b_word, **fields, sum=row[j].type)
            row[j] = made.sum


def _scales(op: ScaledMmaOp, held: Any) -> tuple[Scales, Scales]:
    """The scales of A by the warp's rows and of B by its columns; a tile of B may begin within an
    atom."""
    team, tile = Team.of(op), held.tile
    warp, lane = team.thread // WARP_THREADS, team.lane
    row = held.first_row(warp) + lane // 4 + lane % 2 * (ATOM_M // 2)
    n = op.acc.type.shape[1]
    column = held.first_column(warp) + lane // 4
    if n % SCALE_ATOM_ROWS:
        column = column + build.as_i32(op.j) * n % SCALE_ATOM_ROWS
    return (
        Scales(op.a_scales, row, ATOM_M, tile.m // ATOM_M),
        Scales(op.b_scales, column, ATOM_N, tile.n // ATOM_N),
    )


def _kept(op: ScaledMmaOp, word: int, mma: ScaledMma) -> ir.Value | None:
    """The bits of a word whose blocks K has; None where it always has all of them.

    What pads an atom past the end of K may be NaN, which times zeros were NaN.
    """
    depth, extent = depth_of(op), op.extent.value
    span = SCALE_ATOM_BLOCKS * mma.block
    if extent % depth == 0 or (word + 1) * span <= extent % depth:
        return None
    left = extent % span // mma.block
    begin = build.as_i32(op.k) * depth + word * span
    whole, none = build.constant(-1), build.constant(0)
    partly = build.constant((1 << 8 * left) - 1) if left else none
    some = arith.select(build.less(begin, extent), partly, none)
    return arith.select(build.less(begin + (span - 1), extent), whole, some)


def _masked(word: ir.Value, kept: ir.Value | None) -> ir.Value:
    return word if kept is None else arith.andi(word, kept)
