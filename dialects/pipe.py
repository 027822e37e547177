"""The `pipe` dialect: bounded queues of tiles between the agents of a CTA.

    pipe.create    a ring of `stages` slots, each holding the payload tiles, all empty
    pipe.acquire   waits until the producer's next slot is empty and gives it to fill
    pipe.commit    the slot acquired last is full once what was started into it has arrived
    pipe.wait      waits until the consumer's next slot is full and gives it to read
    pipe.release   the oldest slot waited for is empty once what was started on it has finished
    pipe.tile      one payload tile of a slot
    pipe.parity    which of its two places a slot of shared columns lies in
    pipe.drain     waits until the producer's next slots are empty
    pipe.skip      leaves slots to another consumer of the ring
    pipe.claim     takes over clusters that have not been launched yet, and puts them into a ring
    pipe.for_each_claim  runs a body for this CTA's tile and for those of every claimed cluster
    pipe.for_each_turn  runs a body for every tile of this CTA that is the agent's turn
    pipe.set_registers  from here on, every thread of the role may use that many registers
    pipe.role      the part of the program that one agent runs; roles run at the same time

Slot index and phase are not in the IR: each side advances by one slot at commit or release, in
program order, and a consumer by those that it skips. A slot may hold nothing but a turn: who has
it goes on. Barrier words and parities are there from `pipes-to-barriers` on.
"""

from collections.abc import Sequence
from typing import Any

from .mlir import ext, ir
from .shared_columns import verify_shared
from .tile_types import AccumulatorType, SmemType, integer
from .verify import refuse, verify_tile, verify_tile_loop

TILES = (SmemType, AccumulatorType)
SLOTS_MAX = 2**31 - 1
# PTX ISA, setmaxnreg.
REGISTERS_MIN, REGISTERS_MAX, REGISTERS_STEP = 24, 256, 8


class Pipe(ext.Dialect, name="pipe"):
    """How data moves between agents."""


class RingType(Pipe.Type, name="ring"):
    """A ring of `stages` slots, each holding one tile of every `payload` type."""

    stages_attr: ir.IntegerAttr
    payload_attr: ir.ArrayAttr

    @property
    def stages(self) -> int:
        return ir.IntegerAttr(self.stages_attr).value

    @property
    def tiles(self) -> list[ir.Type]:
        return [ir.TypeAttr(tile).value for tile in ir.ArrayAttr(self.payload_attr)]

    @property
    def accumulator(self) -> AccumulatorType:
        """The payload of a ring of accumulators."""
        return AccumulatorType(self.tiles[0])

    @property
    def slot(self) -> "SlotType":
        """The type of one of its slots."""
        return SlotType.get(self.payload_attr)

    @staticmethod
    def of(stages: int, tiles: Sequence[ir.Type]) -> "RingType":
        """The ring type with `stages` slots of `tiles`."""
        payload = ir.ArrayAttr.get([ir.TypeAttr.get(tile) for tile in tiles])
        return RingType.get(integer(stages), payload)


class ClaimType(Pipe.Type, name="response"):
    """The answer of cluster launch control: 16 bytes that say which cluster was claimed, if any."""


class TurnType(Pipe.Type, name="turn"):
    """The right to continue, which agents hand to each other; it takes no memory."""


class SlotType(Pipe.Type, name="slot"):
    """One slot of a ring: the tiles of `payload`."""

    payload_attr: ir.ArrayAttr

    @property
    def tiles(self) -> list[ir.Type]:
        return [ir.TypeAttr(tile).value for tile in ir.ArrayAttr(self.payload_attr)]


