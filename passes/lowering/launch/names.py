"""Names of the kernel's barriers and warps, for reports and traces."""

from __future__ import annotations

from typing import Any

from ....dialects.sm.memory import BarriersOp
from ....dialects.sm.threads import WarpsOp
from ....dialects.tile import KernelOp
from ....dialects.tile.marks import MarkOp
from ...base import walk


def describe_names(kernel: KernelOp) -> dict[str, Any]:
    """The manifest's field `names` (docs/manifest.md)."""
    found = walk(kernel, BarriersOp | WarpsOp)
    marks = {op.column.value: op.place.value for op in walk(kernel, MarkOp)}
    return {
        "barriers": [_barriers(op) for op in found if isinstance(op, BarriersOp)],
        "roles": [_role(op) for op in found if isinstance(op, WarpsOp)],
        **({"marks": [marks[column] for column in sorted(marks)]} if marks else {}),
    }


def _barriers(op: BarriersOp) -> dict[str, Any]:
    return {"name": op.label.value, "offset_bytes": op.offset.value, "count": op.slots.value}


def _role(op: WarpsOp) -> dict[str, Any]:
    first, warps = op.first.value, op.warps.value
    return {"name": op.agent.value, "first_warp": first, "warps": warps}
