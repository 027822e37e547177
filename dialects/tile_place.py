"""The op of `tile` that says which tile a CTA has when the loop over tiles is written out."""

from .integer_types import I32
from .mlir import ext, ir
from .tile_types import Tile, integers_of
from .verify import refuse, verify_order


class PlaceOp(Tile.Operation, name="place"):
    """`(i, j)`: this CTA's tile of the cluster tile that is handed out as the `number`-th.

    A cluster tile is what the CTAs of a cluster compute together, each the tile at its place in it.
    `tiles`, `order` and `group` are as in `tile.for_each_tile`.
    """

    number: ext.Operand[I32]
    tiles: ir.ArrayAttr
    order: ir.StringAttr
    group: ir.IntegerAttr
    i: ext.Result[ir.IndexType]
    j: ext.Result[ir.IndexType]

    def verify_invariants(self) -> bool:
        tiles = integers_of(self.tiles)
        if len(tiles) != 2 or min(tiles) < 1:
            return refuse(self, f"tiles must be how many there are along M and N, got {tiles}")
        if self.group.value < 1:
            return refuse(self, f"group must be at least 1, got {self.group.value}")
        return verify_order(self, self.order.value, self.tiles)
