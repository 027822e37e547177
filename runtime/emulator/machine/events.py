"""What happens in a launch, told to whoever listens: the machine announces, checks and traces hear.

A `Listener` hears of a whole launch, a `Watcher` of the accesses to one region of memory. Neither
changes what it is told of; a check that finds a rule broken raises Trap.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..interface import Cluster, Cta, EngineOp, Launch, Warp
from .shared_access import Words


class Listener:
    """Does nothing at every event."""

    def bound(self) -> None:
        """The kernel's parameters are encoded: global memory is complete."""

    def cluster_started(self, cluster: Cluster) -> None:
        """A cluster gets its CTAs."""

    def cta_started(self, cta: Cta) -> None:
        """A CTA has its shared memory, and no warp yet."""

    def warp_started(self, warp: Warp) -> None:
        """A warp can run."""

    def warp_exiting(self, warp: Warp) -> None:
        """The last threads of a warp exit now."""

    def cta_exited(self, cta: Cta) -> None:
        """The last thread of a CTA has exited."""

    def finished(self) -> None:
        """Every cluster of the grid has run to its end, and every operation."""

    # -- threads that meet -------------------------------------------------------------------

    def converged(self, warp: Warp, mask: np.ndarray) -> None:
        """Lanes of a warp execute bar.warp.sync together."""

    def released(self, warp: Warp) -> None:
        """A warp executes a release: of a barrier, an arrival, a fence."""

    def acquired(self, warp: Warp) -> None:
        """A warp executes an acquire."""

    def barrier_arrived(self, barrier: Any, warp: Warp, relaxed: bool) -> None:
        """Threads of a warp have arrived at a named barrier, or that of their cluster."""

    def barrier_completed(self, barrier: Any) -> None:
        """A phase of it is complete."""

    def barrier_waited(self, barrier: Any, warp: Warp, generation: int) -> None:
        """A warp has waited for the phase that ended as `generation`."""

    def grids_awaited(self, warp: Warp) -> None:
        """A warp has executed griddepcontrol.wait."""

    def departed(self, error: str, warning: str, message: str) -> None:
        """A thread has done what PTX leaves undefined, and libraries ship because GPUs bear it; the
        categories of an error and of a warning about it."""

    # -- fences ------------------------------------------------------------------------------

    def fenced(self, warp: Warp, order: str, scope: str) -> None:
        """fence or membar."""

    def proxy_fenced(self, warp: Warp, mask: np.ndarray, space: str | None) -> None:
        """fence.proxy.async, restricted to a state space or not."""

    def mbarrier_init_fenced(self, warp: Warp) -> None:
        """fence.mbarrier_init."""

    def tensor_fenced(self, warp: Warp, before: bool) -> None:
        """tcgen05.fence::before_thread_sync, or after."""

    # -- mbarriers ---------------------------------------------------------------------------

    def mbarrier_made(self, warp: Warp, cta: Cta, offset: int, barrier: Any) -> None:
        """mbarrier.init."""

    def mbarrier_ended(self, warp: Warp, cta: Cta, offset: int, barrier: Any) -> None:
        """mbarrier.inval."""

    def mbarrier_used(self, warp: Warp, barrier: Any, what: str) -> None:
        """A warp names a barrier in a wait or an operation."""

    def mbarrier_arriving(self, cta: Cta, barrier: Any, passes_on: str, scope: str) -> None:
        """An operation on a barrier of `cta`, before it is performed; see `apply`."""

    def signalled(self, cta: Cta, offset: int, barrier: Any, phase: int) -> None:
        """A barrier of `cta` got an arrival or bytes; it was in `phase` before that."""

    def waited(self, offset: int, answered: bool) -> None:
        """A warp has asked the barrier at an offset of its CTA; `answered`: its phase is over."""

    def phase_seen(self, warp: Warp, lanes: Sequence[int], barrier: Any, relaxed: bool) -> None:
        """Lanes have been told that the phase they asked for is complete."""

    # -- operations of engines ---------------------------------------------------------------

    def submitted(self, op: EngineOp) -> None:
        """An asynchronous operation has been issued."""

    def began(self, op: EngineOp) -> None:
        """An engine performs an operation now."""

    def completed(self, op: EngineOp) -> None:
        """An asynchronous operation has run."""

    def operations_awaited(self, warp: Warp, operations: list[Any]) -> None:
        """A warp has waited for operations."""

    def source_issued(self, warp: Warp, lane: int, span: tuple[int, int], op: EngineOp) -> None:
        """A thread has issued a bulk store, whose `op` reads these bytes of shared memory."""

    def response_asked(self, cta: Cta, offset: int) -> None:
        """A launch control response will be written to 16 bytes of shared memory."""

    def response_written(self, cta: Cta, offset: int) -> None:
        """It has been."""

    # -- tensor copies and operands ----------------------------------------------------------

    def map_placed(self, address: int, data: bytes) -> None:
        """The host has put a tensor map into global memory."""

    def map_edited(self, warp: Warp, address: int) -> None:
        """tensormap.replace has changed a map in global memory."""

    def map_published(self, warp: Warp, address: int, scope: str) -> None:
        """A map was replaced as a whole by an instruction that releases it."""

    def maps_released(self, warp: Warp, scope: str) -> None:
        """fence.proxy.tensormap::generic.release."""

    def map_acquired(self, cta: Cta, address: int, data: bytes, scope: str) -> None:
        """fence.proxy.tensormap::generic.acquire on a map, which has these contents."""

    def map_used(self, cta: Cta, address: int, data: bytes) -> None:
        """A tensor copy reads a map."""

    def box_written(self, cta: Cta, words: Words, box: Callable[[], Any]) -> None:
        """A tensor copy has written these words of shared memory; box: makes the `copies.box_copy`
        `Box` that says how."""

    def operand_read(
        self, cta: Cta, words: np.ndarray, descriptor: Any, what: str, elements: str
    ) -> None:
        """The tensor core reads these words as a shared memory descriptor says; elements: their
        type, by PTX name, or "" where bytes are copied."""

    def product_issued(
        self,
        cta: Cta,
        line: int,
        sums: Hashable,
        adds: bool,
        operands: tuple[Any, Any] | None,
        form: Hashable,
    ) -> None:
        """An instruction at a PTX line multiplies; sums: names its accumulator, in tensor memory by
        its `tensor.spans.Span`; adds: to what an earlier product has left there; operands: the
        shared memory descriptors of A and B, None where A lies elsewhere; form: whatever else says
        what is multiplied."""

    def operand_gathered(self, cta: Cta, matrix: Callable[[], np.ndarray], what: str) -> None:
        """They have been read; matrix: makes the operand of them."""

    # -- tensor memory -----------------------------------------------------------------------

    def columns_claimed(self, cta: Cta, claim: Any) -> None:
        """A part of the tensor memory of a CTA is about to be accessed: a `tensor.spans.Claim`."""

    def columns_used(self, cta: Cta, warp: Warp, claim: Any, fences: bool) -> None:
        """A warp of the CTA or its peer accesses it; fences: as accesses of tensor memory do."""

    def columns_issued(self, cta: Cta, access: Any) -> None:
        """An access is under way until it is waited for, or its operation has run."""

    def columns_waited(self, warp: Warp, name: str, lines: frozenset[int] | None) -> None:
        """tcgen05.wait: accesses of a name are complete; lines: of these PTX lines alone."""

    def columns_freed(self, cta: Cta, span: Any) -> None:
        """tcgen05.dealloc."""

    def sums_scaled(self, cta: Cta, a: Any, b: Any, sums: Callable[[], np.ndarray]) -> None:
        """A block-scaled product is added to sums."""

    def product_scaled(self, product: Any, b: list[Any]) -> None:
        """A block-scaled product runs and has read its factors; b: those of B in each CTA."""

    def columns_copied(self, cta: Cta, columns: range) -> None:
        """tcgen05.cp is about to replace these columns in all lanes."""

    def pair_asked(self, warp: Warp, peer: Cta, what: str) -> None:
        """A warp executes `what` together with the other CTA of its pair."""

    def pair_freed(self, warp: Warp, peer: Cta) -> None:
        """A warp executes tcgen05.dealloc together with the other CTA of its pair."""

    def columns_allocated(self, warp: Warp, cta: Cta, offset: int, columns: int) -> None:
        """tcgen05.alloc writes its result to 4 bytes of shared memory."""

    def permit_given_up(self, warp: Warp) -> None:
        """A warp executes tcgen05.relinquish_alloc_permit for its CTA."""


