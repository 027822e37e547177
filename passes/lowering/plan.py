"""Where everything lies in a CTA's shared memory, and what the kernel takes as parameters."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...dialects.layout import SLOT_ALIGNMENT, TileLayout
from ...dialects.mlir import ir
from ...dialects.pipe import AcquireOp, CreateOp
from ...dialects.target import Target
from ...dialects.tile import (
    AccumulatorOp,
    KernelOp,
    LoadOp,
    MmaOp,
    StoreOp,
    TensorMapOp,
)
from ..base import refused, walk

BARRIER_BYTES = 8


@dataclass(frozen=True)
class RingPlan:
    """Byte offsets of a ring: each payload tile's slots, full and empty barriers."""

    stages: int
    layouts: tuple[TileLayout, ...]
    tiles: tuple[int, ...]
    full: int
    empty: int


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter: a tensor map (`map` is its op) or a pointer to a tensor."""

    tensor: str
    argument: ir.Value
    map: TensorMapOp | None = None


@dataclass
class Plan:
    """Offsets from the start of dynamic shared memory, in bytes."""

    buffers: dict[ir.Value, int] = field(default_factory=dict)
    rings: dict[ir.Value, RingPlan] = field(default_factory=dict)
    accumulators: dict[ir.Value, int] = field(default_factory=dict)
    parameters: list[Parameter] = field(default_factory=list)
    mma_done: int = 0
    tmem_address: int = 0
    tmem_columns: int = 0
    shared_bytes: int = 0


def make_plan(kernel: KernelOp, target: Target) -> Plan:
    """Place every tile, barrier and accumulator of the kernel; refuse what does not fit."""
    plan, cursor = Plan(), _Cursor()
    for load in walk(kernel, LoadOp):
        layout = load.tile.type.layout
        plan.buffers[load.tile] = cursor.take(layout.size_bytes, SLOT_ALIGNMENT)
    creates = walk(kernel, CreateOp)
    tiles = [_place_tiles(create, cursor) for create in creates]
    for create, offsets in zip(creates, tiles, strict=True):
        plan.rings[create.ring] = _place_barriers(create, offsets, cursor)
    plan.mma_done = cursor.take(BARRIER_BYTES, BARRIER_BYTES)
    plan.tmem_address = cursor.take(4, 4)
    plan.shared_bytes = cursor.end
    if plan.shared_bytes > target.shared_bytes:
        raise refused(
            kernel,
            f"needs {plan.shared_bytes} bytes of shared memory, over the {target.shared_bytes} of "
            f"{target.chip}; use a smaller tile or fewer stages",
        )
    _place_accumulators(kernel, plan, target)
    plan.parameters = _parameters(kernel)
    return plan


class _Cursor:
    """Hands out aligned byte ranges, one after the other."""

    def __init__(self) -> None:
        self.end = 0

    def take(self, size_bytes: int, alignment: int) -> int:
        start = -(-self.end // alignment) * alignment
        self.end = start + size_bytes
        return start


def _place_tiles(create: CreateOp, cursor: _Cursor) -> tuple[int, ...]:
    stages = create.ring.type.stages
    layouts = [tile.layout for tile in create.ring.type.tiles]
    return tuple(cursor.take(stages * layout.slot_bytes, SLOT_ALIGNMENT) for layout in layouts)


def _place_barriers(create: CreateOp, tiles: tuple[int, ...], cursor: _Cursor) -> RingPlan:
    stages = create.ring.type.stages
    layouts = tuple(tile.layout for tile in create.ring.type.tiles)
    full, empty = (cursor.take(stages * BARRIER_BYTES, BARRIER_BYTES) for _ in range(2))
    return RingPlan(stages, layouts, tiles, full, empty)


def _place_accumulators(kernel: KernelOp, plan: Plan, target: Target) -> None:
    columns = 0
    for accumulator in walk(kernel, AccumulatorOp):
        plan.accumulators[accumulator.acc] = columns
        columns += target.accumulator_columns(*accumulator.acc.type.shape)
    if columns > target.tmem_columns:
        raise refused(
            kernel,
            f"needs {columns} tensor-memory columns, over the {target.tmem_columns} of "
            f"{target.chip}; use a smaller tile",
        )
    allocated = target.tmem_columns_min
    while allocated < columns:
        allocated *= 2
    plan.tmem_columns = allocated


def _parameters(kernel: KernelOp) -> list[Parameter]:
    """Tensor maps and pointers in the order of the kernel's arguments."""
    parameters = []
    names = [name.value for name in kernel.arg_names]
    for name, argument in zip(names, kernel.body.blocks[0].arguments, strict=True):
        users = [use.owner.opview for use in argument.uses]
        maps = [user for user in users if isinstance(user, TensorMapOp)]
        parameters += [Parameter(name, argument, map_) for map_ in maps]
        if len(maps) < len(users):
            parameters.append(Parameter(name, argument))
    return parameters


def is_synchronous(mma: MmaOp) -> bool:
    """Whether the MMA reads a tile that threads copied, so that the whole CTA waits for it."""
    return any(isinstance(operand.owner.opview, LoadOp) for operand in (mma.a, mma.b))


def mma_before(store: StoreOp) -> MmaOp | None:
    """An MMA into the accumulator that `store` reads."""
    users = (use.owner.opview for use in store.acc.uses)
    return next((user for user in users if isinstance(user, MmaOp)), None)


def ring_tiles(ring: ir.Value, end: str) -> list[ir.Value]:
    """The payload tiles that `pipe.tile` takes from what `end` ("acquire" or "wait") gives."""
    slots = [use.owner.opview.slot for use in ring.uses if use.owner.name == f"pipe.{end}"]
    return [use.owner.opview.tile for slot in slots for use in slot.uses]


def has_copies(ring: ir.Value) -> bool:
    """Whether threads fill a tile of the ring, so that the whole team produces."""
    users = [use.owner for tile in ring_tiles(ring, "acquire") for use in tile.uses]
    return any(user.name == "tile.copy" for user in users)


def transaction_bytes(acquire: AcquireOp) -> int:
    """Bytes that TMA will bring into the acquired slot."""
    tiles = [use.owner.opview.tile for use in acquire.slot.uses]
    by_tma = [tile for tile in tiles if any(u.owner.name == "tile.tma_load" for u in tile.uses)]
    return sum(tile.type.layout.size_bytes for tile in by_tma)
