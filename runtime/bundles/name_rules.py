"""Rules for names of barriers and warps, in a manifest and in a launch file.

Each rule yields `where: must …, got …`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from ..ptx_sizes import BARRIER_BYTES, WARP_THREADS


def name_contradictions(
    names: Mapping[str, Any] | None, shared_bytes: int, block: list[int], where: str
) -> Iterator[str]:
    """Barriers lie in dynamic shared memory, roles are warps of the block; none has two names."""
    if names is None:
        return
    within = f"the {shared_bytes} bytes of dynamic shared memory"
    barriers = [
        (each["offset_bytes"], each["offset_bytes"] + BARRIER_BYTES * each["count"])
        for each in names.get("barriers", ())
    ]
    yield from _contradictions(barriers, shared_bytes, within, f"{where}.barriers")
    warps = -(-prod(block) // WARP_THREADS)
    roles = [
        (each["first_warp"], each["first_warp"] + each["warps"]) for each in names.get("roles", ())
    ]
    yield from _contradictions(roles, warps, f"the {warps} warps of the block", f"{where}.roles")


def _contradictions(
    places: list[tuple[int, int]], limit: int, within: str, where: str
) -> Iterator[str]:
    """What reaches over the limit, and what lies in an earlier place."""
    for i, (start, end) in enumerate(places):
        if end > limit:
            yield f"{where}[{i}]: must end within {within}, got {end}"
        for other, (first, last) in enumerate(places[:i]):
            if start < last and first < end:
                got = f"{start} to {end} beside {first} to {last}"
                yield f"{where}[{i}]: must not overlap {where}[{other}], got {got}"
