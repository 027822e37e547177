"""The tile of a CTA, after loops over tiles are expanded."""

from typing import Any

from ..integer_types import I32
from ..mlir import ext, ir
from ..tile_types import DYNAMIC, Tile, integers_of
from ..verify import refuse, verify_order


class PlaceOp(Tile.Operation, name="place"):
    """`(i, j)`: this CTA's tile of the cluster tile that is the `number`-th to be handed out.

    A cluster tile is what the CTAs of a cluster compute together, one tile each at its place.
    `tiles`, `order` and `group` are as in `tile.for_each_tile`.
    """

    number: ext.Operand[I32]
    tiles: ir.ArrayAttr
    order: ir.StringAttr
    group: ir.IntegerAttr
    i: ext.Result[ir.IndexType]
    j: ext.Result[ir.IndexType]

    def verify_invariants(self) -> bool:
        return _verify_place(self, integers_of(self.tiles))


class CountedPlaceOp(PlaceOp, name="counted_place"):
    """Like `tile.place`, with a number of tiles `counted` along M or N that is known only at
    launch.

    `tiles` has -1 on that axis.
    """

    counted: ext.Operand[I32]

    def verify_invariants(self) -> bool:
        tiles = integers_of(self.tiles)
        if tiles.count(DYNAMIC) != 1:
            return refuse(self, f"tiles must have one {DYNAMIC}, along M or N, got {tiles}")
        return _verify_place(self, [1 if each == DYNAMIC else each for each in tiles])


class GroupPlaceOp(CountedPlaceOp, name="group_place"):
    """Like `tile.counted_place`, but all tiles of a group of rows come before those of the next
    one: along its rows in bands of up to `group` tiles, then along the other axis.

    Groups are divided as in `tile.group`, and lanes find them as in `tile.group_at`. All 32 lanes
    run it.
    """

    offsets: ext.Operand[ir.MemRefType]
    tile: ir.IntegerAttr
    together: ir.IntegerAttr
    extent: ir.IntegerAttr
    at_row: ext.Operand[I32]
    at_place: ext.Operand[I32]

    def verify_invariants(self) -> bool:
        if self.order.value != "grouped":
            return refuse(self, f"must be in the order grouped, got {self.order.value!r}")
        return CountedPlaceOp.verify_invariants(self)


class TileCountOp(Tile.Operation, name="tile_count"):
    """`count = ceil(rows / tile)`, rounded up to a multiple of `whole`: tiles in whole clusters."""

    rows: ext.Operand[ir.IndexType]
    tile: ir.IntegerAttr
    whole: ir.IntegerAttr
    count: ext.Result[I32]

    def verify_invariants(self) -> bool:
        tile, whole = self.tile.value, self.whole.value
        if tile < 1 or whole < 1:
            return refuse(self, f"tile and whole must be at least 1, got {tile} and {whole}")
        return True


def _verify_place(op: Any, tiles: list[int]) -> bool:
    if len(tiles) != 2 or min(tiles) < 1:
        return refuse(op, f"tiles must be how many there are along M and N, got {tiles}")
    return verify_order(op)
