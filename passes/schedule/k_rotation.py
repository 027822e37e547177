"""Lets CTAs start the K loop at different steps.

    role "load" { for %k in 0 .. K {           role "load" { for %k in 0 .. K {
      load %a[%i, %k]                    →       %step = rotated_step %k, %j
      load %b[%j, %k] } }                        load %a[%i, %step]
                                                 load %b[%j, %step] } }

With few rows of C, all CTAs start at the same time and read the same range of K: the same part of
A, and rows of the weights that are a power of two bytes apart. CTAs that start at another step read
other parts at that time. The order of the K steps does not matter to the MMAs.
"""

from __future__ import annotations

from typing import ClassVar

from ...dialects.mlir import ir, scf
from ...dialects.record import record
from ...dialects.tile import (
    MMAS,
    RotatedStepOp,
    TmaLoadOp,
    TmaMulticastOp,
)
from ...dialects.tile.edges import EdgeRowsOp
from ...dialects.tile_types import integer
from ..base import PassLog, one_of, option, parse_positive, refused, the_kernel, walk
from ..clone import group_steps_of, iterations_of
from ..indices import linear_form, place_of
from ..short_steps import ORDERLESS
from .load_loops import load_loop

CURE = "leave k-rotation out"
AXES = "mn"


@record
class KRotation:
    """K steps of a load role from 0 → from a step that depends on the CTA's tile.

    The pass runs after warp-specialization. The first step depends on the tile's index on the axis
    `along`: each run of `together` adjacent tiles starts at the same step, the next run `by` steps
    later. After the last step comes step 0.
    """

    name: ClassVar[str] = "k-rotation"
    along: str = option("n", one_of("n", "m"), "n or m")
    together: int = option(4, parse_positive, "a number of tiles")
    by: int = option(1, parse_positive, "a number of steps along K")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        loop = load_loop(kernel, self.name)
        steps, counter = _steps(loop), loop.induction_variable
        others = [op for op in walk(kernel, MMAS) if type(op) not in ORDERLESS]
        if others:
            rule = "k-rotation: MMAs must be tile.mma or tile.pair_mma, which know no step"
            raise refused(others[0], f"{rule}, got another; {CURE}")
        with ir.InsertionPoint.at_block_begin(loop.body), loop.operation.location:
            numbers = {"together": self.together, "by": self.by, "steps": steps}
            how = {name: integer(number) for name, number in numbers.items()}
            place = _place(loop, self.along)
            step = RotatedStepOp(k=counter, place=place, **how, step=ir.IndexType.get()).step
        _take(counter, step)
        log.did(f"{steps} steps along K, rotated by {self.by} every {self.together} tiles")


def _steps(loop: scf.ForOp) -> int:
    steps = iterations_of(loop)
    known = group_steps_of(loop.upperBound) is None
    if steps is None or not known or (steps.start, steps.step) != (0, 1):
        rule = "k-rotation: steps along K must be counted from 0 by 1 to a known end"
        raise refused(loop, f"{rule}, got others; {CURE}")
    return len(steps)


def _place(loop: scf.ForOp, along: str) -> ir.Value:
    """The place along an axis of the tile that the loop loads."""
    axis = AXES.index(along)
    for load in walk(loop, TmaLoadOp | TmaMulticastOp):
        form = linear_form(load.i)
        for value in form.factors if form is not None else ():
            if place_of(value) == axis:
                return value
    rule = f"k-rotation: TMA must load rows by their tile's place along {along}"
    raise refused(loop, f"{rule}, got other loads; {CURE}")


def _take(counter: ir.Value, step: ir.Value) -> None:
    """Let the loop's ops read the step in the place of the counter; slots are filled as before."""
    for use in list(counter.uses):
        if use.owner != step.owner and not isinstance(use.owner.opview, EdgeRowsOp):
            use.owner.operands[use.operand_number] = step
