"""Expands the prefetch of operands of an epilogue.

load_ahead %map → %ring[%i, %j]   →   of each slot: load_piece %map → %ring[%i, %j*pieces + …]
of slots that A and B have left   →   in some K steps before: prefetch_boxes of a piece
of a piece of the store           →   %piece = await_piece %ring
                                      … what the threads read of it and write, and meet …
                                      if there is one: load_piece of as many pieces later
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...dialects.mlir import ir, scf
from ...dialects.pipe import CommitOp, DrainOp
from ...dialects.tile import KernelOp, StagedStoreOp
from ...dialects.tile.ahead import AwaitPieceOp, LoadAheadOp, LoadPieceOp, StagedElementOp
from ...dialects.tile.boxes import PrefetchBoxesOp
from ...dialects.tile_types import integer
from ..base import walk
from ..build import as_i32, as_index, constant, less, when
from ..clone import Mapping, clone, constant_of, index_constant, iterations_of
from ..reused_slots import agent_around, drain_before


def expand_load_ahead(kernel: KernelOp) -> None:
    """The first pieces of each tile."""
    for op in walk(kernel, LoadAheadOp):
        drain = drain_before(op)
        if drain is not None:
            _ask_early(op, drain)
        elif _load_in_steps(op):
            op.operation.erase()
            continue
        with ir.InsertionPoint(op), op.location:
            for number in range(min(op.ring.type.stages, op.pieces.value)):
                _load(op, constant(number))
        op.operation.erase()


def _ask_early(op: LoadAheadOp, drain: DrainOp) -> None:
    """Ask L2 for a piece in each of some K steps in the middle, once the ring has been full.

    Slots are left shortly before the store: all pieces from DRAM at once would take longer.
    """
    around = op.operation.block
    loops = walk(agent_around(op), scf.ForOp)
    numbers = iterations_of(loops[0]) if len(loops) == 1 else None
    stages, pieces = drain.ring.type.stages, op.pieces.value
    if numbers is None or (numbers.start, numbers.step) != (0, 1):
        return
    if loops[0].operation.block != around or len(numbers) < stages + pieces:
        return
    asking, start = _middle(loops[0], len(numbers), stages, pieces)
    with ir.InsertionPoint.at_block_begin(asking.body), op.location:
        number = as_i32(asking.induction_variable) - start
        PrefetchBoxesOp(
            map=op.map,
            i=op.i,
            j=_column(op, number),
            tile=ir.TypeAttr.get(op.ring.type.tiles[0]),
            axis=ir.StringAttr.get(""),
            parts=integer(1),
        )


def _load_in_steps(op: LoadAheadOp) -> bool:
    """Load a piece in each of some K steps in the middle, where the role that loads operands brings
    them: all at once would delay those."""
    loops = [loop for loop in walk(agent_around(op), scf.ForOp) if walk(loop, CommitOp)]
    numbers = iterations_of(loops[0]) if len(loops) == 1 else None
    if numbers is None or (numbers.start, numbers.step) != (0, 1):
        return False
    ring = walk(loops[0], CommitOp)[0].ring
    stages, pieces = ring.type.stages, op.pieces.value
    beside = loops[0].operation.block == op.operation.block
    if not beside or op.operation.is_before_in_block(loops[0].operation):
        return False
    if len(numbers) < stages + pieces:
        return False
    loading, start = _middle(loops[0], len(numbers), stages, pieces)
    with ir.InsertionPoint(loading.body.operations[len(loading.body.operations) - 1]), op.location:
        _load(op, as_i32(loading.induction_variable) - start)
    return True


def _middle(loop: scf.ForOp, steps: int, stages: int, pieces: int) -> tuple[scf.ForOp, int]:
    """A loop over as many steps as there are pieces, once the ring has been full; and its first
    step."""
    start = max(stages, (steps - pieces) // 2)
    middle = _cut(loop, start)
    if start + pieces < steps:
        _cut(middle, start + pieces)
    return middle, start


def _cut(loop: scf.ForOp, number: int) -> scf.ForOp:
    """End a loop at a value of its counter; the loop of the others, after it."""
    with ir.InsertionPoint(loop), loop.location:
        bound = index_constant(number)
    with ir.InsertionPoint.after(loop), loop.location:
        rest = clone(loop, {})
    loop.operation.operands[1] = rest.operands[0] = bound
    return rest.opview


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
    row = index_constant(0) if op.is_vector else op.i
    return LoadPieceOp(map=op.map, ring=op.ring, i=row, j=_column(op, number))


def _column(op: LoadAheadOp, number: ir.Value) -> ir.Value:
    """A piece of the tile, counted from the first of C on."""
    return as_index(as_i32(op.j) * op.pieces.value + number)
