"""Operands of an MMA: descriptors of their tiles, shape, types and majors."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....dialects import sm
from ....dialects.dtypes import DType, operand_dtype
from ....dialects.layout import TileLayout
from ....dialects.mlir import ir
from ....dialects.tile import MmaOp, PairMmaOp
from ....dialects.tile.duals import DUAL_MMAS, DualMmaOp, joined_layout
from ....dialects.tile_types import SmemType, integers_of
from ... import build
from ...base import defining_op, refused
from ..barriers.operand_tiles import descriptor_type
from ..scope.scope import Scope, lowered, lowered_as, slot_of
from .descriptors import encode_bytes


class PartOfB(NamedTuple):
    """What an MMA multiplies A with: a tile, or two that lie as one; the columns of its sums."""

    tile: ir.Value[SmemType]
    layout: TileLayout
    column: int
    n: int


def parts_of_b(op: MmaOp | PairMmaOp) -> list[PartOfB]:
    """The tile of B, or of the two products those of both, as one where one MMA can read them."""
    n, b = op.acc.type.shape[1], op.b.type.layout
    if not isinstance(op, DUAL_MMAS):
        return [PartOfB(op.b, b, 0, n)]
    b2 = op.b2.type.layout
    whole = joined_layout(b, b2) if isinstance(op, DualMmaOp) and _are_neighbours(op) else None
    if whole is not None:
        return [PartOfB(op.b, whole, 0, n)]
    return [PartOfB(op.b, b, 0, n // 2), PartOfB(op.b2, b2, n // 2, n // 2)]


def _are_neighbours(op: DualMmaOp) -> bool:
    """Whether the tiles of B are those of one slot, one after the other."""
    made = [defining_op(tile) for tile in (op.b, op.b2)]
    if not all(isinstance(each, sm.OperandOp) for each in made):
        return False
    bases = [defining_op(each.base) for each in made]
    numbers = [base.tile.value for base in bases]
    return made[0].slot == made[1].slot and numbers[1] == numbers[0] + 1


def mma_fields(op: MmaOp | PairMmaOp, m: int) -> dict[str, Any]:
    """What an MMA of `m` rows says of its shape, types and majors."""
    a, b = mma_dtypes(op)
    return {
        "m": m,
        "n": op.acc.type.shape[1],
        "k": a.k_per_mma,
        "a_type": a.name,
        "b_type": b.name,
        "d_type": a.accumulator,
        "a_major": op.a.type.layout.major,
        "b_major": op.b.type.layout.major,
    }


def mma_dtypes(op: MmaOp | PairMmaOp) -> tuple[DType, DType]:
    """What the tensor core takes A's and B's elements for."""
    a, b = (operand_dtype(str(operand.type.element)) for operand in (op.a, op.b))
    assert a is not None and b is not None  # tile.matmul has verified them
    return a, b


def lower_base_descriptor(scope: Scope, op: sm.BaseDescriptorOp) -> ir.Value:
    """The descriptor of the tile in the first slot."""
    version, got = scope.target.mma.descriptor_version, op.descriptor.type.number("version")
    if got != version:
        raise refused(op, f"version: must be {version} on {scope.target.chip}, got {got}; write it")
    offset = integers_of(defining_op(op.memory).offsets)[op.tile.value]
    return descriptor_at(op.descriptor.type, offset)


def lower_operand(_: Scope, op: sm.OperandOp) -> ir.Value:
    """The descriptor of the first slot's tile, moved on to the slot."""
    _, index = slot_of(op)
    pitch = op.tile.type.layout.slot_bytes
    known_index = isinstance(index, int)
    units = encode_bytes(index * pitch) if known_index else index * encode_bytes(pitch)
    return lowered_as(advance(op.base, units), op.tile.type)


def operand_descriptor(scope: Scope, op: Any, operand: ir.Value[SmemType]) -> ir.Value:
    """The matrix descriptor of a tile that an MMA reads."""
    made = defining_op(operand)
    if isinstance(made, sm.TileMemoryOp):
        type_ = descriptor_type(scope.target, operand.type)
        return descriptor_at(type_, made.offset.value)
    found = lowered(operand)
    if not isinstance(found.type, sm.DescriptorType):
        raise refused(op, "operands: must be given by sm.operand, got a tile's address; use it")
    return found


def descriptor_at(type_: ir.Type, offset_bytes: int) -> ir.Value:
    """The descriptor of a matrix at a byte of dynamic shared memory."""
    return sm.SmemDescriptorOp.of(build.shared_at(offset_bytes), descriptor=type_).descriptor


def advance(descriptor: ir.Value, units: ir.Value | int) -> ir.Value:
    """The descriptor of a matrix of the same form, units of 16 bytes further."""
    if isinstance(units, int) and units == 0:
        return descriptor
    return sm.AdvanceOp.of(descriptor, build.as_value(units), moved=descriptor.type).moved
