"""Which group a tile is of, from the offsets in global memory, and where its rows are.

    begin, before = 0, 0
    for each group:
      end = offset, no less than begin and no more than all rows
      here = (end - begin + unit - 1) / unit * together
      before <= place < before + here   →   it is this one
      begin, before = end, before + here

Several groups are looked at in a pass of the loop, so that the loads of their offsets overlap.
"""

from __future__ import annotations

from collections.abc import Callable

from ...dialects.mlir import arith, ir, llvm, scf
from ...dialects.tile_groups import GroupOp, GroupRowsOp, GroupTilesOp
from .. import build
from .scope import Scope, lowered_as, lowered_parts

ROWS_ATTRIBUTE = "rows_of_group"
AT_ONCE = 8  # groups
Values = list[ir.Value]
Step = Callable[[ir.Value, Values, ir.Value], Values]


def lower_group(_: Scope, op: GroupOp) -> Values:
    """A walk over the groups; of a place behind the last one, no rows."""
    place = build.as_i32(op.i)

    def step(group: ir.Value, values: Values, end: ir.Value) -> Values:
        begin, before, *found = values
        here, within = _places(op, end - begin), place - before
        is_here = arith.cmpi(arith.CmpIPredicate.ult, within, here)
        new = (group, within, begin, end - begin)
        kept = [arith.select(is_here, *pair) for pair in zip(new, found, strict=True)]
        return [end, before + here, *kept]

    return [build.as_index(value) for value in _walk(op, 6, step)[2:]]


def lower_group_tiles(_: Scope, op: GroupTilesOp) -> ir.Value:
    """The sum over the groups."""

    def step(_: ir.Value, values: Values, end: ir.Value) -> Values:
        begin, before = values
        return [end, before + _places(op, end - begin)]

    return _walk(op, 2, step)[1]


def _walk(op: GroupOp | GroupTilesOp, count: int, step: Step) -> Values:
    """So many values, 0 at first, after a step for each group; the first is where it ends."""
    groups, zero = op.offsets.type.shape[0], build.constant(0)
    every = min(AT_ONCE, groups)
    loop = scf.ForOp(zero, build.constant(groups), build.constant(every), iter_args=[zero] * count)
    with ir.InsertionPoint(loop.body):
        numbers = [loop.induction_variable + index for index in range(every)]
        if groups % every:  # the last one again has no rows
            numbers = [arith.minui(each, build.constant(groups - 1)) for each in numbers]
        offsets = [_offset(op, each) for each in numbers]
        values: Values = list[ir.Value](loop.inner_iter_args)
        for number, offset in zip(numbers, offsets, strict=True):
            end = arith.maxsi(offset, values[0])
            end = arith.minsi(end, build.constant(op.extent.value))
            values = step(number, values, end)
        scf.YieldOp(values)
    return list(loop.results)


def _offset(op: GroupOp | GroupTilesOp, group: ir.Value) -> ir.Value:
    pointer = lowered_parts(op.offsets)[0]
    place = build.element_pointer(pointer, build.i32(), build.widen(group))
    return llvm.load(build.i32(), place, alignment=4)


def _places(op: GroupOp | GroupTilesOp, rows: ir.Value) -> ir.Value:
    """How many places a group of so many rows has."""
    unit = op.tile.value * op.together.value
    return (rows + (unit - 1)) // unit * op.together.value


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
