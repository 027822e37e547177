"""Accumulators in the registers of the warpgroups that issue the MMAs."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.mlir import ir, llvm
from . import build as b

ATOM_M = 64
PAIR = 2  # neighbouring columns that a thread has of a row


@dataclass(frozen=True)
class RegisterAccumulator:
    """What one thread holds of an [M, N] accumulator: a stack slot for each MMA down its rows.

    The warpgroups share the rows, `rows` to each in order. LLVM's mem2reg turns the slots into
    registers. Register i of a slot is row 16w + g + 8·(i/2 % 2), column 8·(i/4) + 2q + i % 2 of the
    MMA, with w = warp % 4, g = lane / 4 and q = lane % 4 (PTX ISA, wgmma register fragments, D).
    """

    rows: int
    n: int
    warpgroups: int
    atoms: tuple[ir.Value, ...]

    @staticmethod
    def make(m: int, n: int, warpgroups: int) -> RegisterAccumulator:
        """Its slots, at the current insertion point; what they hold is undefined."""
        rows = m // warpgroups
        slots = [
            llvm.alloca(b.pointer(), b.constant(1), struct_of_floats(n // 2))
            for _ in range(rows // ATOM_M)
        ]
        return RegisterAccumulator(rows, n, warpgroups, tuple(slots))

    def load(self, atom: int) -> ir.Value:
        """The registers of an MMA, as a struct."""
        return llvm.load(struct_of_floats(self.n // 2), self.atoms[atom])


def struct_of_floats(count: int) -> ir.Type:
    """`!llvm.struct<(f32 × count)>`."""
    return ir.Type.parse(f"!llvm.struct<({', '.join(['f32'] * count)})>")


def parts(struct: ir.Value) -> list[ir.Value]:
    """The members of such a struct."""
    count = str(struct.type).count("f32")
    return [llvm.extractvalue(ir.F32Type.get(), struct, [index]) for index in range(count)]


def pinned(values: list[ir.Value]) -> list[ir.Value]:
    """The same registers, which LLVM can't read before this point.

    Nothing in LLVM's IR ties the result of an asynchronous instruction to the wait for it; an
    empty asm that takes and gives every register does, and emits no instruction.
    """
    count = len(values)
    ties = ",".join(["=f"] * count + [str(index) for index in range(count)])
    struct = llvm.inline_asm(struct_of_floats(count), values, "", ties, has_side_effects=True)
    return parts(struct)
