"""`tile.mma` as tcgen05.mma of the terms of f32 tiles, accumulated in f32 by threads.

    threads      terms of the step's tiles → shared memory     (`split_tiles`)
    one lane     bf16x9: third · third; third · second with d / 2^8, second · third; …
                 3xtf32: low · high; high · low; high · high
    threads      sums += the product of the step before        (`added_tcgen05`)

So threads split a step and add the one before while the tensor core multiplies, and two steps have
terms. `scale-input-d` divides what the smaller terms of bf16 have summed, which is exact.
"""

from __future__ import annotations

from ....dialects import llvm, sm
from ....dialects.mlir import ir
from ....dialects.mma_units import PRODUCT_SLOTS
from ....dialects.terms import SHIFT, TERM_SLOTS
from ....dialects.tile import MmaOp
from ....dialects.tile.duals import DualMmaOp
from ... import build
from ..scope.scope import Scope, lowered
from .added import Held, add_products, begin_product, products_of
from .split_tiles import form_in, term_products, terms_in, write_terms

assert TERM_SLOTS == PRODUCT_SLOTS  # terms may be written when the product of theirs was read


def lower_split_mma(scope: Scope, op: MmaOp) -> None:
    """Split the tiles of this step, begin their product, and add that of the step before."""
    add_products(scope, op, _begin)


def _begin(scope: Scope, op: MmaOp, held: Held) -> ir.Value:
    number: ir.Value = llvm.load(build.i32(), held.begun)
    write_terms(scope, op, number % TERM_SLOTS)
    products = products_of(scope)

    def issue(which: ir.Value) -> None:
        base = lowered(products.memory) + which * products.each.value
        _multiply(scope, op, base + products.first.value, which)

    return begin_product(scope, op, held, issue)


def _multiply(scope: Scope, op: MmaOp, base: ir.Value, which: ir.Value) -> None:
    """The MMAs of a step's terms into the columns from `base` on, the least products first."""
    (m, n), (a, *bs), form = op.acc.type.shape, terms_in(scope), form_in(scope)
    fields = {"kind": form.dtype.operand_kind, "cta_group": scope.cta_group, "m": m}
    fields |= {"n": n // len(bs), "k": form.dtype.k_per_mma, "d_type": "f32"}
    for side in "ab":
        fields |= {f"{side}_type": form.dtype.name, f"{side}_major": "k"}
    of_a = a.descriptor(scope, which)
    for number, b in enumerate(bs):
        sums, of_b = base + number * (n // len(bs)), b.descriptor(scope, which)
        for each in term_products(form, a, b):
            offsets = {"a_offset": each.a_offset, "b_offset": each.b_offset}
            adds = build.constant(int(each.power > 0 or not each.begins), build.i1())
            if each.power and each.begins:
                sm.ScalingMmaOp.of(sums, of_a, of_b, adds, **fields, **offsets, shift=SHIFT)
            else:
                sm.MmaOp.of(sums, of_a, of_b, adds, **fields, **offsets)


LOWERINGS = {MmaOp: lower_split_mma, DualMmaOp: lower_split_mma}
