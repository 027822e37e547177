"""Checks of batches: to which matrix a tile belongs.

stacks      all tiles of a kernel are cut into matrices alike; each matrix has whole clusters, and
            its own part of every stack
"""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir
from ....dialects.tile import KernelOp
from ....dialects.tile.batches import BatchOp, MatrixOp, OrderedBatchOp
from ....dialects.tile.groups import GroupDepthOp
from ....dialects.tile.loads import TensorMapOp
from ....dialects.tile_types import DYNAMIC, TensorMapType, extent_of, integers_of
from ...base import refused, walk
from ...groups import group_of
from ...indices import known_part, linear_form, place_of, span
from ...outputs import outputs_of
from .depth import check_depth
from .groups import check_groups


def check_stacks(kernel: KernelOp) -> None:
    """What all ops together say."""
    if group_of(kernel) is not None:
        check_groups(kernel)
        return
    arguments, c = list(kernel.body.blocks[0].arguments), outputs_of(kernel)[0].type
    ranks = [ir.MemRefType(argument.type).rank for argument in arguments]
    batches, matrices = walk(kernel, BatchOp), walk(kernel, MatrixOp)
    if not batches and (3 in (ranks[0], ranks[1], c.rank) or matrices):
        raise refused(kernel, "stacks: a kernel of stacks must have a tile.batch, got none; add it")
    if batches and c.rank != 3:
        raise refused(batches[0], f"stacks: c must be a stack, got {c}")
    for op in walk(kernel, BatchOp | MatrixOp):
        check_batch(kernel, op, batches[0]) if isinstance(op, BatchOp) else check_matrix(kernel, op)
    check_depth(kernel)


def check_batch(kernel: KernelOp, op: BatchOp, first: BatchOp) -> None:
    """Which tiles are those of a matrix."""
    tiles, count, size = op.tiles.value, op.count.value, integers_of(kernel.cluster)[0]
    form = linear_form(op.i)
    if form is None or not form.is_just(op.i) or place_of(op.i) != 0 or _is_row(op.i):
        raise refused(
            op,
            "stacks: must take the M place of a tile, "
            "got another index; take what tile.cta_tile gives",
        )
    counted = form != known_part(kernel, form)  # a launch says how many tiles there are
    reach = DYNAMIC if counted else (span(kernel, form) or (0, 0))[1] + 1
    known = tiles != DYNAMIC
    if reach != (DYNAMIC if count == DYNAMIC else tiles * count) or (known and tiles % size):
        raise refused(
            op,
            f"stacks: {count} matrices of {tiles} tiles must be the {reach} along M, by whole "
            f"clusters of {size}, got another number; change tiles",
        )
    if type(op) is not type(first) or list(op.operands)[1:] != list(first.operands)[1:]:
        rule = "stacks: all agents must take matrices in one order"
        raise refused(op, f"{rule}, got another than the first; give them one")
    if isinstance(op, OrderedBatchOp) and not walk(kernel, GroupDepthOp):
        rule = "stacks: an order must be that of groups of K"
        raise refused(op, f"{rule}, got that of other matrices; take tile.batch")
    if (tiles, count) != (first.tiles.value, first.count.value):
        raise refused(op, "stacks: all agents must cut tiles alike, got another way; give them one")


def _is_row(index: ir.Value) -> bool:
    return not isinstance(index.owner, ir.Block) and isinstance(index.owner.opview, BatchOp)


def check_matrix(kernel: KernelOp, op: MatrixOp) -> None:
    """The part of a stack that is taken is that of the tile's matrix."""
    batch = None if isinstance(op.batch.owner, ir.Block) else op.batch.owner.opview
    if not isinstance(batch, BatchOp) or op.batch != batch.batch:
        raise refused(
            op, "stacks: must take the batch of a tile.batch, got another index; take its result"
        )
    arguments = list(kernel.body.blocks[0].arguments)
    stack: Any = op.stack
    is_map = isinstance(stack.type, TensorMapType)
    if is_map and not isinstance(stack.owner.opview, TensorMapOp):
        raise refused(
            op,
            "stacks: must take a matrix of a tensor map's own, "
            "got another; take the map that the kernel makes of its stack",
        )
    if not is_map and stack not in arguments:
        raise refused(
            op,
            "stacks: must take a matrix of a view of the kernel, "
            "got another; take an argument of the kernel",
        )
    count = stack.type.dims[-1] if is_map else extent_of(stack.type, 0)
    if count != batch.count.value:
        raise refused(
            op,
            f"stacks: the stack must have {batch.count.value} matrices, "
            f"got {count}; give it as many",
        )
