"""Positions in rings, barriers and slots by their index, and masks of CTAs, as values."""

from __future__ import annotations

from ...dialects import sm
from ...dialects.mlir import arith, ir, llvm
from ...dialects.pipe import TileOp
from ...dialects.sm_memory import BARRIER_BYTES, CLAIM_BYTES
from ...dialects.sm_positions import PAIR, PEERS
from .. import build
from ..base import defining_op
from .frame import Frame, known_index, slot_of


def lower_read_position(frame: Frame, op: sm.ReadPositionOp) -> list[ir.Value]:
    """A ring of one slot has but one index."""
    position = frame.positions[op.position]
    return [build.as_value(position.index()), position.phase()]


def lower_advance_position(frame: Frame, op: sm.AdvancePositionOp) -> None:
    position, slots = frame.positions[op.position], op.slots.value
    position.advance() if slots == 1 else position.skip(slots)


def lower_read_tally(frame: Frame, op: sm.ReadTallyOp) -> ir.Value:
    return frame.tallies[op.tally].value()


def lower_write_tally(frame: Frame, op: sm.WriteTallyOp) -> None:
    frame.tallies[op.tally].set(op.value)


def lower_barrier(_: Frame, op: sm.BarrierOp) -> ir.Value:
    """Its address."""
    first, index = defining_op(op.barriers).offset.value, known_index(op.index)
    return build.shared_at(index * BARRIER_BYTES + first)


def lower_slot_address(frame: Frame, op: sm.SlotAddressOp) -> ir.Value:
    """Where launch control writes its answer."""
    ring, index = slot_of(op)
    (first,) = frame.plan.rings[ring].tiles
    return build.shared_at(index * CLAIM_BYTES + first)


def lower_tile(frame: Frame, op: TileOp) -> None:
    """Where the tile lies, from the slot's index."""
    ring, index = slot_of(op)
    if frame.plan.rings[ring].kind == "accumulator":
        frame.columns[op.tile] = frame.columns_in(ring, index)
    else:
        frame.tiles[op.tile] = frame.tile_in(ring, index, op.index.value)


def lower_cta_mask(frame: Frame, op: sm.CtaMaskOp) -> ir.Value:
    """Of whose it is, those in line along N, and the whole line along M."""
    cluster, pair = frame.cluster, op.whose.value == PAIR
    axes = [ir.StringAttr(axis).value for axis in op.along]
    if op.whose.value == PEERS:
        return _peers(frame, axes[0])
    own = 0b11 if pair else 0b1
    x, y = frame.pair_start() if pair else frame.place[0], frame.place[1]
    ranks = cluster.a_peers * own if "n" in axes else own
    mask = frame.line(ranks, x, 0 if "n" in axes else y)
    if "m" in axes:
        mask = arith.ori(mask, frame.line((1 << cluster.m) - 1, 0, y))
    return mask


def _peers(frame: Frame, axis: str) -> ir.Value:
    """Those that need the same tile of A, in line along N, or of B, along M."""
    (x, y), cluster = frame.place, frame.cluster
    if axis == "n":
        return frame.line(cluster.a_peers, x, 0)
    return frame.line(cluster.b_peers, x % 2 if cluster.pair else 0, y)


def lower_leader_rank(frame: Frame, _: sm.LeaderRankOp) -> ir.Value:
    """The pair's first CTA."""
    rank = frame.pair_start() + frame.place[1] * frame.cluster.m
    return build.as_value(rank)


def lower_prefetch(frame: Frame, op: sm.PrefetchTensorMapOp) -> None:
    """The map is a parameter."""
    argument = defining_op(op.map).view
    sm.PrefetchTensorMapOp.of(frame.parameters[argument, op.map])


def lower_tmem_base(frame: Frame, op: sm.TmemBaseOp) -> ir.Value:
    """It was written to shared memory."""
    place = build.shared_at(defining_op(op.memory).offset.value)
    frame.tmem = llvm.load(build.i32(), place)
    return frame.tmem
