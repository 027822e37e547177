"""Checks of K loops that start at different steps in different CTAs.

rotation    a tile.rotated_step stands in the loop whose steps it counts, from the place of a tile;
            CTAs of a cluster begin alike; all loads of the loop take it, and MMAs do not know which
            step they multiply; how many boxes have been loaded is counted as before
"""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import scf
from ....dialects.tile import MMAS, KernelOp, RotatedStepOp
from ....dialects.tile.edges import EdgeRowsOp
from ....dialects.tile_types import integers_of
from ...base import refused, walk
from ...clone import group_steps_of, iterations_of
from ...indices import place_of
from ...short_steps import ORDERLESS


def check_rotation(kernel: KernelOp) -> None:
    """Refuse, at the op, steps that do not make up K once in every CTA."""
    steps = walk(kernel, RotatedStepOp)
    for op in steps:
        _check_loop(op)
        _check_place(kernel, op)
    for mma in walk(kernel, MMAS) if steps else ():
        if type(mma) not in ORDERLESS:
            rule = "rotation: MMAs must be tile.mma or tile.pair_mma, which know no step"
            raise refused(mma, f"{rule}, got another; take steps in their order")


def _check_loop(op: RotatedStepOp) -> None:
    loop: Any = op.operation.parent.opview
    counts = isinstance(loop, scf.ForOp) and op.k == loop.induction_variable
    known = counts and group_steps_of(loop.upperBound) is None
    if not known or iterations_of(loop) != range(op.steps.value):
        rule = "rotation: k must be the counter of the loop around, from 0 by 1 to steps"
        raise refused(op, f"{rule}, got another; count so")
    uses = [use for use in loop.induction_variable.uses if use.owner != op.operation]
    others = [use for use in uses if not isinstance(use.owner.opview, EdgeRowsOp)]
    if others:
        rule = "rotation: all ops of the loop must take the step in the place of its counter"
        raise refused(op, f"{rule}, got {others[0].owner.name} that does not; let it take the step")


def _check_place(kernel: KernelOp, op: RotatedStepOp) -> None:
    axis = place_of(op.place)
    if axis is None:
        rule = "rotation: place must be that of a tile along M or N"
        raise refused(op, f"{rule}, got another index; take one of the tile that is loaded")
    extent, together = integers_of(kernel.cluster)[axis], op.together.value
    if together % extent:
        rule = f"rotation: the {extent} CTAs of a cluster along {'mn'[axis]} must begin alike"
        raise refused(op, f"{rule}, got together {together}; take a multiple of {extent}")
