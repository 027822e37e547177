"""Pipes as mbarriers: waits, arrivals, and what an arrival waits for.

ring of          full when                                       empty when
operand tiles    TMA's bytes and the producer's arrival are in;  tcgen05.commit arrives, or
                 each warp's, where threads copy                 each consumer warp (wgmma)
accumulator      tcgen05.commit arrives                          each consumer warp arrives
turns            each producer warp arrives                      each consumer warp arrives
pieces ahead     TMA's bytes and the arrival of who loads are in;  no barrier tells

Rings that threads fill for themselves have no mbarriers (`copy_groups`).

With wgmma, a slot may be waited for before the one ahead of it is released, so that waiting and
releasing have a position each. Threads that copy with cp.async arrive on a slot when they have
started to fill later ones, and at the end of the loop on the rest.
"""

from __future__ import annotations

from typing import Any

from ....dialects import sm
from ....dialects.mlir import arith, ir, scf
from ....dialects.pipe import (
    AcquireOp,
    CommitOp,
    DrainOp,
    ParityOp,
    ReleaseOp,
    SkipOp,
    TileOp,
    WaitOp,
)
from ....dialects.sm.threads import ISSUER, LANE, WARP, WARPGROUP
from ....dialects.sm.types import attribute_of
from ....dialects.tile.ahead import AwaitPieceOp, LoadPieceOp
from ....dialects.tile.boxes import BoxRowsOp, GatherBoxesOp, LoadBoxesOp, MulticastBoxesOp
from ....dialects.tile.edges import (
    EdgeBoxesOp,
    EdgeBoxRowsOp,
    EdgeLoadOp,
    EdgeMulticastBoxesOp,
    EdgeMulticastOp,
)
from ....dialects.tile.level import LevelBoxesOp, LevelLoadOp, LevelRowsOp
from ....dialects.tile.loads import TmaGatherOp, TmaLoadOp, TmaMulticastOp
from ....dialects.tile.stores import NextBufferOp, StagingBufferOp
from ... import build
from ...base import defining_op, refused
from ...dynamic_rows import box_rows
from ...ring_fills import has_vectors, loads_of_own_rows, may_release_together, transaction_bytes
from . import copy_groups
from .rings import Ring, Rings, advance, arrive_once, before, converge, peers, read, run


def lower_acquire(rings: Rings, op: AcquireOp) -> None:
    """Wait until the slot is empty; announce the bytes that complete its full barrier."""
    ring = rings.of_op(op)
    if ring.moves is not None:
        copy_groups.acquire(ring, op)
        return
    index, parity = read(ring.fill)
    rings.wait(ring.empty(index), before(parity))
    if ring.kind == "accumulator":
        rings.fence("tcgen05_after")
    slot = ring.place(index, parity)
    if ring.kind == "operands":
        rings.filling[slot] = full = ring.full(index)
        _announce(rings, ring, full, op)
    op.slot.replace_all_uses_with(slot)


def _announce(rings: Rings, ring: Ring, full: ir.Value, acquire: AcquireOp) -> None:
    pair = rings.leads
    ctas = 2 if pair else 1
    expected = ctas * transaction_bytes(acquire)
    more = _bytes_by_rows(acquire, ctas)
    if pair and not ring.copies:
        with run(ISSUER):
            _expect(sm.ArriveExpectTxOp, sm.ArriveExpectMoreOp, full, expected, more)
    elif not ring.copies:
        _expect(sm.ArriveExpectTxOp, sm.ArriveExpectMoreOp, full, expected, more)
    elif expected or more is not None:
        with run(ISSUER if pair else LANE):
            _expect(sm.ExpectTxOp, sm.ExpectMoreOp, full, expected, more)
        converge()


def _expect(
    known: Any, also_more: Any, full: ir.Value, expected: int, more: ir.Value | None
) -> None:
    if more is None:
        known.of(full, bytes=expected)
    else:
        also_more.of(full, more, bytes=expected)


