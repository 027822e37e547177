"""Assigns threads to ops: warps to roles, and a region to what a single thread runs.

    pipe.role "load", 1 warp            sm.warps "load", first 4, 1 warp
      for k                               %thread, %lane, %leader = sm.team
        pipe.acquire              →       sm.run by "lane"
        tile.tma_load                       for k
        pipe.commit                           pipe.acquire, tile.tma_load, pipe.commit
                                          sm.converge

Adjacent ops of the same threads share a region; so does a loop that contains only such ops.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ....dialects.mlir import ir
from ....dialects.pipe import RoleOp
from ....dialects.record import record
from ....dialects.sm.threads import TEAM, WHO, ConvergeOp, RunOp, TeamOp, WarpsOp
from ....dialects.tile import KernelOp
from ....dialects.tile_types import integer
from ...base import PassLog, many, refused, the_kernel, walk
from ...clone import is_pure
from ...thread_rules import FREE, ThreadRules, body_of, program

ROLES_MAX = 15  # each has a named barrier, and the CTA the first of 16


@record
class AssignThreads:
    """`pipe.role` → `sm.warps`; ops for one thread of a team → `sm.run`.

    One elected lane of a team's first warp runs TMA copies, their pipe ops, and MMAs into tensor
    memory, those of a pair only in its leader CTA ("issuer"). All threads of a team copy tiles
    without TMA, read and store accumulators and, if they hold them, issue the MMAs. Lanes
    reconverge after a region.

    `sm.team` begins the kernel's program and that of each `sm.warps`: it gives a thread's index in
    its team, its lane, and whether it is the team's leader, the lane that runs the regions.
    """

    name: ClassVar[str] = "assign-threads"
    makes: ClassVar[tuple[str, ...]] = ("sm.team", "sm.warps", "sm.run")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        if walk(kernel, TeamOp | WarpsOp | RunOp):
            raise refused(kernel, "assign-threads: threads are assigned already; run it once")
        rules = ThreadRules.of(kernel, module)
        _assign(rules, kernel.body.blocks[0], TEAM)
        teams = _place_roles(walk(kernel, RoleOp))
        _begin(kernel)
        log.did(f"{teams}; {many(len(walk(kernel, RunOp)), 'single-thread region')}")


def _assign(rules: ThreadRules, block: ir.Block, around: str) -> None:
    """Gather the ops of a block that fewer threads run than `around` in regions of their own."""
    region: RunOp | None = None
    for op in program(block):
        if isinstance(op, RoleOp):
            _assign(rules, op.body.blocks[0], TEAM)
            continue
        by = rules.who(op)
        if is_pure(op) or isinstance(op, FREE):
            if region is not None:  # what the region reads must stand before it
                op.operation.move_before(region.operation)
            continue
        body = body_of(op)
        if body is not None:
            _assign(rules, body, max(by, around, key=WHO.index))
        if WHO.index(by) <= WHO.index(around):
            region = None
            continue
        if region is None or region.by.value != by:
            region = _open(op, by, around)
        region.body.blocks[0].append(op.operation)


def _open(op: Any, by: str, around: str) -> RunOp:
    """An empty region before an op, and after it the place where lanes meet again."""
    with ir.InsertionPoint(op), op.location:
        region = RunOp(by=ir.StringAttr.get(by))
        if around == TEAM:
            ConvergeOp()
    region.body.blocks.append()
    return region


def _place_roles(roles: list[RoleOp]) -> str:
    """Give each role the warps that follow those of the role before it; their ranges in words."""
    first, said = 0, []
    for number, role in enumerate(roles, 1):
        if number > ROLES_MAX:
            raise refused(
                role,
                f"assign-threads: a kernel has up to {ROLES_MAX} roles, a named barrier each, "
                f"got {len(roles)}; join some",
            )
        last = first + role.warps.value - 1
        said.append(f"{role.agent.value} {first}" + (f"-{last}" if last > first else ""))
        _place_role(role, first, number)
        first = last + 1
    return "warps " + ", ".join(said) if said else "one team"


def _place_role(role: RoleOp, first: int, barrier: int) -> None:
    with ir.InsertionPoint(role), role.location:
        team = WarpsOp(
            agent=role.agent,
            first=integer(first),
            warps=role.warps,
            barrier=integer(barrier),
        )
    body = team.body.blocks.append()
    for op in list(role.body.blocks[0].operations):
        body.append(op.operation)
    role.operation.erase()
    _begin(team)


def _begin(owner: KernelOp | WarpsOp) -> None:
    """Tell the threads of a team who they are, before they do anything."""
    with ir.InsertionPoint.at_block_begin(owner.body.blocks[0]), owner.location:
        TeamOp()
