"""Fills the first slots of a ring before the threads of a CTA synchronise.

    sm.prologue { init, fence }            sm.early { init, fence
    sm.cta_barrier                             sm.await_grids
    sm.await_grids                             for %k = 0 to S { wait, expect, load } }
    sm.warps load {                  →     sm.cta_barrier
      sm.run lane {                        sm.await_grids
        for %k = 0 to K {                  sm.warps load {
          wait, expect, load               sm.run lane {
      } } }                                  for %k = S to K { wait, expect, load } } }

The lane that loads initialises the barriers itself, so that nobody has to tell it that they are
there. A fresh barrier of an empty slot counts as over (PTX ISA, mbarrier.test_wait), so its waits
for as many slots as the ring has end at once: others, who give slots back, have not begun.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....dialects import sm
from ....dialects.mlir import ir, scf
from ....dialects.mma_units import WAIT_GROUP
from ....dialects.pipe import REGISTERS_MIN, SetRegistersOp, TileOp
from ....dialects.sm.threads import LANE, EarlyOp, PrologueOp, RunOp, WarpsOp
from ....dialects.tile import CtaTileOp, KernelOp
from ....dialects.tile.boxes import LoadBoxesOp
from ....dialects.tile.marks import MarkOp
from ....dialects.tile.place import PlaceOp
from ....dialects.tile_types import integer
from ...base import defining_op, walk
from ...clone import Mapping, clone, group_steps_of, index_constant, is_pure, iterations_of
from ...groups import group_of
from .rings import Rings, converge

STEP = (
    sm.ReadPositionOp,
    sm.BarrierOp,
    sm.WaitBarrierOp,
    sm.SlotOp,
    sm.ArriveExpectTxOp,
    sm.AdvancePositionOp,
    LoadBoxesOp,
    sm.ArriveExpectMoreOp,
    TileOp,
    scf.YieldOp,
)
"""What a step of loads does, beside computing."""
PLACES = (CtaTileOp, PlaceOp, sm.SpecialRegisterOp, WarpsOp)
"""What says which tile a CTA computes, and who does what."""


class Fill(NamedTuple):
    """The role whose loop over steps of K fills a ring, and the counter's values of the loop; so
    many of them come first."""

    role: WarpsOp
    loop: scf.ForOp
    numbers: range
    first: int


def fill_first(kernel: KernelOp, rings: Rings) -> int:
    """Let the role that loads begin before all threads meet; with how many steps it does."""
    fill = _fill_of(kernel, rings)
    if fill is None:
        return 0
    (prologue,) = walk(kernel, PrologueOp)
    with ir.InsertionPoint(prologue), fill.role.location:
        early = EarlyOp(warp=fill.role.first)
        converge()
    body = early.body.blocks.append()
    for op in sorted(_initialising(prologue), key=_is_of_barriers):
        body.append(op)
    with ir.InsertionPoint(body), fill.role.location:
        sm.AwaitGridsOp.of()
        _copy_steps(early, fill)
    with ir.InsertionPoint(fill.loop), fill.loop.location:
        left = fill.numbers[fill.first :]
        fill.loop.operation.operands[0] = index_constant(left.start)
    prologue.operation.erase()
    return fill.first


def _fill_of(kernel: KernelOp, rings: Rings) -> Fill | None:
    """None where all threads meet first: where more than barriers is written before, a CTA may have
    nothing to load, or threads that load keep the fewest registers. Those of a cluster must meet in
    any case."""
    if rings.cluster.size > 1 or rings.target.mma.completion != WAIT_GROUP:
        return None
    prologues, roles = walk(kernel, PrologueOp), _loading(kernel)
    if len(prologues) != 1 or len(roles) != 1 or walk(kernel, EarlyOp | MarkOp):
        return None
    loops = walk(roles[0], scf.ForOp)
    begins = group_of(kernel) is None and _begins_with_roles(kernel)
    if not begins or not _in_a_row(loops) or not _is_of_loads(loops[0]) or _keeps_fewest(roles[0]):
        return None
    numbers = iterations_of(loops[0])
    if not numbers or len(list(prologues[0].body.blocks[0].operations)) != 2:
        return None
    (advance,) = walk(loops[0], sm.AdvancePositionOp)
    slots = defining_op(advance.position).stages.value
    return Fill(roles[0], loops[0], numbers, min(slots, len(numbers)))


def _in_a_row(loops: list[scf.ForOp]) -> bool:
    """Whether there is a loop, and others only after it."""
    return bool(loops) and all(each.operation.block == loops[0].operation.block for each in loops)


def _loading(kernel: KernelOp) -> list[WarpsOp]:
    return [role for role in walk(kernel, WarpsOp) if walk(role, LoadBoxesOp)]


def _keeps_fewest(role: WarpsOp) -> bool:
    """Whether threads of a role have no registers for where they have come to: ptxas spilled what
    those keep that load both operands and scales of both."""
    return any(op.count.value == REGISTERS_MIN for op in walk(role, SetRegistersOp))


def _begins_with_roles(kernel: KernelOp) -> bool:
    """Whether every CTA does what its roles say, once it has computed of which tile."""
    ops = list(kernel.body.blocks[0].operations)
    at = next(at for at, op in enumerate(ops) if isinstance(op, sm.AwaitGridsOp))
    return all(isinstance(op, PLACES) or is_pure(op) for op in ops[at + 1 :])


def _is_of_loads(loop: scf.ForOp) -> bool:
    """Whether one lane of a role goes from slot to slot in it, and does nothing but load."""
    around = loop.operation.parent
    if not isinstance(around.opview, RunOp) or around.opview.by.value != LANE:
        return False
    ops = list(loop.body.operations)
    if not isinstance(around.parent.opview, WarpsOp) or len(walk(loop, sm.AdvancePositionOp)) != 1:
        return False
    return all(isinstance(op, STEP) or is_pure(op) for op in ops)


def _initialising(prologue: PrologueOp) -> list[Any]:
    """What one lane does in a prologue."""
    (region,) = walk(prologue, RunOp)
    return list(region.body.blocks[0].operations)


def _is_of_barriers(op: Any) -> bool:
    """What comes after requests for tensor maps, whose answers take longer."""
    return not isinstance(op, sm.PrefetchTensorMapOp)


def _copy_steps(early: EarlyOp, fill: Fill) -> None:
    """The first steps of the loop, with what they need of the program after the meeting."""
    values: Mapping = {}
    start, step = index_constant(fill.numbers.start), index_constant(fill.numbers.step)
    loop = scf.ForOp(start, _end_of_first(early, fill, values), step)
    values[fill.loop.induction_variable] = loop.induction_variable
    inside = fill.loop.body
    with ir.InsertionPoint(loop):
        for op in inside.operations:
            for operand in op.operation.operands:
                if isinstance(operand.owner, ir.Block) or operand.owner.operation.block != inside:
                    values[operand] = _here(operand, early, values)
    with ir.InsertionPoint(loop.body):
        for op in list(inside.operations):
            clone(op, values)


def _end_of_first(early: EarlyOp, fill: Fill, values: Mapping) -> ir.Value:
    """Where the first steps end: with the steps of K, where a launch says that they are fewer."""
    stop = fill.numbers[: fill.first].stop
    limit = group_steps_of(fill.loop.upperBound)
    if limit is None:
        return index_constant(stop)
    count = _here(limit.count, early, values)
    sizes = {"less": limit.less.value, "least": min(limit.least.value, stop), "most": stop}
    numbers = {name: integer(size) for name, size in sizes.items()}
    steps = ir.IndexType.get()
    return type(limit)(count=count, depth=limit.depth, **numbers, steps=steps).steps


def _here(value: ir.Value, early: EarlyOp, values: Mapping) -> ir.Value:
    """A value computed in front of the loop, of what stands before the meeting."""
    owner = value.owner
    if value in values:
        return values[value]
    if isinstance(owner, ir.Block):
        return value
    op, after = owner.operation, early.operation
    if op.block == after.block and op.is_before_in_block(after):
        return value
    for operand in op.operands:
        values[operand] = _here(operand, early, values)
    clone(owner.opview, values)
    return values[value]
