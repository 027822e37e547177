"""The smaller cluster of a launch that prefers a larger one, as attributes of the IR.

CTAs of the grid then start in clusters of either shape (CUDA driver API,
CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION): in preferred ones, or in fallback ones, several of
which are in the place of a preferred one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .mlir import ir
from .tile_types import integers_of
from .verify import refuse

FALLBACK = "tile.fallback"
"""On a kernel: CTAs of a fallback cluster along x, y and z."""
FALLBACK_ARRIVALS = "fallback"
"""On barriers: arrivals of a phase in such a cluster, where they are others."""


def fallback_of(kernel: Any) -> list[int] | None:
    """CTAs along x, y and z of a fallback cluster, None where all clusters are alike."""
    attributes = kernel.operation.attributes
    return integers_of(attributes[FALLBACK]) if FALLBACK in attributes else None


def arrivals_in_fallback(op: Any) -> int | None:
    """Arrivals of a phase in a fallback cluster, None where they are as many in each."""
    attributes = op.operation.attributes
    said = attributes[FALLBACK_ARRIVALS] if FALLBACK_ARRIVALS in attributes else None
    return None if said is None else ir.IntegerAttr(said).value


def verify_fallback(kernel: Any, cluster: Sequence[int]) -> bool:
    """A preferred cluster is several fallback ones, with the same parts of K."""
    attributes = kernel.operation.attributes
    if FALLBACK not in attributes:
        return True
    said = attributes[FALLBACK]
    sizes = integers_of(said) if isinstance(said, ir.ArrayAttr) else []
    is_part = len(sizes) == len(cluster) and min(sizes) >= 1 and sizes[2] == cluster[2]
    is_part = is_part and not any(map(int.__mod__, cluster, sizes))
    if is_part and math.prod(sizes) < math.prod(cluster):
        return True
    rule = f"{FALLBACK} must be a part of the cluster {list(cluster)} along x and y"
    return refuse(kernel, f"{rule}, got {said}")
