"""What is read of a kernel whose stores are written out, or whose instructions are selected.

attributes   no op of ours has an attribute that nobody reads
"""

from __future__ import annotations

from typing import Any

from ..dialects import sm
from ..dialects.mlir import ext, ir
from ..dialects.tile import KernelOp
from .base import SOURCE_ATTRIBUTE, operations, refused, walk
from .whole import WHOLE, WHOLE_OPS

COUNTS = "operandSegmentSizes"  # how many operands each field has


def is_expanded(kernel: Any) -> bool:
    """Whether `expand-loops` has been on the kernel: it says where grids may start."""
    return bool(walk(kernel, sm.LaunchDependentsOp))


def check_instructions(module: ir.Module) -> None:
    """Refuse, at the op, what breaks a rule."""
    for kernel in module.body.operations:
        if isinstance(kernel, sm.KernelOp) or (
            isinstance(kernel, KernelOp) and is_expanded(kernel)
        ):
            _check_attributes(kernel)
            for op in operations(kernel.operation):
                _check_attributes(op)


def _check_attributes(op: Any) -> None:
    fields = getattr(op, "_fields", None)
    if fields is None:
        return
    known = {field.name for field in fields if isinstance(field, ext.AttributeDef)}
    known |= {WHOLE} if isinstance(op, WHOLE_OPS) else set()
    for name in op.operation.attributes:
        if name not in known | {COUNTS, SOURCE_ATTRIBUTE}:
            raise refused(op, f"attributes: nothing reads {name!r}; take it off the op")
