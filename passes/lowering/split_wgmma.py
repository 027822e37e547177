"""`tile.mma` as nine wgmma of the bf16 terms of f32 tiles, whose sums threads add in f32.

    threads      terms of the step's tiles → shared memory     (`split_tiles`)
    wgmma        third · third; wait; times 2^-8; third · second, second · third; …
    threads      sums += the product                           (`added_wgmma`)

wgmma cannot divide what it adds to, so threads do, between the powers of 2^-8. Of several
warpgroups one multiplies meanwhile. All meet once in a step, when its terms are there: the terms of
two steps before have been read then, as each warpgroup has waited for its MMAs.
"""

from __future__ import annotations

from typing import Any

from ...dialects import sm
from ...dialects.mlir import arith, ir, llvm
from ...dialects.terms import SHIFT, TERM_DTYPE, TERM_SLOTS
from ...dialects.tile import AccumulatorOp, MmaOp
from ...dialects.tile_duals import DualMmaOp
from .. import build
from ..places import ATOM_M
from ..team import Team, team_op
from .added_wgmma import add_product
from .block_factors import atom_slots
from .register_accumulator import (
    joined_parts,
    joined_registers,
    parts,
    pinned,
    split_registers,
    stack_slots,
    struct_of_type,
)
from .scope import Scope, lowered_as, lowered_parts
from .split_tiles import TermProduct, Terms, term_products, terms_in, write_terms
from .wgmma import at_warpgroup


def hold_split_sums(scope: Scope, op: AccumulatorOp) -> ir.Value:
    """Slots for sums, and for the number of steps."""
    with ir.InsertionPoint.after(team_op(scope.kernel)):
        slots = stack_slots(op.acc.type, scope.warpgroups(op.acc.type))
        steps = llvm.alloca(build.pointer(), build.constant(1), build.i32())
        llvm.store(build.constant(0), steps)
    return lowered_as([*slots, steps], op.acc.type)


def lower_split_wgmma(scope: Scope, op: MmaOp) -> None:
    """Split the tiles of this step; then 64 rows after the other."""
    steps = lowered_parts(op.acc)[-1]
    number: ir.Value = llvm.load(build.i32(), steps)
    which = number % TERM_SLOTS
    write_terms(scope, op, which)
    Team.of(op).meet()
    llvm.store(number + 1, steps)
    multiply = _Multiply.of(scope, op, which)
    for atom, slot in enumerate(atom_slots(scope, op.acc)):
        add_product(op, atom, slot, multiply.product(atom), None)


class _Multiply:
    """The MMAs of a step's terms: of a descriptor of this warpgroup's rows of A, and of the B's."""

    def __init__(self, a: Terms, bs: list[Terms], words: tuple[Any, list[Any]], struct: ir.Type):
        self.a, self.bs, (self.of_a, self.of_bs), self.struct = a, bs, words, struct

    @staticmethod
    def of(scope: Scope, op: MmaOp, which: ir.Value) -> _Multiply:
        a, *bs = terms_in(scope)
        of_a, warpgroups = a.descriptor(scope, which), scope.warpgroups(op.acc.type)
        of_a = at_warpgroup(Team.of(op), of_a, a.tile.layout, warpgroups)
        words = of_a, [each.descriptor(scope, which) for each in bs]
        return _Multiply(a, bs, words, struct_of_type(op.acc.type))

    def product(self, atom: int) -> ir.Value:
        """The registers of 64 rows, power by power of 2^-8."""
        several = [list(term_products(self.a, b, atom * ATOM_M)) for b in self.bs]
        made: ir.Value = llvm.UndefOp(self.struct).result
        for power in sorted({each.power for each in several[0]}):
            if power:
                made = _smaller(made, self.struct)
            group = [[each for each in one if each.power == power] for one in several]
            made = pinned(self._started(made, group))
        return made

    def _started(self, made: ir.Value, group: list[list[TermProduct]]) -> ir.Value:
        """One group of MMAs, and the wait for them."""
        sm.WgmmaFenceOp.of()
        sums = split_registers(made, len(self.bs))
        for number, products in enumerate(group):
            for each in products:
                sums[number] = self._mma(sums[number], number, each)
        sm.WgmmaCommitOp.of()
        sm.WgmmaWaitOp.of(pending=0)
        return joined_registers(sums, self.struct)

    def _mma(self, sums: ir.Value, number: int, product: TermProduct) -> ir.Value:
        adds = build.constant(int(product.power > 0 or not product.begins), build.i1())
        fields = {"m": ATOM_M, "n": self.bs[number].tile.layout.mn, "k": TERM_DTYPE.k_per_mma}
        for side in "ab":
            fields |= {f"{side}_type": TERM_DTYPE.name, f"{side}_major": "k"}
        fields |= {"a_offset": product.a_offset, "b_offset": product.b_offset}
        operands = (sums, self.of_a, self.of_bs[number], adds)
        return sm.WgmmaOp.of(*operands, **fields, d_type="f32", sum=sums.type).sum


def _smaller(registers: ir.Value, struct: ir.Type) -> ir.Value:
    step = build.f32(2.0**-SHIFT)
    return joined_parts(struct, [arith.mulf(each, step) for each in parts(registers)])


LOWERINGS = {
    AccumulatorOp: hold_split_sums,
    MmaOp: lower_split_wgmma,
    DualMmaOp: lower_split_wgmma,
}
