"""Which tile a CTA computes: from its place in the grid, or from a loop over tiles."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from ...dialects.hilbert import hilbert_curve
from ...dialects.mlir import arith, ir, llvm, nvvm
from ...dialects.pipe import ForEachClaimOp, ForEachTurnOp
from ...dialects.tile import CtaTileOp, ForEachTileOp, KernelOp, PairRankOp, SplitRankOp
from ...dialects.tile_types import integers_of
from ..base import walk
from . import build as b
from .cluster import Cluster
from .frame import Frame

TileLoop = ForEachTileOp | ForEachClaimOp | ForEachTurnOp
CURVE_SYMBOL = "hilbert_curve"
PLACE_BITS = 16


def lower_cta_tile(frame: Frame, op: CtaTileOp) -> None:
    """The grid has one CTA a tile: x along M, y along N."""
    reads = (nvvm.read_ptx_sreg_ctaid_x, nvvm.read_ptx_sreg_ctaid_y)
    for result, read in zip((op.i, op.j), reads, strict=True):
        frame.values[result] = b.as_index(read(results=[b.i32()]))


def lower_pair_rank(frame: Frame, op: PairRankOp) -> None:
    """Pairs are neighbours along M."""
    frame.values[op.rank] = b.as_index(b.rem(frame.place[0], 2))


def lower_split_rank(frame: Frame, op: SplitRankOp) -> None:
    """The CTAs of a tile are a cluster along z."""
    frame.values[op.rank] = b.as_index(nvvm.read_ptx_sreg_cluster_ctaid_z(results=[b.i32()]))


def lower_for_each_tile(frame: Frame, op: ForEachTileOp, emit_body: Callable[[], None]) -> None:
    """Clusters take every P-th tile of the order, P clusters in all."""
    _emit_tiles(frame, op, emit_body, 0, 1)


def lower_for_each_turn(frame: Frame, op: ForEachTurnOp, emit_body: Callable[[], None]) -> None:
    """Of the tiles of a cluster, the body takes every T-th from its turn on, T turns in all."""
    _emit_tiles(frame, op, emit_body, op.turn.value, op.turns.value)


def _emit_tiles(
    frame: Frame, op: TileLoop, emit_body: Callable[[], None], turn: int, turns: int
) -> None:
    along_m, along_n = tiles_per_axis(frame.cluster, op)
    clusters = integers_of(frame.kernel.grid)[0] // frame.cluster.m
    first = b.add(_cluster_id(frame), turn * clusters)
    with b.loop(first, along_m * along_n, turns * clusters) as number:
        set_tile(frame, op, number)
        emit_body()


def tiles_per_axis(cluster: Cluster, op: TileLoop) -> tuple[int, int]:
    """Cluster tiles along M and N."""
    tiles = integers_of(op.tiles)
    return tiles[0] // cluster.m, tiles[1] // cluster.n


def declare_curve(kernel: KernelOp, cluster: Cluster) -> None:
    """The table that loops in `hilbert` order read, one for all roles: along N << 16 | along M."""
    loops = [op for op in walk(kernel, TileLoop) if op.order.value == "hilbert"]
    if not loops:
        return
    tiles = tiles_per_axis(cluster, loops[0])
    places = [b.signed(n << PLACE_BITS | m) for m, n in hilbert_curve(*tiles)]
    table = ir.RankedTensorType.get([len(places)], b.i32())
    llvm.GlobalOp(
        ir.Type.parse(f"!llvm.array<{len(places)} x i32>"),
        CURVE_SYMBOL,
        ir.Attribute.parse("#llvm.linkage<internal>"),
        value=ir.DenseElementsAttr.get(array("i", places), type=table),
        constant=True,
        addr_space=b.GLOBAL,
    )


def set_tile(frame: Frame, op: TileLoop, turn: ir.Value) -> None:
    """Let the body's (i, j) be this CTA's tile in the turn-th cluster tile."""
    cluster = frame.cluster
    places = raster(turn, tiles_per_axis(frame.cluster, op), op.order.value, op.group.value)
    arguments = op.body.blocks[0].arguments
    extents = (cluster.m, cluster.n)
    for argument, along, extent, own in zip(arguments, places, extents, frame.place, strict=True):
        frame.values[argument] = b.as_index(b.add_any(b.mul(along, extent), own))


def _cluster_id(frame: Frame) -> ir.Value:
    if frame.cluster.size == 1:
        return nvvm.read_ptx_sreg_ctaid_x(results=[b.i32()])
    return nvvm.read_ptx_sreg_clusterid_x(results=[b.i32()])


def raster(
    turn: ir.Value, tiles: tuple[int, int], order: str, group: int
) -> tuple[ir.Value, ir.Value]:
    """(along M, along N) of the turn-th tile.

    m: M runs fastest; n: N runs fastest; grouped: `group` tiles along M, then the next N, so that
    neighbours in time share rows of A and columns of B; hilbert: as the table of `declare_curve`.
    """
    m, n = tiles
    if order == "hilbert":
        return _on_curve(turn)
    if order == "n":
        return b.div(turn, n), b.rem(turn, n)
    if order == "m" or group >= m:
        return b.rem(turn, m), b.div(turn, m)
    number, within = b.div(turn, group * n), b.rem(turn, group * n)
    first = b.mul(number, group)
    if m % group == 0:
        return b.add(first, b.rem(within, group)), b.div(within, group)
    height = arith.minui(b.sub(b.constant(m), first), b.constant(group))
    return b.add(first, arith.remui(within, height)), arith.divui(within, height)


def _on_curve(turn: ir.Value) -> tuple[ir.Value, ir.Value]:
    table = llvm.AddressOfOp(b.pointer(b.GLOBAL), CURVE_SYMBOL).result
    place = llvm.load(b.i32(), b.element_pointer(table, b.i32(), turn), invariant=True)
    return b.rem(place, 1 << PLACE_BITS), b.div(place, 1 << PLACE_BITS)
