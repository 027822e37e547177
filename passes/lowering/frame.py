"""What the emitted kernel has at hand: parameters, ids, the leader, shared and tensor memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...dialects import sm
from ...dialects.layout import TileLayout
from ...dialects.mlir import arith, ir
from ...dialects.pipe import RingType
from ...dialects.target import Target
from ...dialects.tile import AccumulatorOp, KernelOp
from .. import build
from ..base import defining_op, walk
from ..clone import constant_of
from ..cluster import Cluster
from ..plan import Plan
from .register_accumulator import RegisterAccumulator


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
    """The state of one kernel's lowering; ops read and write it as they are met.

    `put_off`: the `ShiftedCopy`s of the acquired slot, emitted together when it is committed.
    """

    kernel: KernelOp
    target: Target
    plan: Plan
    parameters: dict[tuple[ir.Value, ir.Value | None], ir.Value]
    tiles: dict[ir.Value, ir.Value] = field(default_factory=dict)
    columns: dict[ir.Value, ir.Value | int] = field(default_factory=dict)
    descriptors: dict[ir.Value, list[ir.Value]] = field(default_factory=dict)
    positions: dict[ir.Value, build.Counter] = field(default_factory=dict)
    tallies: dict[ir.Value, build.Tally] = field(default_factory=dict)
    registers: dict[ir.Value, RegisterAccumulator] = field(default_factory=dict)
    thread_sums: dict[ir.Value, Any] = field(default_factory=dict)
    settled: dict[ir.Value, list[list[ir.Value]]] = field(default_factory=dict)
    put_off: list[Any] = field(default_factory=list)
    converted: list[Any] = field(default_factory=list)
    tmem: ir.Value = field(init=False)

    @property
    def cluster(self) -> Cluster:
        return self.plan.cluster

    @property
    def cta_group(self) -> int:
        """What every tcgen05 instruction of the kernel must say."""
        return 2 if self.cluster.pair else 1

    def place_in_cluster(self) -> tuple[ir.Value | int, ir.Value | int]:
        """(x, y) of this CTA in its cluster, numbers where the cluster has one CTA that way."""
        x = build.special("cluster_ctaid.x") if self.cluster.m > 1 else 0
        y = build.special("cluster_ctaid.y") if self.cluster.n > 1 else 0
        return x, y

    def open(self) -> None:
        """Emit what every thread keeps.

        Stack slots come first: only those of the first block become registers.
        """
        self.thread = build.special("tid.x")
        self.warp = self.thread // 32
        self.lane = self.thread % 32
        self.first_warp = build.less(self.thread, 32)
        leader = arith.andi(self._elected(), self.first_warp)
        self.team = Team(self.kernel.threads.value, self.thread, leader)
        self.columns |= self.plan.accumulators
        self._open_positions()
        for ring, plan in self.plan.rings.items():
            if plan.kind == "operands":
                places = zip(plan.layouts, plan.tiles, strict=True)
                self.descriptors[ring] = [self.descriptor_at(*place) for place in places]
        if not self.target.has_tensor_memory and not self.target.threads_multiply:
            self._hold_accumulators()

    def _elected(self) -> ir.Value:
        """True in one lane of each warp: any, or the first where there is no elect.sync."""
        return build.elect() if self.target.async_agents else build.equal(self.lane, 0)

    def _open_positions(self) -> None:
        """What each thread keeps of where it is in rings."""
        for op in self.kernel.body.blocks[0].operations:
            if isinstance(op, sm.PositionOp):
                self.positions[op.position] = build.Counter(op.stages.value)
            elif isinstance(op, sm.TallyOp):
                self.tallies[op.tally] = build.Tally()

    def _hold_accumulators(self) -> None:
        for accumulator in walk(self.kernel, AccumulatorOp):
            type_ = accumulator.acc.type
            warpgroups = self.target.mma_warpgroups(*type_.shape)
            assert warpgroups is not None  # check_operands lets no other tile through
            self.registers[accumulator.acc] = RegisterAccumulator.make(type_, warpgroups)

    def read_place(self) -> None:
        """This CTA's place in its cluster; pair masks that depend on it."""
        self.place = self.place_in_cluster()
        self.first_rank: ir.Value | int = 0
        if self.cluster.split > 1 and self.cluster.loads_together:
            part = build.special("cluster_ctaid.z")
            self.first_rank = part * self.cluster.plane
        self.issues = None
        if self.cluster.pair:
            self.issues = build.equal(build.as_value(self.place[0] % 2), 0)

    def is_first(self) -> ir.Value | None:
        """Whether this is the cluster's first CTA; None where it is the only one."""
        here = [build.equal(value, 0) for value in self.place if not isinstance(value, int)]
        if not here:
            return None
        return here[0] if len(here) == 1 else arith.andi(*here)

    def line(self, ranks: int, along_m: ir.Value | int, along_n: ir.Value | int) -> ir.Value:
        """Mask (i16) of `ranks`, given for the CTA at (0, 0), moved to another place of a plane."""
        shift = self.rank_in_plane(along_m, along_n) + self.first_rank
        known = isinstance(shift, int)
        mask = build.constant(ranks << shift) if known else build.shift_left(ranks, shift)
        return arith.trunci(ir.IntegerType.get_signless(16), mask)

    def rank_in_plane(self, along_m: ir.Value | int, along_n: ir.Value | int) -> ir.Value | int:
        """The rank of a CTA among those with the same part of K."""
        return along_m + along_n * self.cluster.m

    def pair_start(self) -> ir.Value | int:
        """x of the first CTA of this pair."""
        x = self.place[0]
        return x if isinstance(x, int) or not self.cluster.pair else x - x % 2

    def descriptor_at(self, layout: TileLayout, offset_bytes: int) -> ir.Value:
        """The matrix descriptor of a tile at a byte of dynamic shared memory."""
        lbo, sbo = layout.descriptor_strides()
        version = self.target.mma.descriptor_version
        type_ = sm.DescriptorType.of(lbo, sbo, layout.swizzle, version)
        return sm.SmemDescriptorOp.of(build.shared_at(offset_bytes), descriptor=type_).descriptor

    def tile_in(self, ring: ir.Value[RingType], index: ir.Value | int, tile: int) -> ir.Value:
        """Byte offset (i32) of a slot's payload tile in dynamic shared memory."""
        plan = self.plan.rings[ring]
        return build.as_value(index * plan.layouts[tile].slot_bytes + plan.tiles[tile])

    def columns_in(self, ring: ir.Value[RingType], index: ir.Value | int) -> ir.Value | int:
        """First tensor-memory column of an accumulator slot, from the allocation's."""
        plan = self.plan.rings[ring]
        return index * plan.slot_columns + plan.column

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


def known_index(index: ir.Value) -> ir.Value | int:
    """A slot's index, the number where it is known: a ring of one slot has but one."""
    known = constant_of(index)
    return index if known is None else known


def slot_of(op: Any) -> tuple[ir.Value[RingType], ir.Value | int]:
    """(its ring, its index) of the slot that an op is on."""
    slot = defining_op(op.slot)
    return slot.ring, known_index(slot.index)
