"""Positions of threads in rings: slot and phase parity.

A thread's position in a ring is the slot that it comes to next, and the parity of the phase that it
is in there: 0 on its first way round, 1 on its second, then 0 again. Who waits until a slot is full
waits for that parity; who waits until it is empty waits for the other one, that of the phase before
(PTX ISA, mbarrier.test_wait: the phase before the first counts as ended).
"""

from typing import Any

from ..integer_types import I16, I32
from ..mlir import ext, ir
from ..pipe import SLOTS_MAX, RingType, SlotType
from ..verify import refuse
from .memory import BarriersType, is_claim
from .threads import TEAM, WARP, WARPGROUP, who_runs
from .types import SHARED, Instruction, Sm, verify_choice, verify_pointer

AXES = ("m", "n")
CTA, PAIR, PEERS = "cta", "pair", "peers"


class PositionType(Sm.Type, name="place_in_ring"):
    """A position in a ring, of which every thread has its own."""


class TallyType(Sm.Type, name="number"):
    """A number, of which every thread has its own."""


class PositionOp(Instruction, name="position"):
    """`position` in a ring of `stages` slots: each thread starts at slot 0, with parity 0."""

    label: ir.StringAttr
    stages: ir.IntegerAttr
    position: ext.Result[PositionType]

    def verify_invariants(self) -> bool:
        stages = self.stages.value
        return stages >= 1 or refuse(self, f"stages must be at least 1, got {stages}")


class WarpgroupPositionOp(PositionOp, name="warpgroup_position"):
    """`position` of a thread in a ring with a slot for each of `stages` warpgroups of its team: at
    that of its own warpgroup, whose parity changes whenever the thread goes on by a slot."""


class ReadPositionOp(Instruction, name="read_position"):
    """`index` of the slot that the thread has come to, and the `parity` of its phase there."""

    position: ext.Operand[PositionType]
    index: ext.Result[I32] = ext.infer_result()
    parity: ext.Result[I32] = ext.infer_result()


class AdvancePositionOp(Instruction, name="advance_position"):
    """The thread goes on by `slots` slots; the parity changes where the ring begins again."""

    position: ext.Operand[PositionType]
    slots: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        slots = self.slots.value
        return 1 <= slots <= SLOTS_MAX or refuse(
            self, f"slots must be 1 to {SLOTS_MAX}, got {slots}"
        )


class TallyOp(Instruction, name="tally"):
    """`tally`: a number of each thread, 0 at first."""

    label: ir.StringAttr
    tally: ext.Result[TallyType]


class ReadTallyOp(Instruction, name="read_tally"):
    """`value` of the thread's tally."""

    tally: ext.Operand[TallyType]
    value: ext.Result[I32] = ext.infer_result()


class WriteTallyOp(Instruction, name="write_tally"):
    """From here on the thread's tally has that value."""

    tally: ext.Operand[TallyType]
    value: ext.Operand[I32]


class BarrierOp(Instruction, name="barrier"):
    """`barrier`: the mbarrier of slot `index`."""

    barriers: ext.Operand[BarriersType]
    index: ext.Operand[I32]
    barrier: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return verify_pointer(self, "barrier", SHARED)


class SlotOp(Instruction, name="slot"):
    """`slot`: that of a ring with the number `index`."""

    ring: ext.Operand[Any]
    index: ext.Operand[I32]
    slot: ext.Result[Any]

    def verify_invariants(self) -> bool:
        ring, slot = self.ring.type, self.slot.type
        if not isinstance(ring, RingType) or slot != ring.slot:
            return refuse(self, f"must give a slot of {ring}, got {slot}")
        return True


class SlotAddressOp(Instruction, name="slot_address"):
    """`address` of the first byte of a slot, whose answer of launch control instructions access."""

    slot: ext.Operand[Any]
    address: ext.Result[Any]

    def verify_invariants(self) -> bool:
        slot = self.slot.type
        if not isinstance(slot, SlotType) or not is_claim(slot.tiles[0]):
            return refuse(self, f"must be of a slot that holds an answer, got {slot}")
        return verify_pointer(self, "address", SHARED)


class CtaMaskOp(Instruction, name="cta_mask"):
    """`mask` of ranks in the cluster, a bit each: those of `whose`, and those in line `along` axes.

    `whose` is this "cta" alone or both of its "pair". In line along "m" are the CTAs with the same
    place along N, and along "n" those with the same places along M. "peers" are those in line along
    one axis, this one included, that need the same tile of an operand: of pairs along "m", those at
    the same place in their pair.
    """

    whose: ir.StringAttr
    along: ir.ArrayAttr
    mask: ext.Result[I16] = ext.infer_result()

    def verify_invariants(self) -> bool:
        along = [ir.StringAttr(axis).value for axis in self.along]
        if along != sorted(set(along)) or not set(along) <= set(AXES):
            return refuse(self, f"along must be some of {AXES} in this order, got {along}")
        if not verify_choice(self, "whose", (CTA, PAIR, PEERS)):
            return False
        if self.whose.value == PEERS and len(along) != 1:
            return refuse(self, f"peers are in line along one axis, got {along}")
        return True


class LeaderRankOp(Instruction, name="leader_rank"):
    """`rank` in the cluster of the leader CTA of this CTA's pair, which issues the MMAs of both."""

    rank: ext.Result[I32] = ext.infer_result()


class EachRankOp(Instruction, name="each_rank", traits=[ir.NoTerminatorTrait]):
    """Runs the body for every rank of `mask`, its argument: lane r for rank r.

    By "warp" those of each warp do, by "warpgroup" those of the first of every four warps.
    """

    mask: ext.Operand[I16]
    by: ir.StringAttr
    body: ext.Region

    def verify_invariants(self) -> bool:
        if not verify_choice(self, "by", (WARP, WARPGROUP)):
            return False
        if len(self.body.blocks) != 1:
            return refuse(self, f"the body must be one block, got {len(self.body.blocks)}")
        types = [str(argument.type) for argument in self.body.blocks[0].arguments]
        if types != ["i32"]:
            return refuse(self, f"the body must take a rank as i32, got {types}")
        around = who_runs(self)
        return around == TEAM or refuse(self, f"whole warps must run it, got it in {around!r}")
