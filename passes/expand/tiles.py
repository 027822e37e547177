"""Loops over tiles as `scf.for` over tile numbers.

tile.for_each_tile (i, j) {      %first = sm.special_register "clusterid.x"
  body                           scf.for %number = %first to tiles step clusters {
}                           →      %i, %j = tile.place %number
                                   body
                                 }
"""

from __future__ import annotations

import math
from typing import Any

from ...dialects import sm
from ...dialects.mlir import arith, ir, scf
from ...dialects.pipe import ForEachClaimOp, ForEachTurnOp, OtherTileOp
from ...dialects.tile import ForEachTileOp, KernelOp
from ...dialects.tile_types import DYNAMIC, integers, integers_of
from ..base import walk
from ..build import constant
from ..dynamic_rows import clusters_along_m, count_matrices, count_tiles, known_tiles, place_at
from ..tile_order import expand_order


def expand_tiles(kernel: KernelOp) -> None:
    """Write out the order of CTAs, and every loop whose tiles are known when the kernel starts."""
    expand_order(kernel)
    for loop in walk(kernel, ForEachClaimOp):
        if DYNAMIC in integers_of(loop.tiles):
            count_tiles(kernel)
    count_matrices(kernel)
    for loop in walk(kernel, ForEachTileOp | ForEachTurnOp):
        turn, turns = 0, 1
        if isinstance(loop, ForEachTurnOp):
            turn, turns = loop.turn.value, loop.turns.value
        with ir.InsertionPoint(loop), loop.location:
            _expand(kernel, loop, turn, turns)


def _expand(kernel: KernelOp, loop: ForEachTileOp | ForEachTurnOp, turn: int, turns: int) -> None:
    """Clusters take every P-th tile, P clusters in all; agents in turns every T-th of those."""
    cluster = integers_of(kernel.cluster)
    clusters = integers_of(kernel.grid)[0] // cluster[0]
    register = "ctaid.x" if math.prod(cluster) == 1 else "clusterid.x"
    first = sm.SpecialRegisterOp.of(register=register).value
    if turn:
        first = arith.addi(first, constant(turn * clusters))
    tiles = known_tiles(kernel, integers_of(loop.tiles), loop.order.value)
    made = scf.ForOp(first, _count(kernel, tiles), constant(turns * clusters))
    with ir.InsertionPoint(made.body):
        order = {"tiles": integers(tiles), "order": loop.order, "group": loop.group}
        place = place_at(kernel, made.induction_variable, order)
        end = scf.YieldOp([])
    body = loop.body.blocks[0]
    for argument, result in zip(body.arguments, (place.i, place.j), strict=True):
        argument.replace_all_uses_with(result)
    for op in list(body.operations):
        op.operation.move_before(end.operation)
    for op in walk(made, OtherTileOp):
        _expand_other(kernel, op, made, clusters, order)
    loop.operation.erase()


def _expand_other(
    kernel: KernelOp, op: OtherTileOp, loop: scf.ForOp, clusters: int, order: dict[str, Any]
) -> None:
    """The place of the number that another agent is at, or of the last one."""
    with ir.InsertionPoint(op), op.location:
        number = arith.addi(loop.induction_variable, constant(op.ahead.value * clusters))
        if op.ahead.value > 0:
            number = arith.minsi(number, arith.subi(loop.upperBound, constant(1)))
        place = place_at(kernel, number, order)
    for result, other in zip(op.operation.results, (place.i, place.j), strict=True):
        result.replace_all_uses_with(other)
    op.operation.erase()


def _count(kernel: KernelOp, tiles: list[int]) -> ir.Value:
    """How many clusters share the tiles out, each of which has as many tiles as CTAs."""
    (along_m, along_n), cluster = tiles, integers_of(kernel.cluster)
    if along_n == DYNAMIC:
        return count_tiles(kernel) // cluster[1] * (along_m // cluster[0])
    if along_m != DYNAMIC:
        return constant(along_m * along_n // (cluster[0] * cluster[1]))
    return clusters_along_m(kernel, along_m) * (along_n // cluster[1])