def _bytes_by_rows(acquire: AcquireOp, ctas: int) -> ir.Value | None:
    """Bytes of boxes whose number of rows is known only at launch; None if there are none."""
    more = None
    for load in loads_of_own_rows(acquire):
        layout = load.tile.type.layout
        rows = _rows_of(load)
        each = rows * (ctas * layout.span_bytes * layout.chunks)
        more = each if more is None else more + each
    return more


def lower_load(rings: Rings, op: TmaLoadOp) -> None:
    """The full barrier of the slot counts the bytes."""
    LoadBoxesOp(barrier=_counting(rings, op), map=op.map, tile=op.tile, i=op.i, j=op.j)


def level_rows(load: LevelLoadOp) -> ir.Value:
    how = {
        "most": attribute_of(load.tile.type.layout.rows),
        "unit": attribute_of(load.map.type.box[1]),
    }
    return LevelRowsOp(rows=load.count, count=ir.IntegerType.get_signless(32), **how).count


def lower_level_load(rings: Rings, op: LevelLoadOp) -> None:
    LevelBoxesOp(
        barrier=_counting(rings, op), map=op.map, tile=op.tile, i=op.i, j=op.j, count=op.count
    )


def _rows_of(load: Any) -> ir.Value:
    """The number of rows in the boxes of a load."""
    if isinstance(load, LevelLoadOp):
        return level_rows(load)
    most, count = load.tile.type.layout.rows, ir.IntegerType.get_signless(32)
    if isinstance(load, EdgeMulticastOp):
        how = {"most": most, "unit": load.end.type.box[1], "parts": load.parts.value}
        attributes = {name: attribute_of(number) for name, number in how.items()}
        return EdgeBoxRowsOp(rows=load.count, count=count, **attributes).count
    if isinstance(load, EdgeLoadOp):
        return BoxRowsOp(rows=load.count, count=count, most=attribute_of(most)).count
    return box_rows(load)


def lower_edge_load(rings: Rings, op: EdgeLoadOp) -> None:
    where = {"map": op.map, "tile": op.tile, "i": op.i, "j": op.j}
    EdgeBoxesOp(barrier=_counting(rings, op), **where, count=op.count, end=op.end)


def lower_edge_multicast(rings: Rings, op: EdgeMulticastOp) -> None:
    where = {"map": op.map, "tile": op.tile, "i": op.i, "j": op.j}
    boxes = {"axis": op.axis, "parts": op.parts, "mask": peers(op.axis.value)}
    how = {"count": op.count, "end": op.end}
    EdgeMulticastBoxesOp(barrier=_counting(rings, op), **where, **boxes, **how)


def lower_gather(rings: Rings, op: TmaGatherOp) -> None:
    """The same for copies that all threads of the team start."""
    GatherBoxesOp(barrier=_counting(rings, op), map=op.map, tile=op.tile, i=op.i, j=op.j)


def lower_multicast(rings: Rings, op: TmaMulticastOp) -> None:
    """The same in every CTA that receives the tile."""
    where = {"map": op.map, "tile": op.tile, "i": op.i, "j": op.j}
    boxes = {"axis": op.axis, "parts": op.parts, "mask": peers(op.axis.value)}
    MulticastBoxesOp(barrier=_counting(rings, op), **where, **boxes)


def _counting(rings: Rings, op: TmaLoadOp | TmaGatherOp | TmaMulticastOp) -> ir.Value:
    """The barrier that counts a load's bytes; that of the leader CTA if it waits for both CTAs."""
    full = rings.filling[defining_op(op.tile).slot]
    if not rings.leads:
        return full
    return sm.LeaderBarrierOp.of(full, leader=full.type).leader


def lower_commit(rings: Rings, op: CommitOp) -> None:
    """The slot becomes full when TMA's bytes, the threads' copies or the MMAs are complete."""
    ring = rings.of_op(op)
    if ring.moves is not None:
        copy_groups.commit(ring, op)
        return
    if ring.kind == "accumulator":
        rings.commit(ring.full(read(ring.fill)[0]), rings.pair_mask())
    elif ring.kind == "turns":
        _hand_over(ring.full(read(ring.fill)[0]))
    elif ring.copies:
        _commit_copies(rings, ring)
    advance(ring.fill)


