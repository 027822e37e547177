"""Which tiles an MMA reads, and which MMA adds to an accumulator."""

from __future__ import annotations

from ..dialects import legality
from ..dialects.sm.memory import TileMemoryOp
from ..dialects.target import Target
from ..dialects.tile import MMAS, LoadOp, MmaOp, PairMmaOp
from ..dialects.tile.scales import smem_operands
from ..dialects.tile.short import ShortMmaOp, ShortPairMmaOp
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


def pair_step_of(mma: MmaOp | PairMmaOp, target: Target) -> int:
    """What N of a 2-CTA MMA is a multiple of, or of the MMA that becomes one."""
    if type(mma) not in (MmaOp, PairMmaOp, ShortMmaOp, ShortPairMmaOp):
        return target.mma.pair_n_step
    elements = [str(each.type.element) for each in (mma.a, mma.b)]
    return legality.pair_step(target, mma.acc.type.shape[0], mma.b.type.layout, elements)