class CreateOp(Pipe.Operation, name="create"):
    """`ring`: all slots empty.

    With `shared` columns, the one accumulator of the ring alternates between two places in tensor
    memory that overlap by that many columns. The slot may be released once these columns have been
    read.
    """

    ring: ext.Result[RingType]

    def verify_invariants(self) -> bool:
        stages = self.ring.type.stages
        if stages < 1:
            return refuse(self, f"stages must be at least 1, got {stages}")
        kinds = {type(tile) for tile in self.ring.type.tiles}
        if len(kinds) != 1 or not kinds <= {SmemType, AccumulatorType, ClaimType, TurnType}:
            return refuse(
                self, "the payload must be shared-memory tiles, one accumulator, claims or turns"
            )
        tiles = [tile for tile in self.ring.type.tiles if isinstance(tile, TILES)]
        if not all(verify_tile(self, tile.tile) for tile in tiles):
            return False
        return verify_shared(self, stages, self.ring.type.tiles)


class AcquireOp(Pipe.Operation, name="acquire"):
    """`slot`: the producer's next slot, once it is empty."""

    ring: ext.Operand[RingType]
    slot: ext.Result[SlotType]

    def verify_invariants(self) -> bool:
        return verify_slot(self, self.ring.type, self.slot.type)


class CommitOp(Pipe.Operation, name="commit"):
    """Makes the slot acquired last full when its data has arrived."""

    ring: ext.Operand[RingType]


class WaitOp(Pipe.Operation, name="wait"):
    """`slot`: the consumer's next slot, once it is full."""

    ring: ext.Operand[RingType]
    slot: ext.Result[SlotType]

    def verify_invariants(self) -> bool:
        return verify_slot(self, self.ring.type, self.slot.type)


class ReleaseOp(Pipe.Operation, name="release"):
    """Makes the oldest slot waited for and not yet released empty when its readers have finished.

    On targets with `tile.await_mma`, that op has waited for them.
    """

    ring: ext.Operand[RingType]


class SkipOp(Pipe.Operation, name="skip"):
    """Leaves the consumer's next `slots` slots to another agent, which waits for and releases them.

    All slots that this agent waited for must be released.
    """

    ring: ext.Operand[RingType]
    slots: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        fits = 1 <= self.slots.value <= SLOTS_MAX
        return fits or refuse(self, f"slots must be 1 to {SLOTS_MAX}, got {self.slots.value}")


class DrainOp(Pipe.Operation, name="drain"):
    """The producer waits until its next `slots` slots are empty, that is, until all readers have
    released them.

    If these are all slots of the ring, nothing more arrives at its barriers.
    """

    ring: ext.Operand[RingType]
    slots: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        stages, slots = self.ring.type.stages, self.slots.value
        return 1 <= slots <= stages or refuse(
            self, f"slots must be from 1 to the ring's {stages}, got {slots}"
        )


class TileOp(Pipe.Operation, name="tile"):
    """`tile = slot[index]`: one payload tile of a slot."""

    slot: ext.Operand[SlotType]
    index: ir.IntegerAttr
    tile: ext.Result[Any]

    def verify_invariants(self) -> bool:
        tiles, index = self.slot.type.tiles, self.index.value
        if not 0 <= index < len(tiles):
            return refuse(self, f"index must be below {len(tiles)}, got {index}")
        if self.tile.type != tiles[index]:
            return refuse(self, f"must give {tiles[index]}, got {self.tile.type}")
        return True


class ParityOp(Pipe.Operation, name="parity"):
    """`odd`: 1 for every second slot that the ring returns, which lies in the second of two places,
    and 0 for the others."""

    slot: ext.Operand[SlotType]
    odd: ext.Result[ir.IntegerType]

    def verify_invariants(self) -> bool:
        if self.odd.type != ir.IntegerType.get_signless(32):
            return refuse(self, f"must give an i32, got {self.odd.type}")
        (first, *_) = self.slot.type.tiles
        is_sums = isinstance(first, AccumulatorType)
        return is_sums or refuse(self, f"must be of an accumulator's slot, got {self.slot.type}")


