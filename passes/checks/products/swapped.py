"""Checks of kernels with A and B exchanged (swap-AB).

Rows of sums are columns of c, so what else has rows and columns has its own the other way round.
"""

from __future__ import annotations

from ....dialects.mlir import ir
from ....dialects.tile import ElementOp, KernelOp
from ....dialects.tile.batches import TransposedOp
from ....dialects.tile.groups import OFFSETS
from ....dialects.tile.outputs import StoreGroupsOp
from ....dialects.tile.quantized import StoreQuantizedOp
from ...base import SWAPPED_ATTRIBUTE, is_swapped, refused, walk
from ...batches import transposed_of
from ...duals import arg_names
from ...groups import group_of
from ...outputs import outputs_of
from ...shared_scales import scale_names
from ...weights import weight_names

FIRST = ["a", "b"]
NEIGHBOURS = StoreGroupsOp | StoreQuantizedOp


def check_swapped(kernel: KernelOp) -> None:
    """Refuse, in a swapped kernel, what has rows and columns that are not turned."""
    if not is_swapped(kernel):
        return
    attribute = kernel.operation.attributes[SWAPPED_ATTRIBUTE]
    if not isinstance(attribute, ir.UnitAttr):
        rule = f"views: {SWAPPED_ATTRIBUTE} must be a unit attribute"
        raise refused(kernel, f"{rule}, got {attribute}; leave its value out")
    groups = [OFFSETS] if group_of(kernel) is not None else []
    behind = len(FIRST) + len(weight_names(kernel) or scale_names(kernel)) + len(groups)
    others = arg_names(kernel)[behind : -len(outputs_of(kernel))]
    if others != [f"e{number}" for number in range(len(others))]:
        rule = "views: a swapped kernel must take a, b and what its epilogue reads"
        got = ", ".join(arg_names(kernel))
        raise refused(kernel, f"{rule}, got {got}; drop {SWAPPED_ATTRIBUTE}")
    for op in walk(kernel, TransposedOp):
        if transposed_of(op.view) is not None:
            rule = "views: must turn a view of the kernel, or a matrix of one"
            raise refused(op, f"{rule}, got a turned one; take that as it lies")
    for store in walk(kernel, NEIGHBOURS):
        rule = "views: a swapped kernel must store single elements"
        raise refused(store, f"{rule}, got neighbours of a row; drop {SWAPPED_ATTRIBUTE}")


def is_transposed_element(op: ElementOp) -> bool:
    """Whether a view as large as C has its rows for columns."""
    return transposed_of(op.source) is not None
