"""Which tile an index names: sums and products of counters and places, read as a linear form.

%i * 2 + %rank    →    {%i: 2, %rank: 1}, 0        from 0 to 2 * (tiles - 1) + 1
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..dialects.mlir import ir, scf
from ..dialects.pipe import OtherTileOp
from ..dialects.tile import (
    CtaTileOp,
    KernelOp,
    PairRankOp,
    RotatedStepOp,
    SplitRankOp,
    SplitStartOp,
)
from ..dialects.tile.batches import BatchOp
from ..dialects.tile.groups import GroupOp, tiles_of_groups
from ..dialects.tile.place import PlaceOp
from ..dialects.tile_types import DYNAMIC, integers_of
from .clone import constant_of, group_steps_of, iterations_of

PLACES = (CtaTileOp, PlaceOp, OtherTileOp, BatchOp, GroupOp, PairRankOp, SplitRankOp)
STARTS = (*PLACES, SplitStartOp, RotatedStepOp)


class LinearForm(NamedTuple):
    """`sum(factor * value) + constant`; a value is a loop's counter, a tile's place or a rank."""

    factors: dict[ir.Value, int]
    constant: int = 0

    def plus(self, other: LinearForm, times: int = 1) -> LinearForm:
        """The form of the sum with `times` times the other."""
        factors = dict(self.factors)
        for value, factor in other.factors.items():
            factors[value] = factors.get(value, 0) + times * factor
        kept = {value: factor for value, factor in factors.items() if factor}
        return LinearForm(kept, self.constant + times * other.constant)

    def is_just(self, value: ir.Value) -> bool:
        """Whether it is that value and nothing else."""
        return self.constant == 0 and self.factors == {value: 1}


def linear_form(value: ir.Value) -> LinearForm | None:
    """The form of an index; None where it is no sum of multiples."""
    if isinstance(value.owner, ir.Block) or isinstance(value.owner.opview, STARTS):
        return LinearForm({value: 1})
    known = constant_of(value)
    if known is not None:
        return LinearForm({}, known)
    if value.owner.name not in ("arith.addi", "arith.subi", "arith.muli"):
        return None
    left, right = map(linear_form, value.owner.operands)
    if left is None or right is None:
        return None
    if value.owner.name != "arith.muli":
        return left.plus(right, -1 if value.owner.name == "arith.subi" else 1)
    if left.factors and right.factors:
        return None
    form, factor = (right, left.constant) if not left.factors else (left, right.constant)
    return LinearForm({}).plus(form, factor)


def known_part(kernel: KernelOp, form: LinearForm, most: int = 1) -> LinearForm:
    """The form without the place of a tile along an axis whose tiles a launch counts.

    A launch keeps rows in reach of 32 bits, so that such a place may stand in a form once, or
    `most` times where a tile has as many of what is counted.
    """
    rest = {
        value: factor
        for value, factor in form.factors.items()
        if not (1 <= factor <= most and _is_dynamic(kernel, value))
    }
    return LinearForm(rest, form.constant)


def _is_dynamic(kernel: KernelOp, value: ir.Value) -> bool:
    axis = place_of(value)
    extents = _extents(kernel, value) if axis is not None else []
    return axis is not None and extents[axis : axis + 1] == [DYNAMIC]


def _extents(kernel: KernelOp, place: ir.Value) -> list[int]:
    """How many tiles there are along M and N where that place is taken; of rows of a group they
    are along either."""
    if isinstance(place.owner, ir.Block):
        return integers_of(ir.ArrayAttr(place.owner.owner.attributes["tiles"]))
    op: Any = place.owner.opview
    if isinstance(op, BatchOp):
        return [op.tiles.value]
    if isinstance(op, GroupOp):
        return [DYNAMIC] * 2 if op.extent.value == DYNAMIC and place == op.row else []
    return integers_of(_all_tiles(kernel, op))


def _all_tiles(kernel: KernelOp, op: Any) -> ir.ArrayAttr:
    """How many tiles there are where an op takes one."""
    if isinstance(op, CtaTileOp):
        return kernel.grid
    return op.operation.parent.opview.tiles if isinstance(op, OtherTileOp) else op.tiles


def span(kernel: KernelOp, form: LinearForm) -> tuple[int, int] | None:
    """The smallest and largest value of a form; None where a loop's bounds are not known."""
    low = high = form.constant
    for value, factor in form.factors.items():
        values = _values(kernel, value)
        if not values:
            return None
        ends = sorted((factor * values[0], factor * values[-1]))
        low, high = low + ends[0], high + ends[1]
    return low, high


