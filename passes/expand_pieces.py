"""Staged stores whose pieces threads store: as many at once as there are buffers.

    tile.staged_store %acc, %c      %sums = tile.await_sums %acc
                                    sm.named_barrier
                              →     of each buffer: its sums through f (`expand_writes`)
                                    sm.named_barrier
                                    of each buffer: tile.store_piece %c, %buffer, start

All meet before the first write, too: the buffers may lie where operands lay that others still read,
and hold pieces that others still store.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..dialects.mlir import ir
from ..dialects.target import Target
from ..dialects.tile import KernelOp, StagedStoreOp
from ..dialects.tile_stores import (
    NextBufferOp,
    StagingBufferOp,
    StorePieceOp,
)
from ..dialects.tile_types import integers
from ..dialects.verify import tile_of_c
from .build import constant
from .expand_rows import awaited
from .expand_writes import Piece
from .team import Team


def stored_by_threads(store: StagedStoreOp) -> bool:
    """Whether threads store the pieces; else TMA does."""
    return isinstance(store.to.type, ir.MemRefType)


def expand_pieces(kernel: KernelOp, store: StagedStoreOp, target: Target) -> int:
    """Write out one store; the number of pieces."""
    n, ring = tile_of_c(store)[1], store.staging.type
    columns = ring.tiles[0].layout.k
    starts = range(0, n, columns)
    with ir.InsertionPoint(store), store.location:
        sums = awaited(store)
        for first in range(0, len(starts), ring.stages):
            piece = partial(Piece, kernel, target, store, sums)
            _batch(store, piece, starts[first : first + ring.stages])
    store.operation.erase()
    return len(starts)


def _batch(store: StagedStoreOp, piece: Callable[..., Piece], starts: range) -> None:
    """Pieces that go through the buffers together."""
    team = Team.of(store)
    team.meet()
    _in_turn(store, starts, lambda buffer, start: piece(buffer, start).write())
    team.meet()
    _in_turn(store, starts, lambda buffer, start: _store_piece(store, buffer, start))


def _in_turn(store: StagedStoreOp, starts: range, do: Callable[[ir.Value, ir.Value], None]) -> None:
    """Something with each buffer of the ring; behind it the first has its turn again."""
    ring = store.staging
    for number in range(ring.type.stages):
        if number < len(starts):
            buffer = StagingBufferOp(staging=ring, buffer=ring.type.tiles[0]).buffer
            do(buffer, constant(starts[number]))
        NextBufferOp(staging=ring)


def _store_piece(store: StagedStoreOp, buffer: ir.Value, start: ir.Value) -> None:
    extents, whole = integers(list(tile_of_c(store))), ir.StringAttr.get("none")
    StorePieceOp(buffer=buffer, start=start, extents=extents, whole=whole, **_place(store))


def _place(store: StagedStoreOp) -> dict[str, Any]:
    return {"to": store.to, "i": store.i, "j": store.j}
