"""Tiles of slots that MMAs read by matrix descriptors.

    %ring = sm.ring … %memory       %a_0 = sm.base_descriptor %memory : !sm.descriptor<lbo, sbo, …>
    %a    = pipe.tile %slot    →    %a   = sm.operand %slot, %a_0
    tile.mma %acc, %a, %b           tile.mma %acc, %a, %b

The base stands once in the kernel, after the ring. Where an MMA takes fragments from registers, or
threads multiply or split tiles, these have addresses alone.
"""

from __future__ import annotations

from typing import Any

from ....dialects import sm
from ....dialects.mlir import ir
from ....dialects.mma_units import ISSUED
from ....dialects.pipe import TileOp
from ....dialects.sm.types import matrix_fields
from ....dialects.target import Target
from ....dialects.tile.scales import ALL_MMAS
from ....dialects.tile.weights import ExchangedWeightMmaOp
from ....dialects.tile_types import SmemType
from ...base import defining_op
from .rings import Rings

MMA_NAMES = frozenset(each.OPERATION_NAME for each in ALL_MMAS)


def describe_operand(rings: Rings, op: TileOp) -> None:
    """Give MMAs that read the tile its descriptor, and drop the op where nobody else reads it."""
    reads = [use for use in op.tile.uses if _by_descriptor(use.owner.opview, op.tile)]
    tile = op.tile.type
    by_threads = rings.target.mma.completion == ISSUED or rings.target.mma.splits
    if not reads or not isinstance(tile, SmemType) or by_threads:
        return
    if tile.layout.is_vector:  # threads read it
        return
    slot = defining_op(op.slot)
    base = _bases(rings, defining_op(slot.ring))[op.index.value]
    operand = sm.OperandOp.of(slot.slot, base, tile=tile).tile
    for use in reads:
        use.owner.operands[use.operand_number] = operand
    if not list(op.tile.uses):
        op.operation.erase()


def _by_descriptor(op: Any, tile: ir.Value) -> bool:
    """Whether an op reads a tile by an MMA; weights are read by threads, which widen them."""
    widened = isinstance(op, ExchangedWeightMmaOp) and op.a == tile
    return op.operation.name in MMA_NAMES and not widened


def _bases(rings: Rings, ring: sm.RingOp) -> list[ir.Value]:
    """The base descriptor of each tile of the first slot, made at the first tile of the ring."""
    if ring.memory not in rings.bases:
        with ir.InsertionPoint.after(ring), ring.location:
            rings.bases[ring.memory] = [
                _base(rings.target, ring.memory, number, tile)
                for number, tile in enumerate(ring.memory.type.tiles)
                if not tile.layout.is_vector  # those come after the others
            ]
    return rings.bases[ring.memory]


def _base(target: Target, memory: ir.Value, number: int, tile: SmemType) -> ir.Value:
    type_ = descriptor_type(target, tile)
    return sm.BaseDescriptorOp.of(memory, tile=number, descriptor=type_).descriptor


def descriptor_type(target: Target, tile: SmemType) -> sm.DescriptorType:
    """What a descriptor says of a tile beside its address."""
    return sm.DescriptorType.of(*matrix_fields(tile.layout), target.mma.descriptor_version)
