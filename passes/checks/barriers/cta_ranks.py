"""Which CTAs of a cluster receive a signal, by their ranks, one CTA after the other.

These follow from places along M and N, not from the masks of `passes/cluster.py` that they check.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....dialects.sm.positions import PAIR, PEERS
from ...cluster import Cluster


def itself(rank: int) -> list[int]:
    """The CTA alone."""
    return [rank]


def leader_of(rank: int) -> int:
    """The leader CTA of a pair: ranks 2q and 2q + 1 are one."""
    return rank - rank % 2


def ranks_in_line(cluster: Cluster, axis: str, rank: int) -> list[int]:
    """The ranks that need the same tile: those in line along an axis, and every second one along M
    if there are pairs."""
    x, y = _place(cluster, rank)
    if axis == "n":
        return _ranks(cluster, rank, ((x, other) for other in range(cluster.n)))
    every = 2 if cluster.pair else 1
    return _ranks(cluster, rank, ((other, y) for other in range(x % every, cluster.m, every)))


def ranks_in_mask(cluster: Cluster, whose: str, axes: Sequence[str], rank: int) -> list[int]:
    """The ranks in an `sm.cta_mask`: the CTA, its pair or its peers, and all in line along the
    axes."""
    if whose == PEERS:
        return ranks_in_line(cluster, axes[0], rank)
    x, y = _place(cluster, rank)
    own = {x - x % 2, x - x % 2 + 1} if whose == PAIR else {x}
    places = {(each, y) for each in own}
    if "n" in axes:
        places |= {(each, other) for each in own for other in range(cluster.n)}
    if "m" in axes:
        places |= {(other, y) for other in range(cluster.m)}
    return _ranks(cluster, rank, sorted(places))


def _place(cluster: Cluster, rank: int) -> tuple[int, int]:
    return rank % cluster.m, rank // cluster.m % cluster.n


def _ranks(cluster: Cluster, rank: int, places: Iterable[tuple[int, int]]) -> list[int]:
    """The ranks of places in the plane of a CTA."""
    plane = rank // cluster.plane * cluster.plane
    return [plane + x + y * cluster.m for x, y in places]
