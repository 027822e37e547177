"""`tile.weight_mma` as mma.sync: warps load weights as they lie, and widen them in registers.

    sm.ldmatrix   the rows of A of this warp, 32 bytes of K
    llvm.load     a pair of weights for each register of B, of the lane's column; `widened_words`
    sm.mma_sync   every 16x8 of them, from zero for each group
    sums = fma(product of the group, scale of the column, sums)

Scales are asked for a step before (`group_scales`). Without scales MMAs add to the sums themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....dialects import llvm, sm
from ....dialects.dtypes import DTYPES, operand_dtype
from ....dialects.mlir import ir, vector
from ....dialects.target import WARP_THREADS
from ....dialects.tile.weights import WeightMmaOp
from ... import build
from ...team import Team
from ...weights import MMA_K, part_of
from ..operands.fragment_loads import Operand, Pattern
from ..registers.register_accumulator import joined_parts, parts
from ..registers.warp_accumulator import ATOM_M, ATOM_N, WarpSums
from ..registers.widened_words import pair_bytes, widened_pair
from ..scales.group_scales import GroupScales
from ..scope.scope import Scope, place_of
from .mma import begin_sums

QUAD, PAIR, HALF_K = 4, 2, MMA_K // 2


def lower_weight_mma(scope: Scope, op: WeightMmaOp) -> None:
    """Group by group; where the sums may have to begin anew, they are cleared first."""
    held = begin_sums(scope, op)
    weights, a = Weights.of(op, held), _rows_of_a(op, held)
    scales = None if op.scales is None else GroupScales.of(scope, op)
    sums, k, part = held.load(), op.depth, part_of(scope.kernel, op)
    zero = llvm.zero(held.struct)
    for number, first in enumerate(range(0, k, part)):
        products = sums if scales is None else [[zero for _ in row] for row in sums]
        zeros = None if scales is None else scales.zeros(number)
        for at in range(first, first + part, MMA_K):
            _multiply(weights.wide, products, a.words(at, MMA_K), weights.words(at, zeros))
        if scales is not None:
            factors = scales.factors(number)
            pairs = list(zip(factors[::PAIR], factors[1::PAIR], strict=True))
            _add(sums, products, pairs, held.struct)
    held.store(sums)


def _rows_of_a(op: WeightMmaOp, held: WarpSums) -> Operand:
    warp, tile = Team.of(op).thread // WARP_THREADS, held.tile
    firsts = tuple(tile.m * number for number in range(tile.grid[0]))
    count = tile.m // ATOM_M
    return Operand(op.a.type.layout, place_of(op.a), held.first_row(warp), firsts, count, "a")


class Weights(NamedTuple):
    """The tile of weights of type `dtype`, of which a warp reads the lines that it has."""

    tile: Operand
    dtype: str
    wide: str

    @staticmethod
    def of(op: WeightMmaOp, held: WarpSums) -> Weights:
        warp, columns = Team.of(op).thread // WARP_THREADS, held.tile
        firsts = tuple(columns.n * number for number in range(columns.grid[1]))
        first, count = held.first_column(warp), columns.n // ATOM_N
        tile = Operand(op.b.type.layout, place_of(op.b), first, firsts, count, "b")
        wide = operand_dtype(str(op.a.type.element))
        assert wide is not None  # check_weights has asked
        return Weights(tile, op.b_type.value, wide.name)

    def words(self, k: int, zeros: list[ir.Value] | None) -> list[ir.Value]:
        """For each MMA along the columns its operand from `k` on: a vector of two registers."""
        return [
            self._of_columns(atom, k, None if zeros is None else zeros[atom])
            for atom in range(self.tile.fragments)
        ]

    def _of_columns(self, atom: int, k: int, zeros: ir.Value | None) -> ir.Value:
        words = [self.widened(self.pair(ATOM_N * atom, k + half), zeros) for half in (0, HALF_K)]
        return vector.FromElementsOp(ir.VectorType.get([2], build.i32()), words).result

    def pair(self, line: int, k: int) -> ir.Value:
        """The bytes of K `k` + 2q and the next, of lane q of four and of its line after one."""
        size = pair_bytes(self.dtype)
        at = k * DTYPES[self.dtype].bits // 8
        pointer, offset = self.tile.address(PAIRS[size], (line, at))
        type_ = ir.IntegerType.get_signless(8 * size)
        return llvm.load(type_, build.offset_pointer(pointer, offset), alignment=size)

    def widened(self, raw: ir.Value, zeros: ir.Value | None) -> ir.Value:
        """The register of such a pair."""
        return widened_pair(raw, self.dtype, self.wide, zeros)


def _pairs(size: int) -> Pattern:
    """The column of a lane, and the byte of its pair along K (PTX ISA, B of mma.m16n8k16)."""

    def place(lane: Any) -> tuple[Any, Any]:
        return lane // QUAD, lane % QUAD * size

    return place


PAIRS = {size: _pairs(size) for size in (1, 2)}


def _multiply(wide: str, sums: list[list[Any]], a: list[Any], b: list[Any]) -> None:
    fields = {"a_type": wide, "b_type": wide, "d_type": "f32", "k": MMA_K}
    for i, row in enumerate(sums):
        for j in range(len(row)) if i % 2 == 0 else reversed(range(len(row))):
            row[j] = sm.MmaSyncOp.of(row[j], a[i], b[j], **fields, sum=row[j].type).sum


def _add(
    sums: list[list[Any]],
    products: list[list[Any]],
    factors: list[tuple[ir.Value, ir.Value]],
    struct: ir.Type,
) -> None:
    """`sums += products * factor of the column`: a thread has a pair of columns of two rows."""
    for row, made in zip(sums, products, strict=True):
        for j, pair in enumerate(factors):
            terms = zip(parts(made[j]), pair * 2, parts(row[j]), strict=True)
            row[j] = joined_parts(struct, [llvm.fma(*each) for each in terms])
