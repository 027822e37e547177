"""Cluster launch control: one role claims clusters not yet launched, all roles run their tiles.

PTX ISA, clusterlaunchcontrol. The first CTA of a cluster asks; the answer is multicast to all of
its CTAs, whose full barriers count its 16 bytes. Every reader of an answer tells the first CTA,
which asks again into the same slot only when all have.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from ....dialects import llvm, sm
from ....dialects.mlir import ir, scf
from ....dialects.pipe import ClaimOp, ForEachClaimOp
from ....dialects.sm.memory import CLAIM_BYTES
from ....dialects.sm.threads import FIRST, TEAM, WARP, who_runs
from ....dialects.tile_types import DYNAMIC, integers_of
from ... import build
from ...dynamic_rows import count_tiles, kernel_of, place_at
from .rings import Ring, Rings, advance, before, converge, read, run


def lower_for_each_claim(rings: Rings, op: ForEachClaimOp) -> None:
    """The body for this CTA's own tile, then for each claim until one fails."""
    tiles = _clusters_along_m(op)
    number, answer = build.i32(), _answer_type()
    loop = scf.WhileOp([answer], [_own_turn(rings, tiles)])
    first = loop.regions[0].blocks.append(number)
    with ir.InsertionPoint(first):
        _move_body(op, first.arguments[0])
        claimed, response = _read(rings, rings.of_op(op), alone=who_runs(op) != TEAM)
        scf.ConditionOp(claimed, [response])
    after = loop.regions[1].blocks.append(answer)
    with ir.InsertionPoint(after):
        scf.YieldOp([_claimed_turn(rings, after.arguments[0], tiles)])


def _clusters_along_m(op: ForEachClaimOp) -> ir.Value | int:
    kernel, tiles = kernel_of(op), integers_of(op.tiles)[0]
    size = integers_of(kernel.cluster)[0]
    return tiles // size if tiles != DYNAMIC else count_tiles(kernel) // size


def _answer_type() -> ir.Type:
    return ir.IntegerType.get_signless(128)


def _move_body(op: ForEachClaimOp, number: ir.Value) -> None:
    """The body to the insertion point, for the tile of that number."""
    order = {name: getattr(op, name) for name in ("tiles", "order", "group")}
    place = place_at(kernel_of(op), number, order)
    body = op.body.blocks[0]
    for argument, result in zip(body.arguments, (place.i, place.j), strict=True):
        argument.replace_all_uses_with(result)
    for each in list(body.operations):
        place.operation.block.append(each.operation)


def _own_turn(rings: Rings, tiles: ir.Value | int) -> ir.Value:
    """The number of the cluster that this CTA was launched in."""
    return _turn(rings, build.special("ctaid.x"), build.special("ctaid.y"), tiles)


def _turn(rings: Rings, x: ir.Value, y: ir.Value, tiles: ir.Value | int) -> ir.Value:
    """The number of the cluster that holds CTA (x, y) of the grid, of `tiles` clusters along M."""
    along_m, along_n = x // rings.cluster.m, y // rings.cluster.n
    return along_m + along_n * tiles


def _claimed_turn(rings: Rings, answer: ir.Value, tiles: ir.Value | int) -> ir.Value:
    """The number of the cluster that an answer claims."""
    x, y = (sm.QueryCancelOp.of(answer, field=axis, value=build.i32()).value for axis in "xy")
    return _turn(rings, x, y, tiles)


def _read(rings: Rings, ring: Ring, alone: bool) -> tuple[ir.Value, ir.Value]:
    """(whether it claims a cluster, the answer); its slot is handed back.

    `alone` is true where a single thread of the team reads.
    """
    index, parity = read(ring.read)
    rings.wait(ring.full(index), parity)
    answer = llvm.load(_answer_type(), _address(ring, index), alignment=CLAIM_BYTES)
    claimed = sm.QueryCancelOp.of(answer, field="claimed", value=build.i1()).value
    build.fence("async_shared")
    _hand_back(rings, ring.empty(index), alone)
    advance(ring.read)
    return claimed, answer


def _address(ring: Ring, index: ir.Value) -> ir.Value:
    """Where the answer of a slot is."""
    return sm.SlotAddressOp.of(ring.slot(index), address=build.pointer(build.SHARED)).address


def _hand_back(rings: Rings, empty: ir.Value, alone: bool) -> None:
    """One arrival of this thread, or of each warp of the team, in the cluster's first CTA."""
    if alone:
        _arrive_at_first(rings, empty)
        return
    converge()
    with run(WARP):
        _arrive_at_first(rings, empty)
    converge()


def _arrive_at_first(rings: Rings, empty: ir.Value) -> None:
    if rings.cluster.size == 1:
        build.arrive(empty)
    else:
        build.arrive(build.in_cta(empty, build.constant(0)))


def lower_claim(rings: Rings, op: ClaimOp) -> None:
    """Ask, announce and read answers until one claims nothing."""
    ring, loop = rings.of_op(op), scf.WhileOp([], [])
    first, after = loop.regions[0].blocks.append(), loop.regions[1].blocks.append()
    with ir.InsertionPoint(first):
        index, parity = read(ring.fill)
        full = ring.full(index)
        with _by_first(rings):
            rings.wait(ring.empty(index), before(parity))
        sm.ArriveExpectTxOp.of(full, bytes=CLAIM_BYTES)
        with _by_first(rings):
            slot = _address(ring, index)
            sm.TryCancelOp.of(slot, full, multicast=rings.cluster.size > 1)
        advance(ring.fill)
        claimed, _ = _read(rings, ring, alone=True)
        scf.ConditionOp(claimed, [])
    with ir.InsertionPoint(after):
        scf.YieldOp([])


@contextmanager
def _by_first(rings: Rings) -> Iterator[None]:
    """Emit the body for the cluster's first CTA."""
    one: Any = nullcontext() if rings.cluster.size == 1 else run(FIRST)
    with one:
        yield
