"""Products that one step leaves to the next to accumulate, the last to `tile.finish_sums`."""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir
from ....dialects.tile import MMAS, MmaOp
from ....dialects.tile.sums import FinishSumsOp
from ...mma_uses import is_synchronous


def is_carried(op: MmaOp) -> bool:
    """Whether a step leaves its product to the next one, and the last to `tile.finish_sums`."""
    users = [use.owner.opview for use in op.acc.uses]
    return not is_synchronous(op) and any(isinstance(each, FinishSumsOp) for each in users)


def mma_of(acc: ir.Value) -> Any:
    """An MMA into sums."""
    users = (use.owner.opview for use in acc.uses)
    return next(user for user in users if isinstance(user, MMAS))
