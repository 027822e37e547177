"""`tile.clear_unit`: one thread writes zeros to an operand tile."""

from __future__ import annotations

from ....dialects import llvm
from ....dialects.layout import UNIT_BYTES
from ....dialects.mlir import arith, ir
from ....dialects.tile.threads import ClearUnitOp
from ....dialects.tile_types import integers_of
from ... import build
from ...base import defining_op
from ..scope.scope import Scope

WORDS = 4


def lower_clear_unit(_: Scope, op: ClearUnitOp) -> None:
    """One store a chunk."""
    slot, unit = op.slot, op.unit
    memory, index = defining_op(op.memory), op.tile.value
    layout = memory.memory.type.tiles[index].layout
    first = integers_of(memory.offsets)[index] + op.row.value * layout.span_bytes
    place = slot * layout.slot_bytes + unit * UNIT_BYTES
    zeros = _zero_unit()
    for chunk in range(layout.chunks):
        offset = place + (first + chunk * layout.chunk_bytes)
        llvm.store(zeros, build.shared_at(offset), alignment=UNIT_BYTES)


def _zero_unit() -> ir.Value:
    type_ = ir.VectorType.get([WORDS], build.i32())
    zero = ir.IntegerAttr.get(build.i32(), 0)
    return arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, zero)).result
