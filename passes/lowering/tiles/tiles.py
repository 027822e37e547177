"""The tile of a CTA: from its index in the grid, or from a number in a loop over tiles."""

from __future__ import annotations

from array import array
from typing import Any

from ....dialects import llvm, sm
from ....dialects.hilbert import hilbert_curve
from ....dialects.mlir import arith, ir
from ....dialects.tile import CtaTileOp, PairRankOp, RotatedStepOp, SplitRankOp, SplitStartOp
from ....dialects.tile.boxes import BoxRowsOp
from ....dialects.tile.edges import EdgeBoxRowsOp, EdgeRowsOp
from ....dialects.tile.level import LEAST_ROWS, LevelRowsOp
from ....dialects.tile.parts import WorkspaceOp
from ....dialects.tile.place import CountedPlaceOp, PlaceOp, TileCountOp
from ....dialects.tile_types import DYNAMIC, integers_of
from ... import build
from ...clone import constant_of
from ...cluster import Cluster
from ..scope.scope import Scope, lowered_as

CURVE_SYMBOL = "hilbert_curve"
PLACE_BITS = 16


def lower_cta_tile(_: Scope, __: CtaTileOp) -> list[ir.Value]:
    """The grid has one CTA a tile: x along M, y along N."""
    return [build.as_index(build.special(register)) for register in ("ctaid.x", "ctaid.y")]


def lower_pair_rank(scope: Scope, _: PairRankOp) -> ir.Value:
    """Pairs are neighbours along M."""
    return build.as_index(build.as_value(scope.place.x % 2))


def lower_split_rank(scope: Scope, _: SplitRankOp) -> ir.Value:
    """The CTAs of a tile are those along z of a cluster, or else of the grid."""
    register = "cluster_ctaid.z" if scope.cluster.split > 1 else "ctaid.z"
    return build.as_index(build.special(register))


def lower_split_start(_: Scope, op: SplitStartOp) -> ir.Value:
    """The parts before it have as many steps each."""
    return build.as_index(build.as_i32(op.rank) * build.as_i32(op.steps))


def lower_rotated_step(_: Scope, op: RotatedStepOp) -> ir.Value:
    """The first step is computed once a tile, and less than one round is added to it."""
    steps = op.steps.value
    first = build.as_i32(op.place) // op.together.value * (op.by.value % steps) % steps
    step = build.as_i32(op.k) + first
    return build.as_index(arith.select(build.less(step, steps), step, step - steps))


def lower_workspace(scope: Scope, op: WorkspaceOp, pointer: ir.Value) -> ir.Value:
    """Those of the places of the grid lie one after the other, along y first, whose extent is
    known."""
    x, y = (build.special(f"ctaid.{axis}") for axis in "xy")
    along_m, along_n, _ = integers_of(scope.kernel.grid)
    place = y * along_m + x if along_n == DYNAMIC else x * along_n + y
    rows, columns = op.memory.type.shape
    offset = build.widen(place) * (rows * columns)
    moved = build.element_pointer(pointer, op.memory.type.element_type, offset)
    return lowered_as(moved, op.memory.type)


def lower_place(scope: Scope, op: PlaceOp) -> list[ir.Value]:
    """By arithmetic on the number, or from a table."""
    cluster = scope.cluster
    places = raster(op.number, _tiles(cluster, op), op.order.value, op.group.value)
    own = (scope.place.x, scope.place.y)
    parts = zip(places, (cluster.m, cluster.n), own, strict=True)
    return [build.as_index(along * extent + place) for along, extent, place in parts]


def lower_dim(scope: Scope, op: Any) -> ir.Value:
    """The rows, or the matrices, of every view that has a dynamic number are those of C."""
    of_stack = ir.MemRefType(op.source.type).rank == 3 and constant_of(op.index) == 0
    return build.as_index(scope.matrices if of_stack else build.as_value(scope.extent(DYNAMIC)))


def lower_tile_count(_: Scope, op: TileCountOp) -> ir.Value:
    """By numbers that are known: a power of two is a shift."""
    rows, cluster_rows = build.as_i32(op.rows), op.tile.value * op.whole.value
    return (rows + (cluster_rows - 1)) // cluster_rows * op.whole.value


def lower_box_rows(_: Scope, op: BoxRowsOp) -> ir.Value:
    """The number of rows in bounds, at most those of a tile."""
    return arith.minui(build.as_i32(op.rows), build.constant(op.most.value))


