"""What `check_kernel` asks of kernels whose MMAs multiply tiles of b by tiles of a.

Rows of sums are columns of c, so what else has rows and columns has its own the other way round.
"""

from __future__ import annotations

from typing import Any

from ..dialects.mlir import ir
from ..dialects.tile import ElementOp, KernelOp
from .base import SWAPPED_ATTRIBUTE, is_swapped, refused, walk
from .duals import arg_names
from .outputs import outputs_of

PLAIN = ["a", "b", "c"]


def check_swapped(kernel: KernelOp) -> None:
    """Refuse, in a swapped kernel, all but one product of two matrices with one output."""
    if not is_swapped(kernel):
        return
    attribute = kernel.operation.attributes[SWAPPED_ATTRIBUTE]
    if not isinstance(attribute, ir.UnitAttr):
        rule = f"views: {SWAPPED_ATTRIBUTE} must be a unit attribute"
        raise refused(kernel, f"{rule}, got {attribute}; leave its value out")
    rule = "views: a swapped kernel must take one product of two matrices to one output"
    names = arg_names(kernel)
    beside: list[Any] = walk(kernel, ElementOp)
    if beside:
        got = "an operand of the epilogue"
        raise refused(beside[0], f"{rule}, got {got}; drop {SWAPPED_ATTRIBUTE}")
    ranks = [ir.MemRefType(each.type).rank for each in kernel.body.blocks[0].arguments]
    if names != PLAIN or len(outputs_of(kernel)) != 1 or set(ranks) != {2}:
        got = ", ".join(f"{name} of {rank} dims" for name, rank in zip(names, ranks, strict=True))
        raise refused(kernel, f"{rule}, got {got}; drop {SWAPPED_ATTRIBUTE}")
