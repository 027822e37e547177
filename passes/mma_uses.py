"""Which tiles an MMA reads, and which MMA adds to sums."""

from __future__ import annotations

from ..dialects.sm.memory import TileMemoryOp
from ..dialects.tile import MMAS, LoadOp, MmaOp, PairMmaOp
from ..dialects.tile.scales import smem_operands
from ..dialects.tile.stores import AwaitSumsOp
from .base import defining_op


def is_synchronous(mma: MmaOp | PairMmaOp) -> bool:
    """Whether the MMA reads a tile that threads copied, so that the whole CTA waits for it."""
    return any(
        isinstance(defining_op(operand), LoadOp | TileMemoryOp) for operand in smem_operands(mma)
    )


def mma_before(store: AwaitSumsOp) -> MmaOp | PairMmaOp | None:
    """An MMA into the accumulator that `store` reads."""
    users = (use.owner.opview for use in store.acc.uses)
    return next((user for user in users if isinstance(user, MMAS)), None)
