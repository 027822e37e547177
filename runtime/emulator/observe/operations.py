"""Floating-point and integer operations of an instruction: which unit performs how many.

A multiply-add is two operations. Tensor-core work is what the machine itself counts for an
instruction; of instructions of threads each lane counts that takes part.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TENSOR, THREADS = "tensor core", "threads"
COUNTS = ("mma flops", "wgmma flops", "mma.sync flops")
"""What the engines' counts of operations are called."""
# Bits that tell apart types of operands; tf32 has 19 of its 32. Accumulators are never narrower.
BITS = {
    "f64": 64, "f32": 32, "s32": 32, "tf32": 19, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8,
    "s8": 8, "u8": 8, "e3m2": 6, "e2m3": 6, "e2m1": 4, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip
_TENSOR = re.compile(r"tcgen05\.mma\b|wgmma\.mma_async\b|mma\.|wmma\.mma\b")
_KIND = re.compile(r"kind::(\w+)")
_DOT = re.compile(r"dp4a\.([us])32\.[us]32$")
_THREAD = re.compile(r"(fma|mad|add|sub|mul)\.(?:\w+\.)*?(f64|f32|f16|bf16)(x2)?$")


class Unit(NamedTuple):
    """name: TENSOR or THREADS; type: of operands, or a kind of tcgen05.mma; by_lane: operations of
    one lane, None where the machine counts."""

    name: str
    type: str
    by_lane: int | None = None


def unit_of(opcode: str) -> Unit | None:
    """Who performs the operations of an instruction; None for one that has none."""
    if _TENSOR.match(opcode):
        kind = _KIND.search(opcode)
        return Unit(TENSOR, kind[1] if kind else _narrowest(opcode))
    if dot := _DOT.match(opcode):
        return Unit(THREADS, f"{dot[1]}8", 8)
    found = _THREAD.match(opcode)
    if not found:
        return None
    operations = (2 if found[1] in ("fma", "mad") else 1) * (2 if found[3] else 1)
    return Unit(THREADS, found[2], operations)


def _narrowest(opcode: str) -> str:
    """The type of the operands: the narrowest that the instruction names.

    wmma.mma names the types of D and C alone where A and B are f16.
    """
    types = [name for name in opcode.split(".") if name in BITS]
    if opcode.startswith("wmma") and len(types) == 2:
        return "f16"
    return min(types, key=BITS.__getitem__, default="f16")
