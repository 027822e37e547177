"""The messages that say why an access may not rely on an earlier one."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from ...errors import Trap
from ...interface import Cta
from ...machine.mbarrier import Mbarrier
from ...machine.named_barrier import NamedBarrier
from ...tensor.spans import Access
from .actor import LINE_BITS, Actor
from .clock import ASYNC, ASYNC_GLOBAL, HAPPENED, KNOWN, OVER

RELAXED_ALLOC, LANE_RELEASE = "relaxed-alloc", "lane-release"
NARROW_ARRIVAL, UNWAITED_STORE = "narrow-arrival", "unwaited-store"
COPY_FENCE = "copy-fence"
SHIPPED = (RELAXED_ALLOC, LANE_RELEASE, NARROW_ARRIVAL, UNWAITED_STORE, COPY_FENCE)
"""The categories that are only warnings where libraries ship such code
(`SharedRules.as_warning`)."""
LINE_MASK = (1 << LINE_BITS) - 1
_FENCES = {ASYNC: "fence.proxy.async.shared::cta", ASYNC_GLOBAL: "fence.proxy.async.global"}
_COPY = "the write by cp.async"
_PRODUCTS = ("wgmma.mma_async", "tcgen05.mma")
_OTHERS = {ASYNC: (ASYNC_GLOBAL, "global"), ASYNC_GLOBAL: (ASYNC, "shared")}
"""For the row of a proxy fence, the row of the fence for the other memory, and its name."""


def split_when(when: int) -> tuple[int, int]:
    """(time, PTX line) of a mark."""
    return when >> LINE_BITS, when & LINE_MASK


def mark_of(time: np.ndarray) -> np.ndarray:
    """The first marks of times."""
    return time << LINE_BITS


def limit(row: np.ndarray, component: int) -> int:
    """The first mark of a component that is not known."""
    time = row.item(component) if component < len(row) else 0
    return time + 1 << LINE_BITS


def race(what: str, place: str, other: str) -> Trap:
    """The Trap of an access that nothing orders behind an earlier one."""
    return Trap(
        "race",
        f"{what} of {place} is not ordered behind {other}: no barrier, mbarrier, commit or"
        f" release and acquire leads from there to here",
    )


def tensor_race(access: Access, what: str, cta: Cta, *, over: bool) -> Trap:
    """The Trap of an access to tensor memory by a warp of a CTA, or on its behalf. over: whether
    the earlier access is known to be over, which orders no other access behind what it wrote."""
    span, home = access.span, access.who[0]
    whose = "" if home == cta.rank else f" of cluster rank {home}"
    place = f"tensor memory columns {span.column}..{span.column_end - 1}"
    other = f"the {access.name} of warp {access.warp}{whose} (ptx:{access.line})"
    if not over:
        return race(what, place, other)
    return Trap(
        "race",
        f"{what} of {place} follows {other} by an arrival of scope .cta at the mbarrier of another"
        " CTA, which passes on that accesses are over, and not what they wrote; put"
        " tcgen05.fence::before_thread_sync ahead of it, or arrive with .release.cluster",
    )


def between_lanes(what: str, place: str, other: str) -> Trap:
    """The Trap of an access that follows another lane's of the same warp."""
    return Trap(
        "race",
        f"{what} of {place} is not ordered behind {other}: lanes of a warp need bar.warp.sync"
        f" between them",
    )


def unmade(what: str, barrier: Mbarrier) -> Trap:
    """The Trap of a use of a barrier whose initialisation may come later."""
    return Trap(
        "missing-fence",
        f"{what} uses {barrier.describe()}, whose mbarrier.init is not ordered before it;"
        f" a barrier must come between, and fence.mbarrier_init if the barrier is relaxed",
    )


def late_wait(barrier: Mbarrier, waiter: str, line: int) -> Trap:
    """The Trap of a phase that completes while a waiter for the previous one may still be under
    way."""
    before = f"phase {barrier.phase - 2}" if barrier.phase > 1 else "the one before the first"
    return Trap(
        "barrier-protocol",
        f"phase {barrier.phase - 1} of {barrier.describe()} is complete, and nothing orders that"
        f" behind the wait of {waiter} for {before} (ptx:{line}): a waiter that is late asks for a"
        f" phase that lies two back, and may wait for ever; it must arrive, or come to a barrier"
        f" with who arrives",
    )


def unseen_phase(barrier: Mbarrier, line: int) -> Trap:
    """The Trap of an arrival that might have counted for the phase before."""
    return Trap(
        "barrier-protocol",
        f"this arrival counts for phase {barrier.phase} of {barrier.describe()}, and nothing orders"
        f" it behind a wait that has seen phase {barrier.phase - 1} complete (ptx:{line}), which"
        f" PTX ISA §9.7.13.15.4 wants in between: had it come earlier, it would have counted for"
        f" that phase",
    )


