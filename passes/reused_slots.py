"""Slots of operands that nothing fills any more, in the IR: who waits until they are empty, and
where pieces lie in them (`dialects.reused_places`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..dialects.mlir import ir, scf
from ..dialects.pipe import CommitOp, DrainOp, RoleOp
from ..dialects.reused_places import ReusedPlace, find_reused_place
from ..dialects.sm.threads import RunOp, WarpsOp
from ..dialects.tile import KernelOp
from ..dialects.tile.ahead import LoadAheadOp
from .base import walk
from .clone import group_steps_of, iterations_of


def drain_before(load: Any) -> DrainOp | None:
    """What waits for the slots that pieces are loaded into; None where they have their own."""
    block = list(load.operation.block.operations)
    number = block.index(load)
    before = block[number - 1].opview if number else None
    return before if isinstance(before, DrainOp) else None


def drain_of(ring: ir.Value[Any]) -> DrainOp | None:
    """The same of the ring of pieces."""
    users = [use.owner.opview for use in ring.uses]
    loads = [user for user in users if isinstance(user, LoadAheadOp)]
    return drain_before(loads[0]) if loads else None


def place_in(ring: ir.Value[Any], steps: int, pieces: ir.Value[Any]) -> ReusedPlace | None:
    """Where pieces lie in a ring that so many steps have filled; None where they do not fit."""
    tiles = ring.type.tiles
    slot_bytes = [tile.layout.slot_bytes for tile in tiles]
    return find_reused_place(slot_bytes, ring.type.stages, steps, ring_bytes(pieces))


def reused_place_of(drain: DrainOp, pieces: ir.Value[Any]) -> ReusedPlace:
    """Where pieces lie that are loaded after a drain which `check_load_ahead` has accepted."""
    steps = steps_before(agent_around(drain), drain.ring)
    place = None if steps is None else place_in(drain.ring, steps, pieces)
    assert place is not None
    return place


def reused_start(pieces: ir.Value[Any], rings: Mapping[Any, Any]) -> int:
    """The byte where a ring begins that lies in operands: in slots that are left, or in all."""
    drain = drain_of(pieces)
    if drain is None:
        return 0
    operands, left = rings[drain.ring], reused_place_of(drain, pieces)
    return operands.tiles[left.tile] + left.first * operands.layouts[left.tile].slot_bytes


def steps_before(agent: Any, ring: ir.Value) -> int | None:
    """How many slots of a ring an agent fills; None where its loops do not say."""
    total = 0
    for commit in walk(agent, CommitOp):
        times = _times(commit.operation, agent) if commit.ring == ring else 0
        if times is None:
            return None
        total += times
    return total


def agent_around(op: Any) -> Any:
    """The role, or the kernel, whose program an op is in."""
    parent = op.operation.parent
    while not isinstance(parent.opview, RoleOp | WarpsOp | KernelOp):
        parent = parent.parent
    return parent.opview


def _times(op: ir.Operation, agent: Any) -> int | None:
    """How often an op in loops of an agent runs; None where a launch says so, or groups do."""
    times = 1
    while op.parent != agent.operation:
        op = op.parent
        if not isinstance(op.opview, scf.ForOp):
            if not isinstance(op.opview, RunOp):
                return None
            continue
        steps = iterations_of(op.opview)
        if steps is None or group_steps_of(op.opview.upperBound) is not None:
            return None
        times *= len(steps)
    return times


def ring_bytes(pieces: ir.Value[Any]) -> int:
    """The bytes of all slots of a ring of pieces."""
    return pieces.type.stages * pieces.type.tiles[0].layout.slot_bytes
