"""What the patterns of `select-instructions` share, and what stands for tiles, sums and places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...dialects import sm
from ...dialects.layout import TileLayout
from ...dialects.mlir import arith, ir
from ...dialects.sm_memory import RingOp, SlotMemoryOp
from ...dialects.target import ISSUED, Target
from ...dialects.tile import AccumulatorOp, KernelOp
from ...dialects.tile_types import AccumulatorType, SmemType, integers_of
from .. import build
from ..base import defining_op, walk
from ..clone import constant_of
from ..cluster import Cluster
from .cta_place import CtaPlace
from .register_accumulator import stack_slots

CAST = "builtin.unrealized_conversion_cast"


@dataclass(frozen=True)
class Team:
    """The threads that run a stretch of the program together.

    `thread` counts from 0 in the team, `leader` is true in one elected thread.
    """

    threads: int
    thread: ir.Value
    leader: ir.Value


@dataclass
class Frame:
    """What the patterns of one kernel share.

    `converted` are the ops that patterns have replaced. They and `lowered_as` stand in the kernel
    until all of it is converted. `place` is read once all threads have met.
    """

    kernel: KernelOp
    target: Target
    cluster: Cluster
    converted: list[Any] = field(default_factory=list)
    thread_sums: dict[ir.Value, Any] = field(default_factory=dict)
    descriptors: dict[ir.Value, list[ir.Value]] = field(default_factory=dict)
    place: CtaPlace = field(init=False)
    tmem: ir.Value = field(init=False)

    def lowered_as(self, values: ir.Value | Sequence[ir.Value], type_: ir.Type) -> ir.Value:
        """A value of a type that no instruction takes, which stands for values that some do.

        Who reads it asks `lowered` for them.
        """
        parts = [values] if isinstance(values, ir.Value) else list(values)
        cast = ir.Operation.create(CAST, results=[type_], operands=parts)
        self.converted.append(cast)
        return cast.result

    @property
    def cta_group(self) -> int:
        """What every tcgen05 instruction of the kernel must say."""
        return 2 if self.cluster.pair else 1

    def open(self) -> None:
        """Emit what every thread keeps."""
        self.thread = build.special("tid.x")
        self.lane = self.thread % 32
        self.first_warp = build.less(self.thread, 32)
        leader = arith.andi(self.elect(), self.first_warp)
        self.team = Team(self.kernel.threads.value, self.thread, leader)
        for op in self.kernel.body.blocks[0].operations:
            if isinstance(op, RingOp) and self._is_described(op):
                self.descriptors[op.memory] = self._first_slot(defining_op(op.memory))

    def _is_described(self, ring: RingOp) -> bool:
        """Whether MMAs are told of the ring's tiles by descriptors."""
        holds_tiles = isinstance(ring.ring.type.tiles[0], SmemType)
        return holds_tiles and self.target.mma.completion != ISSUED

    def _first_slot(self, memory: SlotMemoryOp) -> list[ir.Value]:
        """The matrix descriptors of a ring's first slot."""
        places = zip(memory.memory.type.tiles, integers_of(memory.offsets), strict=True)
        return [self.descriptor_at(tile.layout, offset) for tile, offset in places]

    def hold_accumulators(self) -> None:
        """Stack slots for the sums that threads hold."""
        for accumulator in walk(self.kernel, AccumulatorOp):
            type_ = accumulator.acc.type
            slots = stack_slots(type_, self.warpgroups(type_))
            accumulator.acc.replace_all_uses_with(self.lowered_as(slots, type_))

    def elect(self) -> ir.Value:
        """True in one lane of the warp: the first, where the chip has no elect.sync."""
        return build.elect() if self.target.async_agents else build.equal(self.lane, 0)

    def descriptor_at(self, layout: TileLayout, offset_bytes: int) -> ir.Value:
        """The matrix descriptor of a tile at a byte of dynamic shared memory."""
        lbo, sbo = layout.descriptor_strides()
        version = self.target.mma.descriptor_version
        type_ = sm.DescriptorType.of(lbo, sbo, layout.swizzle, version)
        return sm.SmemDescriptorOp.of(build.shared_at(offset_bytes), descriptor=type_).descriptor

    def warpgroups(self, sums: AccumulatorType) -> int:
        """Warpgroups that hold an accumulator together."""
        count = self.target.mma_warpgroups(*sums.shape)
        assert count is not None  # check_operands lets no other tile through
        return count

    def mma_rows(self, tile_m: int) -> int:
        """M of the MMAs that cover a tile of `tile_m` rows."""
        rows = self.target.mma_rows(tile_m)
        assert rows is not None  # check_operands lets no other tile through
        return rows

    def atom_columns(self, atom_m: int, n: int) -> int:
        """Tensor-memory columns of one MMA's accumulator in this CTA.

        With 64 rows a CTA, a pair keeps the second half of N in the upper lanes (PTX ISA, data path
        layout B).
        """
        return n // 2 if self.cluster.pair and atom_m == 64 else n

    def tmem_address(self, offset: ir.Value | int) -> ir.Value:
        """An address in tensor memory: the allocation's plus lane << 16 | column."""
        return self.tmem + offset


def lowered(value: ir.Value) -> ir.Value:
    """The one value that `Frame.lowered_as` has put in the place of another."""
    (part,) = lowered_parts(value)
    return part


def lowered_parts(value: ir.Value) -> list[ir.Value]:
    """The values that it has put there."""
    return list(ir.OpResult(value).owner.operands)


def place_of(tile: ir.Value) -> ir.Value:
    """The byte of dynamic shared memory where a tile begins."""
    op = ir.OpResult(tile).owner.opview
    return build.constant(op.offset.value) if isinstance(op, sm.TileMemoryOp) else lowered(tile)


def known(value: ir.Value) -> ir.Value | int:
    """A value, the number where it is known: the index in a ring of one slot, a first column."""
    number = constant_of(value)
    return value if number is None else number


def slot_of(op: Any) -> tuple[Any, ir.Value | int]:
    """(the op that made its ring, its index) of the slot that an op is on."""
    slot = defining_op(op.slot)
    return defining_op(slot.ring), known(slot.index)
