"""Accumulators whose two places in tensor memory share columns (`dialects/shared_columns.py`).

The stores of a tile read the shared columns first, which are the last ones of even tiles and the
first ones of odd tiles. Then they release the slot, and MMAs of the next tile may write to the
other place.
"""

from __future__ import annotations

from typing import Any

from ..dialects import scaled_legality
from ..dialects.mlir import arith, ir
from ..dialects.pipe import ParityOp, ReleaseOp, WaitOp
from ..dialects.shared_columns import PLACES, shared_of
from ..dialects.target import Target
from ..dialects.tile import KernelOp, StagedStoreOp
from ..dialects.tile.ahead import LoadAheadOp
from ..dialects.tile.scales import SCALED_MMAS, depth_of, mma_of
from ..dialects.tile.staged_quantized import stored_tile
from ..dialects.tile_types import AccumulatorType
from ..dialects.verify import products_of
from .base import defining_op, walk
from .build import constant, equal
from .outputs import stored_by_threads, stored_together
from .rings import slot_parts


def columns_to_share(kernel: KernelOp, ring: Any, target: Target) -> int:
    """Columns that accumulators of two tiles must share to fit tensor memory beside the scales.

    0 where that brings nothing: no scales, or no store that can read these columns before others.
    """
    sums, stores = ring.type.accumulator, stores_of(ring)
    shared = sum(_columns_over(mma, sums, target) for mma in walk(kernel, SCALED_MMAS)[:1])
    if not stores or shared <= 0:
        return 0
    return shared if pieces_before(stores, shared) < _pieces(stores[0]) else 0


def _columns_over(mma: Any, sums: AccumulatorType, target: Target) -> int:
    """By how many columns the accumulators of two tiles are too many."""
    return scaled_legality.scaled_columns_over(
        target, mma_of(mma), (*sums.shape, depth_of(mma)), PLACES
    )


def stores_of(ring: ir.Value) -> list[StagedStoreOp]:
    """The stores that read the slots of a ring, where these are all that does, and TMA stores their
    pieces together in any order; none otherwise."""
    waits = [use.owner.opview for use in ring.uses if isinstance(use.owner.opview, WaitOp)]
    parts = [part for wait in waits for part in slot_parts(wait.slot)]
    users = {use.owner for part in parts for use in part.tile.uses}
    if len(waits) != 1 or not all(_reads_any_piece(user.opview) for user in users):
        return []
    block = [op.operation for op in waits[0].operation.block.operations]
    stores: list[Any] = [op.opview for op in block if op in users]
    together = len(stores) == len(users) and len(stored_together(stores)) == 1
    return stores if together else []


def _reads_any_piece(op: Any) -> bool:
    """Whether an op is a store by TMA of a tile of sums, whose pieces may come in any order."""
    if not isinstance(op, StagedStoreOp) or stored_by_threads(op) or products_of(op) > 1:
        return False
    kernel = op.operation.parent
    while not isinstance(kernel.opview, KernelOp):
        kernel = kernel.parent
    return all(load.is_vector for load in walk(kernel.opview, LoadAheadOp))


def _pieces(store: StagedStoreOp) -> int:
    return stored_tile(store)[1] // store.staging.type.tiles[0].layout.k


def pieces_before(stores: list[StagedStoreOp], shared: int) -> int:
    """Pieces of a tile that have the shared columns."""
    each = stores[0].acc.type.shape[1] // _pieces(stores[0])
    return -(-shared // each)


def shared_by(stores: list[StagedStoreOp]) -> int:
    """Columns that the sums of stores share with those of the next tile; 0 if the stores cannot
    release them early."""
    tile = defining_op(stores[0].acc)
    slot = defining_op(tile.slot) if hasattr(tile, "slot") else None
    if not isinstance(slot, WaitOp):
        return 0
    found = stores_of(slot.ring)
    alone = [op.operation for op in found] == [op.operation for op in stores]
    return shared_of(defining_op(defining_op(slot.ring).memory)) if alone else 0


def release_now(stores: list[StagedStoreOp]) -> None:
    """Move the release of the sums of stores here."""
    ring = defining_op(defining_op(stores[0].acc).slot).ring
    (release,) = [use.owner for use in ring.uses if isinstance(use.owner.opview, ReleaseOp)]
    release.opview.operation.erase()
    ReleaseOp(ring=ring)


def in_turn(stores: list[StagedStoreOp], start: ir.Value) -> ir.Value:
    """The column at which a piece begins: from the end of an even tile, from that of an odd tile
    on."""
    slot, (_, n) = defining_op(stores[0].acc).slot, stored_tile(stores[0])
    last = constant(n - stores[0].staging.type.tiles[0].layout.k)
    odd = ParityOp(slot=slot, odd=ir.IntegerType.get_signless(32)).odd
    return arith.select(equal(odd, 1), start, last - start)
