"""`tile.mma` as tcgen05.mma: one thread issues the atoms that cover the tile."""

from __future__ import annotations

from ...dialects.dtypes import DType, operand_dtype
from ...dialects.layout import TileLayout
from ...dialects.mlir import ir, llvm, nvvm, vector
from ...dialects.pipe import TileOp
from ...dialects.tile import MmaOp, PairMmaOp
from . import build as b
from .descriptors import (
    encode_bytes,
    instruction_descriptor,
    shared_descriptor,
)
from .frame import Frame
from .plan import is_synchronous

KINDS = {
    "f16": nvvm.Tcgen05MMAKind.F16,
    "tf32": nvvm.Tcgen05MMAKind.TF32,
    "f8f6f4": nvvm.Tcgen05MMAKind.F8F6F4,
    "i8": nvvm.Tcgen05MMAKind.I8,
}


def lower_mma(frame: Frame, op: MmaOp | PairMmaOp) -> None:
    """Issue the MMAs; when threads copied an operand, the whole CTA fences and waits."""
    if not is_synchronous(op):
        issue(frame, op)
        return
    frame.publish_shared()
    with frame.team.once():
        frame.fence_after()
        issue(frame, op)
        frame.commit(frame.shared_at(frame.plan.mma_done))
    frame.wait_mma_done()


def issue(frame: Frame, op: MmaOp | PairMmaOp) -> None:
    """Every atom of the tile, K innermost; the first K step honours `accumulate`.

    The instruction descriptor of a pair's MMA gives M and N of both CTAs together.
    """
    a, c = op.a.type.layout, op.b.type.layout
    dtype, b_dtype = mma_dtypes(op)
    atom_m = frame.target.mma_rows(a.mn)
    ctas = 2 if frame.cluster.pair else 1
    n = op.acc.type.shape[1]
    descriptor = instruction_descriptor(
        ctas * atom_m,
        n,
        (dtype, b_dtype),
        (a.major, c.major),
    )
    column = frame.columns[op.acc]
    a_base, b_base = (operand_descriptor(frame, operand) for operand in (op.a, op.b))
    for atom in range(a.mn // atom_m):
        accumulator = frame.tmem_pointer(b.plus(column, atom * frame.atom_columns(atom_m, n)))
        for k in range(0, a.k, dtype.k_per_mma):
            nvvm.tcgen05_mma(
                KINDS[str(dtype.operand_kind)],
                frame.cta_group,
                accumulator,
                advance(frame, a_base, a, atom * atom_m, k),
                advance(frame, b_base, c, 0, k),
                b.constant(descriptor),
                frame.values[op.accumulate] if k == 0 else b.true(),
            )


def mma_dtypes(op: MmaOp | PairMmaOp) -> tuple[DType, DType]:
    """What the tensor core takes A's and B's elements for."""
    a, c = (operand_dtype(str(operand.type.element)) for operand in (op.a, op.b))
    assert a is not None and c is not None  # tile.matmul has verified them
    return a, c


def operand_descriptor(frame: Frame, operand: ir.Value) -> ir.Value:
    """Low word of a tile's matrix descriptor: in a ring, the first slot's moved on to its own."""
    layout, part = operand.type.layout, operand.owner.opview
    if not isinstance(part, TileOp):
        return frame.descriptor_at(layout, frame.plan.buffers[operand])
    slot = frame.slots[part.slot]
    first = frame.descriptors[slot.ring][part.index.value]
    if isinstance(slot.index, int):
        return b.add(first, encode_bytes(slot.index * layout.slot_bytes))
    return b.add(first, b.mul(slot.index, encode_bytes(layout.slot_bytes)))


def advance(frame: Frame, low: ir.Value, layout: TileLayout, mn: int, k: int) -> ir.Value:
    """The whole descriptor (i64), moved to element (mn, k).

    Its words are put together as a vector: LLVM would fold a 64-bit addition into the operand of
    tcgen05.mma as register+immediate, which PTX only has for addresses.
    """
    moved = b.add(low, encode_bytes(layout.offset(mn, k)))
    version = frame.target.descriptor_version
    high = b.constant(b.signed(shared_descriptor(layout, version=version) >> 32))
    words = vector.FromElementsOp(ir.VectorType.get([2], b.i32()), [moved, high]).result
    return llvm.bitcast(b.i64(), words)
