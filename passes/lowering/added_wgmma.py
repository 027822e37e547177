"""`tile.mma` as wgmma whose products threads add to sums in f32, and `tile.blockwise_mma`.

    wgmma (scale-d 0) …            the product of two tiles, in registers of its own
    wgmma.wait_group 0
    sums = fma(product, scale of the row * scale of the column, sums)

The tensor core of sm_90a sums products of 8-bit floats with about 14 bits; so it sums those of one
tile's K alone. Scales are asked for a step before (`block_factors`). Of two warpgroups one
multiplies while the other one adds.
"""

from __future__ import annotations

from ...dialects import sm
from ...dialects.mlir import arith, ir, llvm
from ...dialects.tile import MmaOp
from ...dialects.tile_blockwise import BlockwiseMmaOp
from ...dialects.tile_stores import AwaitSumsOp
from .. import build
from ..clone import constant_of
from ..places import behind
from .block_factors import Factors, atom_slots
from .register_accumulator import joined_parts, parts, pinned, struct_of_type
from .scope import Scope, lowered_as
from .wgmma import multiply


def lower_added_wgmma(scope: Scope, op: MmaOp) -> None:
    """The product by itself, then its sum with what was there."""
    _add(scope, op, _product(scope, op), None)


def lower_blockwise_wgmma(scope: Scope, op: BlockwiseMmaOp) -> None:
    """The same, times the scales of each element's row and column."""
    factors = Factors.of(scope, op)
    _add(scope, op, _product(scope, op), factors)


def await_added(scope: Scope, op: AwaitSumsOp) -> ir.Value:
    """The sums, which are complete."""
    struct = struct_of_type(op.acc.type)
    atoms = [llvm.load(struct, slot) for slot in atom_slots(scope, op.acc)]
    return lowered_as([part for atom in atoms for part in parts(atom)], op.sums.type)


def _product(scope: Scope, op: MmaOp) -> list[ir.Value]:
    """The registers of each atom of this warpgroup, once its MMAs are done."""
    struct = struct_of_type(op.acc.type)
    empty = [llvm.UndefOp(struct).result for _ in atom_slots(scope, op.acc)]
    made = multiply(scope, op, empty, build.constant(0, build.i1()))
    sm.WgmmaWaitOp.of(pending=0)
    return [pinned(each) for each in made]


def _add(scope: Scope, op: MmaOp, product: list[ir.Value], factors: Factors | None) -> None:
    """`sums = (accumulate ? sums : 0) + product * factor`, register by register."""
    struct, begins = struct_of_type(op.acc.type), constant_of(op.accumulate)
    for atom, (slot, registers) in enumerate(zip(atom_slots(scope, op.acc), product, strict=True)):
        held = parts(llvm.load(struct, slot)) if begins != 0 else []
        made = []
        for number, value in enumerate(parts(registers)):
            factor = None if factors is None else factors.at(atom, *behind(number))
            before = _before(op, held[number], begins) if held else None
            made.append(_sum(value, factor, before))
        llvm.store(joined_parts(struct, made), slot)


def _before(op: MmaOp, sums: ir.Value, begins: int | None) -> ir.Value:
    """The sums that are added to, 0 in the first step."""
    if begins is not None:
        return sums
    zero = arith.ConstantOp(sums.type, ir.FloatAttr.get(sums.type, 0.0)).result
    return arith.select(op.accumulate, sums, zero)


def _sum(value: ir.Value, factor: ir.Value | None, before: ir.Value | None) -> ir.Value:
    if before is None:
        return value if factor is None else arith.mulf(value, factor)
    return arith.addf(before, value) if factor is None else llvm.intr_fma(value, factor, before)