def lower_edge_rows(_: Scope, op: EdgeRowsOp) -> ir.Value:
    """The rows from the first of the tile to the last of the view; 0 for a tile past the view."""
    rows, unit = op.rows.value, op.unit.value
    left = build.constant(op.extent.value) - build.as_i32(op.i) * rows
    inside = arith.minsi(arith.maxsi(left, build.constant(0)), build.constant(rows))
    inside = (inside + (unit - 1)) // unit * unit
    early = build.less(build.as_i32(op.step), op.first.value)
    return build.as_index(arith.select(early, build.constant(rows), inside))


def lower_edge_box_rows(_: Scope, op: EdgeBoxRowsOp) -> ir.Value:
    """The number of rows in bounds, plus one box for each part that has none."""
    rows, parts = build.as_i32(op.rows), op.parts.value
    each = op.most.value // parts
    empty = build.constant(parts) - build.as_value((rows + (each - 1)) // each)
    return build.as_value(rows + empty * op.unit.value)


def lower_level_rows(_: Scope, op: LevelRowsOp) -> ir.Value:
    """At least those that MMAs read."""
    unit, most = op.unit.value, op.most.value
    rows = build.as_value((build.as_i32(op.rows) + (unit - 1)) // unit * unit)
    least = min(most, -(-LEAST_ROWS // unit) * unit)
    return arith.maxui(arith.minui(rows, build.constant(most)), build.constant(least))


def _tiles(cluster: Cluster, op: PlaceOp) -> Tiles:
    """Cluster tiles along M and N."""
    tiles: list[Any] = integers_of(op.tiles)
    if isinstance(op, CountedPlaceOp):
        tiles[tiles.index(DYNAMIC)] = op.counted
    return tiles[0] // cluster.m, tiles[1] // cluster.n


Tiles = tuple[int | ir.Value, int | ir.Value]


def raster(turn: ir.Value, tiles: Tiles, order: str, group: int) -> tuple[ir.Value, ir.Value]:
    """(along M, along N) of the turn-th tile.

    m: M runs fastest; n: N runs fastest; grouped: `group` tiles along M, then the next N, so that
    neighbours in time share rows of A and columns of B; hilbert: as a table says.
    """
    m, n = tiles
    if not isinstance(n, int):
        assert isinstance(m, int)
        return _raster_wide(turn, m, n, {"n": 1, "grouped": min(group, m)}.get(order, m))
    if order == "n":
        return turn // n, turn % n
    if not isinstance(m, int):
        return _raster_counted(turn, m, n, group if order == "grouped" else None)
    if order == "hilbert":
        return _on_curve(turn, (m, n))
    if order == "m" or group >= m:
        return turn % m, turn // m
    number, within = turn // (group * n), turn % (group * n)
    return _in_group(within, number * group, m, group)


def _in_group(within: ir.Value, first: ir.Value, m: int, group: int) -> tuple[ir.Value, ir.Value]:
    """The place within a group of up to so many tiles along M, the first of which is `first`."""
    if m % group == 0:
        return first + within % group, within // group
    height = arith.minui(build.constant(m) - first, build.constant(group))
    return first + arith.remui(within, height), arith.divui(within, height)


def _raster_counted(
    turn: ir.Value, m: ir.Value, n: int, group: int | None
) -> tuple[ir.Value, ir.Value]:
    """Along M first, within groups if there are some, of `m` tiles that a launch says.

    One division by a number that is not known; the remainder comes from its quotient.
    """
    first, height, within = build.constant(0), m, turn
    if group is not None:
        number, within = turn // (group * n), turn % (group * n)
        first = number * group
        height = arith.minui(m - first, build.constant(group))
    along_n = arith.divui(within, height)
    return first + (within - along_n * height), along_n


def _raster_wide(turn: ir.Value, m: int, n: ir.Value, group: int) -> tuple[ir.Value, ir.Value]:
    """`group` tiles along M, then the next N, of `n` tiles along N that a launch says.

    The last group may have fewer tiles along M. One division by a number that is not known, none
    where one group has all.
    """
    if group == m:
        return turn % m, turn // m
    number = arith.divui(turn, n * group)
    return _in_group(turn - number * (n * group), number * group, m, group)


def _on_curve(turn: ir.Value, tiles: tuple[int, int]) -> tuple[ir.Value, ir.Value]:
    """From a table that all roles share: along N << 16 | along M."""
    places = array("i", [build.signed(n << PLACE_BITS | m) for m, n in hilbert_curve(*tiles)])
    type_ = ir.RankedTensorType.get([len(places)], build.i32())
    values = ir.DenseElementsAttr.get(places, type=type_)
    table = sm.TableOp.of(
        symbol=CURVE_SYMBOL, values=values, pointer=build.pointer(build.GLOBAL)
    ).pointer
    place = llvm.load(build.i32(), build.element_pointer(table, build.i32(), turn), invariant=True)
    return place % (1 << PLACE_BITS), place // (1 << PLACE_BITS)
