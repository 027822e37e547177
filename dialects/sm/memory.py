"""The memory plan of a CTA, as `plan-memory` makes it.

Offsets are bytes from the start of the CTA's dynamic shared memory, columns those of its tensor
memory from the start of its allocation. Slots lie one after the other.
"""

from typing import Any

from ...runtime.ptx_sizes import BARRIER_BYTES
from ..layout import SLOT_ALIGNMENT
from ..mlir import ext, ir
from ..mma_units import PRODUCT_SLOTS
from ..pipe import ClaimType, SlotType
from ..shared_columns import PLACES, SHARED, shared_of
from ..term_tiles import form_of, is_term
from ..terms import MOVED_UP, PLAIN, ROUNDED
from ..tile_types import AccumulatorType, SmemType, integers_of
from ..verify import refuse, verify_smem
from .slots import (
    CLAIM_BYTES,
    is_claim,
    pitch_of,
    size_of,
    verify_offset,
    verify_slots,
)
from .types import Sm

# PTX ISA, mbarrier: a 64-bit object, whose pending count is 1 to 2^20 - 1.
ARRIVALS_MAX = 2**20 - 1
ADDRESS_BYTES = 4


class BarriersType(Sm.Type, name="mbarriers"):
    """`slots` mbarriers, one for each slot of a ring."""

    slots_attr: ir.IntegerAttr

    @property
    def slots(self) -> int:
        return ir.IntegerAttr(self.slots_attr).value

    @staticmethod
    def of(slots: int) -> "BarriersType":
        return BarriersType.get(ir.IntegerAttr.get(ir.IntegerType.get_signless(64), slots))


class TensorMemoryType(Sm.Type, name="allocation"):
    """Columns of tensor memory that the CTA has allocated."""


class SharedMemoryOp(Sm.Operation, name="shared_memory"):
    """The CTA is launched with `bytes` of dynamic shared memory."""

    bytes: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        count = self.bytes.value
        return count >= 0 or refuse(self, f"bytes must be at least 0, got {count}")


class TileMemoryOp(Sm.Operation, name="tile_memory"):
    """`tile`: a tile of no ring, from byte `offset` on."""

    offset: ir.IntegerAttr
    tile: ext.Result[Any]

    def verify_invariants(self) -> bool:
        if not isinstance(self.tile.type, SmemType):
            return refuse(self, f"must give a tile, got {self.tile.type}")
        return verify_smem(self, self.tile.type) and verify_offset(
            self, self.offset.value, SLOT_ALIGNMENT
        )


class SlotMemoryOp(Sm.Operation, name="slot_memory"):
    """`memory` of `slots` slots: tile t of slot s is at byte `offsets[t]` + s times its pitch.

    The pitch of a tile is its size, up to whole swizzle patterns; that of an answer of cluster
    launch control is 16 bytes.
    """

    offsets: ir.ArrayAttr
    slots: ir.IntegerAttr
    memory: ext.Result[Any]

    def places(self) -> list[tuple[int, int, ir.Type]]:
        """(first byte, end, type) of each payload tile."""
        tiles = zip(integers_of(self.offsets), self.memory.type.tiles, strict=True)
        behind = self.slots.value - 1
        return [
            (offset, offset + behind * pitch_of(type_) + size_of(type_), type_)
            for offset, type_ in tiles
        ]

    def verify_invariants(self) -> bool:
        if not isinstance(self.memory.type, SlotType):
            return refuse(self, f"must give memory of slots, got {self.memory.type}")
        tiles = self.memory.type.tiles
        if not all(isinstance(each, SmemType | ClaimType) for each in tiles):
            return refuse(self, f"must hold tiles or responses, got {self.memory.type}")
        offsets = integers_of(self.offsets)
        if len(offsets) != len(tiles):
            return refuse(self, f"must have {len(tiles)} offsets, got {offsets}")
        if not all(verify_smem(self, each) for each in tiles if isinstance(each, SmemType)):
            return False
        alignments = zip(offsets, tiles, strict=True)
        return verify_slots(self) and all(
            verify_offset(self, offset, CLAIM_BYTES if is_claim(each) else SLOT_ALIGNMENT)
            for offset, each in alignments
        )


