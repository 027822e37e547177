"""Combines the copies of a slot by threads that shift bytes in registers.

    tile.copy %a, %ta        ...
    ...                  →   tile.copy_together { tile.copy %a, %ta; tile.copy %b, %tb }
    tile.copy %b, %tb        pipe.commit %ring
    pipe.commit %ring

So that loads of all tiles of a slot are under way before the first is stored. A tile of no ring is
copied alone.
"""

from __future__ import annotations

from typing import Any

from ...dialects.mlir import ir
from ...dialects.pipe import CommitOp, TileOp
from ...dialects.tile import CopyOp, KernelOp
from ...dialects.tile.loads import CopyTogetherOp
from ..base import defining_op, walk
from ..copy_width import is_shifted
from ..team import Team


def expand_copies(kernel: KernelOp) -> None:
    """Gather the copies of each slot in front of its commit."""
    shifted = [op for op in walk(kernel, CopyOp) if is_shifted(op, Team.of(op).threads)]
    slots: dict[ir.Value, list[CopyOp]] = {}
    for copy in shifted:
        part = defining_op(copy.tile)
        slots.setdefault(part.slot if isinstance(part, TileOp) else copy.tile, []).append(copy)
    for copies in slots.values():
        last = copies[-1]
        with ir.InsertionPoint(_commit_of(last) or last), last.location:
            body = CopyTogetherOp().body.blocks.append()
        for copy in copies:
            body.append(copy.operation)


def _commit_of(copy: CopyOp) -> Any:
    """The commit of the slot that a copy fills, None where there is none after it."""
    part = defining_op(copy.tile)
    if not isinstance(part, TileOp):
        return None
    ring, ops = defining_op(part.slot).ring, list(copy.operation.block.operations)
    behind = ops[ops.index(copy) + 1 :]
    return next((op for op in behind if isinstance(op, CommitOp) and op.ring == ring), None)
