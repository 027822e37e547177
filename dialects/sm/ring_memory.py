"""Rings: slots in memory with their full and empty mbarriers."""

from typing import Any

from ..mlir import ext, ir
from ..pipe import RingType, TurnType
from ..verify import refuse
from .memory import (
    BarriersOp,
    BarriersType,
    ColumnsOp,
    ProductColumnsOp,
    ScaleColumnsOp,
    SharedMemoryOp,
    SlotMemoryOp,
    TensorMemoryOp,
    TermsOp,
    TileMemoryOp,
    WeightColumnsOp,
)
from .slots import verify_ring
from .types import Sm


class RingOp(Sm.Operation, name="ring"):
    """`ring` of the slots in `memory`; the barriers say which are full and which empty.

    Threads that copy go on to fill `under_way` slots before they wait for what they copied to the
    first.
    """

    full: ext.Operand[BarriersType]
    empty: ext.Operand[BarriersType]
    memory: ext.Operand[Any]
    under_way: ir.IntegerAttr
    ring: ext.Result[Any]

    def verify_invariants(self) -> bool:
        if not verify_ring(self, {self.full.type.slots, self.empty.type.slots}):
            return False
        stages, under_way = self.ring.type.stages, self.under_way.value
        if not 0 <= under_way < stages:
            return refuse(self, f"under_way must be below the {stages} slots, got {under_way}")
        return True


class TurnsOp(Sm.Operation, name="turns"):
    """`ring` of turns, which are nothing but the phases of its barriers."""

    full: ext.Operand[BarriersType]
    empty: ext.Operand[BarriersType]
    ring: ext.Result[Any]

    def verify_invariants(self) -> bool:
        ring, slots = self.ring.type, {self.full.type.slots, self.empty.type.slots}
        if not isinstance(ring, RingType) or not isinstance(ring.tiles[0], TurnType):
            return refuse(self, f"must give a ring of turns, got {ring}")
        if slots != {ring.stages}:
            return refuse(self, f"all parts must have {ring.stages} slots, got {sorted(slots)}")
        return True


class StagingOp(Sm.Operation, name="staging"):
    """`ring` of the slots in `memory`, which its threads hand to each other without mbarriers."""

    memory: ext.Operand[Any]
    ring: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return verify_ring(self, set())


class AheadRingOp(Sm.Operation, name="ahead_ring"):
    """`ring` of the slots in `memory`; the barriers say into which a piece has arrived.

    Who loads into a slot has met those who read it, so that none says which are empty.
    """

    full: ext.Operand[BarriersType]
    memory: ext.Operand[Any]
    ring: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return verify_ring(self, {self.full.type.slots})


class ReusedRingOp(AheadRingOp, name="reused_ring"):
    """The same in slots `within` the memory of A and B that nothing fills any more.

    Who loads has waited until they are empty.
    """

    within: ext.Operand[Any]


class CopyRingOp(Sm.Operation, name="copy_ring"):
    """`ring` of the slots in `memory`, which the threads that read them fill by their own copies.

    Groups of copies and meetings of the CTA say what is full and empty, not mbarriers.
    """

    memory: ext.Operand[Any]
    ring: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return verify_ring(self, set())


MEMORY_OPS = (
    SharedMemoryOp
    | TileMemoryOp
    | SlotMemoryOp
    | BarriersOp
    | TensorMemoryOp
    | ColumnsOp
    | ScaleColumnsOp
    | ProductColumnsOp
    | WeightColumnsOp
    | TermsOp
    | RingOp
    | TurnsOp
    | StagingOp
    | AheadRingOp
    | ReusedRingOp
    | CopyRingOp
)
