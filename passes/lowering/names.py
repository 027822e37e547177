"""What the kernel's barriers and warps are called, for reports and traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ...dialects.sm_threads import WarpsOp
from ...dialects.tile import KernelOp
from ..base import walk
from .plan import Plan


def describe_names(kernel: KernelOp, plan: Plan) -> dict[str, Any]:
    """The manifest's field `names` (docs/bundle.md)."""
    return {"barriers": list(_barriers(plan)), "roles": list(_roles(kernel))}


def _barriers(plan: Plan) -> Iterator[dict[str, Any]]:
    seen: Counter[str] = Counter()
    for ring in plan.rings.values():
        if ring.kind == "staging":
            continue
        seen[ring.kind] += 1
        name = ring.kind if seen[ring.kind] == 1 else f"{ring.kind}{seen[ring.kind]}"
        yield {"name": f"{name}.full", "offset_bytes": ring.full, "count": ring.stages}
        yield {"name": f"{name}.empty", "offset_bytes": ring.empty, "count": ring.stages}
    if plan.mma_done is not None:
        yield {"name": "mma.done", "offset_bytes": plan.mma_done, "count": 1}


def _roles(kernel: KernelOp) -> Iterator[dict[str, Any]]:
    for role in walk(kernel, WarpsOp):
        first, warps = role.first.value, role.warps.value
        yield {"name": role.agent.value, "first_warp": first, "warps": warps}
