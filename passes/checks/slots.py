"""Where the tiles of slots come from.

taken    a tile is of a slot that pipe.acquire or pipe.wait gives, or sm.slot where barriers are
         written out, and not of the memory of all slots
"""

from __future__ import annotations

from typing import Any

from ...dialects.mlir import ir
from ...dialects.pipe import TileOp
from ...dialects.sm_positions import SlotOp
from ...dialects.sm_tensor_core import OperandOp
from ...dialects.tile import KernelOp
from ..base import refused, walk

ACQUIRE = "pipe.acquire"
TAKES = (ACQUIRE, "pipe.wait", SlotOp.OPERATION_NAME)
FILLS = (ACQUIRE, SlotOp.OPERATION_NAME)
"""Those that give a slot in which somebody may put a tile."""


def check_slots(kernel: KernelOp) -> None:
    """Refuse, at the op, a tile of what is no slot at hand."""
    for part in walk(kernel, TileOp | OperandOp):
        owner = part.slot.owner
        got = "an argument" if isinstance(owner, ir.Block) else owner.name
        if got not in TAKES:
            rule = f"slots: must be a tile of a slot of {', '.join(TAKES)}"
            raise refused(part, f"{rule}, got one of {got}; take it from there")


def loads_of(part: Any) -> list[Any]:
    """What puts a tile into the slots from which a part takes its one."""
    ring, number = part.slot.owner.operands[0], number_of(part)
    slots = [use.owner.results[0] for use in ring.uses if use.owner.name in FILLS]
    others = [use.owner.opview for slot in slots for use in slot.uses]
    same = [
        each for each in others if isinstance(each, TileOp | OperandOp) and number_of(each) == number
    ]
    users = [use.owner.opview for each in same for use in each.tile.uses]
    return [each for each in users if hasattr(each, "map") or hasattr(each, "view")]


def number_of(part: TileOp | OperandOp) -> int:
    """Which tile of a slot it is."""
    index = part.index if isinstance(part, TileOp) else part.base.owner.opview.tile
    return index.value
