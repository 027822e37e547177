"""Ops of `tile` that a store through shared memory is made of, once its loop is written out."""

from typing import Any

from .integer_types import I32
from .mlir import ext, ir
from .tile_types import (
    AccumulatorType,
    SmemType,
    TensorMapType,
    Tile,
    integers_of,
)
from .verify import refuse, verify_stored_to

WHOLES = ("none", "i", "j", "ij")


class AwaitSumsOp(Tile.Operation, name="await_sums"):
    """`sums`: the accumulator once every MMA that this agent has to wait for is done."""

    acc: ext.Operand[AccumulatorType]
    sums: ext.Result[AccumulatorType]

    def verify_invariants(self) -> bool:
        if self.sums.type != self.acc.type:
            return refuse(self, f"must give {self.acc.type}, got {self.sums.type}")
        return True


class StagingBufferOp(Tile.Operation, name="staging_buffer"):
    """`buffer`: the buffer of the ring whose turn it is; what stores it may still be reading it."""

    staging: ext.Operand[Any]
    buffer: ext.Result[SmemType]

    def verify_invariants(self) -> bool:
        wanted = self.staging.type.tiles[0]
        if self.buffer.type != wanted:
            return refuse(self, f"must give {wanted}, got {self.buffer.type}")
        return True


class NextBufferOp(Tile.Operation, name="next_buffer"):
    """From here on it is the turn of the ring's next buffer."""

    staging: ext.Operand[Any]


class TmaStoreOp(Tile.Operation, name="tma_store"):
    """`view[i*M + r, j*N + start + c] = buffer[r, c]` by TMA, dropped outside the view.

    M and N are those of a tile of C, `extents`.
    """

    map: ext.Operand[TensorMapType]
    buffer: ext.Operand[SmemType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    start: ext.Operand[I32]
    extents: ir.ArrayAttr

    def verify_invariants(self) -> bool:
        layout = self.buffer.type.layout
        if self.map.type.box != [layout.k, layout.mn]:
            return refuse(self, f"the box must be {[layout.k, layout.mn]}, got {self.map.type.box}")
        return True


class StorePieceOp(Tile.Operation, name="store_piece"):
    """`view[i*M + r, j*N + start + c] = buffer[r, c]` by all threads, dropped outside the view.

    M and N are those of a tile of C, `extents`; `whole` names those of i and j whose tiles all lie
    inside the view. Neighbouring threads store neighbouring units of a row.
    """

    to: ext.Operand[ir.MemRefType]
    buffer: ext.Operand[SmemType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    start: ext.Operand[I32]
    extents: ir.ArrayAttr
    whole: ir.StringAttr

    def verify_invariants(self) -> bool:
        if self.whole.value not in WHOLES:
            return refuse(self, f"whole must be one of {WHOLES}, got {self.whole.value!r}")
        layout, extents = self.buffer.type.layout, integers_of(self.extents)
        if len(extents) != 2 or layout.mn != extents[0] or extents[1] % layout.k:
            got = f"{layout} of {extents}"
            return refuse(self, f"the buffer must hold the rows of a piece of a tile, got {got}")
        if self.buffer.type.element != self.to.type.element_type:
            got = f"{self.buffer.type.element} for {self.to.type.element_type}"
            return refuse(self, f"the buffer must hold elements of the view, got {got}")
        return verify_stored_to(self)
