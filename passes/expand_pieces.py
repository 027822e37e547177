"""Staged stores whose pieces threads store: as many at once as there are buffers.

    tile.staged_store %acc, %c      %sums = tile.await_sums %acc
                                    sm.named_barrier
                              →     of each buffer: tile.write_piece %sums, %buffer, start
                                    sm.named_barrier
                                    of each buffer: tile.store_piece %c, %buffer, start

All meet before the first write, too: the buffers may lie where operands lay that others still read,
and hold pieces that others still store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dialects.mlir import ir
from ..dialects.tile import StagedStoreOp
from ..dialects.tile_stores import (
    AwaitSumsOp,
    NextBufferOp,
    StagingBufferOp,
    StorePieceOp,
    WritePieceOp,
)
from ..dialects.tile_types import AccumulatorType, integers
from .build import constant
from .clone import copy_region
from .team import Team


def stored_by_threads(store: StagedStoreOp) -> bool:
    """Whether threads store the pieces; else TMA does."""
    return isinstance(store.to.type, ir.MemRefType)


def expand_pieces(store: StagedStoreOp) -> int:
    """Write out one store; the number of pieces."""
    n, ring = store.acc.type.shape[1], store.staging.type
    columns = ring.tiles[0].layout.k
    starts = range(0, n, columns)
    with ir.InsertionPoint(store), store.location:
        sums = AwaitSumsOp(acc=store.acc, sums=store.acc.type).sums
        for first in range(0, len(starts), ring.stages):
            _batch(store, sums, starts[first : first + ring.stages])
    store.operation.erase()
    return len(starts)


def _batch(store: StagedStoreOp, sums: ir.Value[AccumulatorType], starts: range) -> None:
    """Pieces that go through the buffers together."""
    team = Team.of(store)
    team.meet()
    _in_turn(store, starts, lambda buffer, start: write_piece(store, sums, buffer, start))
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


def write_piece(
    store: StagedStoreOp, sums: ir.Value[AccumulatorType], buffer: ir.Value, start: ir.Value
) -> None:
    """Sums through the epilogue to a buffer."""
    piece = WritePieceOp(
        sums=sums,
        buffer=buffer,
        start=start,
        write=store.write,
        whole=ir.StringAttr.get("none"),
        **_place(store),
    )
    copy_region(store.epilogue, piece.epilogue)


def _store_piece(store: StagedStoreOp, buffer: ir.Value, start: ir.Value) -> None:
    extents, whole = integers(list(store.acc.type.shape)), ir.StringAttr.get("none")
    StorePieceOp(buffer=buffer, start=start, extents=extents, whole=whole, **_place(store))


def _place(store: StagedStoreOp) -> dict[str, Any]:
    return {"to": store.to, "i": store.i, "j": store.j}
