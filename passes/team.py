"""Teams of threads: what each thread knows of itself, and its leader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..dialects import sm
from ..dialects.mlir import ir
from ..dialects.sm.threads import (
    LANE,
    TEAMS,
    WARPGROUP,
    ConvergeOp,
    CtaPlaceOp,
    InPreferredOp,
    RunOp,
    TeamOp,
    WarpsOp,
)
from ..dialects.target import WARPGROUP_THREADS
from ..dialects.tile import KernelOp
from .base import refused

PARTS_BARRIER = 8  # of named barriers, the first that parts of a team meet at


class Team(NamedTuple):
    """The threads of a kernel or of some of its warps, and the named barrier that they meet at.

    `thread`, `lane` and `leader` are the values of the `sm.team` that their program begins with.
    """

    barrier: int
    threads: int
    thread: ir.Value
    lane: ir.Value
    leader: ir.Value

    @staticmethod
    def of(op: Any) -> Team:
        """The team that runs an op."""
        owner = op.operation.parent
        while owner.name not in TEAMS:
            owner = owner.parent
        return Team.begun_by(owner.opview)

    @staticmethod
    def begun_by(owner: Any) -> Team:
        """The team of a kernel or of an `sm.warps`."""
        own = team_op(owner)
        numbers = own.thread, own.lane, own.leader
        if isinstance(owner, WarpsOp):
            return Team(owner.barrier.value, 32 * owner.warps.value, *numbers)
        return Team(0, owner.threads.value, *numbers)

    def any(self, flag: ir.Value) -> ir.Value:
        """All of them wait for each other, and learn whether a flag holds in one of them."""
        return sm.AnyBarrierOp.of(flag, id=self.barrier, threads=self.threads).holds

    def meet(self, parts: int = 1) -> None:
        """All of them wait for each other, or those of each of so many warpgroups."""
        if parts == 1:
            sm.NamedBarrierOp.of(id=self.barrier, threads=self.threads)
            return
        each = {"id": PARTS_BARRIER, "parts": parts, "threads": self.threads // parts}
        sm.PartBarrierOp.of(self.thread // WARPGROUP_THREADS, **each)


def team_op(owner: Any) -> TeamOp:
    """The `sm.team` that the program of a kernel or of a `sm.warps` begins with."""
    first = owner.body.blocks[0].operations[0]
    if not isinstance(first, TeamOp):
        raise refused(
            owner,
            f"a team's program must begin with sm.team, got {first.operation.name}; "
            "run assign-threads",
        )
    return first


def place_op(kernel: KernelOp) -> CtaPlaceOp:
    """The `sm.cta_place` of a kernel with clusters."""
    for op in kernel.body.blocks[0].operations:
        if isinstance(op, CtaPlaceOp):
            return op
    raise refused(
        kernel,
        "a kernel with clusters must say by sm.cta_place which CTA it runs in, got none; "
        "run pipes-to-barriers",
    )


def in_preferred(kernel: KernelOp) -> ir.Value:
    """Whether a CTA of a kernel with a fallback runs in a preferred cluster."""
    for op in kernel.body.blocks[0].operations:
        if isinstance(op, InPreferredOp):
            return op.preferred
    raise refused(
        kernel,
        "a kernel with a fallback must say by sm.in_preferred in which cluster it runs, got none; "
        "run pipes-to-barriers",
    )


@contextmanager
def by_one_lane(parts: int = 1) -> Iterator[None]:
    """Emit the body for one lane of the team, or of each of so many warpgroups; its warp converges
    after it."""
    region = RunOp(by=ir.StringAttr.get(LANE if parts == 1 else WARPGROUP))
    ConvergeOp()
    with ir.InsertionPoint(region.body.blocks.append()):
        yield
