"""Dynamic sizes of tensors: each must come from a tensor that has it.

    %rows  = tensor.dim %a, %c0 : tensor<?x64xbf16>
    %empty = tensor.empty(%rows) : tensor<?x48xf32>

A kernel takes its sizes from its arguments. What linalg says of a new tensor's size is held to
them, since a size that is computed, or another argument's, would not be read.
"""

from __future__ import annotations

from typing import Any

from ...dialects.mlir import func, ir
from ..base import operations_named, refused
from ..clone import constant_of


def check_open_sizes(function: func.FuncOp) -> None:
    """Refuse, at the op, a new tensor whose size is none that a tensor has in every call."""
    for op in operations_named(function, "tensor.empty"):
        type_: Any = op.results[0].type
        axes = [axis for axis, extent in enumerate(type_.shape) if extent < 0]
        for axis, size in zip(axes, op.operands, strict=True):
            if not _is_asked(size, is_length(type_.rank, axis)):
                rule = f"size {axis} must be a tensor.dim of such a size of a tensor"
                raise refused(op, f"{rule}, got {_maker(size)}; ask a tensor that has it")


def is_length(rank: int, axis: int) -> bool:
    """Whether a size of a tensor is how many matrices a stack has."""
    return rank == 3 and axis == 0


def _is_asked(size: ir.Value, of_matrices: bool) -> bool:
    """Whether a value is a size that only a call says, of rows or of matrices as asked for."""
    op = _owner(size)
    while op is not None and op.name == "arith.index_cast":
        op = _owner(op.operands[0])
    if op is None or op.name != "tensor.dim":
        return False
    type_, axis = op.operands[0].type, constant_of(op.operands[1])
    if axis is None or not 0 <= axis < type_.rank or type_.shape[axis] >= 0:
        return False
    return is_length(type_.rank, axis) == of_matrices


def _maker(size: ir.Value) -> str:
    op = _owner(size)
    return "an argument" if op is None else op.get_asm().strip()


def _owner(value: ir.Value) -> Any:
    return None if isinstance(value.owner, ir.Block) else value.owner
