"""Regions for a set of threads of a CTA: roles, one lane, the first warp.

A team is the threads that run a stretch of the program together: those of `sm.warps`, or all of a
kernel without roles. What stands in no `sm.run` is for all threads of its team. `sm.team` begins
each team's program: its values are what ops in it take for a thread's number, without an operand.
"""

from typing import Any

from ..integer_types import I1, I32
from ..mlir import ext, ir
from ..verify import refuse
from .types import Sm

# From all threads of a team to one thread of a cluster: each is part of the one before.
TEAM, WARP, WARPGROUP = "team", "warp", "warpgroup"
LANE, ISSUER, FIRST = "lane", "issuer", "first"
WHO = (TEAM, WARP, WARPGROUP, LANE, ISSUER, FIRST)
# PTX ISA, barrier: a CTA has 16 named barriers. `bar.sync 0` is the one of all threads.
NAMED_BARRIERS = 16
WARPS_MAX = 32
TEAMS = ("tile.kernel", "sm.warps")


class WarpsOp(Sm.Operation, name="warps", traits=[ir.NoTerminatorTrait]):
    """What the `warps` warps of the CTA from warp `first` on run: the role that `agent` names.

    They are a team, which meets at named barrier `barrier`.
    """

    agent: ir.StringAttr
    first: ir.IntegerAttr
    warps: ir.IntegerAttr
    barrier: ir.IntegerAttr
    body: ext.Region

    def verify_invariants(self) -> bool:
        first, warps, barrier = self.first.value, self.warps.value, self.barrier.value
        if first < 0 or warps < 1 or first + warps > WARPS_MAX:
            return refuse(
                self,
                f"warps must be 1 or more of the {WARPS_MAX} of a CTA, got {warps} from warp "
                f"{first} on",
            )
        if not 1 <= barrier < NAMED_BARRIERS:
            return refuse(self, f"barrier must be 1 to {NAMED_BARRIERS - 1}, got {barrier}")
        if len(self.body.blocks) != 1:
            return refuse(self, f"the body must be one block, got {len(self.body.blocks)}")
        return True


class PrologueOp(Sm.Operation, name="prologue", traits=[ir.NoTerminatorTrait]):
    """What all threads of the CTA do before they meet for the first time.

    They begin with the kernel's program when all of the CTA, or of its cluster, are done with it.
    """

    body: ext.Region

    def verify_invariants(self) -> bool:
        return _verify_part(self)


class FirstWarpOp(Sm.Operation, name="first_warp", traits=[ir.NoTerminatorTrait]):
    """What all lanes of the CTA's first warp run together; the other warps go on after it."""

    body: ext.Region

    def verify_invariants(self) -> bool:
        return _verify_part(self)


class EarlyOp(Sm.Operation, name="early", traits=[ir.NoTerminatorTrait]):
    """What one lane of warp `warp` does before all threads meet for the first time.

    It is the lane that leads the role whose first warp that is. It initialises the barriers and
    fills slots, or it asks L2 for tiles while another one initialises.
    """

    warp: ir.IntegerAttr
    body: ext.Region

    def verify_invariants(self) -> bool:
        if not 0 <= self.warp.value < WARPS_MAX:
            return refuse(self, f"warp must be below {WARPS_MAX}, got {self.warp.value}")
        return _verify_part(self)


class TeamOp(Sm.Operation, name="team"):
    """`thread`: its number in its team; `lane`: that in its warp; `leader`: the team's one thread.

    The leader is an elected lane of the team's first warp. The op comes first in the body of its
    `sm.warps` or, where the team is all threads of a CTA, of the kernel. What ops in that body do
    by the number of a thread, they do by these values.
    """

    thread: ext.Result[I32] = ext.infer_result()
    lane: ext.Result[I32] = ext.infer_result()
    leader: ext.Result[I1] = ext.infer_result()

    def verify_invariants(self) -> bool:
        parent = self.operation.parent
        around = "nothing" if parent is None else parent.name
        if around not in TEAMS:
            return refuse(self, f"must stand in one of {TEAMS}, got it in {around}")
        first = self.operation.block.operations[0].operation
        if first != self.operation:
            return refuse(self, f"must come first in its {around}, got {first.name} before it")
        return True


