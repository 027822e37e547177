"""`tile.mma` as tcgen05.mma: one thread issues the atoms that cover the tile."""

from __future__ import annotations

from typing import Any

from ...dialects import sm
from ...dialects.dtypes import DType, operand_dtype
from ...dialects.mlir import ir
from ...dialects.pipe import TileOp
from ...dialects.tile import MmaOp, PairMmaOp
from ...dialects.tile_scales import SCALED_MMAS
from ...dialects.tile_types import AccumulatorType, SmemType
from .. import build
from ..base import defining_op
from .descriptors import encode_bytes
from .positions import lower_tile
from .scope import Scope, descriptor_at, lowered, lowered_as, slot_of, sums_at

MMA_NAMES = frozenset(each.OPERATION_NAME for each in (MmaOp, PairMmaOp, *SCALED_MMAS))


def lower_mma(scope: Scope, op: MmaOp | PairMmaOp) -> None:
    """Every atom of the tile, K innermost; the first K step honours `accumulate`.

    A pair's MMA gives M and N of both CTAs together.
    """
    a, b = op.a.type.layout, op.b.type.layout
    atom_m, n = scope.mma_rows(a.mn), op.acc.type.shape[1]
    fields = {"kind": mma_dtypes(op)[0].operand_kind, "cta_group": scope.cta_group}
    fields |= mma_fields(op, scope.cta_group * atom_m)
    base, column = sums_at(op.acc)
    operands = [operand_descriptor(scope, operand) for operand in (op.a, op.b)]
    for atom in range(a.mn // atom_m):
        sums = base + (column + atom * scope.atom_columns(atom_m, n))
        for k in range(0, a.k, fields["k"]):
            offsets = {"a_offset": a.offset(atom * atom_m, k), "b_offset": b.offset(0, k)}
            accumulate = op.accumulate if k == 0 else build.true()
            sm.MmaOp.of(sums, *operands, accumulate, **fields, **offsets)


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


def lower_operand(scope: Scope, op: TileOp) -> ir.Value:
    """A tile of a slot: for an MMA its matrix descriptor, else where it lies.

    The descriptor is that of the first slot's moved on.
    """
    if not any(use.owner.name in MMA_NAMES for use in op.tile.uses):
        return lower_tile(scope, op)
    ring, index = slot_of(op)
    if isinstance(op.tile.type, AccumulatorType):
        return lower_tile(scope, op)
    first = scope.descriptors[ring.memory][op.index.value]
    pitch = op.tile.type.layout.slot_bytes
    known_index = isinstance(index, int)
    units = encode_bytes(index * pitch) if known_index else index * encode_bytes(pitch)
    return lowered_as(advance(first, units), op.tile.type)


def operand_descriptor(scope: Scope, operand: ir.Value[SmemType]) -> ir.Value:
    """A tile's matrix descriptor."""
    memory = defining_op(operand)
    if isinstance(memory, sm.TileMemoryOp):
        return descriptor_at(scope.target, operand.type.layout, memory.offset.value)
    return lowered(operand)


def advance(descriptor: ir.Value, units: ir.Value | int) -> ir.Value:
    """The descriptor of a matrix of the same form, units of 16 bytes further."""
    if isinstance(units, int) and units == 0:
        return descriptor
    return sm.AdvanceOp.of(descriptor, build.as_value(units), moved=descriptor.type).moved
