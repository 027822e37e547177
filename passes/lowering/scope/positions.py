"""Positions in rings, barriers and slots by their index, and masks of CTAs, as values."""

from __future__ import annotations

from ....dialects import llvm, sm
from ....dialects.mlir import arith, ir, scf
from ....dialects.pipe import TileOp
from ....dialects.record import record
from ....dialects.sm.memory import BARRIER_BYTES, CLAIM_BYTES
from ....dialects.sm.positions import PAIR, PEERS
from ....dialects.sm.threads import WARPS_MAX
from ....dialects.target import WARP_THREADS, WARPGROUP_THREADS
from ....dialects.tile_types import AccumulatorType, integers_of
from ... import build
from ...base import defining_op
from ...clone import constant_of
from ...team import Team, team_op
from .scope import Scope, known, lowered, lowered_as, lowered_parts, slot_of


@record
class Position:
    """A position in a ring of `stages` slots: its phase, and its index where there are more.

    One that stays at the slot of its warpgroup has a phase alone, as where there is no other. They
    are in stack slots of the kernel's first block, which LLVM's mem2reg makes registers.
    """

    stages: int
    phase: ir.Value
    index: ir.Value
    of_warpgroup: bool = False

    @staticmethod
    def of(position: ir.Value) -> Position:
        """What `lower_position` made of it."""
        phase, *others = lowered_parts(position)
        if not others:
            return Position(1, phase, phase)
        if len(others) == 1:
            return Position(1, phase, phase, of_warpgroup=True)
        index, stages = others
        return Position(constant_of(stages) or 1, phase, index)

    def step(self, slots: int) -> None:
        """Go `slots` slots further; the phase flips when the ring wraps."""
        laps, rest = divmod(slots, self.stages)
        if laps % 2:
            llvm.store(_load(self.phase) ^ 1, self.phase)
        if rest == slots == 1:
            self._next()
        elif rest:
            self._skip(rest)

    def _next(self) -> None:
        following = _load(self.index) + 1
        wraps = build.equal(following, self.stages)
        llvm.store(arith.select(wraps, build.constant(0), following), self.index)
        llvm.store(_load(self.phase) ^ arith.extui(build.i32(), wraps), self.phase)

    def _skip(self, slots: int) -> None:
        following = _load(self.index) + slots
        inside = build.less(following, self.stages)
        wrapped = following - self.stages
        llvm.store(arith.select(inside, following, wrapped), self.index)
        wraps = arith.extui(build.i32(), inside ^ build.true())
        llvm.store(_load(self.phase) ^ wraps, self.phase)


def _load(slot: ir.Value) -> ir.Value:
    return llvm.load(build.i32(), slot)


def _zero_slot() -> ir.Value:
    slot = llvm.alloca(build.pointer(), build.constant(1), build.i32())
    llvm.store(build.constant(0), slot)
    return slot


def lower_position(scope: Scope, op: sm.PositionOp) -> ir.Value:
    """Both are 0 at first."""
    stages = op.stages.value
    if stages == 1:
        return lowered_as(_zero_slot(), op.position.type)
    index, phase = _zero_slot(), _zero_slot()
    return lowered_as((phase, index, build.constant(stages)), op.position.type)


def lower_warpgroup_position(_: Scope, op: sm.WarpgroupPositionOp) -> ir.Value:
    """Only the phase changes."""
    return lowered_as((_zero_slot(), build.constant(op.stages.value)), op.position.type)


def lower_read_position(_: Scope, op: sm.ReadPositionOp) -> list[ir.Value]:
    """A ring of one slot has but one index; that of a warpgroup's is its number."""
    at = Position.of(op.position)
    if at.of_warpgroup:
        return [Team.of(op).thread // WARPGROUP_THREADS, _load(at.phase)]
    return [build.constant(0) if at.stages == 1 else _load(at.index), _load(at.phase)]


def lower_advance_position(_: Scope, op: sm.AdvancePositionOp) -> None:
    Position.of(op.position).step(op.slots.value)


def lower_tally(scope: Scope, op: sm.TallyOp) -> ir.Value:
    return lowered_as(_zero_slot(), op.tally.type)


def lower_read_tally(_: Scope, op: sm.ReadTallyOp) -> ir.Value:
    return _load(lowered(op.tally))


def lower_write_tally(_: Scope, op: sm.WriteTallyOp) -> None:
    llvm.store(op.value, lowered(op.tally))


def lower_barrier(_: Scope, op: sm.BarrierOp) -> ir.Value:
    """The address of the barrier."""
    first, index = defining_op(op.barriers).offset.value, known(op.index)
    return build.shared_at(index * BARRIER_BYTES + first)


def lower_slot_address(_: Scope, op: sm.SlotAddressOp) -> ir.Value:
    """Where launch control writes its answer."""
    ring, index = slot_of(op)
    (first,) = integers_of(defining_op(ring.memory).offsets)
    return build.shared_at(index * CLAIM_BYTES + first)


def lower_tile(_: Scope, op: TileOp) -> ir.Value:
    """Where the tile lies, from the slot's index: a byte, or a column of tensor memory."""
    ring, index = slot_of(op)
    memory = defining_op(ring.memory)
    if isinstance(op.tile.type, AccumulatorType):
        column = build.as_value(index * memory.apart + memory.first.value)
        return lowered_as([lowered(memory.memory), column], op.tile.type)
    first, pitch = integers_of(memory.offsets)[op.index.value], op.tile.type.layout.slot_bytes
    return lowered_as(build.as_value(index * pitch + first), op.tile.type)


def lower_cta_mask(scope: Scope, op: sm.CtaMaskOp) -> ir.Value:
    """The mask, computed from the place of this CTA."""
    axes = [ir.StringAttr(axis).value for axis in op.along]
    if op.whose.value == PEERS:
        return scope.place.peers(axes[0])
    return scope.place.mask(op.whose.value == PAIR, axes)


def lower_leader_rank(scope: Scope, _: sm.LeaderRankOp) -> ir.Value:
    """The pair's first CTA."""
    return build.as_value(scope.place.leader_rank())


def lower_prefetch(_: Scope, op: sm.PrefetchTensorMapOp) -> None:
    """The map is a parameter."""
    sm.PrefetchTensorMapOp.of(lowered(op.map))


def lower_tmem_base(scope: Scope, op: sm.TmemBaseOp) -> ir.Value:
    """It was written to shared memory; what asks for the allocation from here on gets it."""
    offset = defining_op(op.memory).offset.value
    base = _met_base(scope, op, offset) if op.barrier.value else _read_base(offset)
    op.memory.replace_all_uses_with(lowered_as(base, op.memory.type))
    return base


def _met_base(scope: Scope, op: sm.TmemBaseOp, offset: int) -> ir.Value:
    """The base of tensor memory: warps that use it synchronise and read it, the others get 0 at
    once."""
    warp = team_op(scope.kernel).thread // WARP_THREADS
    users = ~op.apart.value & (1 << WARPS_MAX) - 1
    uses = arith.shrui(build.constant(build.signed(users)), warp) % 2
    met = scf.IfOp(build.equal(uses, 1), [build.i32()], has_else=True)
    other = met.else_block
    assert other is not None
    with ir.InsertionPoint(met.then_block):
        sm.NamedBarrierOp.of(id=op.barrier.value, threads=op.threads.value)
        scf.YieldOp([_read_base(offset)])
    with ir.InsertionPoint(other):
        scf.YieldOp([build.constant(0)])
    return met.results[0]


def _read_base(offset: int) -> ir.Value:
    return llvm.load(build.i32(), build.shared_at(offset))
