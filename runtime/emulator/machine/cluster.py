"""A cluster of CTAs: rank look-up and the cluster barrier (PTX ISA §9.7.13.3)."""

from __future__ import annotations

from ..errors import Trap
from ..interface import Cta, Warp


class Cluster:
    """index: %clusterid; shape: CTAs along x, y and z; ctas by %cluster_ctarank; generation counts
    completed barrier phases.

    The barrier waits for the threads that have not exited: arrivals are kept by thread, so that
    one that arrives and exits does not stand in for another.
    """

    def __init__(self, index: tuple[int, int, int], shape: tuple[int, int, int]):
        self.index, self.shape = index, shape
        self.ctas: list[Cta] = []
        self.generation = 0
        self._arrived: dict[Warp, int] = {}

    @property
    def live_threads(self) -> int:
        return sum(cta.live_threads for cta in self.ctas)

    @property
    def arrived(self) -> int:
        """Live threads that have arrived in the current phase."""
        return sum(lanes.bit_count() for lanes in self._arrived.values())

    def cta(self, rank: int) -> Cta:
        """The CTA of a rank; Trap if there is none."""
        if rank >= len(self.ctas):
            raise Trap("out-of-bounds", f"a cluster of {len(self.ctas)} CTAs has no rank {rank}")
        return self.ctas[rank]

    def arrive(self, warp: Warp, lanes: int, *, relaxed: bool = False) -> int:
        """Lanes of a warp arrive; returns the generation that ends the phase."""
        ticket = self.generation + 1
        warp.launch.events.barrier_arrived(self, warp, relaxed)
        self._arrived[warp] = self._arrived.get(warp, 0) | lanes
        self.try_complete()
        return ticket

    def withdraw(self, warp: Warp, lanes: int) -> None:
        """These lanes have exited: nobody waits for them, and their arrival counts no more."""
        if warp in self._arrived:
            self._arrived[warp] &= ~lanes

    def try_complete(self) -> None:
        """Complete the phase when all threads that are still alive have arrived."""
        if not self._arrived or self.arrived < self.live_threads:
            return
        self._arrived = {}
        self.generation += 1
        self.ctas[0].launch.events.barrier_completed(self)
        for cta in self.ctas:
            cta.wake(self)

    def describe(self) -> str:
        """The barrier's state, for a deadlock report."""
        return f"cluster barrier with {self.arrived} of {self.live_threads} threads arrived"
