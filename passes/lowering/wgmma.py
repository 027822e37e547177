"""`tile.mma` as wgmma: all warps of a warpgroup issue the atoms that cover its rows.

PTX ISA, wgmma: an atom has 64 rows; `wgmma.fence` comes before the first of a group, since the
registers of its accumulator may have changed; a group is what one `tile.mma` issues.
"""

from __future__ import annotations

from ...dialects.dtypes import DType
from ...dialects.layout import TileLayout
from ...dialects.mlir import ir, llvm, nvvm
from ...dialects.pipe import SetRegistersOp
from ...dialects.target import WARPGROUP_THREADS
from ...dialects.tile import AwaitMmaOp, MmaOp
from . import build as b
from .descriptors import encode_bytes
from .frame import Frame
from .mma import advance, mma_dtypes, operand_descriptor
from .plan import is_synchronous
from .register_accumulator import ATOM_M, RegisterAccumulator, parts, tied


def lower_wgmma(frame: Frame, op: MmaOp) -> None:
    """Issue the MMAs; when threads copied an operand, publish it and wait before the next copy."""
    if not is_synchronous(op):
        _issue(frame, op)
        return
    frame.publish_shared()
    _issue(frame, op)
    nvvm.wgmma_wait_group_sync_aligned(0)
    frame.team.meet()


def lower_await_mma(frame: Frame, op: AwaitMmaOp) -> None:
    """Each warp waits for its own."""
    nvvm.wgmma_wait_group_sync_aligned(op.pending.value)


def lower_set_registers(frame: Frame, op: SetRegistersOp) -> None:
    """setmaxnreg, up or down from what the launch gives each thread."""
    given = frame.target.launch_registers(frame.kernel.threads.value)
    action = nvvm.SetMaxRegisterAction
    count = op.count.value
    nvvm.setmaxregister(count, action.increase if count > given else action.decrease)


def _issue(frame: Frame, op: MmaOp) -> None:
    """One group: every atom of this warpgroup's rows; the first K step honours `accumulate`."""
    held, a, c = frame.registers[op.acc], op.a.type.layout, op.b.type.layout
    dtypes = mma_dtypes(op)
    k_per_mma = dtypes[0].k_per_mma
    a_base, b_base = (operand_descriptor(frame, operand) for operand in (op.a, op.b))
    a_base = _at_warpgroup(frame, a_base, a, held)
    text = _mma_text(held.n, dtypes, (a, c))
    nvvm.wgmma_fence_aligned()
    atoms = [held.load(atom) for atom in range(len(held.atoms))]
    for k in range(0, a.k, k_per_mma):
        accumulate = frame.values[op.accumulate] if k == 0 else b.true()
        b_word = advance(frame, b_base, c, 0, k)
        for atom, registers in enumerate(atoms):
            a_word = advance(frame, a_base, a, atom * ATOM_M, k)
            atoms[atom] = _mma(text, parts(registers), [a_word, b_word, accumulate])
    nvvm.wgmma_commit_group_sync_aligned()
    for registers, slot in zip(atoms, held.atoms, strict=True):
        llvm.store(registers, slot)


def _at_warpgroup(
    frame: Frame, low: ir.Value, layout: TileLayout, held: RegisterAccumulator
) -> ir.Value:
    """A's descriptor at the first row of this thread's warpgroup."""
    if held.warpgroups == 1:
        return low
    warpgroup = b.div(frame.team.thread, WARPGROUP_THREADS)
    return b.add(low, b.mul(warpgroup, encode_bytes(layout.offset(held.rows, 0))))


def _mma_text(n: int, dtypes: tuple[DType, DType], layouts: tuple[TileLayout, TileLayout]) -> str:
    """wgmma.mma_async with D in the first n/2 operands; descriptors and scale-d follow its ties.

    Floats have factors for A and B, and those of 16 bits say which are MN-major.
    """
    a, b = dtypes
    count = n // 2
    registers = ", ".join(f"${index}" for index in range(count))
    words = [f"${2 * count + index}" for index in range(3)]
    factors = [] if a.is_integer else ["1", "1"]
    transposed = [str(int(layout.major == "mn")) for layout in layouts] if a.bytes == 2 else []
    return (
        f"wgmma.mma_async.sync.aligned.m{ATOM_M}n{n}k{a.k_per_mma}.{a.accumulator}.{a.name}.{b.name}"
        f" {{{registers}}}, {', '.join([*words, *factors, *transposed])};"
    )


def _mma(text: str, registers: list[ir.Value], operands: list[ir.Value]) -> ir.Value:
    """The new registers; an asm of our own, since nvvm.wgmma.mma_async fixes scale-d."""
    type_, ties = tied(registers)
    constraints = f"{ties},l,l,b,~{{memory}}"
    return llvm.inline_asm(type_, [*registers, *operands], text, constraints, has_side_effects=True)