EVENTS = tuple(name for name in vars(Listener) if not name.startswith("_"))


def _all_of(heard: list[Callable]) -> Callable:
    if len(heard) == 1:
        return heard[0]

    def tell(*what: Any) -> None:
        for hear in heard:
            hear(*what)

    return tell


class Events(Listener):
    """Announces an event to those who listen to it: `events.fenced(warp, "sc", "gpu")`."""

    def __init__(self) -> None:
        self._heard: dict[str, list[Callable]] = {name: [] for name in EVENTS}

    def add(self, listener: Listener) -> None:
        """Tell one more listener, after those who are there."""
        for name in EVENTS:
            if getattr(type(listener), name) is not getattr(Listener, name):
                self._heard[name].append(getattr(listener, name))
                setattr(self, name, _all_of(self._heard[name]))

    def hears(self, name: str) -> bool:
        """Whether anybody listens to an event."""
        return bool(self._heard[name])


class Watcher:
    """Hears of the accesses to a region before they are performed; does nothing.

    region: a `memory.Region`; offsets, at: from the start of its data; what: the access in words;
    words, span: numbers of 64-bit words, and the bytes [low, high) in which they lie.
    """

    def loading(self, region: Any, addresses: np.ndarray, index: np.ndarray, size: int) -> None:
        """A load of `size` bytes at each address; index: their cells, see `Region.index`."""

    def storing(
        self, region: Any, addresses: np.ndarray, size: int, values: np.ndarray, who: Any
    ) -> None:
        """A store; who: see `Space.store`."""

    def reading(self, region: Any, at: int, size: int) -> None:
        """A read of a run of bytes."""

    def writing(self, region: Any, at: int, values: np.ndarray) -> None:
        """A write of a run of bytes."""

    def reading_box(self, region: Any, at: int, view: np.ndarray) -> None:
        """A tensor copy reads a part of the region's data, which starts there."""

    def writing_box(self, region: Any, at: int, view: np.ndarray, same: Callable | None) -> None:
        """It writes one; same(): bool[bytes] of those that keep their value."""

    def touched_apart(self, touched: np.ndarray) -> None:
        """Other processes have run the launch; touched: uint8[bytes], `memory.READ` and `WRITTEN`
        of what they did."""

    def reading_words(self, words: Words, what: str, span: tuple[int, int], partly: bool) -> None:
        """The async proxy reads words; partly: some of their bytes may be unwritten."""

    def writing_words(self, words: Words, span: tuple[int, int]) -> None:
        """The async proxy writes words."""

    def aiming(self, low: int, high: int, what: str) -> None:
        """An asynchronous write of the bytes [low, high) is about to be performed."""

    def claiming(self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int) -> None:
        """Lanes have issued copies that will write `size` bytes at each offset."""

    def copying(
        self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int, line: int
    ) -> None:
        """Copies issued at a PTX line are performed."""

    def copy_awaited(self, warp: Warp, lanes: np.ndarray, offsets: np.ndarray, size: int) -> None:
        """Lanes (their numbers) have waited for copies of `size` bytes to offsets, one of each."""


class Strong(NamedTuple):
    """The strong access under way (PTX ISA §8.7): its memory order and scope; updating: an atomic
    read-modify-write; comparing: one that compares and swaps; telling: one that returns the value
    that it has replaced."""

    order: str
    scope: str = "gpu"
    updating: bool = False
    comparing: bool = False
    telling: bool = False


@contextmanager
def strong_accesses(launch: Launch, order: str = "relaxed") -> Iterator[None]:
    """What an engine accesses inside counts as strong, of a memory order (PTX ISA §8.7)."""
    launch.strong = Strong(order)
    yield
    launch.strong = None
