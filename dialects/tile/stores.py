"""Stores through shared memory, after their loops are expanded."""

import math
from typing import Any

from ..integer_types import I32
from ..layout import SPAN_BYTES
from ..mlir import ext, ir
from ..ragged_maps import parts_of_rows
from ..sm.threads import WARPGROUP, who_runs
from ..tile_types import AccumulatorType, SmemType, TensorMapType, Tile, element_bytes, extent_of
from ..verify import refuse, verify_boxes_swizzle

WHOLES = ("none", "i", "j", "ij")
WORD_BYTES = 4
WORDS_BYTES = (1, 2, 4, 8, 16)
"""What one load or store of a thread can move."""


class AwaitSumsOp(Tile.Operation, name="await_sums"):
    """`sums`: the accumulator, once every MMA that this agent must wait for is done."""

    acc: ext.Operand[AccumulatorType]
    sums: ext.Result[AccumulatorType]

    def verify_invariants(self) -> bool:
        if self.sums.type != self.acc.type:
            return refuse(self, f"must give {self.acc.type}, got {self.sums.type}")
        return True


class StagingBufferOp(Tile.Operation, name="staging_buffer"):
    """`buffer`: the current buffer of the ring; the previous store may still be reading it."""

    staging: ext.Operand[Any]
    buffer: ext.Result[SmemType]

    def verify_invariants(self) -> bool:
        wanted = self.staging.type.tiles[0]
        if self.buffer.type != wanted:
            return refuse(self, f"must give {wanted}, got {self.buffer.type}")
        return True


class NextBufferOp(Tile.Operation, name="next_buffer"):
    """Makes the next buffer of the ring the current one."""

    staging: ext.Operand[Any]


class TmaStoreOp(Tile.Operation, name="tma_store"):
    """`view[i*M + r, j*N + start + c] = buffer[r, c]` by TMA, dropped outside the view.

    M and N are those of a tile of C, `extents`. A buffer whose rows are contiguous ("mn") is stored
    chunk by chunk, as columns of the view, which are contiguous then. If boxes have fewer rows than
    the buffer, the lane of a warpgroup that runs the op stores the rows of its own warpgroup.
    """

    map: ext.Operand[TensorMapType]
    buffer: ext.Operand[SmemType]
    i: ext.Operand[ir.IndexType]
    j: ext.Operand[ir.IndexType]
    start: ext.Operand[I32]
    extents: ir.ArrayAttr

    def verify_invariants(self) -> bool:
        layout = self.buffer.type.layout
        parts = parts_of_rows(self.map.type, layout)
        if not parts:
            wanted = [layout.span, layout.rows]
            return refuse(self, f"the box must be {wanted}, got {self.map.type.box}")
        if parts > 1 and who_runs(self) != WARPGROUP:
            rule = "a lane of each warpgroup must store its part"
            return refuse(self, f"{rule}, got it where {who_runs(self)!r} runs")
        return verify_boxes_swizzle(self, self.buffer.type)


class PartPlaceOp(Tile.Operation, name="part_place"):
    """`place`: the byte of shared memory at which the `part`-th `bytes` of a row of the buffer
    begin."""

    buffer: ext.Operand[SmemType]
    row: ext.Operand[I32]
    part: ext.Operand[I32]
    bytes: ir.IntegerAttr
    place: ext.Result[I32] = ext.infer_result()

    def verify_invariants(self) -> bool:
        layout, size = self.buffer.type.layout, self.bytes.value
        row = layout.contiguous * layout.element_bytes
        if layout.swizzle not in SPAN_BYTES:
            return refuse(self, f"the buffer must hold rows or columns, got {layout}")
        fits = size in WORDS_BYTES and row % size == 0
        return fits or refuse(
            self, f"bytes must be one of {WORDS_BYTES} that divides the {row} of a row, got {size}"
        )


class WriteWordsOp(Tile.Operation, name="write_words"):
    """`view[row, column + c] = words[c]`, where words hold elements of the view."""

    words: ext.Operand[Any]
    view: ext.Operand[ir.MemRefType]
    row: ext.Operand[I32]
    column: ext.Operand[I32]

    def verify_invariants(self) -> bool:
        words, row = self.words.type, row_bytes(self.view.type)
        size = bytes_of_words(words)
        fits = size in WORDS_BYTES and row % size == 0
        return fits or refuse(
            self,
            f"words must be integers of {WORDS_BYTES} bytes together, and divide the {row} of a "
            f"row, got {words}",
        )


def words_of(size: int) -> ir.VectorType:
    """The type of `size` bytes: words of 32 bits, or one narrower word."""
    word = min(size, WORD_BYTES)
    return ir.VectorType.get([size // word], ir.IntegerType.get_signless(8 * word))


def bytes_of_words(words: ir.Type) -> int:
    """Bytes of a vector of integers; 0 of another type."""
    if not isinstance(words, ir.VectorType) or not isinstance(words.element_type, ir.IntegerType):
        return 0
    return math.prod(words.shape) * words.element_type.width // 8


def row_bytes(view: ir.MemRefType) -> int:
    """Bytes of a row of a view."""
    return extent_of(view, view.rank - 1) * element_bytes(view.element_type)
