"""One resident CTA: its shared memory, barriers, warps and whatever engines keep for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .barrier import NamedBarrier
from .memory import (
    CONST_WINDOW,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_FIRST_OFFSET,
    SHARED_WINDOW,
    GenericSpace,
    Region,
    SharedSpace,
)
from .proxy import SharedProxy

if TYPE_CHECKING:
    from .cluster import Cluster
    from .launch import Launch
    from .warp import Warp

T = TypeVar("T")


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
    shared_space: `.shared::cta` accesses (plain offsets or own rank, peers too in a cluster);
    cluster_space: `.shared::cluster` accesses; generic: generic addresses except local ones.
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
        self.shared_space = SharedSpace(self.shared, alias=True)
        self.cluster_space = SharedSpace(self.shared, alias=False)
        self.generic = self._make_generic()
        self.barriers = [NamedBarrier(self, number) for number in range(16)]
        self.warps: list[Warp] = []
        self.live_threads = 0
        self.events = 0
        self.exit_checks: list[Callable[[], None]] = []
        self.exited = False

    def _make_shared(self) -> Region:
        size = SHARED_FIRST_OFFSET + self.launch.shared_bytes
        region = Region(
            f"the shared memory of cta {self.index}",
            self.shared_base,
            self.launch.poison_bytes(size),
            space="shared",
            lowest=SHARED_FIRST_OFFSET,
            track=True,
        )
        region.owner, region.proxy = self, SharedProxy(size)
        return region

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
        """Make the other CTAs of the cluster visible; called once all of them exist."""
        peers = tuple(cta.shared for cta in self.cluster.ctas if cta is not self)
        for space in (self.shared_space, self.cluster_space):
            for region in peers:
                space.add(region)
            space.last = self.shared

    def shared_offset(self, address: int) -> int:
        """The offset in the own window of a shared address with own or no rank bits."""
        return address & 0xFFFFFF

    def notify(self) -> None:
        """Something that a parked thread of this CTA may wait for has happened."""
        self.events += 1
        self.launch.scheduler.wake(self)

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
        self.launch.scheduler.cta_exited(self)