class CtaPlaceOp(Sm.Operation, name="cta_place"):
    """`along_m`, `along_n`: which CTA of its cluster this is; `first`, `leads`: who it works with.

    `first` is the rank of the first CTA with the same part of K. `leads` is true in the leader CTA
    of a pair, and in each CTA of a kernel without pairs. The op comes after the prologue of a
    kernel with clusters. What ops do by the place of the CTA, they do by these values.
    """

    along_m: ext.Result[I32] = ext.infer_result()
    along_n: ext.Result[I32] = ext.infer_result()
    first: ext.Result[I32] = ext.infer_result()
    leads: ext.Result[I1] = ext.infer_result()

    def verify_invariants(self) -> bool:
        parent = self.operation.parent
        around = "nothing" if parent is None else parent.name
        return around == TEAMS[0] or refuse(self, f"must stand in a kernel, got it in {around}")


class InPreferredOp(Sm.Operation, name="in_preferred"):
    """`preferred`: whether this CTA's cluster is one that the launch prefers, not a fallback one.

    The op stands with `sm.cta_place` in a kernel that has a fallback. Masks, ranks and parts of
    multicast tiles follow from it.
    """

    preferred: ext.Result[I1] = ext.infer_result()

    def verify_invariants(self) -> bool:
        parent = self.operation.parent
        around = "nothing" if parent is None else parent.name
        return around == TEAMS[0] or refuse(self, f"must stand in a kernel, got it in {around}")


class RunOp(Sm.Operation, name="run", traits=[ir.NoTerminatorTrait]):
    """The body is for the threads that `by` names alone; the others go on after it at once.

    "warp" is one elected lane of each warp of the team, "warpgroup" that of the first of every four
    warps, "lane" that of its first warp. "issuer" is that lane in the leader CTA of a pair, which
    issues the pair's MMAs, and "first" that lane in the first CTA of a cluster; in a "lane" region
    they are the lane that is there already.
    """

    by: ir.StringAttr
    body: ext.Region

    def verify_invariants(self) -> bool:
        by = self.by.value
        if by not in WHO[1:]:
            return refuse(self, f"by must be one of {WHO[1:]}, got {by!r}")
        if len(self.body.blocks) != 1 or len(self.body.blocks[0].arguments):
            return refuse(self, "the body must be one block without arguments")
        around = who_runs(self)
        if around in (WARP, WARPGROUP) or WHO.index(by) <= WHO.index(around):
            return refuse(self, f"{by!r} must stand where more threads run, got it in {around!r}")
        return True


class ConvergeOp(Sm.Operation, name="converge"):
    """The lanes of each warp of the team wait for each other: after a region that only some ran."""

    def verify_invariants(self) -> bool:
        around = who_runs(self)
        if around != TEAM:
            return refuse(self, f"all lanes of a warp must meet, got it in {around!r}")
        return True


def _verify_part(op: PrologueOp | FirstWarpOp | EarlyOp) -> bool:
    """Whether it is one block, in the kernel itself."""
    if len(op.body.blocks) != 1 or len(op.body.blocks[0].arguments):
        return refuse(op, "the body must be one block without arguments")
    parent = op.operation.parent
    around = "nothing" if parent is None else parent.name
    return around == "tile.kernel" or refuse(op, f"must stand in a kernel, got {around}")


def who_runs(op: Any) -> str:
    """Who runs the place that an op stands in: one of `WHO`."""
    parent = op.operation.parent
    while parent is not None and not isinstance(parent.opview, WarpsOp):
        if isinstance(parent.opview, RunOp) or parent.name == "sm.each_rank":
            return parent.opview.by.value
        if isinstance(parent.opview, EarlyOp):
            return LANE
        parent = parent.parent
    return TEAM
