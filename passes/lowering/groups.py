"""Which group a tile is of, from the offsets in global memory, and where its rows are.

    begin, before = 0, 0
    for each group, until the place is in one:
      end = offset, no less than begin and no more than all rows
      here = (end - begin + unit - 1) / unit * together
      before <= place < before + here   →   it is this one
      begin, before = end, before + here

Several groups are looked at in a pass of the loop, so that the loads of their offsets overlap.
`tile.group_onward` begins at the group, with the begin and before, that it kept the last time.
"""

from __future__ import annotations

from typing import Any

from ...dialects.layout import SCALE_ATOM_ROWS
from ...dialects.mlir import arith, ir, llvm, scf
from ...dialects.tile_grouped_products import (
    BY_ATOMS,
    BY_COLUMNS,
    BY_ROWS,
    GroupAtomsOp,
    GroupScalesOp,
)
from ...dialects.tile_groups import (
    GatheredRowsOp,
    GroupColumnsOp,
    GroupDepthOp,
    GroupOnwardOp,
    GroupOp,
    GroupRowsOp,
    GroupStepsOp,
    GroupTilesOp,
)
from ...dialects.tile_types import TensorMapType
from .. import build
from ..groups import SCALES_ATTRIBUTE, form_of_scales
from .scope import Scope, lowered, lowered_as, lowered_parts

ROWS_ATTRIBUTE, DEPTH_ATTRIBUTE = "rows_of_group", "depth_of_group"
GATHERED_ATTRIBUTE = "gathered"
AT_ONCE, COUNTED_AT_ONCE = 8, 32  # groups; all are counted, but once for a kernel
AT, FOUND = 3, 4  # values: where a walk is, and what it finds
Values = list[ir.Value]


def lower_group(_: Scope, op: GroupOp) -> Values:
    """A walk over the groups; of a place behind the last one, no rows."""
    place, zero = build.as_i32(op.i), build.constant(0)
    onward = op if isinstance(op, GroupOnwardOp) else None
    start = [zero] * AT if onward is None else _kept(onward, place)
    values = [*start, *[zero] * FOUND, *(start if onward else [])]
    loop = scf.WhileOp([build.i32()] * len(values), values)
    types = [value.type for value in values]
    test, body = (region.blocks.append(*types) for region in loop.regions)
    with ir.InsertionPoint(test):
        group, count = test.arguments[0], test.arguments[AT + FOUND - 1]
        more = build.less(group, op.offsets.type.shape[0])
        goes_on = arith.andi(more, build.equal(count, 0))
        scf.ConditionOp(goes_on, list(test.arguments))
    with ir.InsertionPoint(body):
        scf.YieldOp(_look(op, place, list(body.arguments)))
    if onward is not None:
        for tally, value in zip(_tallies(onward), loop.results[AT + FOUND :], strict=True):
            llvm.store(value, lowered(tally))
    return [build.as_index(value) for value in loop.results[AT : AT + FOUND]]


def _look(op: GroupOp, place: ir.Value, values: Values) -> Values:
    """One pass: several groups from (group, begin, before) on, whether the place is in one, and
    what to keep for later places."""
    (group, begin, before), found, kept = values[:AT], values[AT : AT + FOUND], values[AT + FOUND :]
    if isinstance(op, GroupOnwardOp):
        early = arith.cmpi(arith.CmpIPredicate.sle, before + op.back.value, place)
        kept = [arith.select(early, *pair) for pair in zip(values[:AT], kept, strict=True)]
    numbers = _numbers(op, group, min(AT_ONCE, op.offsets.type.shape[0]))
    for number, offset in zip(numbers, [_offset(op, each) for each in numbers], strict=True):
        end = _clamped(op, offset, begin)
        here, within = _places(op, end - begin), place - before
        is_here = arith.cmpi(arith.CmpIPredicate.ult, within, here)
        new = (number, within, begin, end - begin)
        found = [arith.select(is_here, *pair) for pair in zip(new, found, strict=True)]
        begin, before = end, before + here
    return [group + len(numbers), begin, before, *found, *kept]


