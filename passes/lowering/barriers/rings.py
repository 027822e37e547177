"""The rings of a planned kernel for `pipes-to-barriers`: barriers and positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

from ....dialects import sm
from ....dialects.mlir import ir
from ....dialects.pipe import TurnType
from ....dialects.record import record
from ....dialects.shared_columns import shared_of
from ....dialects.sm.memory import BarriersOp, ProductColumnsOp, ScaleColumnsOp, is_claim
from ....dialects.sm.positions import CTA, PAIR, PEERS
from ....dialects.sm.ring_memory import AheadRingOp, CopyRingOp, RingOp, StagingOp, TurnsOp
from ....dialects.sm.threads import WARP, ConvergeOp, RunOp
from ....dialects.target import Target
from ....dialects.tile import KernelOp
from ....dialects.tile.ahead import parts_of_ring
from ....dialects.tile_types import AccumulatorType
from ... import build
from ...base import defining_op
from ...cluster import Cluster
from ...plan import MMA_DONE, PRODUCTS_READY, cluster_of
from ...ring_fills import gathers_alone, has_copies
from .copy_moves import Moves, moves_of

RINGS = (RingOp, TurnsOp, StagingOp, AheadRingOp, CopyRingOp)


@record
class Ring:
    """A ring and the positions of those who use it.

    Who fills slots is at `fill`, who reads them at `read`, and releases them at `release`: one
    position with `read` where a slot is released before the next is waited for. Threads that copy
    have `pending` slots filled or under way, the first at `arrive`, that are not full yet. `moves`
    are those of threads that read what they copy. With `gathers` they only start copies of TMA.
    """

    op: Any
    copies: bool
    fill: ir.Value
    release: ir.Value
    read: ir.Value
    arrive: ir.Value
    pending: ir.Value | None = None
    moves: Moves | None = None
    gathers: bool = False

    @property
    def kind(self) -> str:
        """What a slot holds: "operands", "accumulator", "turns", "claims", "staging" or "ahead"."""
        if isinstance(self.op, StagingOp):
            return "staging"
        if isinstance(self.op, AheadRingOp):
            return "ahead"
        payload = self.op.ring.type.tiles[0]
        if isinstance(payload, TurnType):
            return "turns"
        if isinstance(payload, AccumulatorType):
            return "accumulator"
        return "claims" if is_claim(payload) else "operands"

    @property
    def stages(self) -> int:
        return self.op.ring.type.stages

    @property
    def under_way(self) -> int:
        """Slots that threads go on to fill before they wait for what they copied to the first."""
        return self.op.under_way.value

    def full(self, index: ir.Value) -> ir.Value:
        """The barrier that tells that the slot of that index is full."""
        return barrier_of(self.op.full, index)

    def empty(self, index: ir.Value) -> ir.Value:
        """The barrier that tells that it is empty."""
        return barrier_of(self.op.empty, index)

    def place(self, index: ir.Value, parity: ir.Value) -> ir.Value:
        """The slot at a position; of one slot with two places the one that has its turn."""
        in_turn = self.kind == "accumulator" and shared_of(defining_op(self.op.memory)) > 0
        return self.slot(parity if in_turn else index)

    def slot(self, index: ir.Value) -> ir.Value:
        """The slot of that index."""
        return sm.SlotOp.of(self.op.ring, index, slot=self.op.ring.type.slot).slot


@record
class Rings:
    """All rings of a kernel by their value, and what the ops on them depend on.

    `done` is the barrier of sums in no ring, if there are some, and `done_at` a thread's position.
    `scales` and `scales_at` are those of the places for block scales, `products` the barriers of
    products that threads add.
    `filling` are the full barriers of slots that were acquired, `bases` the descriptors of first
    slots' tiles by their memory.
    """

    target: Target
    cluster: Cluster
    rings: dict[ir.Value, Ring]
    done: Any = None
    done_at: Any = None
    scales: Any = None
    scales_at: Any = None
    products: tuple[Any, ...] = ()
    filling: dict[ir.Value, ir.Value] = field(default_factory=dict)
    bases: dict[ir.Value, list[ir.Value]] = field(default_factory=dict)

    @staticmethod
    def of(kernel: KernelOp, target: Target) -> Rings:
        """The rings, each with new positions after the op that says where it lies."""
        ops = list(kernel.body.blocks[0].operations)
        made: dict[ir.Value, Ring] = {
            op.ring: _ring(op, target) for op in ops if isinstance(op, RINGS)
        }
        rings = Rings(target, cluster_of(kernel), made)
        for op in ops:
            if isinstance(op, BarriersOp) and op.label.value == MMA_DONE:
                with ir.InsertionPoint.after(op), op.location:
                    rings = replace(rings, done=op.barriers, done_at=position(MMA_DONE, 1))
            if isinstance(op, ScaleColumnsOp) and op.empty is not None:
                with ir.InsertionPoint.after(op), op.location:
                    at = position("scales", op.slots.value)
                rings = replace(rings, scales=op.empty, scales_at=at)
            if isinstance(op, ProductColumnsOp):
                rings = replace(rings, products=(*rings.products, op.done))
            if isinstance(op, BarriersOp) and op.label.value == PRODUCTS_READY:
                rings = replace(rings, products=(*rings.products, op.barriers))
        return rings

    def of_op(self, op: Any) -> Ring:
        """The ring that an op of `pipe` is on."""
        return self.rings[op.ring]

    @property
    def cta_group(self) -> int:
        """CTAs that an MMA is of."""
        return 2 if self.cluster.pair else 1

    @property
    def leads(self) -> bool:
        """Whether the first CTA of a pair alone waits for the operands of both. Where threads add
        products, those of each wait for their own, and tell it."""
        return self.cluster.pair and not self.target.adds_from_tensor_memory

    def wait(self, barrier: ir.Value, parity: ir.Value, ring: Ring | None = None) -> None:
        """Wait for a barrier; of a `ring` whose slots threads of both CTAs of a pair fill, for what
        the other's wrote too."""
        in_cluster = self.cluster.pair and ring is not None and ring.copies
        build.barrier_wait(barrier, parity, in_cluster=in_cluster)

    def fence(self, kind: str) -> None:
        """A fence between instructions on tensor memory, where there is one."""
        if self.target.uses_tensor_memory:
            build.fence(kind)

    def commit(self, barrier: ir.Value, mask: ir.Value | None = None) -> None:
        """One arrival, at every rank of the mask, when the MMAs so far are done."""
        sm.CommitOp.of(barrier, cta_group=self.cta_group, mask=mask)

    def pair_mask(self) -> ir.Value | None:
        """Both CTAs of the pair, None without pairs."""
        return mask_of(PAIR, ()) if self.cluster.pair else None

    def release_mask(self) -> ir.Value | None:
        """The CTAs that write into the slots that this CTA's MMAs have read; None for itself."""
        cluster = self.cluster
        if cluster.size == 1 or not (cluster.pair or cluster.shares_a or cluster.shares_b):
            return None
        along = [axis for axis in "mn" if (cluster.shares_b if axis == "m" else cluster.shares_a)]
        return mask_of(PAIR if cluster.pair else CTA, along)


