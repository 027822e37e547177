"""`tile.mma` as wgmma: all warps of a warpgroup issue the atoms that cover its rows.

PTX ISA, wgmma: an atom has 64 rows; `wgmma.fence` comes before the first of a group, since the
registers of its accumulator may have changed; a group is what one `tile.mma` issues.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....dialects import llvm, sm
from ....dialects.layout import TileLayout
from ....dialects.mlir import ir
from ....dialects.pipe import SetRegistersOp
from ....dialects.target import WARPGROUP_THREADS
from ....dialects.tile import AccumulatorOp, MmaOp
from ....dialects.tile.level import NarrowMmaOp
from ... import build
from ...base import defining_op, walk
from ...clone import constant_of
from ...places import ATOM_M
from ...team import Team
from ..operands.descriptors import encode_bytes
from ..operands.mma_operands import advance, mma_fields, operand_descriptor, parts_of_b
from ..registers.register_accumulator import (
    joined_parts,
    parts,
    stack_slots,
    struct_of,
    struct_of_type,
)
from ..scales.group_scales import hold_scales
from ..scope.scope import Scope, lowered_as, lowered_parts


def lower_set_registers(scope: Scope, op: SetRegistersOp) -> None:
    """setmaxnreg, up or down from what the launch gives each thread."""
    given = scope.target.launch_registers(scope.kernel.threads.value)
    count = op.count.value
    sm.SetRegistersOp.of(count=count, action="increase" if count > given else "decrease")


def hold_registers(scope: Scope, op: AccumulatorOp) -> ir.Value:
    """Stack slots for the sums that threads hold; after them those for scales of weights."""
    slots = stack_slots(op.acc.type, scope.warpgroups(op.acc.type))
    if walk(scope.kernel, NarrowMmaOp):  # MMAs write some of them, and all are stored
        for slot in slots:
            llvm.store(llvm.zero(struct_of_type(op.acc.type)), slot)
    slots += hold_scales(scope, op)
    return lowered_as(slots, op.acc.type)


def lower_wgmma(scope: Scope, op: MmaOp) -> None:
    """Multiply into the sums."""
    multiply_sums(scope, op)


def multiply_sums(scope: Scope, op: MmaOp, depth: int | None = None) -> None:
    """Multiply into the sums, of K the first `depth` elements, by default all."""
    slots, struct = lowered_parts(op.acc), struct_of_type(op.acc.type)
    atoms = [llvm.load(struct, slot) for slot in slots]
    made = multiply(scope, op, atoms, op.accumulate, depth=depth)
    for registers, slot in zip(made, slots, strict=True):
        llvm.store(registers, slot)


def multiply_columns(scope: Scope, op: MmaOp, columns: int) -> None:
    """Multiply into the first `columns` of the sums, by that many rows of B."""
    slots, whole = lowered_parts(op.acc), struct_of_type(op.acc.type)
    held = [parts(_before(op, whole, slot)) for slot in slots]
    count = columns // 2
    narrow = struct_of(held[0][0].type, count)
    if constant_of(op.accumulate) == 0:
        begin = [llvm.zero(narrow) for _ in held]
    else:
        begin = [joined_parts(narrow, each[:count]) for each in held]
    made = multiply(scope, op, begin, op.accumulate, columns=columns)
    for old, new, slot in zip(held, made, slots, strict=True):
        llvm.store(joined_parts(whole, [*parts(new), *old[count:]]), slot)


def _before(op: MmaOp, whole: ir.Type, slot: ir.Value) -> ir.Value:
    """What the sums are before an MMA: zeros where it is the first of a tile."""
    if constant_of(op.accumulate) == 0:
        return llvm.zero(whole)
    return llvm.load(whole, slot)


def multiply(
    scope: Scope,
    op: MmaOp,
    begin: Sequence[ir.Value],
    accumulate: ir.Value,
    first: int = 0,
    separate_last: bool = False,
    depth: int | None = None,
    columns: int | None = None,
) -> list[ir.Value]:
    """One group: atoms of this warpgroup's rows, from the `first` on; the first K step honours
    `accumulate`. With `separate_last` the last of several K steps is a group of its own. Of K they
    are of the first `depth` elements, by default of all.

    Gives the registers of the atoms, which begin as `begin`.
    """
    a = op.a.type.layout
    fields = mma_fields(op, ATOM_M)
    a_first = operand_descriptor(scope, op, op.a)
    of_b = [(part, operand_descriptor(scope, op, part.tile)) for part in parts_of_b(op)]
    a_first = at_warpgroup(Team.of(op), a_first, a, scope.warpgroups(op.acc.type))
    sm.WgmmaFenceOp.of()
    atoms = list(begin)
    for k in range(0, depth or a.k, fields["k"]):
        accumulate = accumulate if k == 0 else build.true()
        if separate_last and k and k + fields["k"] == a.k:
            sm.WgmmaCommitOp.of()
        for atom, sums in enumerate(atoms):
            own, register = {"a_offset": a.offset((first + atom) * ATOM_M, k)}, 0
            for part, b_first in of_b:
                n, b = columns or part.n, part.layout
                own |= {"n": n, "b_offset": b.offset(0, k), "b_major": b.major, "first": register}
                operands = (sums, a_first, b_first, accumulate)
                sums = sm.WgmmaOp.of(*operands, **fields | own, sum=sums.type).sum
                register += n // 2
            atoms[atom] = sums
    sm.WgmmaCommitOp.of()
    return atoms


def at_warpgroup(team: Team, first: ir.Value, layout: TileLayout, warpgroups: int) -> ir.Value:
    """A's descriptor at the first row of this thread's warpgroup.

    A shuffle tells ptxas that the warpgroup's number is one for each warp: so the descriptor stays
    in uniform registers, where wgmma reads it.
    """
    if warpgroups == 1:
        return first
    start = defining_op(team.thread)
    with ir.InsertionPoint.after(start), start.location:
        number = team.thread // WARPGROUP_THREADS
        warpgroup = sm.ShuffleFromOp.of(number, build.constant(0)).result
    return advance(first, warpgroup * encode_bytes(layout.offset(layout.mn // warpgroups, 0)))
