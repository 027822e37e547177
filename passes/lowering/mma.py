"""`tile.mma` as tcgen05.mma: one thread issues the atoms that cover the tile."""

from __future__ import annotations

from typing import Any

from ...dialects import sm
from ...dialects.dtypes import DType, operand_dtype
from ...dialects.mlir import ir
from ...dialects.pipe import TileOp
from ...dialects.tile import MmaOp, PairMmaOp
from ...dialects.tile_types import SmemType
from .. import build
from ..base import defining_op
from .descriptors import encode_bytes
from .frame import Frame, slot_of


def lower_mma(frame: Frame, op: MmaOp | PairMmaOp) -> None:
    """Every atom of the tile, K innermost; the first K step honours `accumulate`.

    A pair's MMA gives M and N of both CTAs together.
    """
    a, b = op.a.type.layout, op.b.type.layout
    atom_m, n = frame.mma_rows(a.mn), op.acc.type.shape[1]
    fields = {"kind": mma_dtypes(op)[0].operand_kind, "cta_group": frame.cta_group}
    fields |= mma_fields(op, frame.cta_group * atom_m)
    column = frame.columns[op.acc]
    operands = [operand_descriptor(frame, operand) for operand in (op.a, op.b)]
    for atom in range(a.mn // atom_m):
        sums = frame.tmem_address(column + atom * frame.atom_columns(atom_m, n))
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


def operand_descriptor(frame: Frame, operand: ir.Value[SmemType]) -> ir.Value:
    """A tile's matrix descriptor: in a ring, the first slot's moved on to its own."""
    layout, part = operand.type.layout, defining_op(operand)
    if not isinstance(part, TileOp):
        return frame.descriptor_at(layout, frame.plan.buffers[operand])
    ring, index = slot_of(part)
    first = frame.descriptors[ring][part.index.value]
    if isinstance(index, int):
        return advance(first, encode_bytes(index * layout.slot_bytes))
    return advance(first, index * encode_bytes(layout.slot_bytes))


def advance(descriptor: ir.Value, units: ir.Value | int) -> ir.Value:
    """The descriptor of a matrix of the same form, units of 16 bytes further."""
    if isinstance(units, int) and units == 0:
        return descriptor
    return sm.AdvanceOp.of(descriptor, build.as_value(units), moved=descriptor.type).moved