def _values(kernel: KernelOp, value: ir.Value) -> range | None:
    """What a counter, place or rank runs over; None where that is not known."""
    if not isinstance(value.owner, ir.Block):
        op = value.owner.opview
        if isinstance(op, BatchOp):
            return range((op.tiles if value == op.row else op.count).value)
        if isinstance(op, GroupOp):
            return _values_of_group(op, value)
        if isinstance(op, SplitStartOp):
            return _values_of_start(kernel, op)
        if isinstance(op, RotatedStepOp):
            return range(op.steps.value)
        if isinstance(op, CtaTileOp | PlaceOp | OtherTileOp):
            extents = integers_of(_all_tiles(kernel, op))
            return range(extents[ir.OpResult(value).result_number])
        return range(2 if isinstance(op, PairRankOp) else integers_of(kernel.grid)[2])
    loop: Any = value.owner.owner.opview
    number = ir.BlockArgument(value).arg_number
    if isinstance(loop, scf.ForOp):
        return iterations_of(loop)
    if "tiles" not in loop.operation.attributes:
        return None
    return range(integers_of(loop.tiles)[number])


def _values_of_group(op: GroupOp, value: ir.Value) -> range | None:
    """The groups, or the places that one with all rows has."""
    if value == op.group:
        return range(op.offsets.type.shape[0])
    if value != op.row or op.extent.value == DYNAMIC:
        return None
    return range(tiles_of_groups(op.extent.value, 1, op.tile.value, op.together.value))


def _values_of_start(kernel: KernelOp, op: SplitStartOp) -> range | None:
    """The steps with which parts of K may begin."""
    limit, parts = group_steps_of(op.steps), integers_of(kernel.grid)[2]
    return None if limit is None else range((parts - 1) * limit.most.value + 1)


def differs_along(value: ir.Value, axis: int) -> bool:
    """Whether CTAs along M (0) or N (1) have another index."""
    form = linear_form(value)
    return form is None or any(place_of(each) == axis for each in form.factors)


def place_of(value: ir.Value) -> int | None:
    """0 for the M place of a CTA's tile, 1 for the N place, None for what is neither."""
    if isinstance(value.owner, ir.Block):
        is_tile = "tiles" in value.owner.owner.attributes
        return ir.BlockArgument(value).arg_number if is_tile else None
    op = value.owner.opview
    if isinstance(op, BatchOp | GroupOp):
        return place_of(op.i) if value == op.row else None
    is_tile = isinstance(op, CtaTileOp | PlaceOp | OtherTileOp)
    return ir.OpResult(value).result_number if is_tile else None


def first_value(value: ir.Value, loops: tuple[Any, ...]) -> int | None:
    """What a flag is in the first iteration of all loops around; None where that is not known."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.cmpi":
        known = constant_of(value)
        return None if known is None else known & 1
    left, right = (_first_index(side, loops) for side in value.owner.operands)
    if left is None or right is None:
        return None
    return int(COMPARES[ir.IntegerAttr(value.owner.attributes["predicate"]).value](left, right))


def _first_index(value: ir.Value, loops: tuple[Any, ...]) -> int | None:
    form = linear_form(value)
    starts = {loop.induction_variable: iterations_of(loop) for loop in loops}
    if form is None or any(each not in starts for each in form.factors):
        return None
    return form.constant + sum(
        factor * (starts[each] or range(1))[0] for each, factor in form.factors.items()
    )


def _unsigned(compare: Any) -> Any:
    return lambda left, right: compare(left % 2**64, right % 2**64)


# In the order of arith.cmpi's predicates.
SIGNED = (int.__eq__, int.__ne__, int.__lt__, int.__le__, int.__gt__, int.__ge__)
COMPARES = (*SIGNED, *map(_unsigned, SIGNED[2:]))
