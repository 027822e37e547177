"""`tile.mma` as wgmma: all warps of a warpgroup issue the atoms that cover its rows.

PTX ISA, wgmma: an atom has 64 rows; `wgmma.fence` comes before the first of a group, since the
registers of its accumulator may have changed; a group is what one `tile.mma` issues.
"""

from __future__ import annotations

from ...dialects import sm
from ...dialects.layout import TileLayout
from ...dialects.mlir import ir, llvm
from ...dialects.pipe import SetRegistersOp
from ...dialects.target import WARPGROUP_THREADS
from ...dialects.tile import MmaOp
from .. import build
from .descriptors import encode_bytes
from .frame import Frame
from .mma import advance, mma_fields, operand_descriptor
from .register_accumulator import ATOM_M, RegisterAccumulator


def lower_set_registers(frame: Frame, op: SetRegistersOp) -> None:
    """setmaxnreg, up or down from what the launch gives each thread."""
    given = frame.target.launch_registers(frame.kernel.threads.value)
    count = op.count.value
    sm.SetRegistersOp.of(count=count, action="increase" if count > given else "decrease")


def lower_wgmma(frame: Frame, op: MmaOp) -> None:
    """One group: every atom of this warpgroup's rows; the first K step honours `accumulate`."""
    held, a, b = frame.registers[op.acc], op.a.type.layout, op.b.type.layout
    fields = mma_fields(op, ATOM_M)
    a_first, b_first = (operand_descriptor(frame, operand) for operand in (op.a, op.b))
    a_first = _at_warpgroup(frame, a_first, a, held)
    sm.WgmmaFenceOp.of()
    atoms = [held.load(atom) for atom in range(len(held.atoms))]
    for k in range(0, a.k, fields["k"]):
        accumulate = op.accumulate if k == 0 else build.true()
        for atom, registers in enumerate(atoms):
            offsets = {"a_offset": a.offset(atom * ATOM_M, k), "b_offset": b.offset(0, k)}
            operands = (registers, a_first, b_first, accumulate)
            atoms[atom] = sm.WgmmaOp.of(*operands, **fields, **offsets, sum=registers.type).sum
    sm.WgmmaCommitOp.of()
    for registers, slot in zip(atoms, held.atoms, strict=True):
        llvm.store(registers, slot)


def _at_warpgroup(
    frame: Frame, first: ir.Value, layout: TileLayout, held: RegisterAccumulator
) -> ir.Value:
    """A's descriptor at the first row of this thread's warpgroup."""
    if held.warpgroups == 1:
        return first
    warpgroup = frame.team.thread // WARPGROUP_THREADS
    return advance(first, warpgroup * encode_bytes(layout.offset(held.rows, 0)))