def _kept(op: GroupOnwardOp, place: ir.Value) -> Values:
    """Where the walk goes on, or zeros where that is behind the place."""
    kept = [llvm.load(build.i32(), lowered(tally)) for tally in _tallies(op)]
    on = arith.cmpi(arith.CmpIPredicate.sle, kept[-1], place)
    return [arith.select(on, value, build.constant(0)) for value in kept]


def _tallies(op: GroupOnwardOp) -> Values:
    """A group, its first row, and the places before it."""
    return [op.at_group, op.at_row, op.at_place]


def lower_group_tiles(_: Scope, op: GroupTilesOp) -> ir.Value:
    """The sum over the groups."""
    groups, zero = op.offsets.type.shape[0], build.constant(0)
    every = min(COUNTED_AT_ONCE, groups)
    loop = scf.ForOp(zero, build.constant(groups), build.constant(every), iter_args=[zero] * 2)
    with ir.InsertionPoint(loop.body):
        begin, count = loop.inner_iter_args
        numbers = _numbers(op, loop.induction_variable, every)
        for offset in [_offset(op, each) for each in numbers]:
            end = _clamped(op, offset, begin)
            begin, count = end, count + _places(op, end - begin)
        scf.YieldOp([begin, count])
    return loop.results[1]


def _numbers(op: GroupOp | GroupTilesOp, first: ir.Value, count: int) -> Values:
    """The groups of a pass; the last one again has no rows."""
    last = op.offsets.type.shape[0] - 1
    return [arith.minui(first + index, build.constant(last)) for index in range(count)]


def _clamped(
    op: GroupOp | GroupTilesOp | GroupAtomsOp, offset: ir.Value, begin: ir.Value
) -> ir.Value:
    """Where a group ends that begins there."""
    return arith.minsi(arith.maxsi(offset, begin), build.constant(op.extent.value))


def _offset(op: GroupOp | GroupTilesOp | GroupDepthOp | GroupAtomsOp, group: ir.Value) -> ir.Value:
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


def lower_gathered_rows(_: Scope, op: GatheredRowsOp) -> ir.Value:
    """What the whole stands for, where the numbers are, how many rows and numbers there are at
    most, and the first one and the number of numbers."""
    type_: Any = op.whole.type
    rows = type_.dims[1] if isinstance(type_, TensorMapType) else type_.shape[0]
    limits = [build.constant(rows), build.constant(op.rows.type.shape[0])]
    group = [build.as_i32(op.first), build.as_i32(op.count)]
    parts = [*lowered_parts(op.whole), lowered_parts(op.rows)[0], *limits, *group]
    made = lowered_as(parts, op.part.type)
    for name in (ROWS_ATTRIBUTE, GATHERED_ATTRIBUTE):
        ir.OpResult(made).owner.attributes[name] = ir.UnitAttr.get()
    return made


def lower_group_atoms(_: Scope, op: GroupAtomsOp) -> ir.Value:
    """The sum over the groups before this one, several in a pass."""
    groups, zero, last = op.offsets.type.shape[0], build.constant(0), build.as_i32(op.group)
    every = min(AT_ONCE, groups)
    loop = scf.ForOp(zero, last, build.constant(every), iter_args=[zero] * 2)
    with ir.InsertionPoint(loop.body):
        begin, count = loop.inner_iter_args
        numbers = [loop.induction_variable + index for index in range(every)]
        known = [arith.minui(number, build.constant(groups - 1)) for number in numbers]
        for number, offset in zip(numbers, [_offset(op, each) for each in known], strict=True):
            end = _clamped(op, offset, begin)
            atoms = (end - begin + (SCALE_ATOM_ROWS - 1)) // SCALE_ATOM_ROWS
            count = count + arith.select(build.less(number, last), atoms, zero)
            begin = end
        scf.YieldOp([begin, count])
    return build.as_index(loop.results[1])


def lower_group_scales(scope: Scope, op: GroupScalesOp) -> ir.Value:
    """As the rows of a group, with what its lines are."""
    made = lower_group_rows(scope, op)
    attributes = ir.OpResult(made).owner.attributes
    attributes[SCALES_ATTRIBUTE] = op.form
    if op.form.value != BY_ROWS:
        del attributes[ROWS_ATTRIBUTE]
    return made


