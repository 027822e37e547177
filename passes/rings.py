"""Changing a ring, and all values whose type depends on it."""

from __future__ import annotations

from collections.abc import Sequence

from ..dialects import legality
from ..dialects.mlir import ir
from ..dialects.pipe import AcquireOp, CreateOp, RingType, TileOp, WaitOp
from ..dialects.tile import KernelOp, LoadOp, StagedStoreOp
from ..dialects.tile.ahead import LoadAheadOp
from ..dialects.tile_types import SmemType
from .base import target_of, walk
from .operand_terms import kernel_term_bytes
from .reused_slots import drain_of


def retype_ring(create: CreateOp, stages: int, tiles: Sequence[ir.Type]) -> None:
    """Give a ring `stages` slots of `tiles`; slots and the tiles taken from them follow."""
    create.ring.set_type(RingType.of(stages, tiles))
    for use in create.ring.uses:
        for slot in use.owner.results if isinstance(use.owner.opview, AcquireOp | WaitOp) else ():
            slot.set_type(create.ring.type.slot)
            for part in slot_parts(slot):
                part.tile.set_type(tiles[part.index.value])


def is_operand_ring(create: CreateOp) -> bool:
    """Whether the ring carries operand tiles from a producer to the MMAs."""
    acquired = any(use.owner.name == "pipe.acquire" for use in create.ring.uses)
    return acquired and isinstance(create.ring.type.tiles[0], SmemType)


def is_ahead_ring(ring: ir.Value) -> bool:
    """Whether the ring brings pieces of another operand of the epilogue."""
    return any(use.owner.name == LoadAheadOp.OPERATION_NAME for use in ring.uses)


def ring_slot_bytes(create: CreateOp) -> int:
    """Shared-memory bytes of one slot; none for accumulators and claims."""
    tiles = [tile for tile in create.ring.type.tiles if isinstance(tile, SmemType)]
    return sum(tile.layout.slot_bytes for tile in tiles)


def used_shared_bytes(kernel: KernelOp, but: CreateOp | None = None) -> int:
    """Shared memory that the kernel needs, without the ring `but`, barriers included.

    Buffers that lie where operands lay need no more; terms of f32 tiles have a place of their own.
    """
    rings = [
        each
        for each in walk(kernel, CreateOp)
        if (but is None or each.ring != but.ring) and not lies_in_operands(each.ring)
    ]
    in_rings = sum(each.ring.type.stages * ring_slot_bytes(each) for each in rings)
    buffers = sum(load.tile.type.layout.slot_bytes for load in walk(kernel, LoadOp))
    terms = kernel_term_bytes(kernel, target_of(kernel.operation.parent.opview))
    return legality.RESERVED_BYTES + in_rings + buffers + terms


def lies_in_operands(ring: ir.Value) -> bool:
    """Whether the buffers of a ring may lie where operands lay.

    Those of a store by threads may that stands in the kernel itself: the CTA has read all operands
    when it comes to it, and nothing fills their slots any more. So may pieces of other operands
    that are loaded when slots are left (`slot-reuse`).
    """
    if drain_of(ring) is not None:
        return True
    users = [use.owner.opview for use in ring.uses]
    return bool(users) and all(
        isinstance(user, StagedStoreOp)
        and isinstance(user.to.type, ir.MemRefType)
        and isinstance(user.operation.parent.opview, KernelOp)
        for user in users
    )


def slot_parts(slot: ir.Value) -> list[TileOp]:
    """The `pipe.tile` ops that take a slot apart."""
    return [use.owner.opview for use in slot.uses]