class RoleOp(Pipe.Operation, name="role", traits=[ir.NoTerminatorTrait]):
    """The part of the program that the agent `name` runs with `warps` warps.

    The roles of a kernel run at the same time, on consecutive warps in program order; rings are
    the only way from one to another.
    """

    agent: ir.StringAttr
    warps: ir.IntegerAttr
    body: ext.Region

    def verify_invariants(self) -> bool:
        if self.warps.value < 1:
            return refuse(self, f"warps must be at least 1, got {self.warps.value}")
        if len(self.body.blocks) != 1:
            return refuse(self, f"the body must be one block, got {len(self.body.blocks)}")
        return True


class SetRegistersOp(Pipe.Operation, name="set_registers"):
    """From here on, every thread of the role may use `count` registers.

    Roles of whole warpgroups hand registers to each other: one role may take what another gives up.
    """

    count: ir.IntegerAttr

    def verify_invariants(self) -> bool:
        count = self.count.value
        if count % REGISTERS_STEP or not REGISTERS_MIN <= count <= REGISTERS_MAX:
            return refuse(
                self,
                f"count must be {REGISTERS_MIN} to {REGISTERS_MAX} in steps of {REGISTERS_STEP}, "
                f"got {count}",
            )
        return True


class ClaimOp(Pipe.Operation, name="claim"):
    """Claims one cluster after another that has not been launched yet, until none is left.

    Each answer, including the last one, goes through the ring to every `pipe.for_each_claim`.
    """

    ring: ext.Operand[RingType]


class ForEachClaimOp(Pipe.Operation, name="for_each_claim", traits=[ir.NoTerminatorTrait]):
    """Runs the body for this CTA's own tile `(i, j)`, then for its tile of every claimed cluster.

    `tiles`, `order` and `group` are as in `tile.for_each_tile`.
    """

    ring: ext.Operand[RingType]
    tiles: ir.ArrayAttr
    order: ir.StringAttr
    group: ir.IntegerAttr
    body: ext.Region

    def verify_invariants(self) -> bool:
        return verify_tile_loop(self)


class ForEachTurnOp(Pipe.Operation, name="for_each_turn", traits=[ir.NoTerminatorTrait]):
    """Runs the body for tile `(i, j)` number `turn`, `turn + turns`, ... of this CTA's tiles.

    `turns` agents share the tiles that `tile.for_each_tile` would hand out; `tiles`, `order` and
    `group` are as there.
    """

    turn: ir.IntegerAttr
    turns: ir.IntegerAttr
    tiles: ir.ArrayAttr
    order: ir.StringAttr
    group: ir.IntegerAttr
    body: ext.Region

    def verify_invariants(self) -> bool:
        if not 0 <= self.turn.value < self.turns.value:
            return refuse(self, f"turn must be below {self.turns.value}, got {self.turn.value}")
        return verify_tile_loop(self)


class OtherTileOp(Pipe.Operation, name="other_tile"):
    """`(i, j)`: the tile that is `ahead` turns (1 or -1) from this one among all tiles of the CTA;
    it belongs to another agent.

    It stands in a `pipe.for_each_turn`. After the last tile it is the last tile itself.
    """

    ahead: ir.IntegerAttr
    i: ext.Result[ir.IndexType]
    j: ext.Result[ir.IndexType]

    def verify_invariants(self) -> bool:
        around: Any = self.operation.parent.opview
        if not isinstance(around, ForEachTurnOp):
            rule = "must stand in a pipe.for_each_turn"
            return refuse(self, f"{rule}, got {around.operation.name}")
        ahead = self.ahead.value
        if ahead not in (1, -1) or around.turn.value + ahead < 0:
            rule = "ahead must be 1, or -1 where there is a turn before"
            return refuse(self, f"{rule}, got {ahead} in turn {around.turn.value}")
        return True


def verify_slot(op: ext.Operation, ring: RingType, slot: SlotType) -> bool:
    """Whether the op gives a slot that holds what its ring's slots hold."""
    if slot.tiles != ring.tiles:
        return refuse(op, f"must give a slot of {ring}, got {slot}")
    return True