def _commit_copies(rings: Rings, ring: Ring) -> None:
    """Each warp arrives for the slot whose copies were started first."""
    if ring.gathers:  # their bytes tell when they are done
        _arrive_when_copied(rings, ring)
        return
    sm.CpAsyncCommitOp.of()
    if ring.pending is None:
        _publish_copies(0)
        _arrive_when_copied(rings, ring)
        return
    pending = sm.ReadTallyOp.of(ring.pending).value
    behind = build.equal(pending, ring.under_way)
    with build.when(behind):
        _publish_copies(ring.under_way)
        _arrive_when_copied(rings, ring)
        advance(ring.arrive)
    more = arith.select(behind, pending, pending + 1)
    sm.WriteTallyOp.of(ring.pending, more)


def finish_copies(rings: Rings, loop: scf.ForOp) -> None:
    """After a loop that fills slots, each warp arrives for copies that are still in flight."""
    for op in loop.body.operations:
        if isinstance(op, CommitOp):
            _arrive_on_the_rest(rings, rings.of_op(op))


def _arrive_on_the_rest(rings: Rings, ring: Ring) -> None:
    if ring.pending is None:
        return
    pending = sm.ReadTallyOp.of(ring.pending).value
    _publish_copies(0)
    for already in range(ring.under_way):
        with build.when(build.less(pending, already + 1) ^ build.true()):
            _arrive_when_copied(rings, ring)
            advance(ring.arrive)
    sm.WriteTallyOp.of(ring.pending, build.constant(0))


def _publish_copies(newest: int) -> None:
    """Wait for all but the `newest` copy groups of this thread, and make them visible to the async
    proxy."""
    sm.CpAsyncWaitOp.of(pending=newest)
    build.fence("async_shared")
    converge()


def _arrive_when_copied(rings: Rings, ring: Ring) -> None:
    """Arrive at the CTA that issues the MMAs which read what the warp copied."""
    full = ring.full(read(ring.arrive)[0])
    with run(WARP):
        _arrive_at_issuer(rings, full, writes=True)
    converge()


def lower_wait(rings: Rings, op: WaitOp) -> None:
    """Wait until the slot is full."""
    ring = rings.of_op(op)
    if ring.moves is not None:
        copy_groups.wait(ring, op)
        return
    index, parity = read(ring.read)
    rings.wait(ring.full(index), parity, ring)
    rings.fence("tcgen05_after")
    op.slot.replace_all_uses_with(ring.place(index, parity))
    if rings.target.awaits_mmas:
        advance(ring.read)


def lower_parity(_: Rings, op: ParityOp) -> None:
    """The number of the slot's place."""
    op.odd.replace_all_uses_with(defining_op(op.slot).index)


def lower_release(rings: Rings, op: ReleaseOp) -> None:
    """The slot becomes empty when the MMAs that read it are complete, or every warp has read it."""
    ring = rings.of_op(op)
    if ring.moves is not None:
        copy_groups.release(ring, op)
        return
    empty = ring.empty(read(ring.release)[0])
    if ring.kind == "accumulator":
        _release_sums(rings, empty)
    elif ring.kind == "turns":
        _hand_over(empty)
    elif rings.target.releases_by_warp:
        _arrive_from_threads(rings, ring, empty)
    else:
        _commit_mmas(rings, empty)
    advance(ring.release)


def _release_sums(rings: Rings, empty: ir.Value) -> None:
    """Each warp that has read its part of tensor memory arrives at the issuer of the MMAs."""
    rings.fence("tcgen05_before")
    converge()
    with run(WARP):
        _arrive_at_issuer(rings, empty)
    converge()


def _commit_mmas(rings: Rings, empty: ir.Value) -> None:
    """The MMAs issued so far arrive when they are complete. Threads that also accumulate elect a
    lane, for a pair in its first CTA."""
    if rings.target.adds_from_tensor_memory:
        with run(ISSUER if rings.cluster.pair else LANE):
            rings.commit(empty, rings.release_mask())
        converge()
    else:
        rings.commit(empty, rings.release_mask())


