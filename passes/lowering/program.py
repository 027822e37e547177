"""Lowers the program of a kernel: roles, loops, and regions of threads.

The `sm.warps` and `sm.run` around an op say which threads run it (`assign-threads`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dialects import sm
from ...dialects.mlir import arith, ir, scf
from ...dialects.sm.threads import (
    FIRST,
    ISSUER,
    TEAM,
    WARP,
    WARPGROUP,
    EarlyOp,
    FirstWarpOp,
    PrologueOp,
    RunOp,
    WarpsOp,
    who_runs,
)
from ...dialects.target import WARP_THREADS, WARPGROUP_WARPS
from .. import build
from ..base import operations_named, refused
from ..clone import is_pure
from ..team import Team
from ..thread_rules import program
from .patterns import INSTRUCTIONS, LOWERINGS
from .scope.scope import CAST, Scope
from .scope.thread_numbers import NUMBERS, elect, number_in, number_kernel, number_team

Blocks = dict[type, Callable[[Scope, Any], list[Any]]]

COMPUTING = ("vector.", "math.", "llvm.shufflevector", "llvm.load")


def convert_kernel(scope: Scope, ops: list[Any]) -> None:
    """Convert the program of a kernel, and erase the ops that were replaced."""
    replaced = convert(scope, ops)
    number_kernel(scope)
    _erase(scope, replaced)


def convert(scope: Scope, ops: list[Any]) -> list[Any]:
    """Insert the lowering of each op of a block in front of it, and replace its uses.

    Returns the ops that were replaced. They are erased only when all are converted, since the
    lowering of their users reads their attributes and types, such as those of tiles.
    """
    lowerings, replaced, scope = LOWERINGS[scope.target.mma.name], [], scope.in_block()
    for op in ops:
        kind = type(op)
        if kind in INSTRUCTIONS or kind in NUMBERS or (_computes(op) and kind not in lowerings):
            continue
        if kind not in BLOCKS and kind not in lowerings:
            rule = f"select-instructions must know the op for {scope.target.mma.name}"
            raise refused(op, f"{rule}, got {op.operation.name}; remove it, or add its lowering")
        with ir.InsertionPoint(op), op.operation.location:
            if kind in BLOCKS:
                replaced += BLOCKS[kind](scope, op)
                continue
            made = lowerings[kind](scope, op)
        replaced.append(op)
        if made is not None:
            _replace(op, made)
    return replaced


def _computes(op: ir.OpView) -> bool:
    """Whether the op only computes or loads, of values that instructions take."""
    return is_pure(op) or op.operation.name.startswith(COMPUTING)


def _replace(op: ir.OpView, made: ir.Value | list[ir.Value]) -> None:
    values = made if isinstance(made, list) else [made]
    for result, value in zip(op.operation.results, values, strict=True):
        result.replace_all_uses_with(value)


def _erase(scope: Scope, replaced: list[Any]) -> None:
    """Drop what has been replaced, users first, then what stood for their operands, and vectors
    of which only elements were taken."""
    for op in reversed(replaced):
        op.operation.erase()
    for made in operations_named(scope.kernel, "vector.from_elements"):
        if not list(made.results[0].uses):
            made.erase()
    for cast in operations_named(scope.kernel, CAST):
        cast.erase()


def _loop(scope: Scope, op: scf.ForOp) -> list[Any]:
    if len(op.inner_iter_args):
        count = len(op.inner_iter_args)
        raise refused(
            op, f"a loop of a kernel must carry no values, got {count}; keep them in tiles"
        )
    return convert(scope, program(op.body))


def _while(scope: Scope, op: scf.WhileOp) -> list[Any]:
    before, body = (program(region.blocks[0]) for region in op.regions)
    return convert(scope, before) + convert(scope, body)


def _branch(scope: Scope, op: scf.IfOp) -> list[Any]:
    if len(op.results) or len(op.elseRegion.blocks):
        got = "values" if len(op.results) else "an else"
        rule = "a branch of a kernel must give no values and have no else"
        raise refused(op, f"{rule}, got {got}; write two branches")
    return convert(scope, program(op.thenRegion.blocks[0]))


def _team(scope: Scope, op: WarpsOp) -> list[Any]:
    """An `if` for the threads whose numbers the team has."""
    thread = number_in(op)
    condition = build.less(thread, 32 * op.warps.value)
    replaced = convert(scope, program(op.body.blocks[0]))
    number_team(scope, op, thread)
    return [*replaced, *_move_into(condition, op)]


def _region(scope: Scope, op: RunOp) -> list[Any]:
    """An `if` for the threads that the region is for, of those that are there."""
    by = op.by.value
    if by in (WARP, WARPGROUP):
        condition = _of_warps(op, elect(scope.target, Team.of(op).lane))
    else:
        lane = Team.of(op).leader if who_runs(op) == TEAM else None
        issues = scope.place.issues if by == ISSUER else None
        condition = build.both(lane, scope.place.is_first() if by == FIRST else issues)
    return _run_if(scope, condition, op)


def _first_warp(scope: Scope, op: FirstWarpOp) -> list[Any]:
    return _run_if(scope, build.less(Team.of(op).thread, 32), op)


def _early(scope: Scope, op: EarlyOp) -> list[Any]:
    """One lane of the warp: the leader of the role that the warp is the first of."""
    team = Team.of(op)
    of_warp = build.equal(team.thread // WARP_THREADS, op.warp.value)
    return _run_if(scope, build.both(of_warp, elect(scope.target, team.lane)), op)


def _prologue(scope: Scope, op: PrologueOp) -> list[Any]:
    return _run_if(scope, None, op)


def _ranks(scope: Scope, op: sm.EachRankOp) -> list[Any]:
    """Lane r of each warp, or of one in four, runs the body where rank r is in the mask."""
    block, lane = op.body.blocks[0], Team.of(op).lane
    ranks = arith.extui(build.i32(), op.mask)
    # LLVM may compute what is there for lanes beyond, too.
    block.arguments[0].replace_all_uses_with(lane % scope.cluster.size)
    block.erase_argument(0)
    condition = build.equal(arith.shrui(ranks, lane) % 2, 1)
    return _run_if(scope, _of_warps(op, condition), op)


def _of_warps(op: RunOp | sm.EachRankOp, condition: ir.Value) -> ir.Value | None:
    """The condition in each warp of the team, or in the first of every four."""
    if op.by.value != WARPGROUP:
        return condition
    warp = Team.of(op).thread // WARP_THREADS
    return build.both(condition, build.equal(warp % WARPGROUP_WARPS, 0))


def _run_if(scope: Scope, condition: ir.Value | None, op: Any) -> list[Any]:
    """Convert a region and move it into an `if`, or without a condition in front of it."""
    return [*convert(scope, program(op.body.blocks[0])), *_move_into(condition, op)]


def _move_into(condition: ir.Value | None, op: Any) -> list[Any]:
    """Move a converted region; the op that it leaves is replaced."""
    block = op.body.blocks[0]
    if condition is None:
        for each in list(block.operations):
            each.operation.move_before(op.operation)
        return [op]
    branch = ir.Operation.create("scf.if", operands=[condition], regions=2)
    block.append_to(branch.regions[0])
    with ir.InsertionPoint(block):
        scf.YieldOp([])
    return [op]


# Ops whose blocks are converted, where they stand or in an `if`.
BLOCKS: Blocks = {
    scf.ForOp: _loop,
    scf.IfOp: _branch,
    scf.WhileOp: _while,
    PrologueOp: _prologue,
    FirstWarpOp: _first_warp,
    EarlyOp: _early,
    WarpsOp: _team,
    RunOp: _region,
    sm.EachRankOp: _ranks,
}
