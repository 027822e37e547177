"""`tile.mma` as nine wgmma of the bf16 terms of f32 tiles, accumulated in f32 by threads.

    threads      terms of the step's B → shared memory, of A → registers     (`plain_terms`)
    all meet     and learn whether some element is not the sum of its terms
    threads      wait for the MMAs of the step before; sums += their product
    wgmma        third · third; third · second, second · third; …            left under way

Terms have the magnitude that they stand for, so that all nine products are summed in one chain. In
a step in which an element is not the sum of its terms, since it is no number or ends below what
bf16 holds, threads multiply (`plain_products`), and nobody adds what the MMAs make of it.

Terms of B have places for three steps: who writes those of a step has met all after their wait for
the MMAs of three steps before. Those of A are copied once the MMAs are done that read the copy.
`tile.finish_sums` adds the last product. Where threads copied the tiles to a place of their own, or
nothing finishes, a step waits for its product.
"""

from __future__ import annotations

from typing import NamedTuple

from ....dialects import llvm, sm
from ....dialects.mlir import arith, ir
from ....dialects.terms import PLAIN, PLAIN_PRODUCTS, TERM_DTYPE
from ....dialects.tile import AccumulatorOp, MmaOp
from ....dialects.tile.duals import DualMmaOp
from ....dialects.tile.scales import smem_operands
from ....dialects.tile.sums import FinishSumsOp
from ... import build
from ...clone import constant_of
from ...places import ATOM_M, held_row
from ...team import Team, team_op
from ..barriers.operand_tiles import descriptor_type
from ..operands.descriptors import encode_bytes
from ..operands.mma_operands import advance, descriptor_at
from ..registers.carried_products import is_carried, mma_of
from ..registers.register_accumulator import (
    joined_parts,
    joined_registers,
    parts,
    pinned,
    split_registers,
    stack_slots,
    struct_of_type,
)
from ..scope.scope import Scope, lowered_as, lowered_parts, place_of
from .plain_products import Tile, add_plainly
from .plain_terms import MMA_K, PAIR, QUAD, Lost, TermTile, fragment_terms, term_tiles

FragmentTerms = list[list[ir.Value]]
"""Of 64 rows of A by the MMAs along K, then by terms: registers of an MMA."""


class Held(NamedTuple):
    """Slots of what a thread holds: the sums of each 64 rows, the product under way, whether it is
    to be added, and the number of steps."""

    sums: list[ir.Value]
    product: ir.Value
    counts: ir.Value
    steps: ir.Value

    @staticmethod
    def of(acc: ir.Value) -> Held:
        *sums, product, counts, steps = lowered_parts(acc)
        return Held(sums, product, counts, steps)


def hold_split_sums(scope: Scope, op: AccumulatorOp) -> ir.Value:
    """Slots at the start of the kernel; no step was made."""
    with ir.InsertionPoint.after(team_op(scope.kernel)):
        slots = stack_slots(op.acc.type, scope.warpgroups(op.acc.type))
        types = struct_of_type(op.acc.type), build.i1(), build.i32()
        slots += [llvm.alloca(build.pointer(), build.constant(1), each) for each in types]
        llvm.store(build.constant(0), slots[-1])
    return lowered_as(slots, op.acc.type)


def lower_split_wgmma(scope: Scope, op: MmaOp) -> None:
    """Split the tiles of this step, add the product of the step before, and begin this one's."""
    held, team = Held.of(op.acc), Team.of(op)
    number: ir.Value = llvm.load(build.i32(), held.steps)
    which, lost = number % PLAIN.slots, Lost.nothing()
    (a, *bs), tiles, rows = smem_operands(op), term_tiles(scope), _rows_of_a(scope, op)
    for tile, terms in zip(bs, tiles, strict=True):
        terms.write(tile.type.layout, place_of(tile), which, team, lost)
    build.fence("async_shared")
    terms_of_a = [fragment_terms(a.type.layout, place_of(a), row, team.lane, lost) for row in rows]
    fails = team.any(lost.any())
    llvm.store(number + 1, held.steps)
    _add_before(op, held)
    with build.when(fails):
        _multiply_plainly(op, held, rows)
        team.meet()  # before anybody writes to the tiles
    counts = fails ^ build.true()
    bs = [_descriptor(scope, each, which) for each in tiles]
    for slot, terms in zip(held.sums, map(_kept, terms_of_a), strict=True):
        product = _begin(terms, tiles, bs, struct_of_type(op.acc.type))
        if slot != held.sums[-1] or not is_carried(op):
            sm.WgmmaWaitOp.of(pending=0)
            _add(slot, pinned(product), counts)
            continue
        llvm.store(product, held.product)
        llvm.store(counts, held.counts)


