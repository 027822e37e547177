"""Initialisations of mbarriers that follow the fence.mbarrier_init of their warp.

Nothing passes them on through a relaxed barrier of the cluster (PTX ISA §9.7.13.4, §9.7.13.3).
CUTLASS's kernels for pairs initialise the barrier for the end of tensor memory in this way, and use
it when everything else is over. So this is only a warning if a barrier came in between. An
initialisation with no fence of its warp at all stays an error.
"""

from __future__ import annotations

from ...interface import Cta, Warp
from ...machine.mbarrier import Mbarrier
from .actor import line_of


class LateInits:
    """By CTA, the warps that have fenced, and the barriers that such warps have initialised since,
    with the phase of the cluster's barrier and the PTX line."""

    def __init__(self) -> None:
        self._fenced: dict[Cta, set[int]] = {}
        self._made: dict[Cta, dict[Mbarrier, tuple[int, int]]] = {}

    def fenced(self, warp: Warp) -> None:
        """Notes that a warp has executed fence.mbarrier_init."""
        self._fenced.setdefault(warp.cta, set()).add(warp.index)

    def made(self, warp: Warp, barrier: Mbarrier) -> None:
        """Notes that a warp has initialised a barrier."""
        if warp.index in self._fenced.get(warp.cta, ()):
            made = self._made.setdefault(warp.cta, {})
            made[barrier] = warp.cta.cluster.generation, line_of(warp)

    def forget(self, cta: Cta) -> None:
        """Forgets a CTA that has exited."""
        self._fenced.pop(cta, None)
        self._made.pop(cta, None)

    def tells(self, user: Warp, barrier: Mbarrier) -> bool:
        """Whether a warp may use such a barrier nevertheless; it is then warned."""
        for cta, made in self._made.items():
            phases, line = made.get(barrier, (cta.cluster.generation, 0))
            if cta.cluster.generation > phases:
                user.cta.launch.warn(
                    "late-init",
                    f"ptx:{line}: this mbarrier.init stands behind the fence.mbarrier_init of its"
                    " warp, so that the cluster's relaxed barrier does not pass it on to who uses"
                    " the mbarrier; fence behind the last initialisation",
                )
                return True
        return False
