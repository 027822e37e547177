"""Which threads run an op: used by `assign-threads`, and checked by `check_threads`.

tma_load, tma_multicast, claim,
load_ahead                           one lane
mma, pair_mma                        the team where its registers hold the sums, or where it
                                     copied the operands; else a lane, of a pair the issuer
acquire, commit,
drain              of sums           as their MMAs
                   of operands       one lane; the team where its threads copy
wait, release      of operands       as their MMAs
                   of sums           the team
a pipe's turns, copies, gathers,
stores                               the team
a mark                               as what stands in front of it, the team where nothing does
a loop                               all that one of its ops needs; the team where it asks for
                                     groups, which the lanes of each warp find together
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, get_args

from ..dialects.mlir import ir, scf
from ..dialects.pipe import (
    AcquireOp,
    ClaimOp,
    CommitOp,
    CreateOp,
    DrainOp,
    ForEachClaimOp,
    ForEachTurnOp,
    ReleaseOp,
    TileOp,
    TurnType,
    WaitOp,
)
from ..dialects.sm.ring_memory import MEMORY_OPS
from ..dialects.sm.threads import (
    ISSUER,
    LANE,
    TEAM,
    WARPGROUP,
    WHO,
    ConvergeOp,
    RunOp,
    TeamOp,
    WarpsOp,
)
from ..dialects.tile import (
    AccumulatorOp,
    ForEachTileOp,
    KernelOp,
    PairMmaOp,
    PairRankOp,
    SplitRankOp,
    TensorMapOp,
    TmaLoadOp,
    TmaMulticastOp,
)
from ..dialects.tile.ahead import LoadAheadOp
from ..dialects.tile.edges import EdgeLoadOp, EdgeMulticastOp
from ..dialects.tile.groups import GroupOp, GroupStartsOp
from ..dialects.tile.level import LevelLoadOp
from ..dialects.tile.marks import MarkOp
from ..dialects.tile.parts import WorkspaceOp
from ..dialects.tile.place import GroupPlaceOp
from ..dialects.tile.scales import ALL_MMAS
from ..dialects.tile_types import AccumulatorType
from .base import defining_op, refused, target_of, walk
from .clone import is_pure
from .groups import BY_GROUPS, group_of
from .mma_uses import is_synchronous
from .ring_fills import has_copies
from .team import team_op

# Values that every thread may have for itself; they act on nothing.
FREE = (
    TensorMapOp,
    CreateOp,
    AccumulatorOp,
    PairRankOp,
    SplitRankOp,
    WorkspaceOp,
    TeamOp,
    *get_args(MEMORY_OPS),
)
ENDS = ("scf.yield", "scf.condition")
REGIONS = RunOp | ConvergeOp
WALKS = (GroupOp, GroupPlaceOp)  # of the lanes of a warp together
LOOPS = (scf.ForOp, ForEachTileOp, ForEachClaimOp, ForEachTurnOp)


class ThreadRules(NamedTuple):
    """The rules for one kernel: `issuing` is who issues its MMAs, `grouped` whether rows are."""

    issuing: str
    grouped: bool = False

    @staticmethod
    def of(kernel: KernelOp, module: ir.Module) -> ThreadRules:
        """For a kernel of a module, as its target keeps sums."""
        grouped = group_of(kernel) is not None
        if not target_of(module).one_thread_issues:
            return ThreadRules(TEAM, grouped)
        return ThreadRules(ISSUER if walk(kernel, PairMmaOp) else LANE, grouped)

    def who(self, op: Any) -> str:
        """Who runs an op, one of `WHO`; of a loop, those that some op in it is for."""
        if isinstance(op, LOOPS):
            finds = any(isinstance(each, WALKS) for each in program(loop_body(op)))
            if finds or self._places_by_group(op):
                return TEAM
            inner = [self.who(each) for each in acting(loop_body(op))]
            return min(inner, key=WHO.index, default=TEAM)
        rule = RULES.get(type(op))
        return TEAM if rule is None else rule(self, op)

    def _places_by_group(self, loop: Any) -> bool:
        """Whether a loop over tiles will find the places that it reads by their groups."""
        if not self.grouped or not isinstance(loop, ForEachTileOp | ForEachTurnOp):
            return False
        read = any(list(each.uses) for each in loop.body.blocks[0].arguments)
        return read and loop.order.value == BY_GROUPS


def _one_lane(_: ThreadRules, op: Any) -> str:
    return LANE


def _loads_ahead(_: ThreadRules, op: LoadAheadOp) -> str:
    return LANE if op.parts == 1 else WARPGROUP


def _multiplies(rules: ThreadRules, op: Any) -> str:
    return TEAM if is_synchronous(op) else rules.issuing


def _fills(rules: ThreadRules, op: Any) -> str:
    payload = op.ring.type.tiles[0]
    if isinstance(payload, AccumulatorType):
        return rules.issuing
    return TEAM if isinstance(payload, TurnType) or has_copies(op.ring) else LANE


def _empties(rules: ThreadRules, op: Any) -> str:
    payload = op.ring.type.tiles[0]
    return TEAM if isinstance(payload, TurnType | AccumulatorType) else rules.issuing


def _as_its_slot(rules: ThreadRules, op: TileOp) -> str:
    return rules.who(defining_op(op.slot))


def _as_before(rules: ThreadRules, op: MarkOp) -> str:
    """The rule of the preceding op that acts, or of the region around."""
    block = list(op.operation.block.operations)
    before = [each for each in block[: block.index(op)] if not is_pure(each)]
    acts = [each for each in before if not isinstance(each, (*FREE, ConvergeOp, MarkOp))]
    if not acts:
        return TEAM
    return acts[-1].by.value if isinstance(acts[-1], RunOp) else rules.who(acts[-1])


RULES: dict[type, Callable[[ThreadRules, Any], str]] = {
    ClaimOp: _one_lane,
    TmaLoadOp: _one_lane,
    LevelLoadOp: _one_lane,
    EdgeLoadOp: _one_lane,
    EdgeMulticastOp: _one_lane,
    TmaMulticastOp: _one_lane,
    LoadAheadOp: _loads_ahead,
    **dict.fromkeys(ALL_MMAS, _multiplies),
    **dict.fromkeys((AcquireOp, CommitOp, DrainOp), _fills),
    **dict.fromkeys((WaitOp, ReleaseOp), _empties),
    TileOp: _as_its_slot,
    MarkOp: _as_before,
}


def body_of(op: Any) -> ir.Block | None:
    """The block of a loop; None for another op."""
    return loop_body(op) if isinstance(op, LOOPS) else None


def loop_body(loop: Any) -> ir.Block:
    """The block of a loop, one of `LOOPS`."""
    return loop.body if isinstance(loop, scf.ForOp) else loop.body.blocks[0]


def program(block: ir.Block) -> list[Any]:
    """The ops of a block, without the end of a loop."""
    return [op for op in list(block.operations) if op.operation.name not in ENDS]


def acting(block: ir.Block) -> list[Any]:
    """The ops of a block that do more than compute a value."""
    return [op for op in program(block) if not is_pure(op) and not isinstance(op, FREE)]


def members(block: ir.Block) -> Iterator[Any]:
    """The ops of a block, those of regions in their places: the program without who runs it."""
    for op in program(block):
        if isinstance(op, RunOp):
            yield from members(op.body.blocks[0])
        elif not isinstance(op, ConvergeOp):
            yield op


def check_threads(module: ir.Module) -> None:
    """Refuse an op that other threads run than the rules say, once threads are assigned."""
    for kernel in module.body.operations:
        if isinstance(kernel, KernelOp) and walk(kernel, TeamOp | WarpsOp | RunOp):
            for owner in (kernel, *walk(kernel, WarpsOp)):
                team_op(owner)  # each begins with it
            _check_block(ThreadRules.of(kernel, module), kernel.body.blocks[0], TEAM)


def _check_block(rules: ThreadRules, block: ir.Block, around: str) -> None:
    for op in program(block):
        if isinstance(op, (*WALKS, GroupStartsOp)) and around != TEAM:
            rule = "threads: the lanes of each warp must find a group together"
            raise refused(op, f"{rule}, got it where {around!r} runs; put it in no region")
    for op in acting(block):
        if isinstance(op, RunOp | WarpsOp):
            by = op.by.value if isinstance(op, RunOp) else TEAM
            _check_block(rules, op.body.blocks[0], by)
        elif isinstance(op, LOOPS):
            _check_block(rules, loop_body(op), around)
        elif not isinstance(op, ConvergeOp) and rules.who(op) != around:
            raise refused(
                op,
                f"threads: is for {rules.who(op)!r}, got it where {around!r} runs; put it in a "
                "region of that, or none for 'team'",
            )
