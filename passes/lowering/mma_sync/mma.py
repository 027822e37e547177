"""`tile.mma` as mma.sync: each warp multiplies its part of the tile, from fragments in registers.

    sm.ldmatrix   the rows of A and the columns of B of this warp, 32 bytes of K
    sm.mma_sync   every 16x8 of them

f32 that is to count with all its bits, or nearly all, is split in registers (`split_words`): three
MMAs or nine multiply the parts.

Fragments of the next K are loaded before the MMAs of this one are issued. Where `tile.finish_sums`
comes after a loop, the last fragments of a step are held back: their MMAs come after the first
loads of the next step, which follow the meeting that it begins with.
"""

from __future__ import annotations

from typing import Any

from ....dialects import llvm, sm
from ....dialects.mlir import ir
from ....dialects.target import WARP_THREADS
from ....dialects.tile import AccumulatorOp, MmaOp
from ....dialects.tile.duals import DualMmaOp
from ....dialects.tile.stores import AwaitSumsOp
from ....dialects.tile.sums import ClearSumsOp, FinishSumsOp
from ....dialects.tile.threads import ReadRowsOp, ThreadColumnOp, ThreadRowOp
from ....dialects.tile_types import SmemType, bits_of, is_padded
from ... import build
from ...clone import constant_of
from ...places import column_in, row_in
from ...team import Team, team_op
from ..operands.fragment_loads import Operand
from ..operands.mma_operands import mma_dtypes
from ..registers.split_words import multiply_split, split_of
from ..registers.warp_accumulator import ATOM_M, ATOM_N, FRAGMENT, WarpSums, new_slots
from ..scales.group_scales import hold_scales
from ..scope.scope import Scope, lowered_as, lowered_parts, place_of
from .held_back import HeldBack, Words, new_held_back, steps_of


def hold_fragments(scope: Scope, op: AccumulatorOp) -> ir.Value:
    """Stack slots at the start of the kernel."""
    with ir.InsertionPoint.after(team_op(scope.kernel)):
        slots = new_slots(scope, op.acc.type) + new_held_back(scope, op)
        slots += hold_scales(scope, op)
    return lowered_as(slots, op.acc.type)


def clear_fragments(scope: Scope, op: ClearSumsOp | MmaOp) -> None:
    """Zeros in every register."""
    held = WarpSums.of(scope, op.acc)
    zero = llvm.zero(held.struct)
    held.store([[zero for _ in row] for row in held.slots])
    back = HeldBack.of(scope, held, op.acc)
    if back is not None:
        back.clear()


def lower_mma_sync(scope: Scope, op: MmaOp) -> None:
    """K by K; where the sums may have to begin anew, they are cleared first."""
    held = begin_sums(scope, op)
    a, b = operands_of(scope, op, held)
    back, sums = HeldBack.of(scope, held, op.acc), held.load()
    before = None if back is None else (back.load(), back.k_atom)
    for k, k_atom in steps_of(op, scope.target):
        words = [[word for each in operand for word in each.words(k, k_atom)] for operand in (a, b)]
        if before is not None:
            _multiply(scope, op, sums, *before)
        before = words, k_atom
    assert before is not None  # a tile has a step
    if back is None:
        _multiply(scope, op, sums, *before)
    else:
        back.store(before[0])
    held.store(sums)


def begin_sums(scope: Scope, op: MmaOp) -> WarpSums:
    """The sums, cleared where they may have to begin anew."""
    if constant_of(op.accumulate) is None:
        with build.when(op.accumulate ^ build.true()):
            clear_fragments(scope, op)
    return WarpSums.of(scope, op.acc)


def finish_fragments(scope: Scope, op: FinishSumsOp) -> None:
    """The MMAs of what is held back."""
    held = WarpSums.of(scope, op.acc)
    back, sums = HeldBack.of(scope, held, op.acc), held.load()
    assert back is not None  # this op is why it is
    _multiply(scope, back.mma, sums, back.load(), back.k_atom)
    held.store(sums)


def _multiply(scope: Scope, op: MmaOp, sums: list[list[Any]], words: Words, k: int) -> None:
    (a, b), types = words, mma_dtypes(op)
    split = split_of(scope.target.mma.name)
    names = (split.dtype, split.dtype) if split else tuple(each.name for each in types)
    fields = {"a_type": names[0], "b_type": names[1], "d_type": types[0].accumulator}

    def mma(begin: ir.Value, of_a: ir.Value, of_b: ir.Value) -> ir.Value:
        return sm.MmaSyncOp.of(begin, of_a, of_b, k=k, **fields, sum=begin.type).sum

    if split is not None:
        multiply_split(split, mma, sums, words, k)
        return
    for i, row in enumerate(sums):
        for j in range(len(row)) if i % 2 == 0 else reversed(range(len(row))):
            row[j] = mma(row[j], a[i], b[j])


def operands_of(
    scope: Scope, op: MmaOp, held: WarpSums
) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    """A by the warp's rows, B by its columns: as many of each product."""
    warp, tile = Team.of(op).thread // WARP_THREADS, held.tile
    along_m = tuple(tile.m * number for number in range(tile.grid[0]))
    bs = (op.b, op.b2) if isinstance(op, DualMmaOp) else (op.b,)
    columns = tile.n // len(bs)
    along_n = tuple(columns * number for number in range(tile.grid[1]))
    a = (held.first_row(warp), along_m, tile.m // ATOM_M, "a")
    b = (held.first_column(warp), along_n, columns // ATOM_N, "b")
    return (
        (Operand(op.a.type.layout, place_of(op.a), *a, _padded_bits(op.a)),),
        tuple(Operand(each.type.layout, place_of(each), *b, _padded_bits(each)) for each in bs),
    )


def _padded_bits(tile: ir.Value[SmemType]) -> int:
    """Bits of a tile's elements where they lie with gaps, else 0."""
    return bits_of(tile.type.element) if is_padded(tile.type.element) else 0


def lower_settled(scope: Scope, op: AwaitSumsOp) -> ir.Value:
    """They are complete when issued."""
    return lowered_as(lowered_parts(op.acc), op.sums.type)


def lower_warp_row(scope: Scope, op: ThreadRowOp) -> ir.Value:
    """By warp and lane, as the fragment of D spreads rows."""
    team = Team.of(op)
    first = WarpSums.of(scope, op.sums).first_row(team.thread // WARP_THREADS)
    return first + row_in(FRAGMENT, lane=team.lane)


def lower_warp_column(scope: Scope, op: ThreadColumnOp) -> ir.Value:
    """By warp and lane: four lanes share 8 columns."""
    team = Team.of(op)
    first = WarpSums.of(scope, op.sums).first_column(team.thread // WARP_THREADS)
    return first + column_in(FRAGMENT, lane=team.lane)


def lower_read_atoms(scope: Scope, op: ReadRowsOp) -> list[ir.Value]:
    """The registers of the MMAs of 16 rows of the warp's."""
    rows = WarpSums.of(scope, op.sums).rows(op.row.value // ATOM_M)
    return [lowered_as(own, op.upper.type) for own in rows]


LOWERINGS = {
    AccumulatorOp: hold_fragments,
    MmaOp: lower_mma_sync,
    DualMmaOp: lower_mma_sync,
    ClearSumsOp: clear_fragments,
    FinishSumsOp: finish_fragments,
    ThreadRowOp: lower_warp_row,
    ThreadColumnOp: lower_warp_column,
    ReadRowsOp: lower_read_atoms,
    AwaitSumsOp: lower_settled,
}
