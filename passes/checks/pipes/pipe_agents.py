"""One agent's use of its rings, in program order; `check_pipes` states the rules.

Loops are not run: two iterations tell what each does to the slots at hand, since that does not
depend on data, and the counts of the rest follow from the number of iterations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ....dialects.mlir import ir, scf
from ....dialects.pipe import (
    AcquireOp,
    CommitOp,
    ForEachClaimOp,
    ForEachTurnOp,
    ReleaseOp,
    SkipOp,
    TurnType,
    WaitOp,
)
from ....dialects.tile import (
    AwaitMmaOp,
    CopyOp,
    ForEachTileOp,
    GatheredStoreOp,
    MmaOp,
    PairMmaOp,
    ReducedStoreOp,
    StagedStoreOp,
    StoreOp,
    TmaGatherOp,
    TmaLoadOp,
    TmaMulticastOp,
)
from ....dialects.tile.edges import EdgeLoadOp, EdgeMulticastOp
from ....dialects.tile.level import LevelLoadOp
from ....dialects.tile.outputs import StoreGroupsOp
from ....dialects.tile.quantized import StoreQuantizedOp
from ....dialects.tile.scales import ALL_MMAS, smem_operands
from ....dialects.tile.staged_quantized import StagedQuantizedOp
from ....dialects.tile_types import AccumulatorType
from ...base import defining_op, refused
from ...clone import iterations_of
from ...thread_rules import members


@dataclass(eq=False)
class Held:
    """A slot that an agent has: the op that gave it, what was started into it."""

    op: Any
    fills: Counter[int] = field(default_factory=Counter)
    sums: int = 0


@dataclass
class Counts:
    """Slots of one ring that an agent has moved."""

    commits: int = 0
    waits: int = 0
    releases: int = 0
    skips: int = 0

    def plus(self, other: Counts, times: int = 1) -> Counts:
        """The counts after `times` times the moves of `other`."""
        return Counts(
            self.commits + times * other.commits,
            self.waits + times * other.waits,
            self.releases + times * other.releases,
            self.skips + times * other.skips,
        )

    def minus(self, other: Counts) -> Counts:
        """What was moved since `other`."""
        return self.plus(other, -1)


@dataclass
class End:
    """One agent's end of one ring.

    `each` is what it moves a tile, `lead` how many slots it skips first, `base` what it had waited
    for before the loop over tiles, `unguarded` a wait outside of its agent's turn.
    """

    stages: int
    first: Any
    acquired: list[Held] = field(default_factory=list)
    waited: list[Held] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    each: Counts = field(default_factory=Counts)
    lead: int = 0
    base: int = 0
    unguarded: Any = None


class Agent:
    """One role, or the program of a kernel without roles, walked in program order."""

    def __init__(self, op: Any, alone: bool, awaits: bool) -> None:
        self.op, self.alone, self.awaits = op, alone, awaits
        self.ends: dict[ir.Value, End] = {}
        self.issued: list[set[Held]] = []
        self.tile_loop: Any = None
        self.walk(op.body.blocks[0])
        self._close()

    def walk(self, block: ir.Block) -> None:
        """Run the rules over the ops of a block."""
        for op in members(block):
            rule = RULES.get(type(op))
            if rule is not None:
                rule(self, op)

    def end(self, op: Any) -> End:
        """This agent's end of the ring that `op` names first."""
        ring = op.operation.operands[0]
        if ring not in self.ends:
            self.ends[ring] = End(ring.type.stages, op)
        return self.ends[ring]

    def acquire(self, op: AcquireOp) -> None:
        end = self.end(op)
        if end.acquired:
            raise refused(
                op,
                "pairing: the slot acquired before must be committed first, got two acquires of "
                "a ring and no pipe.commit between them; commit a slot after what fills it",
            )
        if self.alone and end.counts.commits - end.counts.releases >= end.stages:
            raise refused(
                op,
                f"room: a slot must be empty, got {end.stages} of {end.stages} full and nobody "
                "else to release one; release slots before, or give the ring more",
            )
        end.acquired.append(Held(op))

    def commit(self, op: CommitOp) -> None:
        end = self.end(op)
        if not end.acquired:
            raise refused(
                op, "pairing: must follow a pipe.acquire of its ring, got none; acquire a slot"
            )
        _check_filled(op, end.acquired.pop())
        end.counts.commits += 1

    def wait(self, op: WaitOp) -> None:
        end = self.end(op)
        most = end.stages if self.awaits else 1
        if len(end.waited) >= most:
            raise refused(
                op,
                f"pairing: at most {most} slots of the ring can be held at once, got one more and "
                "no pipe.release between them; release a slot after the last op that reads it",
            )
        if self.alone and end.counts.waits >= end.counts.commits:
            raise refused(
                op,
                "room: a slot must be full, got no commit for it before and nobody else to make "
                "one; acquire, fill and commit it first",
            )
        if end.unguarded is None and not self._has_turn():
            end.unguarded = op
        end.waited.append(Held(op))
        end.counts.waits += 1

    def release(self, op: ReleaseOp) -> None:
        end = self.end(op)
        if not end.waited:
            raise refused(
                op, "pairing: must follow a pipe.wait of its ring, got none; wait for a slot first"
            )
        slot = end.waited.pop(0)
        if self.awaits and any(slot in read for read in self.issued):
            raise refused(
                op,
                "finishing: the MMAs that read the slot must be done, got one that may be under "
                "way; put a tile.await_mma before it, pending the MMAs issued after that one",
            )
        end.counts.releases += 1

    def skip(self, op: SkipOp) -> None:
        end, slots = self.end(op), op.slots.value
        if end.waited:
            raise refused(
                op,
                f"pairing: slots waited for must be released before others are skipped, got "
                f"{len(end.waited)} that are not; release them first",
            )
        if not isinstance(self.tile_loop, ForEachTurnOp):
            raise refused(
                op,
                "turns: slots are left to another agent in a pipe.for_each_turn, got none around "
                "it; drop the pipe.skip, or share the tiles",
            )
        if end.counts.waits == end.base:
            end.lead += slots
        end.counts.skips += slots

    def fill(self, op: TmaLoadOp | TmaGatherOp | TmaMulticastOp | CopyOp) -> None:
        tile = op.operation.operands[1]
        held = self.held(op, tile, "acquired", "pipe.commit")
        if held is not None:
            held.fills[defining_op(tile).index.value] += 1

    def multiply(self, op: MmaOp | PairMmaOp) -> None:
        tiles = smem_operands(op)
        read = [self.held(op, operand, "waited", "pipe.release") for operand in tiles]
        sums = self.held(op, op.acc, "acquired", "pipe.commit")
        if sums is not None:
            sums.sums += 1
        self.issued.append({held for held in read if held is not None} if self.awaits else set())

    def await_mma(self, op: AwaitMmaOp) -> None:
        pending = op.pending.value
        self.issued = self.issued[-pending:] if pending else []

    def store(self, op: Any) -> None:
        self.held(op, op.operation.operands[0], "waited", "pipe.release")
        self.issued = []  # a store waits for all of them

    def held(self, op: Any, tile: ir.Value, way: str, closes: str) -> Held | None:
        """The open slot that a tile is part of; None for a tile that is in no slot."""
        part = tile.owner
        if isinstance(part, ir.Block) or part.name != "pipe.tile":
            return None
        slot = part.operands[0]
        opened_by = defining_op(slot)
        end = self.ends.get(opened_by.operands[0])
        for held in reversed([] if end is None else getattr(end, way)):
            if held.op.slot == slot:
                return held
        got = opened_by.operation.name
        opens = "pipe.acquire" if way == "acquired" else "pipe.wait"
        state = f"one that {closes} has closed" if got == opens else f"one of {got}"
        use = "writes" if way == "acquired" else "reads"
        raise refused(
            op,
            f"holding: {use} a tile of a slot between {opens} and {closes}, got {state}; "
            f"move it between the two",
        )

    def loop(self, op: scf.ForOp) -> None:
        before = self._counts()
        steps = iterations_of(op)
        count = 2 if steps is None else len(steps)
        if not count:
            return
        self._iterate(op, op.body)
        moved = {
            ring: end.counts.minus(before.get(ring, Counts())) for ring, end in self.ends.items()
        }
        if steps is None and any(each != Counts() for each in moved.values()):
            raise refused(
                op,
                "iteration: a loop that moves slots must have constant bounds and a positive step, "
                "got others; make them constants",
            )
        for ring, each in moved.items():
            end, more = self.ends[ring], max(0, count - 2)
            if end.counts.waits == end.base:
                end.lead += more * each.skips
            end.counts = end.counts.plus(each, more)
        if count > 1:
            self._iterate(op, op.body)

    def for_each_tile(self, op: Any) -> None:
        if self.tile_loop is not None:
            raise refused(
                op, "balance: an agent has one loop over tiles, got a second; join the two"
            )
        before, self.tile_loop = self._counts(), op
        for end in self.ends.values():
            end.base = end.counts.waits
        self._iterate(op, op.body.blocks[0])
        for ring, end in self.ends.items():
            end.each = end.counts.minus(before.get(ring, Counts()))
            if self.alone:
                _check_emptied(end, end.each)
        leads = [end.lead for end in self.ends.values()]
        self._iterate(op, op.body.blocks[0])
        for (ring, end), lead in zip(self.ends.items(), leads, strict=True):
            end.counts, end.lead = before.get(ring, Counts()), lead

    def _has_turn(self) -> bool:
        slots = [held for end in self.ends.values() for held in (*end.acquired, *end.waited)]
        return any(isinstance(held.op.slot.type.tiles[0], TurnType) for held in slots)

    def _counts(self) -> dict[ir.Value, Counts]:
        return {ring: end.counts.plus(Counts()) for ring, end in self.ends.items()}

    def _iterate(self, loop: Any, body: ir.Block) -> None:
        """One iteration, which must leave as many slots open as it found."""
        before = {ring: (len(end.acquired), len(end.waited)) for ring, end in self.ends.items()}
        self.walk(body)
        for ring, end in self.ends.items():
            was = before.get(ring, (0, 0))
            for held, count in ((end.acquired, was[0]), (end.waited, was[1])):
                if len(held) > count:
                    raise _left_open(held[-1].op, "the iteration")
                if len(held) < count:
                    raise refused(
                        loop,
                        "iteration: must leave as many slots of a ring open as it found, got "
                        f"{count} before and {len(held)} after; move the op that closes one",
                    )

    def _close(self) -> None:
        for end in self.ends.values():
            for held in (*end.acquired, *end.waited):
                raise _left_open(held.op, "the program")
            if self.alone:
                _check_emptied(end, end.counts)


