"""L2 prefetches of the first tiles, issued before barriers are initialised.

    sm.warps {                           sm.early {
      for number = ctaid.x .. {            %i, %j = tile.place ctaid.x
        %i, %j = tile.place            →   tile.prefetch_boxes %map[%i, 0]    of so many steps
        for %k { … tma_load %map[%i, %k]   …
      } }                                } of the warp that loads

A load waits for memory much longer than a CTA for its barriers. L2 has what is asked for when the
load comes.
"""

from __future__ import annotations

from typing import Any, get_args

from ...dialects.mlir import ir, scf
from ...dialects.sm.ring_memory import MEMORY_OPS
from ...dialects.sm.threads import EarlyOp, RunOp, TeamOp, WarpsOp
from ...dialects.sm.types import attribute_of
from ...dialects.tile import KernelOp, TensorMapOp, TmaLoadOp, TmaMulticastOp
from ...dialects.tile.boxes import PrefetchBoxesOp
from ..base import walk
from ..clone import Mapping, clone, index_constant, iterations_of
from ..groups import group_of

LOADS = TmaLoadOp | TmaMulticastOp
PLACES = (TeamOp, TensorMapOp, *get_args(MEMORY_OPS))


def expand_early(kernel: KernelOp, steps: int) -> int:
    """Ask for the tiles of so many first steps; how many those are.

    Of groups the kernel knows no first tile: a grid before this one may write their offsets.
    """
    if group_of(kernel) is not None:
        return 0
    for owner in walk(kernel, WarpsOp) if steps else ():
        loads = [load for load in walk(owner, LOADS) if not load.tile.type.layout.is_of_scales]
        loops = _loops(owner, loads[0]) if loads else None
        if loops is not None:
            together = [each for each in loads if each.operation.block == loads[0].operation.block]
            return _ask(kernel, owner, together, loops, steps)
    return 0


def _loops(owner: WarpsOp, load: Any) -> list[scf.ForOp] | None:
    """The loops around a load, the outermost first; None where one is of another kind."""
    found, parent = [], load.operation.parent
    while parent != owner.operation:
        if isinstance(parent.opview, scf.ForOp):
            found.append(parent.opview)
        elif not isinstance(parent.opview, RunOp):
            return None
        parent = parent.parent
    return found[::-1]


def _ask(
    kernel: KernelOp, owner: WarpsOp, loads: list[Any], loops: list[scf.ForOp], steps: int
) -> int:
    """Of the first round of all loops, and of so many of the innermost where its numbers are
    known."""
    known = list((iterations_of(loops[-1]) or range(0))[:steps]) if loops else []
    places = [op for op in kernel.body.blocks[0].operations if isinstance(op, PLACES)]
    with ir.InsertionPoint.after(places[-1]), owner.location:
        body = EarlyOp(warp=owner.first).body.blocks.append()
    with ir.InsertionPoint(body), owner.location:
        values: Mapping = {}
        for loop in loops:
            values[loop.induction_variable] = _copy(loop.lowerBound, values)
        for number in known or [None]:
            if number is not None:
                counter = loops[-1].induction_variable
                values = {old: new for old, new in values.items() if not _is_of(old, counter)}
                values[counter] = index_constant(number)
            for load in loads:
                _prefetch(load, values)
    return len(loads) * max(1, len(known))


def _is_of(value: ir.Value, counter: ir.Value) -> bool:
    """Whether a value is a loop's counter, or computed of it."""
    if value == counter or isinstance(value.owner, ir.Block):
        return value == counter
    return any(_is_of(operand, counter) for operand in value.owner.operands)


def _prefetch(load: Any, values: Mapping) -> None:
    multicast = isinstance(load, TmaMulticastOp)
    PrefetchBoxesOp(
        map=_copy(load.map, values),
        i=_copy(load.i, values),
        j=_copy(load.j, values),
        tile=ir.TypeAttr.get(load.tile.type),
        axis=ir.StringAttr.get(load.axis.value if multicast else ""),
        parts=attribute_of(load.parts.value if multicast else 1),
    )


def _copy(value: ir.Value, copies: Mapping) -> ir.Value:
    """A value computed here, from what the kernel takes and what has been copied before."""
    if value in copies:
        return copies[value]
    if isinstance(value.owner, ir.Block) or isinstance(value.owner.opview, PLACES):
        return value
    for operand in value.owner.operands:
        copies[operand] = _copy(operand, copies)
    clone(value.owner.opview, copies)
    return copies[value]
