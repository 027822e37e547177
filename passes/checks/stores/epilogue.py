"""Checks of the epilogue of a kernel's store.

epilogue    holds only ops on one element, computed from its own values
"""

from __future__ import annotations

from typing import Any

from ....dialects.epilogue import SCALAR_OPS
from ....dialects.mlir import ir
from ....dialects.tile import ElementOp, KernelOp, YieldOp
from ....dialects.tile.ahead import HeldElementOp
from ...base import is_swapped, refuse_unread, refused
from ...batches import transposed_of
from ...linalg.accepted_ops import EPILOGUE_OPS
from ...whole import view_of
from .stores import check_element

OF_ELEMENT = frozenset({"axes"})


def check_epilogue(store: Any, kernel: KernelOp, is_expanded: bool = False) -> None:
    """What a store computes on each element; where loops are written out, also of what is held."""
    block, transposed = store.epilogue.blocks[0], is_swapped(kernel)
    if is_expanded and isinstance(view_of(store).type, ir.MemRefType):
        transposed = transposed_of(view_of(store)) is not None  # sums of parts are stored as C lies
    known = set(block.arguments)
    for op in block.operations:
        name = op.operation.name
        if isinstance(op, HeldElementOp) and not is_expanded:
            raise refused(
                op,
                "epilogue: must read views before expand-loops, got what is held; read a view",
            )
        if isinstance(op, ElementOp):
            check_element(kernel, op, transposed)
        elif name not in SCALAR_OPS and not isinstance(op, YieldOp):
            rule = "must be an op on one element (docs/passes/normalize.md)"
            raise refused(op, f"epilogue: {rule}, got {name}; move it out")
        elif any(each not in known for each in op.operation.operands):
            raise refused(
                op, "epilogue: must compute from its own values, got one from outside; move it in"
            )
        refuse_unread(op, OF_ELEMENT if isinstance(op, ElementOp) else EPILOGUE_OPS.get(name, {}))
        if "roundingmode" in op.operation.attributes:
            raise refused(op, "epilogue: rounds to nearest even, got a rounding mode; take it off")
        known.update(op.operation.results)
