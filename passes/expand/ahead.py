"""Loads of pieces ahead of the store that reads them, written out.

load_ahead %map → %ring[%i, %j]   →   of each slot: load_piece %map → %ring[%i, %j*pieces + …]
of a piece of the store           →   %piece = await_piece %ring
                                      … what the threads read of it and write, and meet …
                                      if there is one: load_piece of as many pieces later
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...dialects.mlir import ir
from ...dialects.tile import KernelOp, StagedStoreOp
from ...dialects.tile.ahead import AwaitPieceOp, LoadAheadOp, LoadPieceOp, StagedElementOp
from ..base import walk
from ..build import as_i32, as_index, constant, less, when
from ..clone import Mapping, constant_of, index_constant


def expand_load_ahead(kernel: KernelOp) -> None:
    """The first pieces of each tile."""
    for op in walk(kernel, LoadAheadOp):
        with ir.InsertionPoint(op), op.location:
            for number in range(min(op.ring.type.stages, op.pieces.value)):
                _load(op, constant(number))
        op.operation.erase()


def loads_of(stores: list[StagedStoreOp]) -> list[LoadAheadOp]:
    """What starts the loads of the pieces that stores read, before they are written out."""
    rings = dict.fromkeys(op.piece for store in stores for op in walk(store, StagedElementOp))
    return [load for ring in rings for load in _loads_into(ring)]


def _loads_into(ring: ir.Value) -> Iterator[LoadAheadOp]:
    ops = (use.owner.opview for use in ring.uses)
    return (op for op in ops if isinstance(op, LoadAheadOp))


def await_pieces(loads: list[LoadAheadOp]) -> Mapping:
    """The piece at hand of each ring."""
    return {op.ring: AwaitPieceOp(ring=op.ring, piece=op.ring.type.tiles[0]).piece for op in loads}


def load_later(loads: list[LoadAheadOp], start: ir.Value) -> None:
    """Emit the loads into the slots of the pieces that begin at a column and have been read."""
    for op in loads:
        columns, slots = op.ring.type.tiles[0].layout.k, op.ring.type.stages
        end, known = (op.pieces.value - slots) * columns, constant_of(start)
        if end <= 0 or (known is not None and known >= end):
            continue
        with when(None if known is not None else less(start, end)):
            later = constant(known // columns) if known is not None else start // columns
            _load(op, later + slots)


def _load(op: LoadAheadOp, number: ir.Value) -> Any:
    column = as_index(as_i32(op.j) * op.pieces.value + number)
    row = index_constant(0) if op.is_vector else op.i
    return LoadPieceOp(map=op.map, ring=op.ring, i=row, j=column)