def lower_skip(rings: Rings, op: SkipOp) -> None:
    """Advance the positions at which the consumer waits and releases past the slots."""
    ring = rings.of_op(op)
    if not rings.target.awaits_mmas:
        rule = "agents must share a ring on chips whose MMAs are awaited alone"
        raise refused(op, f"pipes-to-barriers: {rule}, got {rings.target.chip}; drop pipe.skip")
    for place in (ring.release, ring.read):
        advance(place, op.slots.value)


def _hand_over(barrier: ir.Value) -> None:
    """One arrival of each warp in this CTA: turns are passed within a CTA."""
    arrive_once(barrier)
    converge()


def _arrive_from_threads(rings: Rings, ring: Ring, barrier: ir.Value) -> None:
    """An arrival of each warp, in every CTA that writes into the slot: lane r's in that of rank r.

    `tile.await_mma` has waited for the MMAs on the slot, whose groups are of the whole warpgroup:
    where there are several CTAs, one warp arrives for all four. MMAs are all that has to be ordered
    before the arrival, so the CTA is scope enough: the cluster's costs a memory barrier a step.
    Where threads have read the slot themselves, each warp arrives, and its lanes meet before.
    """
    if rings.target.mma.threads_load or has_vectors(ring.op.ring):
        converge()
    mask = rings.release_mask()
    if mask is None:
        arrive_once(barrier)
    else:
        together = may_release_together(ring.op.ring, rings.target)
        each = sm.EachRankOp.of(mask, by=ir.StringAttr.get(WARPGROUP if together else WARP))
        body = each.body.blocks.append(build.i32())
        with ir.InsertionPoint(body):
            build.arrive(build.in_cta(barrier, body.arguments[0]))
    converge()


def _arrive_at_issuer(rings: Rings, barrier: ir.Value, writes: bool = False) -> None:
    """Arrive where the MMAs are issued that wait for it: in the pair's first CTA.

    They read what the warp `writes`, or overwrite what it has read.
    """
    if not rings.cluster.pair:
        build.arrive(barrier)
        return
    rank = sm.LeaderRankOp.of().rank
    build.arrive(build.in_cta(barrier, rank), in_cluster=writes)


def lower_drain(rings: Rings, op: DrainOp) -> None:
    """Wait until so many slots are empty; of all, no other CTA's commit is then on its way here."""
    ring = rings.of_op(op)
    with build.loop(build.constant(0), op.slots.value, 1):
        index, parity = read(ring.fill)
        rings.wait(ring.empty(index), before(parity))
        advance(ring.fill)


def lower_staging_buffer(rings: Rings, op: StagingBufferOp) -> None:
    """The next staging buffer."""
    ring = rings.rings[op.staging]
    slot = ring.slot(read(ring.fill)[0])
    op.buffer.replace_all_uses_with(tile_of(slot, op.buffer.type))


def lower_next_buffer(rings: Rings, op: NextBufferOp) -> None:
    advance(rings.rings[op.staging].fill)


def lower_load_piece(rings: Rings, op: LoadPieceOp) -> None:
    """Load a piece into the next slot, which its last readers have released."""
    ring, tile = rings.rings[op.ring], op.ring.type.tiles[0]
    index = read(ring.fill)[0]
    full = ring.full(index)
    piece = tile_of(ring.slot(index), tile)
    sm.ArriveExpectTxOp.of(full, bytes=tile.layout.size_bytes)
    LoadBoxesOp(barrier=full, map=op.map, tile=piece, i=op.i, j=op.j)
    advance(ring.fill)


def lower_await_piece(rings: Rings, op: AwaitPieceOp) -> None:
    """Wait until the piece has arrived."""
    ring = rings.rings[op.ring]
    index, parity = read(ring.read)
    build.barrier_wait(ring.full(index), parity)
    op.piece.replace_all_uses_with(tile_of(ring.slot(index), op.piece.type))
    advance(ring.read)


def tile_of(slot: ir.Value, type_: ir.Type) -> ir.Value:
    """The single tile of a slot."""
    zero = ir.IntegerAttr.get(build.i64(), 0)
    return TileOp(slot=slot, index=zero, tile=type_).tile