def _ring(op: Any, target: Target) -> Ring:
    with ir.InsertionPoint.after(op), op.location:
        return _with_positions(op, target)


def _with_positions(op: Any, target: Target) -> Ring:
    stages = op.ring.type.stages
    if isinstance(op, StagingOp):
        write = position("staging.write", stages)
        return Ring(op, False, write, write, write, write)
    if isinstance(op, CopyRingOp):
        fill, read = position("operands.fill", stages), position("operands.read", stages)
        return Ring(op, True, fill, read, read, fill, moves=moves_of(op))
    label = op.full.owner.opview.label.value.partition(".")[0]
    if isinstance(op, AheadRingOp):
        own = parts_of_ring(op.ring) > 1
        fill, read = (position(f"{label}.{way}", stages, own) for way in ("fill", "read"))
        return Ring(op, False, fill, read, read, fill)
    fill = position(f"{label}.fill", stages)
    release = position(f"{label}.{'release' if target.awaits_mmas else 'read'}", stages)
    read = position(f"{label}.read", stages) if target.awaits_mmas else release
    copies = has_copies(op.ring)
    if not isinstance(op, RingOp) or not op.under_way.value:
        alone = copies and gathers_alone(op.ring)
        return Ring(op, copies, fill, release, read, fill, gathers=alone)
    arrive = position(f"{label}.arrive", stages)
    pending = sm.TallyOp.of(label=f"{label}.pending", tally=sm.TallyType.get()).tally
    return Ring(op, copies, fill, release, read, arrive, pending)


def position(label: str, stages: int, own: bool = False) -> ir.Value:
    """A position in a ring of `stages` slots; with `own` each warpgroup stays at one of them."""
    kind = sm.WarpgroupPositionOp if own else sm.PositionOp
    made = kind.of(label=label, stages=stages, position=sm.PositionType.get())
    return made.position


def read(place: ir.Value) -> tuple[ir.Value, ir.Value]:
    """(index of the slot, parity of its phase) at a position."""
    op = sm.ReadPositionOp.of(place)
    return op.index, op.parity


def advance(place: ir.Value, slots: int = 1) -> None:
    """Go on to a later slot."""
    sm.AdvancePositionOp.of(place, slots=slots)


def mask_of(whose: str, along: Iterable[str]) -> ir.Value:
    """The ranks of the CTAs that `sm.cta_mask` says."""
    axes = ir.ArrayAttr.get([ir.StringAttr.get(axis) for axis in along])
    return sm.CtaMaskOp.of(whose=whose, along=axes).mask


def peers(axis: str) -> ir.Value:
    """The CTAs in line along an axis that need the same tile as this one."""
    return mask_of(PEERS, axis)


def barrier_of(barriers: ir.Value, index: ir.Value) -> ir.Value:
    """One of the barriers of a ring."""
    return sm.BarrierOp.of(barriers, index, barrier=build.pointer(build.SHARED)).barrier


def before(parity: ir.Value) -> ir.Value:
    """The parity of the phase before, which ends when the slot is empty."""
    return parity ^ 1


@contextmanager
def run(by: str) -> Iterator[None]:
    """Emit the body for fewer threads."""
    region = RunOp(by=ir.StringAttr.get(by))
    with ir.InsertionPoint(region.body.blocks.append()):
        yield


def converge() -> None:
    """The lanes of each warp wait for each other."""
    ConvergeOp()


def arrive_once(barrier: ir.Value) -> None:
    """One arrival of each warp."""
    with run(WARP):
        build.arrive(barrier)
