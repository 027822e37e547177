"""`tile.mma` and `tile.blockwise_mma` as wgmma, accumulated in f32 by threads.

    wgmma (scale-d 0) …            64 rows of the product of two tiles, in registers of its own
    wgmma.wait_group 0
    sums = fma(product, scale of the row * scale of the column, sums)

The tensor core of sm_90a sums products of 8-bit floats with about 14 bits; so it sums those of one
tile's K alone. Threads read scales while their MMAs run (`block_factors`). Of two warpgroups one
multiplies while the other one adds, in turns where adding takes long (`multiplying_turns`).
"""

from __future__ import annotations

from ....dialects import llvm, sm
from ....dialects.mlir import arith, ir
from ....dialects.tile import AccumulatorOp, MmaOp
from ....dialects.tile.blockwise import BlockwiseMmaOp
from ....dialects.tile.duals import DualMmaOp
from ....dialects.tile.stores import AwaitSumsOp
from ... import build
from ...base import walk
from ...clone import constant_of
from ...places import behind
from ..registers.register_accumulator import joined_parts, parts, pinned, struct_of_type
from ..scales.block_factors import Factors, atom_slots, hold_sums_and_scales
from ..scales.group_scales import hold_scales
from ..scope.scope import Scope, lowered_as
from .mma import multiply
from .turns import Turns, open_turns


def hold_added_sums(scope: Scope, op: AccumulatorOp) -> ir.Value:
    """Slots for sums and scales; and the first turn of those who share a tile."""
    mmas = walk(scope.kernel, MmaOp | DualMmaOp | BlockwiseMmaOp)
    open_turns(scope, next(mma for mma in mmas if mma.acc == op.acc))
    slots = hold_sums_and_scales(scope, op) + hold_scales(scope, op)
    return lowered_as(slots, op.acc.type)


def lower_added_wgmma(scope: Scope, op: MmaOp) -> None:
    """The product by itself, then its sum with what was there."""
    _lower(scope, op, None)


def lower_blockwise_wgmma(scope: Scope, op: BlockwiseMmaOp) -> None:
    """The same, times the scales of each element's row and column."""
    _lower(scope, op, Factors.of(scope, op))


def await_added(scope: Scope, op: AwaitSumsOp) -> ir.Value:
    """The sums, which are complete."""
    struct = struct_of_type(op.acc.type)
    atoms = [llvm.load(struct, slot) for slot in atom_slots(scope, op.acc)]
    return lowered_as([part for atom in atoms for part in parts(atom)], op.sums.type)


def _lower(scope: Scope, op: MmaOp, factors: Factors | None) -> None:
    """64 rows after the other.

    Where several warpgroups share a tile they read the scales of columns before their MMAs, while
    others multiply: all of them together take longer to arrive than MMAs take while these read
    shared memory, and a turn is given on after the factors.
    """
    turns, early = Turns.of(scope, op), scope.warpgroups(op.acc.type) > 1
    slots = atom_slots(scope, op.acc)
    for atom, slot in enumerate(slots):
        if atom == 0 and early and factors is not None and factors.ahead:
            factors.read_columns()
        under_way = _started(scope, op, atom, turns)
        if atom == 0 or (factors is not None and factors.apart):
            _read_ahead(factors, early or atom > 0)
        if turns is not None:
            sm.WgmmaWaitOp.of(pending=1)
            turns.give()
        if atom == 0 and factors is not None:
            factors.ask_late(len(slots), op.acc.type.shape[1] // 2)
        sm.WgmmaWaitOp.of(pending=0)
        if factors is not None and not factors.ahead:
            factors.read_rows()
            factors.read_columns()
        add_product(op, atom, slot, pinned(under_way), factors)


def _read_ahead(factors: Factors | None, early: bool) -> None:
    """Scales in shared memory, while MMAs run, for all rows of a thread; of columns, if that was
    not `early`.

    ptxas would move that between the MMAs, which then start later, but not across a meeting of the
    warp.
    """
    if factors is None or not factors.has_vectors or not factors.ahead:
        return
    sm.ConvergeOp()
    factors.read_rows()
    if not early:
        factors.read_columns()


def _started(scope: Scope, op: MmaOp, atom: int, turns: Turns | None) -> ir.Value:
    """The registers of an atom of this warpgroup, which its MMAs will fill."""
    if turns is not None:
        turns.wait()
    empty, zero = llvm.undef(struct_of_type(op.acc.type)), build.constant(0, build.i1())
    (made,) = multiply(scope, op, [empty], zero, atom, separate_last=turns is not None)
    return made


def add_product(
    op: MmaOp, atom: int, slot: ir.Value, product: ir.Value, factors: Factors | None
) -> None:
    """`sums = (accumulate ? sums : 0) + product * factor`, register by register of an atom."""
    struct, adds = struct_of_type(op.acc.type), constant_of(op.accumulate)
    held = parts(llvm.load(struct, slot)) if adds != 0 else []
    made = []
    for number, value in enumerate(parts(product)):
        scaled, factor = _scaled(value, atom, number, factors)
        before = _before(op, held[number], adds) if held else None
        made.append(_sum(scaled, factor, before))
    llvm.store(joined_parts(struct, made), slot)


def _scaled(
    value: ir.Value, atom: int, number: int, factors: Factors | None
) -> tuple[ir.Value, ir.Value | None]:
    """A register of a product and what is left to multiply it by: its factor, or the scale of its
    column where the row's multiplies it first."""
    if factors is None:
        return value, None
    if not factors.apart:
        return value, factors.at(atom, *behind(number))
    of_row, of_column = factors.of_sides(atom, *behind(number))
    return arith.mulf(value, of_row), of_column


def _before(op: MmaOp, sums: ir.Value, adds: int | None) -> ir.Value:
    """The sums that are added to, 0 in the first step."""
    if adds is not None:
        return sums
    zero = arith.ConstantOp(sums.type, ir.FloatAttr.get(sums.type, 0.0)).result
    return arith.select(op.accumulate, sums, zero)


def _sum(value: ir.Value, factor: ir.Value | None, before: ir.Value | None) -> ir.Value:
    if before is None:
        return value if factor is None else arith.mulf(value, factor)
    return arith.addf(before, value) if factor is None else llvm.fma(value, factor, before)
