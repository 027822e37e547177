"""Staged stores whose pieces threads store, as many at once as there are buffers.

    tile.staged_store %acc, %c      %sums = tile.await_sums %acc
                                    sm.named_barrier
                              →     of each buffer: its sums through f (`expand/writes.py`)
                                    sm.named_barrier
                                    of each buffer, some parts of its rows at a time:
                                      %words = llvm.load (tile.part_place %buffer, row, part)
                                      if they lie in c: tile.write_words %words, %c, row, column

All meet before the first write, too: the buffers may lie where operands lay that others still read,
and hold pieces that others still store. Neighbours take neighbouring parts of a row, so that a warp
stores whole rows of the piece. A thread's loads are under way together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ...dialects import llvm
from ...dialects.mlir import ir
from ...dialects.sm.types import attribute_of
from ...dialects.target import Target
from ...dialects.tile import KernelOp, StagedStoreOp
from ...dialects.tile.stores import (
    NextBufferOp,
    PartPlaceOp,
    StagingBufferOp,
    WriteWordsOp,
    words_of,
)
from ...dialects.tile_types import element_bytes
from ...dialects.verify import tile_of_c
from ..batches import row_pitch, step_bytes
from ..build import as_i32, both, constant, less, shared_at, when
from ..copy_width import UNIT_BYTES
from ..parts import PARTS_MAX, parts_of
from ..team import Team
from ..whole import lies_inside
from .rows import Height, awaited, rows_of_store
from .writes import Piece


class Edges(NamedTuple):
    """Rows and columns of C that a tile may hang over; None where none does."""

    rows: Height
    columns: int | None

    @staticmethod
    def of(kernel: KernelOp, store: StagedStoreOp) -> Edges:
        """The edges of a store to a view."""
        columns = None if lies_inside(kernel, store, "j") else store.to.type.shape[1]
        return Edges(rows_of_store(kernel, store), columns)

    def inside(self, row: ir.Value, column: ir.Value) -> ir.Value | None:
        """Whether a place is inside; None where all are."""
        below = None if self.rows is None else less(row, self.rows)
        return both(below, None if self.columns is None else less(column, self.columns))


def expand_pieces(kernel: KernelOp, store: StagedStoreOp, target: Target) -> int:
    """Write out one store; the number of pieces."""
    n, ring = tile_of_c(store)[1], store.staging.type
    columns = ring.tiles[0].layout.k
    starts = range(0, n, columns)
    with ir.InsertionPoint(store), store.location:
        sums, edges = awaited(store), Edges.of(kernel, store)
        for first in range(0, len(starts), ring.stages):
            piece = partial(Piece, kernel, target, store, sums)
            _batch(store, piece, edges, starts[first : first + ring.stages])
    store.operation.erase()
    return len(starts)


def _batch(store: StagedStoreOp, piece: Callable[..., Piece], edges: Edges, starts: range) -> None:
    """Pieces that go through the buffers together."""
    team = Team.of(store)
    team.meet()
    _in_turn(store, starts, lambda buffer, start: piece(buffer, start).write())
    team.meet()
    _in_turn(store, starts, lambda buffer, start: _store(store, edges, buffer, start))


def _in_turn(store: StagedStoreOp, starts: range, do: Callable[[ir.Value, ir.Value], None]) -> None:
    """Something with each buffer of the ring; after it the first has its turn again."""
    ring = store.staging
    for number in range(ring.type.stages):
        if number < len(starts):
            buffer = StagingBufferOp(staging=ring, buffer=ring.type.tiles[0]).buffer
            do(buffer, constant(starts[number]))
        NextBufferOp(staging=ring)


def _store(store: StagedStoreOp, edges: Edges, buffer: Any, start: ir.Value) -> None:
    """Several parts of the buffer at a time: their loads, then their stores."""
    layout, size, (m, n) = buffer.type.layout, stored_bytes(store), tile_of_c(store)
    first_row, first_column = as_i32(store.i) * m, as_i32(store.j) * n + start
    words, width = words_of(size), size // layout.element_bytes
    with parts_of(Team.of(store), layout, size, PARTS_MAX) as parts:
        places = [
            PartPlaceOp(buffer=buffer, row=row, part=part, bytes=attribute_of(size)).place
            for row, part in parts
        ]
        pointers = [shared_at(place) for place in places]
        read = [llvm.load(words, pointer, alignment=size) for pointer in pointers]
        for (row, part), values in zip(parts, read, strict=True):
            at = {"row": first_row + row, "column": first_column + part * width}
            with when(edges.inside(**at)):
                WriteWordsOp(words=values, view=store.to, **at)


def stored_bytes(store: StagedStoreOp) -> int:
    """Bytes of one store: up to 16, of which a row of C, the way to the next and a row of the piece
    are whole numbers."""
    item, piece = element_bytes(store.to.type.element_type), store.staging.type.tiles[0].layout
    lengths = (store.to.type.shape[1], row_pitch(store.to), piece.k)
    return math.gcd(UNIT_BYTES, *(length * item for length in lengths), step_bytes(store.to))