def finish_split_sums(_: Scope, op: FinishSumsOp) -> None:
    """Add the product of the last step."""
    mma = mma_of(op.acc)
    if is_carried(mma):
        _add_under_way(mma, Held.of(op.acc), None)


def _kept(terms: FragmentTerms) -> FragmentTerms:
    """The same in registers that MMAs may read until they are waited for."""
    return [[sm.KeepOp.of(each, after=each.type).after for each in block] for block in terms]


def _add_before(op: MmaOp, held: Held) -> None:
    """The product of the step before, if there is one; else the sums begin at zero."""
    adds = constant_of(op.accumulate)
    if adds != 1:
        struct = struct_of_type(op.acc.type)
        with build.when(None if adds == 0 else op.accumulate ^ build.true()):
            for slot in held.sums:
                llvm.store(llvm.zero(struct), slot)
    if adds != 0 and is_carried(op):
        _add_under_way(op, held, None if adds else op.accumulate)


def _add_under_way(op: MmaOp, held: Held, condition: ir.Value | None) -> None:
    """Wait for the product of the last 64 rows; add it where it counts and the condition holds."""
    sm.WgmmaWaitOp.of(pending=0)
    product = pinned(llvm.load(struct_of_type(op.acc.type), held.product))
    counts = llvm.load(build.i1(), held.counts)
    _add(held.sums[-1], product, build.both(counts, condition))


def _add(slot: ir.Value, product: ir.Value, counts: ir.Value | None) -> None:
    with build.when(counts):
        pairs = zip(parts(llvm.load(product.type, slot)), parts(product), strict=True)
        made: list[ir.Value] = [arith.addf(before, value) for before, value in pairs]
        llvm.store(joined_parts(product.type, made), slot)


def _begin(
    terms: FragmentTerms, tiles: list[TermTile], bs: list[ir.Value], struct: ir.Type
) -> ir.Value:
    """One group of MMAs of 64 rows: all nine products, the least first, from zero on."""
    sm.WgmmaFenceOp.of()
    sums = split_registers(llvm.undef(struct), len(tiles))
    fields = {"m": ATOM_M, "k": MMA_K, "d_type": "f32", "b_major": "k"}
    fields |= {"a_type": TERM_DTYPE.name, "b_type": TERM_DTYPE.name}
    for number, (tile, b) in enumerate(zip(tiles, bs, strict=True)):
        adds = build.constant(0, build.i1())
        for of_a, of_b in PLAIN_PRODUCTS:
            for block, a in enumerate(terms):
                where = {"n": tile.layout.mn, "b_offset": tile.behind(of_b, block * MMA_K)}
                where |= {"sum": sums[number].type}
                operands = (sums[number], a[of_a], b, adds)
                sums[number] = sm.WgmmaOfRegistersOp.of(*operands, **fields, **where).sum
                adds = build.true()
    sm.WgmmaCommitOp.of()
    return joined_registers(sums, struct)


def _multiply_plainly(op: MmaOp, held: Held, rows: list[ir.Value]) -> None:
    a, *bs = smem_operands(op)
    column, struct = Team.of(op).lane % QUAD * PAIR, struct_of_type(op.acc.type)
    of_bs = [Tile(each.type.layout, place_of(each), column) for each in bs]
    for row, slot in zip(rows, held.sums, strict=True):
        add_plainly(Tile(a.type.layout, place_of(a), row), of_bs, slot, struct)


def _rows_of_a(scope: Scope, op: MmaOp) -> list[ir.Value]:
    """This thread's first row of each 64 of its warpgroup."""
    m, team = op.a.type.layout.mn, Team.of(op)
    rows = m // scope.warpgroups(op.acc.type)
    first = held_row(team.thread, m, rows) + team.lane // QUAD
    return [first + atom for atom in range(0, rows, ATOM_M)]


def _descriptor(scope: Scope, terms: TermTile, which: ir.Value) -> ir.Value:
    """The descriptor of the first term in a slot."""
    first = descriptor_at(descriptor_type(scope.target, terms.tile), terms.offsets[0])
    return advance(first, which * encode_bytes(terms.layout.slot_bytes))


LOWERINGS = {
    AccumulatorOp: hold_split_sums,
    MmaOp: lower_split_wgmma,
    DualMmaOp: lower_split_wgmma,
    FinishSumsOp: finish_split_sums,
}
