"""`tile.mma` as mma.sync: each warp multiplies its part of the tile, from fragments in registers.

    sm.ldmatrix   the rows of A and the columns of B of this warp, 32 bytes of K
    sm.mma_sync   every 16x8 of them

Fragments of the next K are loaded before the MMAs of this one are issued.
"""

from __future__ import annotations

from typing import Any

from ...dialects import sm
from ...dialects.mlir import ir, llvm
from ...dialects.target import WARP_THREADS
from ...dialects.tile import AccumulatorOp, MmaOp
from ...dialects.tile_stores import AwaitSumsOp
from ...dialects.tile_sums import ClearSumsOp
from ...dialects.tile_threads import ReadRowsOp, ThreadColumnOp, ThreadRowOp
from .. import build
from ..clone import constant_of
from ..places import column_in, row_in
from .fragment_loads import Operand
from .mma import mma_dtypes
from .scope import Scope, lowered_as, lowered_parts, place_of
from .warp_accumulator import ATOM_M, ATOM_N, FRAGMENT, WarpSums, new_slots


def hold_fragments(scope: Scope, op: AccumulatorOp) -> ir.Value:
    """Stack slots at the start of the kernel."""
    with ir.InsertionPoint.at_block_begin(scope.kernel.body.blocks[0]):
        slots = new_slots(scope, op.acc.type)
    return lowered_as(slots, op.acc.type)


def clear_fragments(scope: Scope, op: ClearSumsOp | MmaOp) -> None:
    """Zeros in every register."""
    held = WarpSums.of(scope, op.acc)
    zero = llvm.ZeroOp(held.struct).result
    held.store([[zero for _ in row] for row in held.slots])


def lower_mma_sync(scope: Scope, op: MmaOp) -> None:
    """K by K; where the sums may have to begin anew, they are cleared first."""
    held = begin_sums(scope, op)
    a, b = operands_of(scope, op, held)
    sums, steps = held.load(), list(_steps(op))
    ready = [operand.words(*steps[0]) for operand in (a, b)]
    for number, (_, k_atom) in enumerate(steps):
        now = ready
        if number + 1 < len(steps):
            ready = [operand.words(*steps[number + 1]) for operand in (a, b)]
        _multiply(op, sums, now[0], now[1], k_atom)
    held.store(sums)


def begin_sums(scope: Scope, op: MmaOp) -> WarpSums:
    """The sums, cleared where they may have to begin anew."""
    if constant_of(op.accumulate) is None:
        with build.when(op.accumulate ^ build.true()):
            clear_fragments(scope, op)
    return WarpSums.of(scope, op.acc)


def _steps(op: MmaOp) -> Any:
    """(k, K of the MMA) over the tile: 32 bytes each, and 16 where no more are left."""
    whole, k = mma_dtypes(op)[0].k_per_mma, 0
    while k < op.a.type.layout.k:
        k_atom = whole if k + whole <= op.a.type.layout.k else whole // 2
        yield k, k_atom
        k += k_atom


def _multiply(op: MmaOp, sums: list[list[Any]], a: list[Any], b: list[Any], k: int) -> None:
    types = mma_dtypes(op)
    fields = {"a_type": types[0].name, "b_type": types[1].name, "d_type": types[0].accumulator}
    for i, row in enumerate(sums):
        for j in range(len(row)) if i % 2 == 0 else reversed(range(len(row))):
            made = sm.MmaSyncOp.of(row[j], a[i], b[j], k=k, **fields, sum=row[j].type)
            row[j] = made.sum


def operands_of(scope: Scope, op: MmaOp, held: WarpSums) -> tuple[Operand, Operand]:
    """A by the warp's rows, B by its columns."""
    warp, tile = scope.team.thread // WARP_THREADS, held.tile
    along_m = tuple(tile.m * number for number in range(tile.grid[0]))
    along_n = tuple(tile.n * number for number in range(tile.grid[1]))
    a = (held.first_row(warp), along_m, tile.m // ATOM_M, "a")
    b = (held.first_column(warp), along_n, tile.n // ATOM_N, "b")
    return (
        Operand(op.a.type.layout, place_of(op.a), *a),
        Operand(op.b.type.layout, place_of(op.b), *b),
    )


def lower_settled(scope: Scope, op: AwaitSumsOp) -> ir.Value:
    """They are complete when issued."""
    return lowered_as(lowered_parts(op.acc), op.sums.type)


def lower_warp_row(scope: Scope, op: ThreadRowOp) -> ir.Value:
    """By warp and lane, as the fragment of D spreads rows."""
    warp = scope.team.thread // WARP_THREADS
    return WarpSums.of(scope, op.sums).first_row(warp) + row_in(FRAGMENT, lane=scope.lane)


def lower_warp_column(scope: Scope, op: ThreadColumnOp) -> ir.Value:
    """By warp and lane: four lanes share 8 columns."""
    warp = scope.team.thread // WARP_THREADS
    return WarpSums.of(scope, op.sums).first_column(warp) + column_in(FRAGMENT, lane=scope.lane)


def lower_read_atoms(scope: Scope, op: ReadRowsOp) -> list[ir.Value]:
    """The registers of the MMAs of 16 rows of the warp's."""
    rows = WarpSums.of(scope, op.sums).rows(op.row.value // ATOM_M)
    return [lowered_as(own, op.upper.type) for own in rows]
