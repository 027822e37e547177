"""Prefetching operands of the epilogue into shared memory.

An operand as large as C arrives in pieces as wide as those of the staged store that reads them, by
way of a ring of its own. One thread of those that store loads them. All of them meet before it
loads into a slot again, so that only the arrival of a piece has a barrier.

An operand with an element for each column of C arrives in one piece a tile: a row of its columns.
Where warpgroups store by themselves, it arrives once for each of them, in a slot of its own.
Else the threads that store read their own elements of vectors and scalars ahead, into registers.
"""

from typing import Any

from ..integer_types import I1, I32
from ..mlir import ext, ir
from ..ragged_maps import plain_box
from ..tile_types import SmemType, TensorMapType, Tile
from ..verify import boxes_swizzle, refuse
from .program import ElementOp

VECTOR_AXES = ("", "m", "n")


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

    @property
    def is_vector(self) -> bool:
        """Whether the operand has an element for each column of C, and one piece a tile."""
        return self.ring.type.tiles[0].layout.mn == 1

    @property
    def parts(self) -> int:
        """How many warpgroups load by themselves, each to the slot that has its number."""
        return parts_of_ring(self.ring)

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
    """Like `tile.element`, but reads what `tile.load_ahead` loaded: the current piece of its ring.

    Once loops are expanded, `piece` is that piece.
    """

    piece: ext.Operand[Any]

    def verify_invariants(self) -> bool:
        if not ElementOp.verify_invariants(self):
            return False
        piece = getattr(self.piece.type, "tiles", [self.piece.type])[0]
        if not isinstance(piece, SmemType) or piece.element != self.value.type:
            return refuse(self, f"the piece must hold {self.value.type}, got {self.piece.type}")
        axes, wanted = self.axes.value, "n" if piece.layout.is_vector else "mn"
        return axes == wanted or refuse(self, f"the piece is of axes {wanted!r}, got {axes!r}")


class ReadAheadOp(Tile.Operation, name="read_ahead"):
    """Each thread reads in advance what the stores of tile `(i, j)` need of `source` in their
    epilogue.

    The source is a vector or a scalar: `axes`, as in `tile.element`, are "m", "n" or "". The
    threads are those that store. They keep the values in registers.
    """

    source: ext.Operand[Any]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    axes: ir.StringAttr

    def verify_invariants(self) -> bool:
        return verify_vector(self)


class ReadOperandOp(Tile.Operation, name="read_operand"):
    """`values`: the elements of `source` that belong to the elements of C from (row, column) on, in
    a thread.

    With axes "n" these are adjacent elements, otherwise a single one. If `inside` is false the
    place lies outside C, and the values are unspecified.
    """

    source: ext.Operand[Any]
    row: ext.Operand[I32]
    column: ext.Operand[I32]
    inside: ext.Operand[I1]
    axes: ir.StringAttr
    values: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return verify_vector(self) and verify_held(self, self.values.type)


class HeldElementOp(ElementOp, name="held_element"):
    """Like `tile.element`, but returns what the thread has read before: `values` of
    `tile.read_operand`, or a pair of `tile.load_matrices`."""

    values: ext.Operand[Any]

    def verify_invariants(self) -> bool:
        return ElementOp.verify_invariants(self) and verify_held(self, self.values.type)


def parts_of_ring(ring: Any) -> int:
    """How many warpgroups have a slot of their own in a ring of vectors; 1 of other rings."""
    return ring.type.stages if ring.type.tiles[0].layout.is_vector else 1


def verify_vector(op: Any) -> bool:
    """Whether the source of an op is a vector or a scalar, as its axes say."""
    axes, source = op.axes.value, op.source.type
    if axes not in VECTOR_AXES:
        return refuse(op, f"axes must be one of {VECTOR_AXES}, got {axes!r}")
    fits = isinstance(source, ir.ShapedType) and source.rank == len(axes)
    return fits or refuse(op, f"the source must have rank {len(axes)} for {axes!r}, got {source}")


def verify_held(op: Any, values: ir.Type) -> bool:
    """Whether values can be what a thread has of a vector, or of a scalar."""
    element = op.source.type.element_type
    held = values.element_type if isinstance(values, ir.VectorType) else values
    several = op.axes.value in ("n", "mn")
    if held != element or isinstance(values, ir.VectorType) != several:
        wanted = f"a vector of {element}" if several else element
        return refuse(op, f"values must be {wanted} for {op.axes.value!r}, got {values}")
    return True


def verify_pieces(op: Any) -> bool:
    """Whether the boxes of the map are the chunks of a piece in a slot of the ring."""
    tiles = getattr(op.ring.type, "tiles", [])
    if len(tiles) != 1 or not isinstance(tiles[0], SmemType):
        return refuse(op, f"must load into a ring of one tile a slot, got {op.ring.type}")
    layout, map_type = tiles[0].layout, op.map.type
    wanted, got = [layout.span, layout.rows], plain_box(map_type)
    if got != wanted or map_type.swizzle != boxes_swizzle(layout):
        return refuse(
            op,
            f"the box must be {wanted}, swizzle {layout.swizzle!r}, got {got} and "
            f"{map_type.swizzle!r}",
        )
    return True
