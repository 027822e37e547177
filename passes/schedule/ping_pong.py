"""Gives two consumer warpgroups a tile each, so that one stores while the other multiplies.

    pipe.role "consumer" {             pipe.role "ping" { for_each_turn 0 of 2 (%i, %j) {
      for_each_tile (%i, %j) {           acquire %turns
        for %k { mma(%k) }               for %k { mma(%k) }
                                         commit %turns
        await 0  release                 await 0  release
        store %acc } }            →      store %acc     skip %ring, K } }
                                       pipe.role "pong" { for_each_turn 1 of 2 (%i, %j) {
                                         skip %ring, K
                                         wait %turns
                                         for %k { mma(%k) }
                                         release %turns
                                         await 0  release
                                         store %acc } }

The load role fills the operand ring for the tiles in order, as before. Each consumer skips the K
slots of the other's tiles. With groups of K their number depends on the tile, and each consumer
computes it from the groups' offsets (`pipe.other_tile`).

A second ring, of one slot, holds the turn, which keeps the MMAs of a tile together. The consumer
that has issued the last MMA of its tile hands the tensor core over. By then all slots of its tile
have been full, so that the other consumer can tell the phases of its own slots by their parity.

The buffers of a staged store are divided between the two. The load role becomes a warpgroup and
gives registers to the consumers.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any, ClassVar

from ...dialects import legality
from ...dialects.mlir import ir, scf
from ...dialects.pipe import (
    AcquireOp,
    CommitOp,
    CreateOp,
    ForEachTurnOp,
    OtherTileOp,
    ReleaseOp,
    RingType,
    RoleOp,
    SetRegistersOp,
    SkipOp,
    TurnType,
    WaitOp,
)
from ...dialects.record import record
from ...dialects.target import WARP_THREADS, WARPGROUP_WARPS, Target
from ...dialects.tile import MMAS, AccumulatorOp, ForEachTileOp, KernelOp, StagedStoreOp
from ...dialects.tile.ahead import LoadAheadOp, ReadAheadOp
from ...dialects.tile.groups import GroupDepthOp, GroupStepsOp
from ...dialects.tile_types import DYNAMIC, integer, integers_of
from ..base import PassLog, defining_op, refused, require, target_of, the_kernel, walk
from ..clone import Mapping, clone, group_steps_of, index_constant, iterations_of, replace_in
from ..rings import retype_ring
from .warp_specialization import CONSUMER, LOAD, load_registers, registers_left

AGENTS = ("ping", "pong")


@record
class PingPong:
    """One consumer role → two, each with a warpgroup and every other tile.

    The pass is for accumulators in registers, and comes after persistence. A consumer holds the
    accumulator of a whole tile, so the tile must be one that a single warpgroup can hold.
    """

    name: ClassVar[str] = "ping-pong"

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        target = target_of(module)
        consumer, load = _roles(kernel, target)
        _check_consumer(consumer)
        _check_stores(consumer)
        shared = walk(consumer, StagedStoreOp), walk(consumer, LoadAheadOp)
        stagings = [_share_out(store, store.staging, "buffers") for store in shared[0]]
        stagings += [
            _second(load.ring) if load.is_vector else _share_out(load, load.ring, "ahead")
            for load in shared[1]
        ]
        with ir.InsertionPoint(consumer), consumer.location:
            turns = CreateOp(ring=RingType.of(1, [TurnType.get()])).ring
        pong = _copy_role(consumer, dict(stagings))
        for turn, role in enumerate((consumer, pong)):
            _take_turns(role, turn, turns)
        registers = _move_registers(kernel, (consumer, pong), load, target)
        rounds = _rounds(kernel)
        if rounds is not None and rounds < 2:
            log.remark(kernel, "ping-pong: no CTA has a second tile, so that pong has none")
        log.did(f"2 consumers, {registers} registers a thread")


def _roles(kernel: KernelOp, target: Target) -> tuple[RoleOp, RoleOp]:
    """The consumer and the load role."""
    require(kernel, legality.alternating_consumers(target), "drop ping-pong", "ping-pong: ")
    roles = {role.agent.value: role for role in walk(kernel, RoleOp)}
    if AGENTS[0] in roles:
        raise refused(kernel, "ping-pong: the program has two consumers already; run it once")
    if set(roles) != {CONSUMER, LOAD}:
        got = f" and no other, got {', '.join(roles)}" if roles else ""
        raise refused(
            kernel,
            f"ping-pong: needs a consumer and a load role{got}; run warp-specialization first",
        )
    return roles[CONSUMER], roles[LOAD]


def _check_consumer(consumer: RoleOp) -> None:
    """Refuse one that can't be doubled."""
    if not walk(consumer, ForEachTileOp):
        raise refused(consumer, "ping-pong: needs a loop over tiles; run persistence first")
    for op in (op for kind in MMAS for op in walk(consumer, kind)):
        if op.acc.owner not in [each.operation for each in walk(consumer, AccumulatorOp)]:
            raise refused(
                op,
                "ping-pong: each consumer has sums of its own, got a shared accumulator; move it",
            )
    accumulator = walk(consumer, AccumulatorOp)[0]
    warpgroups = consumer.warps.value // WARPGROUP_WARPS
    m, n = accumulator.acc.type.shape
    broken = legality.consumer_warpgroups(m, n, warpgroups)
    require(accumulator, broken, "use a smaller tile, as 128x128 or 64x256", "ping-pong: ")


