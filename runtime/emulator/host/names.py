"""What a kernel's author calls its barriers and warps, for reports and traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

BARRIER_BYTES = 8


@dataclass(frozen=True)
class Names:
    """barriers: name by offset from the start of dynamic shared memory, in bytes; roles: name by
    warp index."""

    barriers: Mapping[int, str] = field(default_factory=dict)
    roles: Mapping[int, str] = field(default_factory=dict)

    @staticmethod
    def of(description: Mapping[str, Any] | None) -> Names:
        """From the field `names` of a bundle's manifest (docs/manifest.md); None names nothing."""
        if description is None:
            return Names()
        barriers: dict[int, str] = {}
        for entry in description.get("barriers", ()):
            barriers |= _barriers(entry["name"], entry["offset_bytes"], entry["count"])
        roles = {
            entry["first_warp"] + i: entry["name"]
            for entry in description.get("roles", ())
            for i in range(entry["warps"])
        }
        return Names(barriers, roles)


def _barriers(name: str, offset: int, count: int) -> dict[int, str]:
    if count == 1:
        return {offset: name}
    return {offset + i * BARRIER_BYTES: f"{name}[{i}]" for i in range(count)}
