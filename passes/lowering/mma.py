"""`tile.mma` as tcgen05.mma: one thread issues the atoms that cover the tile."""

from __future__ import annotations

from ...dialects.dtypes import DTYPES
from ...dialects.layout import TileLayout
from ...dialects.mlir import arith, ir, llvm, nvvm
from ...dialects.tile import MmaOp, PairMmaOp
from . import build as b
from .descriptors import encode_bytes, instruction_descriptor, shared_descriptor
from .frame import Frame
from .plan import is_synchronous


def lower_mma(frame: Frame, op: MmaOp | PairMmaOp) -> None:
    """Issue the MMAs; when threads copied an operand, the whole CTA fences and waits."""
    if not is_synchronous(op):
        issue(frame, op)
        return
    frame.publish_shared()
    with frame.team.once():
        b.fence_after()
        issue(frame, op)
        frame.commit(frame.shared_at(frame.plan.mma_done))
    frame.wait_mma_done()


def issue(frame: Frame, op: MmaOp | PairMmaOp) -> None:
    """Every atom of the tile, K innermost; the first K step honours `accumulate`.

    The instruction descriptor of a pair's MMA gives M and N of both CTAs together.
    """
    a, c = op.a.type.layout, op.b.type.layout
    dtype = DTYPES[str(op.a.type.element)]
    atom_m = frame.target.mma_rows(a.mn)
    ctas = 2 if frame.cluster.pair else 1
    n = op.acc.type.shape[1]
    descriptor = instruction_descriptor(
        ctas * atom_m,
        n,
        dtype.operand_code,
        DTYPES[str(op.b.type.element)].operand_code,
        a.major,
        c.major,
    )
    column = frame.columns[op.acc]
    a_base, b_base = (_descriptor(frame, operand) for operand in (op.a, op.b))
    for atom in range(a.mn // atom_m):
        accumulator = frame.tmem_pointer(b.plus(column, atom * frame.atom_columns(atom_m, n)))
        for k in range(0, a.k, dtype.k_per_mma):
            nvvm.tcgen05_mma(
                nvvm.Tcgen05MMAKind.F16,
                frame.cta_group,
                accumulator,
                _advance(a_base, a, atom * atom_m, k),
                _advance(b_base, c, 0, k),
                b.constant(descriptor),
                frame.values[op.accumulate] if k == 0 else b.true(),
            )


def _descriptor(frame: Frame, operand: ir.Value) -> ir.Value:
    """The matrix descriptor of a tile whose shared-memory address is known at run time."""
    address = llvm.ptrtoint(b.i32(), frame.shared_at(frame.tiles[operand]))
    units = arith.andi(b.div(address, 16), b.constant(encode_bytes(-1)))
    constant = shared_descriptor(operand.type.layout)
    return arith.ori(b.widen(units), b.constant(_signed(constant), b.i64()))


def _advance(descriptor: ir.Value, layout: TileLayout, mn: int, k: int) -> ir.Value:
    """The descriptor moved to element (mn, k): no carry leaves the address field."""
    return b.add(descriptor, encode_bytes(layout.offset(mn, k)))


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word
