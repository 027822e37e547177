"""The clusters of a grid, in the order of their places: of one shape, or of two.

A launch may prefer a larger cluster (CUDA driver API,
CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION). The device then puts CTAs into clusters of either
shape, as it finds room, and a kernel must be right with any mixture: here the seed decides. Each
shape counts its clusters as if the grid were made of them alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

Triple = tuple[int, int, int]
PREFERRED_CHANCE = 0.5
"""That the CTAs of a preferred cluster start as one."""


class Planned(NamedTuple):
    """A cluster that has not started: its %clusterid, and its CTAs along x, y and z."""

    index: Triple
    shape: Triple


def planned_clusters(
    grid: Triple, cluster: Triple, preferred: Triple, rng: random.Random
) -> list[Planned]:
    """The clusters of the grid; `preferred` is `cluster` if the launch prefers no other."""
    return [
        planned
        for index in _places(grid, preferred)
        for planned in (
            [Planned(index, preferred)]
            if preferred == cluster or rng.random() < PREFERRED_CHANCE
            else _parts(index, cluster, preferred)
        )
    ]


def _places(extents: Sequence[int], shape: Sequence[int]) -> Iterator[Triple]:
    counts = [extent // size for extent, size in zip(extents, shape, strict=True)]
    for z, y, x in product(*map(range, reversed(counts))):
        yield x, y, z


def _parts(index: Triple, cluster: Triple, preferred: Triple) -> list[Planned]:
    """The smaller clusters that the CTAs of a preferred one are in."""
    per = [whole // size for whole, size in zip(preferred, cluster, strict=True)]
    parts = []
    for inside in _places(preferred, cluster):
        x, y, z = (i * count + j for i, count, j in zip(index, per, inside, strict=True))
        parts.append(Planned((x, y, z), cluster))
    return parts