class BarriersOp(Sm.Operation, name="barriers"):
    """`barriers`: one mbarrier a slot from byte `offset` on, each phase of `arrivals` arrivals.

    In a fallback cluster a phase has `fallback` arrivals, where these are others.
    """

    label: ir.StringAttr
    offset: ir.IntegerAttr
    slots: ir.IntegerAttr
    arrivals: ir.IntegerAttr
    barriers: ext.Result[BarriersType]

    def verify_invariants(self) -> bool:
        arrivals, slots = self.arrivals.value, self.slots.value
        if not 1 <= arrivals <= ARRIVALS_MAX:
            return refuse(self, f"arrivals must be 1 to {ARRIVALS_MAX}, got {arrivals}")
        if self.barriers.type.slots != slots:
            return refuse(self, f"must give {slots} mbarriers, got {self.barriers.type}")
        return verify_slots(self) and verify_offset(self, self.offset.value, BARRIER_BYTES)


class TensorMemoryOp(Sm.Operation, name="tensor_memory"):
    """`memory`: `columns` of tensor memory, whose address is written to shared byte `offset`."""

    columns: ir.IntegerAttr
    offset: ir.IntegerAttr
    memory: ext.Result[TensorMemoryType]

    def verify_invariants(self) -> bool:
        columns = self.columns.value
        # PTX ISA, tcgen05.alloc.
        if columns < 32 or columns & (columns - 1) or columns > 512:
            return refuse(self, f"columns must be a power of two from 32 to 512, got {columns}")
        return verify_offset(self, self.offset.value, ADDRESS_BYTES)


class ColumnsOp(Sm.Operation, name="columns"):
    """`acc`: `slots` accumulators of `each` columns, from column `first` of the allocation on.

    A ring of one slot may have two of them in turn, of which the last columns of the first are
    `shared` with the second.
    """

    memory: ext.Operand[TensorMemoryType]
    first: ir.IntegerAttr
    slots: ir.IntegerAttr
    each: ir.IntegerAttr
    acc: ext.Result[Any]

    @property
    def apart(self) -> int:
        """Columns from one slot's first to the next slot's."""
        return self.each.value - shared_of(self)

    @property
    def end(self) -> int:
        """The first column after all."""
        return self.first.value + (self.slots.value - 1) * self.apart + self.each.value

    def verify_invariants(self) -> bool:
        first, slots, each = self.first.value, self.slots.value, self.each.value
        if not isinstance(self.acc.type, AccumulatorType):
            return refuse(self, f"must give an accumulator, got {self.acc.type}")
        if not verify_slots(self):
            return False
        allocation = self.memory.owner
        if not isinstance(allocation, TensorMemoryOp):
            return refuse(self, "memory must be what a sm.tensor_memory allocates")
        shared = shared_of(self)
        if shared and (slots != PLACES or not 0 < shared < each):
            got = f"{shared} of {slots} x {each}"
            return refuse(self, f"{SHARED} must be some columns of {PLACES} slots, got {got}")
        end, most = self.end, allocation.columns.value
        if first < 0 or each < 1 or end > most:
            return refuse(
                self, f"must lie in the {most} columns of the allocation, got {first} to {end}"
            )
        return True


class ScaleColumnsOp(Sm.Operation, name="scale_columns"):
    """A K step's block scales have columns of the allocation: A's from `a_first` on, then B's.

    They end before column `end`, where the next of `slots` places for a K step begins. `empty`
    tells that the MMAs which read a place are done. Without it a K step's MMAs are done before the
    next one's scales are copied.
    """

    memory: ext.Operand[TensorMemoryType]
    a_first: ir.IntegerAttr
    b_first: ir.IntegerAttr
    end: ir.IntegerAttr
    slots: ir.IntegerAttr
    empty: ext.Operand[BarriersType] | None = None

    @property
    def columns(self) -> tuple[int, int]:
        """The first column of all places, and the first after them."""
        first, end = self.a_first.value, self.end.value
        return first, first + self.slots.value * (end - first)

    def verify_invariants(self) -> bool:
        allocation = self.memory.owner
        if not isinstance(allocation, TensorMemoryOp):
            return refuse(self, "memory must be what a sm.tensor_memory allocates")
        if not verify_slots(self):
            return False
        places = [self.a_first.value, self.b_first.value, self.end.value, self.columns[1]]
        most = allocation.columns.value
        if not 0 <= places[0] < places[1] < places[2] <= places[3] <= most:
            return refuse(self, f"must lie one after the other in the {most} columns, got {places}")
        slots, empty = self.slots.value, self.empty
        if slots != (1 if empty is None else empty.type.slots):
            return refuse(self, f"{slots} places must have a barrier each, got others")
        return True


