"""One resident CTA: its shared memory, barriers, warps and whatever engines keep for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from ..interface import Cluster, Launch, Split, Warp
from ..ptx.addresses import (
    CONST_WINDOW,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_FIRST_OFFSET,
    SHARED_WINDOW,
)
from .memory import Region
from .named_barrier import NamedBarrier
from .spaces import GenericSpace, SharedSpace

T = TypeVar("T")

KEYED = -1
"""`Split.parked_at` of a wait that only its own key ends."""


class StateBag:
    """Lazily made state that the core does not know: `owner.state("tmem", TensorMemory)`."""

    def __init__(self):
        self._state: dict[str, Any] = {}

    def state(self, key: str, factory: Callable[[], T]) -> T:
        """The object kept under `key`, made by `factory()` at the first call."""
        if key not in self._state:
            self._state[key] = factory()
        return self._state[key]


class Cta(StateBag):
    """A CTA of the grid.

    index: %ctaid; number: its linear index in the grid; cluster, rank: %cluster_ctarank.
    shared: its `Region`, `base = rank << 24`, so `shared.data[address & 0xFFFFFF]` is the byte at
    a shared address; offsets below 0x400 are not accessible; reads of unwritten bytes trap.
    shared_space: `.shared::cta` accesses (plain offsets or own rank);
    cluster_space: `.shared::cluster` accesses, peers too; generic: all generic addresses but
    local ones.
    mbarriers: the live `mbarrier.Mbarrier` objects, by offset in the window; tensor: the state of
    its tensor core, None while nothing has used it.
    exit_checks: called when the last thread has exited; each may raise Trap.
    """

    def __init__(
        self, launch: Launch, cluster: Cluster, index: tuple[int, int, int], number: int, rank: int
    ):
        super().__init__()
        self.launch, self.cluster = launch, cluster
        self.index, self.number, self.rank = index, number, rank
        self.shared_base = rank << 24
        self.shared = self._make_shared()
        self.shared_space = SharedSpace(self.shared, own_only=True, warn=self.warn_of_rank)
        self.cluster_space = SharedSpace(self.shared, own_only=False)
        self.generic = self._make_generic()
        self.mbarriers: dict[int, Any] = {}
        self.tensor: Any = None
        self.barriers = [NamedBarrier(self, number) for number in range(16)]
        self.warps: list[Warp] = []
        self.live_threads = 0
        self.events = 0
        self._parked: dict[Hashable, list[tuple[Warp, Split]]] = {}
        self.exit_checks: list[Callable[[], None]] = []
        self.exited = False
        launch.events.cta_started(self)

    def warn_of_rank(self, address: int) -> None:
        """Tell of an address of `.shared::cta` that is one of rank 0's, and taken as an offset."""
        self.launch.warn(
            "rank-of-address",
            f"0x{address:x} is an address of cluster rank 0, and .shared::cta reaches the own byte"
            f" there, of rank {self.rank}; take .shared::cluster for that of rank 0",
        )

    def _make_shared(self) -> Region:
        size = SHARED_FIRST_OFFSET + self.launch.shared_bytes
        return Region(
            f"the shared memory of cta {self.index}",
            self.shared_base,
            self.launch.poison_bytes(size),
            space="shared",
            lowest=SHARED_FIRST_OFFSET,
            track=self.launch.tracks_writing,
        )

    def _make_generic(self) -> GenericSpace:
        launch = self.launch
        return GenericSpace(
            launch.global_memory,
            {
                SHARED_WINDOW: (self.cluster_space, SHARED_WINDOW),
                PARAM_WINDOW: (launch.param_memory, 0),
                CONST_WINDOW: (launch.const_memory, 0),
                LOCAL_WINDOW: (launch.no_local, 0),
            },
        )

    def add_peers(self) -> None:
        """Make the other CTAs of the cluster visible to .shared::cluster and generic accesses."""
        for cta in self.cluster.ctas:
            if cta is not self:
                self.cluster_space.add(cta.shared)
        self.cluster_space.last = self.shared

    def notify(self) -> None:
        """Something that a parked thread of this CTA may wait for has happened."""
        self.events += 1
        self.launch.scheduler.wake(self.warps)

    def park(self, warp: Warp, split: Split) -> None:
        """A split waits for the key of its reason."""
        self._parked.setdefault(split.reason.key, []).append((warp, split))

    def wake(self, key: Hashable) -> None:
        """What the splits that are parked with this key wait for has happened."""
        woken = []
        for warp, split in self._parked.pop(key, ()):
            if split.parked_at == KEYED and split.reason.key == key:
                split.parked_at = None
                woken.append(warp)
        self.launch.scheduler.wake(woken)

    def at_exit(self, check: Callable[[], None]) -> None:
        """Run `check` when the last thread of the CTA has exited."""
        self.exit_checks.append(check)

    def threads_exited(self, lanes: int) -> None:
        """`lanes` threads have exited: barriers that count live threads look again."""
        self.live_threads -= lanes
        for barrier in self.barriers:
            barrier.try_complete()
        self.cluster.try_complete()
        self.notify()
        if self.live_threads == 0:
            self._finish()

    def _finish(self) -> None:
        self.exited = True
        for check in self.exit_checks:
            check()
        self.launch.engines.check_exit(self)
        self.launch.events.cta_exited(self)
        self.shared.close()
        self.launch.scheduler.cta_exited(self)
