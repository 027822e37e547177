"""A cluster of CTAs: rank look-up and the cluster barrier (PTX ISA §9.7.13.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import Trap

if TYPE_CHECKING:
    from .cta import Cta


class Cluster:
    """index: %clusterid; ctas by %cluster_ctarank; generation counts completed barrier phases."""

    def __init__(self, index: tuple[int, int, int]):
        self.index = index
        self.ctas: list[Cta] = []
        self.arrived = 0
        self.generation = 0

    @property
    def live_threads(self) -> int:
        return sum(cta.live_threads for cta in self.ctas)

    def cta(self, rank: int) -> Cta:
        """The CTA of a rank; Trap if there is none."""
        if rank >= len(self.ctas):
            raise Trap("out-of-bounds", f"a cluster of {len(self.ctas)} CTAs has no rank {rank}")
        return self.ctas[rank]

    def arrive(self, threads: int) -> int:
        """`threads` arrive; returns the generation that ends the phase."""
        ticket = self.generation + 1
        self.arrived += threads
        self.try_complete()
        return ticket

    def try_complete(self) -> None:
        """Complete the phase when all threads that are still alive have arrived."""
        if not self.arrived or self.arrived < self.live_threads:
            return
        self.arrived = 0
        self.generation += 1
        for cta in self.ctas:
            cta.notify()

    def describe(self) -> str:
        """The barrier's state, for a deadlock report."""
        return f"cluster barrier with {self.arrived} of {self.live_threads} threads arrived"
