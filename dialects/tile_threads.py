"""Ops of `tile` that a thread runs by itself, in loops that are written out."""

from typing import Any

from .integer_types import I32
from .mlir import ext, ir
from .tile_types import SmemType, Tile
from .verify import refuse


class ClearUnitOp(Tile.Operation, name="clear_unit"):
    """Zeros 16 bytes in each chunk of payload tile `tile` of slot `slot`.

    They are the `unit`-th of the rows from `row` on, which lie one after the other in a chunk.
    """

    memory: ext.Operand[Any]
    slot: ext.Operand[I32]
    unit: ext.Operand[I32]
    tile: ir.IntegerAttr
    row: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        tiles, tile, row = self.memory.type.tiles, self.tile.value, self.row.value
        if not 0 <= tile < len(tiles) or not isinstance(tiles[tile], SmemType):
            return refuse(self, f"tile must be below {len(tiles)}, got {tile}")
        rows = tiles[tile].layout.rows
        return 0 <= row < rows or refuse(self, f"row must be below {rows}, got {row}")
