"""What the kernel's barriers and warps are called, for reports and traces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...dialects.sm_memory import BarriersOp
from ...dialects.sm_threads import WarpsOp
from ...dialects.tile import KernelOp
from ..base import walk


def describe_names(kernel: KernelOp) -> dict[str, Any]:
    """The manifest's field `names` (docs/bundle.md)."""
    return {"barriers": list(_barriers(kernel)), "roles": list(_roles(kernel))}


def _barriers(kernel: KernelOp) -> Iterator[dict[str, Any]]:
    for op in walk(kernel, BarriersOp):
        place = {"offset_bytes": op.offset.value, "count": op.slots.value}
        yield {"name": op.label.value, **place}


def _roles(kernel: KernelOp) -> Iterator[dict[str, Any]]:
    for role in walk(kernel, WarpsOp):
        first, warps = role.first.value, role.warps.value
        yield {"name": role.agent.value, "first_warp": first, "warps": warps}