def _check_filled(op: CommitOp, slot: Held) -> None:
    """Refuse to commit a slot that nothing, or not everything, was started into."""
    tiles = slot.op.slot.type.tiles
    if isinstance(tiles[0], TurnType):
        return
    if isinstance(tiles[0], AccumulatorType):
        if not slot.sums:
            raise refused(
                op, "filling: an MMA must have summed into the slot, got none; commit it after one"
            )
        return
    taken = Counter(use.owner.opview.index.value for use in slot.op.slot.uses)
    for index in range(len(tiles)):
        if (slot.fills[index], taken[index]) != (1, 1):
            raise refused(
                op,
                f"filling: one copy must fill each of the slot's {len(tiles)} tiles, got "
                f"{slot.fills[index]} copies and {taken[index]} pipe.tile for tile {index}; "
                "load every tile once between pipe.acquire and pipe.commit",
            )


def _check_emptied(end: End, counts: Counts) -> None:
    """Refuse a program without roles that leaves slots full."""
    if counts.commits != counts.releases:
        raise refused(
            end.first,
            "balance: every slot that is committed must be waited for and released, got "
            f"{counts.commits} commits and {counts.releases} releases; read what was loaded",
        )


def _left_open(op: Any, until: str) -> Exception:
    if isinstance(op, AcquireOp):
        cure = "commit the slot after what fills it"
        return refused(
            op, f"pairing: must meet one pipe.commit, got none before {until} ends; {cure}"
        )
    cure = "release the slot after the last op that reads it"
    return refused(op, f"pairing: must meet one pipe.release, got none before {until} ends; {cure}")


RULES: dict[type, Callable[[Agent, Any], None]] = {
    AcquireOp: Agent.acquire,
    CommitOp: Agent.commit,
    WaitOp: Agent.wait,
    ReleaseOp: Agent.release,
    SkipOp: Agent.skip,
    TmaLoadOp: Agent.fill,
    LevelLoadOp: Agent.fill,
    EdgeLoadOp: Agent.fill,
    EdgeMulticastOp: Agent.fill,
    TmaGatherOp: Agent.fill,
    TmaMulticastOp: Agent.fill,
    CopyOp: Agent.fill,
    **dict.fromkeys(ALL_MMAS, Agent.multiply),
    AwaitMmaOp: Agent.await_mma,
    StoreOp: Agent.store,
    StagedStoreOp: Agent.store,
    ReducedStoreOp: Agent.store,
    GatheredStoreOp: Agent.store,
    StoreGroupsOp: Agent.store,
    StoreQuantizedOp: Agent.store,
    StagedQuantizedOp: Agent.store,
    scf.ForOp: Agent.loop,
    ForEachTileOp: Agent.for_each_tile,
    ForEachClaimOp: Agent.for_each_tile,
    ForEachTurnOp: Agent.for_each_tile,
}
