"""Rules about shared memory: barriers' bytes, busy sources, proxies, initialisation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import Trap, UnwrittenRead
from ...interface import Cta, EngineOp, Launch, Warp
from ...machine.events import Listener, Watcher
from ...machine.memory import Region
from ...machine.shared_access import Words, numbers
from ...truth import all_of, any_of
from .proxy import BusySource, SharedProxy

_WORD = 8
_ALL_WRITTEN = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


class SharedRules(Listener):
    """Watches the shared memory of every CTA; `of` has its marks.

    clocked: whether clocks say what a proxy fence covers: `checks.races` then judges that.
    lenient: only warn of what libraries ship: bulk stores that a CTA leaves behind, arrivals at an
    mbarrier before a wait has seen the phase before, and what `as_warning` holds.
    """

    def __init__(self, launch: Launch, *, clocked: bool, lenient: bool):
        self._launch, self._clocked, self.lenient = launch, clocked, lenient
        self.of: dict[Cta, SharedProxy] = {}
        self._busy: dict[EngineOp, BusySource] = {}

    @contextmanager
    def as_warning(self, category: str) -> Iterator[None]:
        """What breaks a rule within is a warning of this category if libraries ship such code."""
        try:
            yield
        except Trap as trap:
            if self.lenient:
                self._launch.warn(category, trap.message)
            else:
                raise

    def cta_started(self, cta: Cta) -> None:
        proxy = self.of[cta] = SharedProxy(len(cta.shared.data), clocked=self._clocked)
        cta.shared.watch(_Generic(cta, proxy))
        cta.shared.watch(_Initialised(cta))
        if not self._clocked:
            cta.shared.watch(_Fenced(proxy))

    def cta_exited(self, cta: Cta) -> None:
        del self.of[cta]

    def proxy_fenced(self, warp: Warp, mask: np.ndarray, space: str | None) -> None:
        if space != "global":
            self.of[warp.cta].fence(warp, mask)

    def mbarrier_made(self, warp: Warp, cta: Cta, offset: int, barrier: Any) -> None:
        self.of[cta].barrier_made(offset)
        if self.lenient:
            barrier.tolerate = self._tell_of_early_arrival
        cta.shared.written[offset : offset + _WORD] = 0

    def _tell_of_early_arrival(self, text: str) -> None:
        self._launch.warn("barrier-protocol", text)

    def mbarrier_ended(self, warp: Warp, cta: Cta, offset: int, barrier: Any) -> None:
        self.of[cta].barrier_ended(offset)

    def response_asked(self, cta: Cta, offset: int) -> None:
        self.of[cta].check_response(offset)

    def response_written(self, cta: Cta, offset: int) -> None:
        self.of[cta].response_written(offset)

    # -- sources of bulk stores --------------------------------------------------------------

    def source_issued(self, warp: Warp, lane: int, span: tuple[int, int], op: EngineOp) -> None:
        proxy, table = self.of[warp.cta], warp.cta.state("bulk sources", dict)
        if not table:
            warp.cta.at_exit(lambda: self._check_sources(table))
        table.setdefault((warp.index, lane), []).append(proxy.source(*span, warp, lane))
        self._busy[op] = table[warp.index, lane][-1]

    def operations_awaited(self, warp: Warp, operations: list[EngineOp]) -> None:
        for op in operations:
            if source := self._busy.pop(op, None):
                source.release()

    def _check_sources(self, table: dict[tuple[int, int], list[BusySource]]) -> None:
        """Shared memory lives as long as its CTA (PTX ISA §5.1.7)."""
        for (warp, lane), sources in table.items():
            busy = next((source for source in sources if source.busy), None)
            if busy is None:
                continue
            text = (
                f"ptx:{busy.line}: the CTA exits while this bulk store of warp {warp} lane {lane}"
                " may still read its shared memory; cp.async.bulk.wait_group.read 0 first"
            )
            if not self.lenient:
                shipped = "CUTLASS and DeepGEMM exit so, and GPUs keep the memory until it has been"
                cure = "read; with check=shipped, or --check shipped, this is a warning"
                raise Trap("bulk-group", f"{text} ({shipped} {cure})")
            self._launch.warn("bulk-group", text)


class _Generic(Watcher):
    """Generic accesses leave barriers and busy sources alone, and await a proxy fence."""

    def __init__(self, cta: Cta, proxy: SharedProxy):
        self._cta, self._proxy = cta, proxy

    def loading(self, region: Region, addresses: np.ndarray, index: np.ndarray, size: int) -> None:
        offsets, proxy = region.offsets(addresses), self._proxy
        proxy.touched(offsets, size, "read")
        if proxy.has_responses:
            warp = self._cta.launch.current_warp
            if warp is not None and warp.cta is self._cta:
                proxy.read(warp, offsets, size)

    def storing(
        self, region: Region, addresses: np.ndarray, size: int, values: np.ndarray, who: Any
    ) -> None:
        offsets = region.offsets(addresses)
        if who is not None and who[0].cta is self._cta:
            warp, mask = who
            self._proxy.stored(warp, mask, offsets, size)
        else:
            self._proxy.stored_from_afar(offsets, size)

    def claiming(self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int) -> None:
        self._proxy.claimed(warp, mask, offsets, size)

    def aiming(self, low: int, high: int, what: str) -> None:
        self._proxy.check_idle(low, high, what)
        if self._proxy.barrier_in(low, high):
            raise Trap(
                "barrier-protocol",
                f"{what} covers shared offsets 0x{low:x}..0x{high:x}, where a live mbarrier lies",
            )


class _Fenced(Watcher):
    """The async proxy reads and replaces what fences cover, as the marks alone tell it."""

    def __init__(self, proxy: SharedProxy):
        self._proxy = proxy

    def reading_words(self, words: Words, what: str, span: tuple[int, int], partly: bool) -> None:
        if self._proxy.unfenced_in(*span):
            self._proxy.check_words(words, f"{what} reads")

    def writing_words(self, words: Words, span: tuple[int, int]) -> None:
        if self._proxy.unfenced_in(*span):
            self._proxy.check_words(words, "an asynchronous write replaces")
            self._proxy.written_words(words)

    def copying(
        self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int, line: int
    ) -> None:
        self._proxy.tag(warp, mask, offsets, size, line)


class _Initialised(Watcher):
    """Nobody reads bytes that were never written. forgiving: whoever does reads any value, but for
    bytes that a copy under way will write (_claimed), where it depends on time which."""

    def __init__(self, cta: Cta):
        region = cta.shared
        assert region.written is not None  # checked memories keep which bytes were written
        self._cta, self._region, self._written = cta, region, region.written
        self._claimed = np.zeros(0, bool)
        self.forgiving = False

    def loading(self, region: Region, addresses: np.ndarray, index: np.ndarray, size: int) -> None:
        if self.forgiving:
            return
        if region.written_cells(size)[index].tobytes() != _ones(size * len(index)):
            starts = region.offsets(addresses).tolist()
            bad = [at for at in starts if not all_of(self._written[at : at + size])]
            late = [at for at in bad if any_of(self._claimed[at : at + size])]
            if late:
                raise Trap("uninitialised-read", self._never_written(late[0], size))
            unwritten = region.written_cells(size)[index].view(np.uint8).reshape(-1, size) == 0
            raise UnwrittenRead(self._never_written(bad[0], size), self, unwritten)

    def reading(self, region: Region, at: int, size: int) -> None:
        if not all_of(self._written[at : at + size]):
            raise Trap("uninitialised-read", self._never_written(at, size))

    def _never_written(self, at: int, size: int) -> str:
        region = self._region
        return (
            f"{region.space} read of {size} bytes at 0x{region.base + at:x}"
            f" of {region.name}, which were never written{self._stored(at, size)}"
        )

    def _stored(self, at: int, size: int) -> str:
        """Which store put undefined values into these bytes, in words."""
        stores = self._cta.state("undefined stores", dict)
        lines = {stores[byte] for byte in range(at, at + size) if byte in stores}
        return f" but by ptx:{min(lines)}, with what nobody had written" if lines else ""

    def reading_words(self, words: Words, what: str, span: tuple[int, int], partly: bool) -> None:
        low, high = span
        if self._written[low:high].tobytes() == _ones(high - low):
            return
        marks = self._written[: len(self._written) // _WORD * _WORD].view(np.uint64)[words]
        if not any_of(marks) if partly else not all_of(marks == _ALL_WRITTEN):
            at = int(numbers(words)[marks != _ALL_WRITTEN].flat[0]) * _WORD
            at += int((self._written[at : at + _WORD] == 0).argmax())
            text = f"{what} reads shared offset 0x{at:x}, never written{self._stored(at, 1)}"
            raise Trap("uninitialised-read", text)

    def claiming(self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int) -> None:
        if not len(self._claimed):
            self._claimed = np.zeros(len(self._written), bool)
        claimed = offsets[:, None] + np.arange(size)
        self._written[claimed], self._claimed[claimed] = 0, True


@lru_cache(maxsize=256)
def _ones(size: int) -> bytes:
    return b"\xff" * size