class ProductColumnsOp(Sm.Operation, name="product_columns"):
    """The products of tiles that threads add have columns of the allocation: `slots` products of
    `each`, from `first` on, of which `done` tells which are made.

    Where there is one, MMAs add to it, and `done` tells in turns which of them are done.
    """

    memory: ext.Operand[TensorMemoryType]
    done: ext.Operand[BarriersType]
    first: ir.IntegerAttr
    slots: ir.IntegerAttr
    each: ir.IntegerAttr

    @property
    def columns(self) -> tuple[int, int]:
        """The first column of all, and the first after them."""
        first = self.first.value
        return first, first + self.slots.value * self.each.value

    def verify_invariants(self) -> bool:
        slots, most = self.slots.value, PRODUCT_SLOTS
        if slots not in (1, most) or self.done.type.slots != most:
            got = f"{slots} and {self.done.type}"
            return refuse(self, f"must have 1 or {most} products and {most} barriers, got {got}")
        return verify_columns(self)


class WeightColumnsOp(Sm.Operation, name="weight_columns"):
    """Weights that threads have widened have columns of the allocation: what MMAs read together
    has `each`, one after the other from `first` on, in turns as `sm.product_columns` has
    barriers."""

    memory: ext.Operand[TensorMemoryType]
    first: ir.IntegerAttr
    each: ir.IntegerAttr

    @property
    def columns(self) -> tuple[int, int]:
        """The first column of all, and the first after them."""
        first = self.first.value
        return first, first + PRODUCT_SLOTS * self.each.value

    def verify_invariants(self) -> bool:
        return verify_columns(self)


class TermsOp(Sm.Operation, name="terms"):
    """Threads write the terms of f32 tiles to `memory`, to one of its slots after the other.

    A slot has all terms of the first operand's tile, then those of the next (`dialects.terms`): of
    A and of B those that were moved up or rounded, of B alone plain ones.
    """

    memory: ext.Operand[Any]

    def verify_invariants(self) -> bool:
        owner = self.memory.owner
        memory = None if isinstance(owner, ir.Block) else owner.opview
        if not isinstance(memory, SlotMemoryOp):
            return refuse(self, "memory must be a sm.slot_memory, got another value")
        tiles = memory.memory.type.tiles
        if not all(map(is_term, tiles)):
            rule = "terms must be K-major tiles of bf16 or f32"
            return refuse(self, f"{rule}, got {memory.memory.type}")
        form = form_of(tiles)
        if form is None:
            return refuse(
                self,
                f"must have {MOVED_UP.terms} tiles alike of bf16 or {ROUNDED.terms} of f32 of each "
                f"of two or three operands, or {PLAIN.terms} of bf16 of one or two, got others",
            )
        got = memory.slots.value
        return got == form.slots or refuse(self, f"memory must have {form.slots} slots, got {got}")


def verify_columns(op: ProductColumnsOp | WeightColumnsOp) -> bool:
    """Whether its columns lie in those that the CTA allocates."""
    allocation = op.memory.owner
    if not isinstance(allocation, TensorMemoryOp):
        return refuse(op, "memory must be what a sm.tensor_memory allocates")
    (first, end), most = op.columns, allocation.columns.value
    if first < 0 or op.each.value < 1 or end > most:
        return refuse(op, f"must lie in the {most} columns, got {first} to {end}")
    return True


def byte_size(op: TileMemoryOp | BarriersOp | TensorMemoryOp) -> int:
    """Bytes that an op with one offset takes."""
    if isinstance(op, TileMemoryOp):
        return size_of(op.tile.type)
    return op.slots.value * BARRIER_BYTES if isinstance(op, BarriersOp) else ADDRESS_BYTES
