"""The threads that run something together, and one of them alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..dialects import sm
from ..dialects.mlir import ir
from ..dialects.sm_threads import LANE, ConvergeOp, RunOp, WarpsOp
from ..dialects.tile import KernelOp


@dataclass(frozen=True)
class Team:
    """The threads of a kernel or of some of its warps, and the named barrier that they meet at."""

    barrier: int
    threads: int

    @staticmethod
    def of(op: Any) -> Team:
        """Those that run an op."""
        owner = op.operation.parent
        while not isinstance(owner.opview, WarpsOp | KernelOp):
            owner = owner.parent
        team = owner.opview
        if isinstance(team, WarpsOp):
            return Team(team.barrier.value, 32 * team.warps.value)
        return Team(0, team.threads.value)

    def meet(self) -> None:
        """All of them wait for each other."""
        sm.NamedBarrierOp.of(id=self.barrier, threads=self.threads)


@contextmanager
def by_one_lane() -> Iterator[None]:
    """Emit the body for one lane of the team; its warp converges behind it."""
    region = RunOp(by=ir.StringAttr.get(LANE))
    ConvergeOp()
    with ir.InsertionPoint(region.body.blocks.append()):
        yield
