"""Loops over tiles as `scf.for` over their numbers, each with the tile that a number stands for.

tile.for_each_tile (i, j) {      %first = sm.special_register "clusterid.x"
  body                           scf.for %number = %first to tiles step clusters {
}                           →      %i, %j = tile.place %number
                                   body
                                 }
"""

from __future__ import annotations

import math

from ..dialects import sm
from ..dialects.mlir import arith, ir, scf
from ..dialects.pipe import ForEachTurnOp
from ..dialects.tile import ForEachTileOp, KernelOp
from ..dialects.tile_place import PlaceOp
from ..dialects.tile_types import integers_of
from .base import walk
from .build import constant
from .tile_order import expand_order


def expand_tiles(kernel: KernelOp) -> None:
    """Write out the order of CTAs, and every loop whose tiles are known when the kernel starts."""
    expand_order(kernel)
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
    count = math.prod(integers_of(loop.tiles)) // (cluster[0] * cluster[1])
    register = "ctaid.x" if math.prod(cluster) == 1 else "clusterid.x"
    first = sm.SpecialRegisterOp.of(register=register).value
    if turn:
        first = arith.addi(first, constant(turn * clusters))
    made = scf.ForOp(first, constant(count), constant(turns * clusters))
    with ir.InsertionPoint(made.body):
        order = {name: getattr(loop, name) for name in ("tiles", "order", "group")}
        index = ir.IndexType.get()
        place = PlaceOp(number=made.induction_variable, **order, i=index, j=index)
        end = scf.YieldOp([])
    body = loop.body.blocks[0]
    for argument, result in zip(body.arguments, (place.i, place.j), strict=True):
        argument.replace_all_uses_with(result)
    for op in list(body.operations):
        op.operation.move_before(end.operation)
    loop.operation.erase()
