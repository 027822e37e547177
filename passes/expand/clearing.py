"""Clears rows of operand tiles that no copy fills, so that MMAs may read them.

    for unit = %thread .. units of the rows step threads
      for slot = 0 .. slots
        tile.clear_unit %memory, %slot, %unit
    sm.fence "async_shared"

A view with fewer rows than a tile is copied in boxes of its own rows (`load_map_type`). TMA would
fill the others with zeros in every step, at the cost of the rows it copies.

Where one agent's threads issue all MMAs together, they clear, and meet, before their first; the
first loads arrive meanwhile. Else all threads clear in `sm.prologue`, before anybody goes on.
"""

from __future__ import annotations

from typing import get_args

from ...dialects import sm
from ...dialects.layout import UNIT_BYTES
from ...dialects.mlir import ir, scf
from ...dialects.sm.memory import SlotMemoryOp
from ...dialects.sm.ring_memory import MEMORY_OPS
from ...dialects.sm.threads import PrologueOp, WarpsOp
from ...dialects.sm.types import attribute_of
from ...dialects.target import Target
from ...dialects.tile import MMAS, KernelOp, TmaLoadOp
from ...dialects.tile.threads import ClearUnitOp
from ..base import defining_op, walk
from ..build import constant
from ..dynamic_rows import box_rows
from ..team import Team, team_op


def expand_clearing(kernel: KernelOp, target: Target) -> int:
    """Have threads write zeros before anybody reads; how many tiles have such rows."""
    loads = walk(kernel, TmaLoadOp)
    tiles = {_place(load): load for load in loads if load.missing_rows or load.has_own_rows}
    if not tiles:
        return 0
    readers = _readers(kernel, target)
    with _before_any_mma(kernel, readers), kernel.location:
        team = Team.begun_by(readers or kernel)
        for (memory, index), load in tiles.items():
            _clear(team, defining_op(memory), index, load)
        sm.FenceOp.of(kind="async_shared")
        if readers:
            team.meet()
    return len(tiles)


def _readers(kernel: KernelOp, target: Target) -> WarpsOp | None:
    """The one agent whose threads issue all MMAs together; None where there is no such agent."""
    mmas = set(walk(kernel, MMAS))
    owners = [owner for owner in walk(kernel, WarpsOp) if mmas & set(walk(owner, MMAS))]
    alone = len(owners) == 1 and set(walk(owners[0], MMAS)) == mmas
    return owners[0] if alone and not target.one_thread_issues else None


def _before_any_mma(kernel: KernelOp, readers: WarpsOp | None) -> ir.InsertionPoint:
    """After the `sm.team` of the agent, or in a prologue of the kernel."""
    if readers:
        return ir.InsertionPoint.after(team_op(readers))
    body = kernel.body.blocks[0].operations
    last = [op for op in body if isinstance(op, get_args(MEMORY_OPS))][-1]
    with ir.InsertionPoint.after(last), kernel.location:
        return ir.InsertionPoint(PrologueOp().body.blocks.append())


def _place(load: TmaLoadOp) -> tuple[ir.Value, int]:
    """The memory and the number of the payload tile that a load fills."""
    part = defining_op(load.tile)
    ring = defining_op(defining_op(part.slot).ring)
    return ring.memory, part.index.value


def _clear(team: Team, memory: SlotMemoryOp, index: int, load: TmaLoadOp) -> None:
    """The last rows of every slot; threads side by side, no division in the loop."""
    layout = load.tile.type.layout
    in_row = layout.span_bytes // UNIT_BYTES
    first, unit, count = layout.rows - load.missing_rows, team.thread, load.missing_rows
    if load.has_own_rows:  # all after those that there are
        first, count = 0, layout.rows
        unit = box_rows(load) * in_row + unit
    rows = scf.ForOp(unit, constant(count * in_row), constant(team.threads))
    with ir.InsertionPoint(rows.body):
        slots = scf.ForOp(constant(0), constant(memory.slots.value), constant(1))
        scf.YieldOp([])
    with ir.InsertionPoint(slots.body):
        where = {"slot": slots.induction_variable, "unit": rows.induction_variable}
        ClearUnitOp(
            memory=memory.memory, **where, tile=attribute_of(index), row=attribute_of(first)
        )
        scf.YieldOp([])
