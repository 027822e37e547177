"""Ops of `tile` that bring another operand of the epilogue into shared memory, ahead of its use.

An operand as large as C arrives in pieces as wide as those of the staged store that reads them, by
way of a ring of its own. One thread of those that store loads them. All of them meet before it
loads into a slot again, so that only the arrival of a piece has a barrier.

An operand with an element for each column of C arrives in one piece a tile: a row of its columns.
"""

from typing import Any

from .layout import LINEAR
from .mlir import ext, ir
from .ragged_maps import plain_box
from .tile import ElementOp
from .tile_types import SmemType, TensorMapType, Tile
from .verify import boxes_swizzle, refuse


class LoadAheadOp(Tile.Operation, name="load_ahead"):
    """Starts the loads of the first pieces of tile `(i, j)`, as many as the ring has slots.

    A tile has `pieces` of them along N. The `tile.staged_store` whose `tile.staged_element` reads
    them starts the load of a later one when it has read the piece in its slot.
    """

    map: ext.Operand[TensorMapType]
    ring: ext.Operand[Any]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    pieces: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        if self.pieces.value < 1:
            return refuse(self, f"pieces must be at least 1, got {self.pieces.value}")
        return verify_pieces(self)


class LoadPieceOp(Tile.Operation, name="load_piece"):
    """`slot[r,c] = view[i*M + r, j*N + c]` by TMA, zero outside the view; one thread issues.

    M and N are those of a piece, and the slot is the ring's next.
    """

    map: ext.Operand[TensorMapType]
    ring: ext.Operand[Any]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]

    def verify_invariants(self) -> bool:
        return verify_pieces(self)


class AwaitPieceOp(Tile.Operation, name="await_piece"):
    """`piece`: the ring's next, once it has arrived."""

    ring: ext.Operand[Any]
    piece: ext.Result[SmemType]

    def verify_invariants(self) -> bool:
        wanted = self.ring.type.tiles[0]
        return self.piece.type == wanted or refuse(
            self, f"must give {wanted}, got {self.piece.type}"
        )


class StagedElementOp(ElementOp, name="staged_element"):
    """The same of what `tile.load_ahead` brings: of the piece at hand of its ring.

    Once loops are written out, `piece` is that piece.
    """

    piece: ext.Operand[Any]

    def verify_invariants(self) -> bool:
        if not ElementOp.verify_invariants(self):
            return False
        piece = getattr(self.piece.type, "tiles", [self.piece.type])[0]
        if not isinstance(piece, SmemType) or piece.element != self.value.type:
            return refuse(self, f"the piece must hold {self.value.type}, got {self.piece.type}")
        axes, wanted = self.axes.value, "n" if piece.layout.swizzle == LINEAR else "mn"
        return axes == wanted or refuse(self, f"the piece is of axes {wanted!r}, got {axes!r}")


def verify_pieces(op: Any) -> bool:
    """Whether the boxes of the map are the chunks of a piece in a slot of the ring."""
    tiles = getattr(op.ring.type, "tiles", [])
    if len(tiles) != 1 or not isinstance(tiles[0], SmemType):
        return refuse(op, f"must load into a ring of one tile a slot, got {op.ring.type}")
    layout, map_type = tiles[0].layout, op.map.type
    wanted, got = [layout.span, layout.rows], plain_box(map_type)
    if got != wanted or map_type.swizzle != boxes_swizzle(layout) or layout.major != "k":
        return refuse(
            op,
            f"the box must be {wanted} of rows, swizzle {layout.swizzle!r}, got {got} and "
            f"{map_type.swizzle!r}",
        )
    return True
