"""Linear scales that several blocks of an MMA, or several rows, share.

    tile.copy %a_scales → %tile {shared = [128, 4]}    a scale for 4 blocks of each of 128 rows

The shape of a view of scales says how many share one, beside that of its operand. `expand-loops`
writes it down, and what makes atoms of them then repeats each as often.
"""

from __future__ import annotations

from typing import Any

from ..dialects import scaled_legality
from ..dialects.dtypes import linear_sharing
from ..dialects.mlir import ir
from ..dialects.tile import CopyOp, KernelOp
from ..dialects.tile.scales import SCALED_MMAS, mma_of
from ..dialects.tile_types import integers, integers_of
from .base import refused, walk
from .batches import argument_of

SCALES = ("a_scales", "b_scales")
SHARED = "shared"
NOT_SHARED = (1, 1)
BEFORE = 2  # arguments from scales to their operand
LINEAR_RANK_MAX = 3  # of a stack; atoms have five dims and more


def scale_names(kernel: KernelOp) -> list[str]:
    """The names of the views of scales that a kernel has."""
    names = [ir.StringAttr(name).value for name in kernel.arg_names]
    return [name for name in names[2:4] if name in SCALES]


def padding_read(kernel: KernelOp) -> str | None:
    """How an MMA of the kernel reads what pads its scales, which only threads' copies clear."""
    broken = (
        scaled_legality.scaled_extent(mma_of(op), op.extent.value)
        for op in walk(kernel, SCALED_MMAS)
    )
    return next((each for each in broken if each is not None), None)


def say_shared(kernel: KernelOp) -> None:
    """Give each copy of such scales the attribute."""
    for op in walk(kernel, CopyOp):
        shared = _of_copy(kernel, op)
        if shared != NOT_SHARED:
            op.operation.attributes[SHARED] = integers(list(shared))


def said_shared(op: CopyOp) -> tuple[int, int]:
    """Rows and blocks that share a scale, as the op says."""
    attributes = op.operation.attributes
    if SHARED not in attributes:
        return NOT_SHARED
    rows, blocks = integers_of(attributes[SHARED])
    return rows, blocks


def check_shared(kernel: KernelOp, op: CopyOp) -> None:
    """Refuse a copy that says another number than its view does."""
    wanted, attributes = _of_copy(kernel, op), op.operation.attributes
    right = integers(list(wanted)) if wanted != NOT_SHARED else None
    got = attributes[SHARED] if SHARED in attributes else None
    if got != right:
        rule = f"shared: must be {list(wanted)} rows and blocks that share a scale of the view"
        raise refused(op, f"{rule}, got {got or list(NOT_SHARED)}")


def shared_by(kernel: KernelOp, view: ir.Value) -> tuple[int, int] | None:
    """How many rows and blocks of an MMA share each of the linear scales of a view of the kernel's;
    None where they are not those of its operand."""
    rows, blocks = scaled_extents(kernel, view)
    shape = list(ir.MemRefType(view.type).shape)[-2:]
    return linear_sharing(shape, rows, blocks, walk(kernel, SCALED_MMAS)[0].block.value)


def scaled_extents(kernel: KernelOp, view: ir.Value) -> tuple[int, int]:
    """Rows, and blocks along K, of the operand that scales stand for."""
    operand = kernel.body.blocks[0].arguments[ir.BlockArgument(view).arg_number - BEFORE]
    mma = walk(kernel, SCALED_MMAS)[0]
    return ir.MemRefType(operand.type).shape[-2], mma.extent.value // mma.block.value


def _of_copy(kernel: KernelOp, op: CopyOp) -> tuple[int, int]:
    view: Any = argument_of(op.view)
    if not op.tile.type.layout.is_of_scales or ir.MemRefType(view.type).rank > LINEAR_RANK_MAX:
        return NOT_SHARED
    return shared_by(kernel, view) or NOT_SHARED
