"""Which group a tile is of, from the offsets in global memory, and where its rows are.

begin, before = 0, 0
for each group:
  end = offset, no less than begin and no more than all rows
  here = (end - begin + unit - 1) / unit * together
  before <= place < before + here   →   it is this one
  begin, before = end, before + here
"""

from __future__ import annotations

from ...dialects.mlir import arith, ir, llvm, scf
from ...dialects.tile_groups import GroupOp, GroupRowsOp
from .. import build
from .scope import Scope, lowered_as, lowered_parts

ROWS_ATTRIBUTE = "rows_of_group"


def lower_group(_: Scope, op: GroupOp) -> list[ir.Value]:
    """A walk over the groups; of a place behind the last one, no rows."""
    groups, unit = op.offsets.type.shape[0], op.tile.value * op.together.value
    place, zero = build.as_i32(op.i), build.constant(0)
    loop = scf.ForOp(zero, build.constant(groups), build.constant(1), iter_args=[zero] * 6)
    with ir.InsertionPoint(loop.body):
        begin, before, *found = loop.inner_iter_args
        end = _end(op, loop.induction_variable, begin)
        here = (end - begin + (unit - 1)) // unit * op.together.value
        within = place - before
        is_here = arith.cmpi(arith.CmpIPredicate.ult, within, here)
        new = (loop.induction_variable, within, begin, end - begin)
        kept = [arith.select(is_here, *pair) for pair in zip(new, found, strict=True)]
        scf.YieldOp([end, before + here, *kept])
    return [build.as_index(value) for value in list(loop.results)[2:]]


def _end(op: GroupOp, group: ir.Value, begin: ir.Value) -> ir.Value:
    """Where a group ends: in order, and within the rows."""
    offsets = lowered_parts(op.offsets)[0]
    pointer = build.element_pointer(offsets, build.i32(), build.widen(group))
    offset = llvm.load(build.i32(), pointer, alignment=4)
    return arith.minsi(arith.maxsi(offset, begin), build.constant(op.extent.value))


def lower_group_rows(_: Scope, op: GroupRowsOp) -> ir.Value:
    """What the whole stands for, with the first row and the number of rows."""
    parts = [*lowered_parts(op.whole), build.as_i32(op.first), build.as_i32(op.count)]
    made = lowered_as(parts, op.part.type)
    ir.OpResult(made).owner.attributes[ROWS_ATTRIBUTE] = ir.UnitAttr.get()
    return made


def is_of_group(value: ir.Value) -> bool:
    """Whether what was lowered is the rows of a group."""
    return ROWS_ATTRIBUTE in ir.OpResult(value).owner.attributes


def row_of_whole(value: ir.Value, row: ir.Value) -> ir.Value:
    """A row counted from the first of the view, where the view is the rows of a group."""
    return row + lowered_parts(value)[-2] if is_of_group(value) else row


def rows_in(scope: Scope, value: ir.Value, rows: int) -> ir.Value | int:
    """How many rows a view has: those of a group, or `rows`, a number or one that a launch says."""
    return lowered_parts(value)[-1] if is_of_group(value) else scope.extent(rows)