def column_of_whole(value: ir.Value, column: ir.Value) -> ir.Value:
    """A column counted from the first of the view, where columns are scales of a group's rows."""
    return column + lowered_parts(value)[-2] if form_of_scales(value) == BY_COLUMNS else column


def atom_of_whole(value: ir.Value, atom: ir.Value) -> ir.Value:
    """A row of atoms counted from the first of the view, where they are those of a group."""
    return atom + lowered_parts(value)[-2] if form_of_scales(value) == BY_ATOMS else atom


def is_gathered(value: ir.Value) -> bool:
    """Whether what was lowered is rows by their numbers."""
    owner = value.owner
    return not isinstance(owner, ir.Block) and GATHERED_ATTRIBUTE in owner.attributes


def placed_row(value: ir.Value, row: ir.Value) -> ir.Value:
    """The row of a view's memory that a row of it is, counted from the first of the view.

    It is `row`, or the number that stands there: behind the last number any, and of one that the
    view has no row for the nearest that it has. No launch writes numbers that it reads, so that
    LLVM may load them before a loop.
    """
    if not is_gathered(value):
        return row
    numbers, rows, count = lowered_parts(value)[-5:-2]
    place = build.widen(arith.minui(row, count - 1))
    pointer = build.element_pointer(numbers, build.i32(), place)
    number = llvm.load(build.i32(), pointer, alignment=4, invariant=True)
    return arith.minsi(arith.maxsi(number, build.constant(0)), rows - 1)


def is_of_group(value: ir.Value) -> bool:
    """Whether what was lowered is the rows of a group."""
    return ROWS_ATTRIBUTE in ir.OpResult(value).owner.attributes


def row_of_whole(value: ir.Value, row: ir.Value) -> ir.Value:
    """A row counted from the first of the view, where the view is the rows of a group."""
    return row + lowered_parts(value)[-2] if is_of_group(value) else row


def rows_in(scope: Scope, value: ir.Value, rows: int) -> ir.Value | int:
    """How many rows a view has: those of a group, or `rows`, a number or one that a launch says."""
    return lowered_parts(value)[-1] if is_of_group(value) else scope.extent(rows)


def lower_group_depth(_: Scope, op: GroupDepthOp) -> Values:
    """Where the group before it ends, and how far it is from there to its own end."""
    zero, extent = build.constant(0), build.constant(op.extent.value)
    group = build.as_i32(op.group)

    def end_of(number: ir.Value) -> ir.Value:
        return arith.minsi(arith.maxsi(_offset(op, number), zero), extent)

    is_first = build.equal(group, 0)
    before = end_of(arith.select(is_first, zero, group - 1))
    first = arith.select(is_first, zero, before)
    end = arith.maxsi(end_of(group), first)
    return [build.as_index(first), build.as_index(end - first)]


def lower_group_columns(_: Scope, op: GroupColumnsOp) -> ir.Value:
    """What the whole stands for, with the first column and the number of columns."""
    parts = [*lowered_parts(op.whole), build.as_i32(op.first), build.as_i32(op.count)]
    made = lowered_as(parts, op.part.type)
    ir.OpResult(made).owner.attributes[DEPTH_ATTRIBUTE] = ir.UnitAttr.get()
    return made


def lower_group_steps(_: Scope, op: GroupStepsOp) -> ir.Value:
    """In numbers with a sign, of which `less` may leave one."""
    depth = op.depth.value
    steps = (build.as_i32(op.count) + (depth - 1)) // depth - op.less.value
    least, most = build.constant(op.least.value), build.constant(op.most.value)
    return build.as_index(arith.minsi(arith.maxsi(steps, least), most))


def is_of_depth(value: ir.Value) -> bool:
    """Whether what was lowered is what a group has of K."""
    return DEPTH_ATTRIBUTE in ir.OpResult(value).owner.attributes


def depth_before(value: ir.Value) -> ir.Value | int:
    """How much of K lies in front of what a view has of it."""
    return lowered_parts(value)[-2] if is_of_depth(value) else 0


def depth_in(value: ir.Value, depth: ir.Value | int) -> ir.Value | int:
    """How much of K a view has: that of its group, or `depth`."""
    return lowered_parts(value)[-1] if is_of_depth(value) else depth
