"""Dual products: which arguments of a kernel belong to B."""

from __future__ import annotations

from ..dialects.mlir import ir
from ..dialects.tile import KernelOp
from .shared_scales import scale_names
from .weights import weight_names

B2 = "b2"


def is_dual(kernel: KernelOp) -> bool:
    """Whether a kernel multiplies A with two matrices: the third of its arguments is the second."""
    return arg_names(kernel)[2:3] == [B2]


def arguments_of_b(kernel: KernelOp) -> tuple[int, ...]:
    """The arguments that are B's: as many as there are products."""
    return (1, 2) if is_dual(kernel) else (1,)


def operand_names(kernel: KernelOp) -> tuple[str, ...]:
    """The names of the arguments that are multiplied."""
    return ("a", "b", B2) if is_dual(kernel) else ("a", "b")


def first_other(kernel: KernelOp) -> int:
    """The first of the arguments that an epilogue reads, which come after operands and scales."""
    return len(operand_names(kernel)) + len(scale_names(kernel)) + len(weight_names(kernel))


def arg_names(kernel: KernelOp) -> list[str]:
    """What a kernel's arguments are called."""
    return [ir.StringAttr(name).value for name in kernel.arg_names]
