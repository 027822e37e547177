"""Positions in rings, barriers and slots by their index, and masks of CTAs, as values."""

from __future__ import annotations

from ...dialects import sm
from ...dialects.mlir import arith, ir, llvm
from ...dialects.pipe import TileOp
from ...dialects.sm_memory import CLAIM_BYTES
from ...dialects.sm_positions import PAIR
from .. import build
from ..base import defining_op
from ..clone import constant_of
from .frame import Frame, Slot


def lower_read_position(frame: Frame, op: sm.ReadPositionOp) -> None:
    """A ring of one slot has but one index."""
    position = frame.positions[op.position]
    frame.indices[op.index] = index = position.index()
    frame.values[op.index] = build.as_value(index)
    frame.values[op.parity] = position.phase()


def lower_advance_position(frame: Frame, op: sm.AdvancePositionOp) -> None:
    position, slots = frame.positions[op.position], op.slots.value
    position.advance() if slots == 1 else position.skip(slots)


def lower_read_tally(frame: Frame, op: sm.ReadTallyOp) -> None:
    frame.values[op.value] = frame.tallies[op.tally].value()


def lower_write_tally(frame: Frame, op: sm.WriteTallyOp) -> None:
    frame.tallies[op.tally].set(frame.values[op.value])


def lower_barrier(frame: Frame, op: sm.BarrierOp) -> None:
    """Its address."""
    first, known = defining_op(op.barriers).offset.value, constant_of(op.index)
    index = frame.index_of(op.index) if known is None else known
    frame.values[op.barrier] = frame.barrier_at(first, index)


def lower_slot(frame: Frame, op: sm.SlotOp) -> None:
    frame.slots[op.slot] = Slot(op.ring, frame.index_of(op.index))


def lower_slot_address(frame: Frame, op: sm.SlotAddressOp) -> None:
    """Where launch control writes its answer."""
    slot = frame.slots[op.slot]
    (first,) = frame.plan.rings[slot.ring].tiles
    offset = slot.index * CLAIM_BYTES + first
    frame.values[op.address] = build.shared_at(offset)


def lower_tile(frame: Frame, op: TileOp) -> None:
    """Where the tile lies, from the slot's index."""
    slot = frame.slots[op.slot]
    if frame.plan.rings[slot.ring].kind == "accumulator":
        frame.columns[op.tile] = frame.columns_in(slot)
    else:
        frame.tiles[op.tile] = frame.tile_in(slot, op.index.value)


def lower_cta_mask(frame: Frame, op: sm.CtaMaskOp) -> None:
    """Of whose it is, those in line along N, and the whole line along M."""
    cluster, pair = frame.cluster, op.whose.value == PAIR
    axes = [ir.StringAttr(axis).value for axis in op.along]
    own = 0b11 if pair else 0b1
    x, y = frame.pair_start() if pair else frame.place[0], frame.place[1]
    ranks = cluster.a_peers * own if "n" in axes else own
    mask = frame.line(ranks, x, 0 if "n" in axes else y)
    if "m" in axes:
        mask = arith.ori(mask, frame.line((1 << cluster.m) - 1, 0, y))
    frame.values[op.mask] = mask


def lower_leader_rank(frame: Frame, op: sm.LeaderRankOp) -> None:
    """The pair's first CTA."""
    rank = frame.pair_start() + frame.place[1] * frame.cluster.m
    frame.values[op.rank] = build.as_value(rank)


def lower_prefetch(frame: Frame, op: sm.PrefetchTensorMapOp) -> None:
    """The map is a parameter."""
    argument = defining_op(op.map).view
    sm.PrefetchTensorMapOp.of(frame.parameters[argument, op.map])


def lower_tmem_base(frame: Frame, op: sm.TmemBaseOp) -> None:
    """It was written to shared memory."""
    place = build.shared_at(defining_op(op.memory).offset.value)
    frame.tmem = frame.values[op.address] = llvm.load(build.i32(), place)