def early_arrival(barrier: NamedBarrier, other: str, line: int) -> Trap:
    """The Trap of an arrival at a named barrier that might have counted for the phase before."""
    return Trap(
        "protocol",
        f"barrier {barrier.number}: this arrival counts for phase {barrier.generation}, and nothing"
        f" orders it behind the arrival of {other} at phase {barrier.generation - 1} (ptx:{line}):"
        f" had it come earlier, that phase would have ended without that one",
    )


@dataclass(frozen=True, slots=True)
class Past:
    """An earlier access, as the agent that meets it knows it. when: its mark; cluster: the cluster
    of its component, None for the agent's own. lanes: the components of the warp's lanes by 1 + the
    lane; lane: that number for the lane that did it, 0 if it is not known."""

    actor: Actor
    component: int
    when: int
    cluster: int | None = None
    lanes: np.ndarray | None = None
    lane: int = 0

    def is_known(self, kind: int) -> bool:
        """Whether a row of what the agent knows covers it."""
        return self._is_in(self.actor.knows(kind, self.cluster))

    def _is_in(self, row: np.ndarray) -> bool:
        by_lane = 0 if self.lanes is None or not self.lane else int(self.lanes[self.lane])
        return self.when < max(limit(row, self.component), limit(row, by_lane))

    def _is_known_to_others(self, kind: int) -> bool:
        """Whether another lane of the agent's warp is ordered behind it."""
        return any(self._is_in(row) for row in self.actor.others_know(kind, self.cluster))

    def _is_of_another_lane(self) -> bool:
        """Whether another lane of the warp has released since."""
        if self.lanes is None:
            return False
        row = self.actor.knows(OVER, self.cluster)
        return any(self.when < limit(row, lane) for lane in self.lanes.tolist() if lane)

    def is_shipped(self, what: str, other: str, *, fenced: bool) -> str | None:
        """The category of the warning, if libraries rely on what GPUs make of the order of
        instructions. what: the access; fenced: no proxy fence of the writer is missing."""
        if other.startswith(_COPY) and what.startswith(_PRODUCTS) and self.is_known(KNOWN):
            return COPY_FENCE
        if other.startswith("the write by tcgen05.alloc") and self.is_known(HAPPENED):
            return RELAXED_ALLOC
        if other.startswith("the read") and self._was_aligned_ahead_of_release():
            return LANE_RELEASE
        if other.startswith("the write") and fenced and self._is_over_alone():
            return NARROW_ARRIVAL
        return None

    def _is_over_alone(self) -> bool:
        return self.is_known(OVER) and not self.is_known(KNOWN)

    def _was_aligned_ahead_of_release(self) -> bool:
        """Whether the warp has waited for its products, with all lanes, before a release by another
        lane that is known."""
        aligned = self.actor.domain.aligned.get(self.component)
        if self.cluster is not None or self.lanes is None or not aligned:
            return False
        row = self.actor.knows(OVER)
        after = aligned[bisect_right(aligned, split_when(self.when)[0]) :]
        released = max((limit(row, lane) for lane in self.lanes.tolist() if lane), default=0)
        return bool(after) and after[0] << LINE_BITS < released

    def refusal(self, what: str, place: str, other: str, fence: int) -> Trap:
        """The Trap. what accesses which place, and the earlier access; fence: the row of the proxy
        fences for this memory."""
        if self.is_known(KNOWN):
            return Trap(
                "proxy-fence",
                f"{what} of {place} is ordered behind {other}, a generic one,"
                f" {self._cause(fence, other)}",
            )
        if other.startswith("the write") and self._is_over_alone():
            return Trap(
                "race",
                f"{what} of {place} follows {other} by an arrival of scope .cta at the mbarrier of"
                f" another CTA, which passes on that accesses are over, and not what they wrote;"
                f" arrive with .release.cluster",
            )
        if self._is_known_to_others(KNOWN if other.startswith("the write") else OVER):
            return Trap(
                "race",
                f"{what} of {place} is not ordered behind {other}: another lane of this warp has"
                f" waited for that, which orders what this lane does only behind a bar.warp.sync",
            )
        if self._is_of_another_lane():
            return Trap(
                "race",
                f"{what} of {place} is not ordered behind {other}: another lane of that warp has"
                f" released since, which covers what this lane did only behind a bar.warp.sync",
            )
        return race(what, place, other)

    def _cause(self, fence: int, other: str) -> str:
        foreign, memory = _OTHERS[fence]
        if self.is_known(foreign):
            return (
                f"and the fence.proxy.async on the way is restricted to {memory} memory; it takes"
                f" {_FENCES[fence]}, or one without a state space"
            )
        if fence == ASYNC and self.actor.domain.is_away(self.component):
            return (
                "to the memory of another CTA, with no fence.proxy.async on the way that reaches"
                " it; .shared::cta is the memory of the executing CTA alone, take"
                " fence.proxy.async.shared::cluster"
            )
        if other.startswith(_COPY):
            return (
                "with no fence.proxy.async on the way behind its completion: one before the wait"
                " for the copy does not cover it"
            )
        return "with no fence.proxy.async on the way"
