"""Slots of a CTA's memory: their sizes, and what verifiers of `sm` check of them."""

from typing import Any

from ..mlir import ir
from ..pipe import ClaimType, RingType
from ..shared_columns import shared_of
from ..tile_types import SmemType
from ..verify import refuse

CLAIM_BYTES = 16


def is_claim(type_: ir.Type) -> bool:
    """Whether a slot holds an answer of cluster launch control."""
    return isinstance(type_, ClaimType)


def size_of(type_: ir.Type) -> int:
    """Bytes of a payload tile or answer."""
    return type_.layout.size_bytes if isinstance(type_, SmemType) else CLAIM_BYTES


def pitch_of(type_: ir.Type) -> int:
    """Bytes from one slot's to the next slot's."""
    return type_.layout.slot_bytes if isinstance(type_, SmemType) else CLAIM_BYTES


def verify_ring(op: Any, slots: set[int]) -> bool:
    """Whether a ring's memory and barriers are for its slots: as many, and of its payload."""
    ring, memory = op.ring.type, op.memory
    if not isinstance(ring, RingType):
        return refuse(op, f"must give a ring, got {ring}")
    owner = memory.owner
    planned = None if isinstance(owner, ir.Block) else getattr(owner.opview, "slots", None)
    if planned is None:
        return refuse(op, f"memory must be that of an op with slots, got {memory.type}")
    slots = slots | {1 if shared_of(owner) else planned.value}  # one has two places
    if slots != {ring.stages}:
        return refuse(op, f"all parts must have {ring.stages} slots, got {sorted(slots)}")
    if memory.type not in (ring.slot, *ring.tiles[:1]):
        return refuse(op, f"memory must be of {ring.slot}, got {memory.type}")
    return True


def verify_slots(op: Any) -> bool:
    """Whether there is a slot."""
    slots = op.slots.value
    return slots >= 1 or refuse(op, f"slots must be at least 1, got {slots}")


def verify_offset(op: Any, offset: int, alignment: int) -> bool:
    """Whether what lies in shared memory is aligned."""
    if offset < 0 or offset % alignment:
        return refuse(op, f"offset must be a multiple of {alignment}, got {offset}")
    return True
