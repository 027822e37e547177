"""The group of a tile and its rows, from the offsets in global memory.

    begin, before = those of the first group
    for each group:
      end = offset, no less than begin and no more than all rows
      here = (end - begin + unit - 1) / unit * together
      before <= place < before + here   →   it is this one
      begin, before = end, before + here

A lane has a 32nd of the groups, and learns from others what is before (`tile.group_starts`). By a
ballot all lanes know in whose groups a place is, and walk over these (`tile.group_at`), several in
a pass, so that the loads of their offsets overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....dialects import llvm, sm
from ....dialects.layout import SCALE_ATOM_ROWS
from ....dialects.mlir import arith, ir, scf
from ....dialects.sm.lanes import LANE_BITS
from ....dialects.target import WARP_THREADS
from ....dialects.tile.grouped_products import (
    BY_ATOMS,
    BY_COLUMNS,
    BY_ROWS,
    GroupAtomsOp,
    GroupScalesOp,
)
from ....dialects.tile.groups import (
    GatheredRowsOp,
    GroupAtOp,
    GroupColumnsOp,
    GroupDepthOp,
    GroupRowsOp,
    GroupStartsOp,
    GroupStepsOp,
)
from ....dialects.tile.place import GroupPlaceOp
from ....dialects.tile_types import DYNAMIC, TensorMapType, integers_of
from ... import build
from ...base import is_swapped
from ...batches import row_pitch
from ...groups import SCALES_ATTRIBUTE, form_of_scales, is_level
from ...team import Team
from ..scope.scope import CAST, Scope, element_pointer, lowered_as, lowered_parts

ROWS_ATTRIBUTE, DEPTH_ATTRIBUTE, GATHERED_ATTRIBUTE = "rows_of_group", "depth_of_group", "gathered"
AT_ONCE, FOUND = 8, 4  # groups that a pass looks at; values that say what a walk finds
Values = list[ir.Value]
Walk = GroupAtOp | GroupPlaceOp
Cut = Walk | GroupStartsOp


def lower_group_starts(scope: Scope, op: GroupStartsOp) -> Values:
    """Each lane adds up its own groups, lanes tell each other their sums."""
    lane, each = Team.of(op).lane, groups_of_lane(op)
    first = lane * each
    end = _lasts(scope, op, first, each)
    row = _behind(lane, _over_lanes(lane, end, arith.maxsi))
    own = _own_places(scope, op, first, each, row)
    through = _over_lanes(lane, own, arith.addi)
    last = sm.ShuffleFromOp.of(through, build.constant(WARP_THREADS - 1)).result
    return [row, through - own, last]


def groups_of_lane(op: Cut) -> int:
    """How many groups in a row each lane of a warp has."""
    return -(-op.offsets.type.shape[0] // WARP_THREADS)


def _lasts(scope: Scope, op: GroupStartsOp, first: ir.Value, count: int) -> ir.Value:
    """The largest offset of so many groups, where it is one of a row."""

    def largest(group: ir.Value, together: int, found: Values) -> Values:
        for number in _numbers(op, group, together):
            found = [_clamped(scope, op, _offset(op, number), found[0])]
        return found

    return _in_passes(first, count, [build.constant(0)], largest)[0]


def _own_places(
    scope: Scope, op: GroupStartsOp, first: ir.Value, count: int, row: ir.Value
) -> ir.Value:
    """The places of so many groups, the first of which begins at a row."""

    def added(group: ir.Value, together: int, values: Values) -> Values:
        begin, places = values
        for number in _numbers(op, group, together):
            end = _clamped(scope, op, _offset(op, number), begin)
            begin, places = end, places + _places(op, end - begin)
        return [begin, places]

    return _in_passes(first, count, [row, build.constant(0)], added)[1]


def _in_passes(
    first: ir.Value, count: int, values: Values, look: Callable[[ir.Value, int, Values], Values]
) -> Values:
    """What a look at `count` groups from one on makes of values, several groups at a time.

    The last look may go on into the groups of the next lane. Their rows then count as this one's,
    and the next lane, which begins after them, finds none in these groups.
    """
    if count <= AT_ONCE:
        return look(first, count, values)
    end, step = first + count, build.constant(AT_ONCE)
    loop = scf.ForOp(first, end, step, iter_args=values)
    with ir.InsertionPoint(loop.body):
        scf.YieldOp(look(loop.induction_variable, AT_ONCE, list(loop.inner_iter_args)))
    return list(loop.results)


def _over_lanes(lane: ir.Value, value: ir.Value, join: Callable[..., ir.Value]) -> ir.Value:
    """What a lane and all before it have, joined."""
    for apart in LANE_BITS:
        other = sm.ShuffleUpOp.of(value, apart=apart).result
        value = arith.select(build.less(lane, apart), value, join(value, other))
    return value


def _behind(lane: ir.Value, value: ir.Value) -> ir.Value:
    """What the lane before has, of the first one 0."""
    other = sm.ShuffleUpOp.of(value, apart=1).result
    return arith.select(build.equal(lane, 0), build.constant(0), other)


def lower_group_at(scope: Scope, op: GroupAtOp) -> Values:
    """What its place was found by, or a walk."""
    if not isinstance(op.i.owner, ir.Block) and op.i.owner.name == CAST:
        return lowered_parts(op.i)[1:]
    group, *found = _walk(scope, op, build.as_i32(op.i))
    return _indices([group, *_levelled(scope, op, found)])


def lower_group_place(scope: Scope, op: GroupPlaceOp) -> Values:
    """A group has as many numbers in a row as it has tiles, for each place along its rows as many
    as there are tiles along the other axis. So a number divided by those is one of the group's
    places. What it is after the group's first number counts tiles along rows, up to the height of
    a band, then along the other axis.
    """
    tiles, cluster = integers_of(op.tiles), (scope.cluster.m, scope.cluster.n)
    axis, ranks = tiles.index(DYNAMIC), (scope.place.x, scope.place.y)
    together, apart = cluster[axis], cluster[1 - axis]
    across, height = tiles[1 - axis] // apart, op.group.value
    place = build.as_value(op.number // across * together)
    group, within, begin, count = _walk(scope, op, place)
    first = (place - within) // together
    clusters = _places(op, count) // together
    turn = op.number - first * across
    band = turn // (height * across) * height
    turn = turn - band * across
    rows = arith.minui(build.as_value(clusters - band), build.constant(height))
    along = arith.divui(build.as_value(turn), rows)
    row = (band + (turn - along * rows)) * together + ranks[axis]
    i = build.as_index(build.as_value(first * together + row))
    j = build.as_index(build.as_value(along * apart + ranks[1 - axis]))
    found = [group, *_levelled(scope, op, [row, begin, count])]
    made = [lowered_as([i, *_indices(found)], op.i.type), j]
    return made if axis == 0 else made[::-1]


def _indices(values: Values) -> Values:
    return [build.as_index(build.as_value(value)) for value in values]


def _levelled(scope: Scope, op: Walk, found: Values) -> Values:
    """(row, begin, count) of a tile of a group; where tiles are equally high the tile is a part by
    itself, of as many rows as it has, and has all of them from its first place on."""
    if not is_level(scope.kernel):
        return found
    row, begin, count = (build.as_value(each) for each in found)
    tiles = arith.maxui(build.as_value(_places(op, count)), build.constant(1))
    each = build.as_value(arith.divui(count, tiles))
    over = build.as_value(count - each * tiles)
    first = row * each + arith.minui(row, over)
    rows = each + build.as_value(arith.extui(build.i32(), build.less(row, over)))
    return [build.constant(0), begin + first, rows]


def _walk(scope: Scope, op: Walk, place: ir.Value) -> Values:
    """The group, the place in it, its first row and its rows, by a walk over the groups of the last
    lane that no more places are in front of."""
    each = groups_of_lane(op)
    lanes = sm.BallotOp.of(arith.cmpi(arith.CmpIPredicate.ule, op.at_place, place)).lanes
    count = llvm.call_intrinsic(build.i32(), "llvm.ctpop.i32", [lanes])
    lane = count - 1  # of lanes one after the other, since places add up
    begin, before = (sm.ShuffleFromOp.of(at, lane).result for at in (op.at_row, op.at_place))
    start = [begin, before, *[build.constant(0)] * FOUND]

    def walk(group: ir.Value, together: int, values: Values) -> Values:
        return _look(scope, op, place, group, together, values)

    return _in_passes(lane * each, each, start, walk)[-FOUND:]


def _look(
    scope: Scope, op: Walk, place: ir.Value, group: ir.Value, together: int, values: Values
) -> Values:
    """Several groups from (begin, before) on, and whether the place is in one."""
    (begin, before), found = values[:-FOUND], values[-FOUND:]
    for number in _numbers(op, group, together):
        end = _clamped(scope, op, _offset(op, number), begin)
        here, within = _places(op, end - begin), place - before
        is_here = arith.cmpi(arith.CmpIPredicate.ult, within, here)
        new = (number, within, begin, end - begin)
        found = [arith.select(is_here, *pair) for pair in zip(new, found, strict=True)]
        begin, before = end, before + here
    return [begin, before, *found]


def _numbers(op: Cut, first: ir.Value, count: int) -> Values:
    """The groups of a pass; the last one again has no rows, where lanes have some too many."""
    last = op.offsets.type.shape[0] - 1
    if groups_of_lane(op) * WARP_THREADS == last + 1 and groups_of_lane(op) % count == 0:
        return [first + index for index in range(count)]
    return [arith.minui(first + index, build.constant(last)) for index in range(count)]


def _clamped(scope: Scope, op: Cut | GroupAtomsOp, offset: ir.Value, begin: ir.Value) -> ir.Value:
    """Where a group ends that begins there."""
    all_rows = build.as_value(scope.extent(op.extent.value))
    return arith.minsi(arith.maxsi(offset, begin), all_rows)


def _offset(op: Cut | GroupDepthOp | GroupAtomsOp, group: ir.Value) -> ir.Value:
    pointer = lowered_parts(op.offsets)[0]
    place = build.element_pointer(pointer, build.i32(), build.widen(group))
    return llvm.load(build.i32(), place, alignment=4)


def _places(op: Cut, rows: ir.Value) -> ir.Value:
    """How many places a group of so many rows has."""
    unit = op.tile.value * op.together.value
    return (rows + (unit - 1)) // unit * op.together.value


def lower_group_rows(_: Scope, op: GroupRowsOp) -> ir.Value:
    """What the whole stands for, with the first row and the number of rows."""
    parts = [*lowered_parts(op.whole), build.as_i32(op.first), build.as_i32(op.count)]
    return _of_group(parts, op.part.type)


def transposed_rows(view: ir.Value[ir.MemRefType], transposed: ir.Type) -> ir.Value:
    """Rows of a group as columns of a turned view, which begins with the first of them itself."""
    *_, first, count = lowered_parts(view)
    pointer = element_pointer(view, build.widen(first) * row_pitch(view))
    return _of_group([pointer, build.constant(0), count], transposed)


def _of_group(parts: Values, type_: ir.Type) -> ir.Value:
    made = lowered_as(parts, type_)
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


def lower_group_atoms(scope: Scope, op: GroupAtomsOp) -> ir.Value:
    """The sum over the groups before this one, several in a pass."""
    groups, zero, last = op.offsets.type.shape[0], build.constant(0), build.as_i32(op.group)
    every = min(AT_ONCE, groups)
    loop = scf.ForOp(zero, last, build.constant(every), iter_args=[zero] * 2)
    with ir.InsertionPoint(loop.body):
        begin, count = loop.inner_iter_args
        numbers = [loop.induction_variable + index for index in range(every)]
        known = [arith.minui(number, build.constant(groups - 1)) for number in numbers]
        for number, offset in zip(numbers, [_offset(op, each) for each in known], strict=True):
            end = _clamped(scope, op, offset, begin)
            atoms = (end - begin + (SCALE_ATOM_ROWS - 1)) // SCALE_ATOM_ROWS
            count = count + arith.select(build.less(number, last), atoms, zero)
            begin = end
        scf.YieldOp([begin, count])
    return build.as_index(loop.results[1])


def lower_group_scales(scope: Scope, op: GroupScalesOp) -> ir.Value:
    """Like the rows of a group, with the lines of its scales."""
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

    It is `row`, or the number that stands there: after the last number any, and of one that the
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
    return not isinstance(value.owner, ir.Block) and ROWS_ATTRIBUTE in value.owner.attributes


def row_of_whole(value: ir.Value, row: ir.Value) -> ir.Value:
    """A row counted from the first of the view, where the view is the rows of a group."""
    return row + lowered_parts(value)[-2] if is_of_group(value) else row


def rows_in(scope: Scope, value: ir.Value, rows: int) -> ir.Value | int:
    """How many rows of sums a view has: those of a group, or `rows`, a number or one that a launch
    says. Of exchanged operands rows of a group are columns of the sums."""
    of_group = is_of_group(value) and not is_swapped(scope.kernel)
    return lowered_parts(value)[-1] if of_group else scope.extent(rows)


def columns_in(scope: Scope, value: ir.Value, columns: int) -> ir.Value | int:
    """The same of columns of sums."""
    of_group = is_of_group(value) and is_swapped(scope.kernel)
    return lowered_parts(value)[-1] if of_group else scope.extent(columns)


def lower_group_depth(scope: Scope, op: GroupDepthOp) -> Values:
    """Where the group before it ends, and how far it is from there to its own end."""
    zero, extent = build.constant(0), build.as_value(scope.extent(op.extent.value))
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
