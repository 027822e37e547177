"""Marks: one thread writes the clock to its CTA's row."""

from __future__ import annotations

from math import prod

from ....dialects import llvm, sm
from ....dialects.mlir import ir
from ....dialects.sm.threads import TEAM, who_runs
from ....dialects.tile.marks import FIRST, UNITS, MarkOp
from ....dialects.tile_types import integers_of
from ... import build
from ...base import walk
from ...team import Team, team_op
from ..scope.scope import Scope, element_pointer

WORD_BYTES = 4


def lower_mark(scope: Scope, op: MarkOp) -> None:
    """A store; of what is kept first where no store was before.

    Threads may write once the grids before this one have ended: what is read in front of the
    prologue is stored after it.
    """
    one = Team.of(op).leader if who_runs(op) == TEAM else None
    if op.operation.block == scope.kernel.body.blocks[0]:
        time = _time(op)
        (allowed,) = walk(scope.kernel, sm.AwaitGridsOp)
        with ir.InsertionPoint.after(allowed), build.when(one):
            _store(scope, op, time)
        return
    seen = _new_flag(scope) if op.keep.value == FIRST else None
    unseen = None if seen is None else build.equal(llvm.load(build.i32(), seen), 0)
    with build.when(build.both(one, unseen)):
        _store(scope, op, _time(op))
        if seen is not None:
            llvm.store(build.constant(1), seen)


def _time(op: MarkOp) -> ir.Value:
    return build.special(UNITS[op.unit.value])


def _store(scope: Scope, op: MarkOp, time: ir.Value) -> None:
    row = _number_of_cta(scope) * op.marks.type.shape[1]
    place = element_pointer(op.marks, build.widen(row + op.column.value))
    llvm.store(time, place, alignment=WORD_BYTES)


def _new_flag(scope: Scope) -> ir.Value:
    """A zero in a stack slot, which LLVM's mem2reg makes a register of."""
    with ir.InsertionPoint.after(team_op(scope.kernel)):
        slot = llvm.alloca(build.pointer(), build.constant(1), build.i32())
        llvm.store(build.constant(0), slot)
    return slot


def _number_of_cta(scope: Scope) -> ir.Value:
    """Along x of the grid first."""
    grid = integers_of(scope.kernel.grid)
    number = build.special("ctaid.x")
    for axis, before in (("y", 1), ("z", 2)):
        if grid["xyz".index(axis)] > 1:
            number = number + build.special(f"ctaid.{axis}") * prod(grid[:before])
    return number