def _check_stores(consumer: RoleOp) -> None:
    """Refuse stores of parts: a consumer is one warpgroup."""
    for store in walk(consumer, StagedStoreOp):
        if store.parts > 1:
            rule = "ping-pong: each consumer is one warpgroup and stores by itself"
            raise refused(store, f"{rule}, got a store of {store.parts} parts; use by=team")


def _share_out(op: Any, ring: ir.Value, what: str) -> tuple[ir.Value, ir.Value]:
    """Halve a ring of staging, as an option says; (it, a second one of the same size)."""
    create = defining_op(ring)
    stages, tiles = create.ring.type.stages, create.ring.type.tiles
    if stages % 2:
        raise refused(
            op,
            f"ping-pong: two consumers share the staging buffers, got {stages}; give "
            f"epilogue-staging {what}={stages + 1}",
        )
    retype_ring(create, stages // 2, tiles)
    return _second(ring)


def _second(ring: ir.Value) -> tuple[ir.Value, ir.Value]:
    """A ring, and another one like it."""
    create = defining_op(ring)
    with ir.InsertionPoint.after(create), create.location:
        return create.ring, clone(create, {}).results[0]


def _copy_role(role: RoleOp, stagings: dict[ir.Value, ir.Value]) -> RoleOp:
    """A second role that does the same with staging buffers of its own."""
    with ir.InsertionPoint.after(role), role.location:
        copy = role.operation.clone().opview
    replace_in(copy.body.blocks[0], stagings)
    return copy


def _take_turns(role: RoleOp, turn: int, turns: ir.Value[RingType]) -> None:
    """Let a consumer take every other tile, its MMAs only in its turn."""
    role.operation.attributes["agent"] = ir.StringAttr.get(AGENTS[turn])
    loop = walk(role, ForEachTileOp)[0]
    body = loop.body.blocks[0]
    slots = _slots_read(body)
    with role.location:
        _hold_turn(body, turn, turns)
        with ir.InsertionPoint.at_block_begin(body) if turn else ir.InsertionPoint(body):
            for ring, count in slots.items():
                _skip(ring, count, body, turn)
    _replace_loop(loop, turn)


def _skip(ring: ir.Value, count: int, body: ir.Block, turn: int) -> None:
    """Leave the slots of the other's tile to it: those of the tile before, or of the next one.

    Where a tile has the K of its group, or a launch says K, they are as many as that tile's steps.
    """
    loops = [loop for loop in _group_loops(body) if ring in _slots_read(loop.body)]
    if not loops:
        SkipOp(ring=ring, slots=integer(count))
        return
    limit, index = group_steps_of(loops[0].upperBound), ir.IndexType.get()
    if len(loops) > 1 or limit.less.value or limit.least.value != 1:
        rule = "ping-pong: a tile's steps of a group of K must be those of one loop"
        raise refused(loops[0], f"{rule}, got several; run warp-specialization first")
    mapping: Mapping = {}
    if isinstance(defining_op(limit.count), GroupDepthOp):
        other = OtherTileOp(ahead=integer(-1 if turn else 1), i=index, j=index)
        mapping = dict(zip(body.arguments, (other.i, other.j), strict=True))
    made = [clone(op, mapping) for op in _behind(limit)]
    loop = scf.ForOp(index_constant(0), made[-1].results[0], index_constant(1))
    with ir.InsertionPoint(loop.body):
        SkipOp(ring=ring, slots=integer(1))
        scf.YieldOp([])


def _group_loops(body: ir.Block) -> list[scf.ForOp]:
    """The loops of a tile that end with a group of K."""
    loops = [op for op in list(body.operations) if isinstance(op, scf.ForOp)]
    return [loop for loop in loops if group_steps_of(loop.upperBound) is not None]


def _behind(limit: GroupStepsOp) -> list[Any]:
    """What makes the steps of a tile of its place, in program order; any K is that of all tiles."""
    depth = defining_op(limit.count)
    return [defining_op(depth.group), depth, limit] if isinstance(depth, GroupDepthOp) else [limit]


def _hold_turn(body: ir.Block, turn: int, turns: ir.Value[RingType]) -> None:
    """From the start of a tile until its last MMA is issued: ping fills the ring, pong reads it.

    What a store reads later is loaded before the turn has come.
    """
    ops = list(body.operations)
    last = [op for op in ops if _issues(op)][-1]
    before = [
        number for number, op in enumerate(ops, 1) if isinstance(op, LoadAheadOp | ReadAheadOp)
    ]
    take, hand_over = (WaitOp, ReleaseOp) if turn else (AcquireOp, CommitOp)
    take(ring=turns, slot=turns.type.slot, ip=ir.InsertionPoint(ops[max(before, default=0)]))
    hand_over(ring=turns, ip=ir.InsertionPoint.after(last))


def _issues(op: Any) -> bool:
    return isinstance(op, MMAS) or any(walk(op, mma) for mma in MMAS)


def _slots_read(block: ir.Block, times: int = 1) -> Counter[ir.Value]:
    """How many slots of each ring a consumer reads a tile."""
    read: Counter[ir.Value] = Counter()
    for op in list(block.operations):
        if isinstance(op, WaitOp):
            read[op.ring] += times
        elif isinstance(op, scf.ForOp):
            read += _slots_read(op.body, times * len(iterations_of(op) or ()))
    return read


def _replace_loop(loop: ForEachTileOp, turn: int) -> None:
    with ir.InsertionPoint(loop), loop.location:
        every = ForEachTurnOp(
            turn=integer(turn),
            turns=integer(len(AGENTS)),
            tiles=loop.tiles,
            order=loop.order,
            group=loop.group,
        )
    loop.body.blocks[0].append_to(every.body)
    loop.operation.erase()


def _move_registers(
    kernel: KernelOp, consumers: tuple[RoleOp, ...], load: RoleOp, target: Target
) -> int:
    """Registers a thread of the consumers: the load role, now a warpgroup, gives up most of its."""
    load.operation.attributes["warps"] = integer(WARPGROUP_WARPS)
    warps = WARPGROUP_WARPS * len(consumers)
    kernel.operation.attributes["threads"] = integer(WARP_THREADS * (warps + WARPGROUP_WARPS))
    keeps = load_registers(kernel, target)
    takes = registers_left(target, warps, keeps)
    for role, count in ((load, keeps), *((consumer, takes) for consumer in consumers)):
        with ir.InsertionPoint.at_block_begin(role.body.blocks[0]), role.location:
            SetRegistersOp(count=integer(count))
    return takes


def _rounds(kernel: KernelOp) -> int | None:
    """Tiles that the busiest CTA computes; None where a launch says how many there are."""
    tiles = integers_of(walk(kernel, ForEachTurnOp)[0].tiles)
    return None if DYNAMIC in tiles else -(-prod(tiles) // prod(integers_of(kernel.grid)))
