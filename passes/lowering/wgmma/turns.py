"""Turns at the tensor core of warpgroups that share a tile and accumulate its products.

    scales of columns             while others multiply
    await_turn                    wgmma … (commit) wgmma (commit)      multiply in one's own turn
    wait_group 1   give_turn      to the next warpgroup, before the last MMA is done
    wait_group 0   sums += …      while that one multiplies

Without turns warpgroups that begin together multiply together, each half as fast, and then add
together, while the tensor core has nothing to do. That counts where adding takes long: where every
column has a scale. The last warpgroup gives the first turn as the kernel begins.
"""

from __future__ import annotations

from typing import Any

from ....dialects import sm
from ....dialects.mlir import arith, ir
from ....dialects.record import record
from ....dialects.sm.barriers import NAMED_BARRIERS
from ....dialects.sm.threads import TEAMS
from ....dialects.target import WARPGROUP_THREADS
from ....dialects.tile.blockwise import BlockwiseMmaOp
from ....dialects.tile_types import SmemType
from ... import build
from ...places import ATOM_M
from ...team import Team
from ..scales.block_factors import multiplies_one_by_one, reads_ahead
from ..scope.scope import Scope


@record
class Turns:
    """The turns of a team: how many warpgroups there are, and to which one a thread belongs."""

    count: int
    own: ir.Value

    @staticmethod
    def of(scope: Scope, op: Any) -> Turns | None:
        """The turns of the team of an MMA, or None if its warpgroups do not take turns."""
        count = _warpgroups(scope, op)
        if count is None:
            return None
        return Turns(count, Team.of(op).thread // WARPGROUP_THREADS)

    def wait(self) -> None:
        """Until it is one's own."""
        sm.AwaitTurnOp.of(self.own, **self.barriers)

    def give(self) -> None:
        """To the next one."""
        following = self.own + 1
        following = arith.select(
            build.equal(following, self.count), build.constant(0), build.as_value(following)
        )
        sm.GiveTurnOp.of(following, **self.barriers)

    @property
    def barriers(self) -> dict[str, int]:
        """What each op on turns says of them."""
        return {"id": NAMED_BARRIERS - self.count, "turns": self.count}


def open_turns(scope: Scope, mma: Any) -> None:
    """Let the last warpgroup give the first one its first turn, before the program of their team
    comes to `mma`, its first, or to the loop that it stands in."""
    top = mma.operation
    while top.parent.name not in TEAMS:
        top = top.parent
    with ir.InsertionPoint(top), mma.location:
        turns = Turns.of(scope, mma)
        if turns is not None:
            with build.when(build.equal(turns.own, turns.count - 1)):
                sm.GiveTurnOp.of(build.constant(0), **turns.barriers)


def _warpgroups(scope: Scope, op: Any) -> int | None:
    """How many take turns: several, where columns have scales of their own, for which threads have
    registers while MMAs run, and each has 64 rows or no factors.

    On an H200 a step of 128x128 was 13 % shorter for it, and 128x160 of K 16384 a sixth; 256x128
    took 0 to 6 % less. Without scales of columns warpgroups that add have nothing to read: turns
    made them 3 to 12 % slower, and 128x192, whose scales are read after MMAs, 5 %. Of several
    times 64 rows and factors ptxas held two products at once, and spilled.
    """
    count, rows = scope.warpgroups(op.acc.type), op.acc.type.shape[0]
    columns = isinstance(op, BlockwiseMmaOp) and isinstance(op.b_scales.type, SmemType)
    if not columns or count == 1 or not reads_ahead(scope, op):
        return None
    return count if rows == count * ATOM_M or multiplies_one_by_one(scope, op) else None
