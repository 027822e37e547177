"""What views, loads and MMAs say of a kernel whose loops over tiles are written out.

The rules are those of `check_kernels`, of which a program of single stores keeps no others.
"""

from __future__ import annotations

from ...dialects.target import Target
from ...dialects.tile import KernelOp
from ..base import operations, walk
from .epilogue import check_epilogue
from .kernel import LOADS, MMAS
from .mma import check_mma
from .operands import check_load, check_views


def check_expanded(kernel: KernelOp, target: Target) -> None:
    """Refuse, at the op, what breaks a rule."""
    check_views(kernel)
    for op in walk(kernel, LOADS):
        check_load(kernel, op, target)
    for op in walk(kernel, MMAS):
        check_mma(kernel, op, target)
    for op in operations(kernel.operation):
        if hasattr(op, "epilogue"):
            check_epilogue(op, kernel, is_expanded=True)
