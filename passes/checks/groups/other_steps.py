"""Checks of ping-pong consumers with groups of K.

depth       a loop that skips slots counts the steps of the other agent's tile, that of the turn
            before or of the one after, and a loop that moves slots itself those of its own; where
            a ring's slots are moved by such loops, they are skipped by such loops
"""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir, scf
from ....dialects.pipe import AcquireOp, ForEachTurnOp, OtherTileOp, SkipOp, WaitOp
from ....dialects.sm.positions import AdvancePositionOp, ReadPositionOp
from ....dialects.tile import KernelOp
from ....dialects.tile.groups import GroupDepthOp
from ....dialects.tile.place import PlaceOp
from ...base import refused, walk
from ...clone import group_steps_of

Moves = AcquireOp | WaitOp


def check_other_steps(kernel: KernelOp) -> None:
    """What all loops that end with a group of K say."""
    loops = [op for op in walk(kernel, scf.ForOp) if group_steps_of(op.upperBound) is not None]
    counted = {op.ring for loop in loops for op in walk(loop, Moves)}
    for loop in loops if walk(kernel, GroupDepthOp) else ():  # else all tiles have as many steps
        _check_loop(loop)
    inside = [op.operation for loop in loops for op in walk(loop, SkipOp)]
    for skip in walk(kernel, SkipOp):
        if skip.ring in counted and skip.operation not in inside:
            rule = "depth: slots of another agent's group must be skipped by a loop of its steps"
            raise refused(skip, f"{rule}, got {skip.slots.value} at once; count them")


def _check_loop(loop: scf.ForOp) -> None:
    place = _place_of_steps(loop)
    moves = walk(loop, Moves | ReadPositionOp)
    skips = walk(loop, SkipOp) or (not moves and walk(loop, AdvancePositionOp))
    other = _is_of_other(place)
    if other != bool(skips) or (skips and moves):
        who = "the other agent's" if skips else "its own"
        got = "another's" if other else "its own"
        rule = f"depth: a loop that {'skips' if skips else 'moves'} slots must take {who} steps"
        raise refused(loop, f"{rule}, got {got} tile; end it with that tile's group")
    owner = place.owner.opview if not isinstance(place.owner, ir.Block) else None
    if not isinstance(owner, OtherTileOp):
        return
    turn: ForEachTurnOp = owner.operation.parent.opview
    wanted = -1 if turn.turn.value else 1
    if owner.ahead.value != wanted:
        rule = f"depth: turn {turn.turn.value} must skip the tile {wanted} turns on"
        raise refused(owner, f"{rule}, got {owner.ahead.value}; its slots are others")


def _place_of_steps(loop: scf.ForOp) -> ir.Value:
    """The place along M of the tile whose steps a loop takes (`check_depth` knows the ops)."""
    depth: Any = group_steps_of(loop.upperBound).count.owner.opview
    return depth.group.owner.opview.i


def _is_of_other(place: ir.Value) -> bool:
    """Whether it is a tile of another agent: of a number that its loop has not come to.

    A CTA without a loop has one, too, whose number is that of the CTA in an order of tiles.
    """
    if isinstance(place.owner, ir.Block):
        return False
    op: Any = place.owner.opview
    if isinstance(op, OtherTileOp):
        return True
    is_moved = isinstance(op, PlaceOp) and not isinstance(op.number.owner, ir.Block)
    return is_moved and _is_counted(op.number)


def _is_counted(number: ir.Value) -> bool:
    """Whether a number is computed from the counter of a loop."""
    return isinstance(number.owner, ir.Block) or any(map(_is_counted, number.owner.operands))
