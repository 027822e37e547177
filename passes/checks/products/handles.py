"""Checks of where the tiles of slots come from, and of the uses of accumulators.

taken    a tile is of a slot that pipe.acquire or pipe.wait gives, or sm.slot where barriers are
         written out, and not of the memory of all slots
summed   an MMA sums into each accumulator
"""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir
from ....dialects.pipe import TileOp
from ....dialects.sm.positions import SlotOp
from ....dialects.sm.tensor_core import OperandOp
from ....dialects.tile import MMAS, AccumulatorOp, KernelOp
from ....dialects.tile.sums import ViewMmaOp
from ...base import refused, walk

ACQUIRE = "pipe.acquire"
TAKES = (ACQUIRE, "pipe.wait", SlotOp.OPERATION_NAME)
FILLS = (ACQUIRE, SlotOp.OPERATION_NAME)
"""Those that give a slot in which somebody may put a tile."""


def check_handles(kernel: KernelOp) -> None:
    """Refuse, at the op, a tile of what is no slot at hand, and sums that nothing is added to."""
    for part in walk(kernel, TileOp | OperandOp):
        owner = part.slot.owner
        got = "an argument" if isinstance(owner, ir.Block) else owner.name
        if got not in TAKES:
            rule = f"slots: must be a tile of a slot of {', '.join(TAKES)}"
            raise refused(part, f"{rule}, got one of {got}; take it from there")
    for sums in walk(kernel, AccumulatorOp):
        if not any(isinstance(use.owner.opview, (*MMAS, ViewMmaOp)) for use in sums.acc.uses):
            raise refused(sums, "sums: an MMA must sum into it, got none that does; drop it")


def loads_of(part: Any) -> list[Any]:
    """What puts a tile into the slots from which a part takes its one."""
    ring, number = part.slot.owner.operands[0], number_of(part)
    slots = [use.owner.results[0] for use in ring.uses if use.owner.name in FILLS]
    users = [use.owner.opview for slot in slots for use in slot.uses]
    parts = [each for each in users if isinstance(each, TileOp | OperandOp)]
    same = [each for each in parts if number_of(each) == number]
    users = [use.owner.opview for each in same for use in each.tile.uses]
    return [each for each in users if hasattr(each, "map") or hasattr(each, "view")]


def number_of(part: Any) -> int:
    """Which tile of a slot a `pipe.tile` or an `sm.operand` is."""
    index = part.index if isinstance(part, TileOp) else part.base.owner.opview.tile
    return index.value
