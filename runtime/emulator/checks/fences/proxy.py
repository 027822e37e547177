"""What the shared memory of a CTA remembers about who wrote it: the proxy rule and live barriers.

Generic-proxy writes (``st.shared`` and the like) become visible to the async proxy (tensor copies,
tcgen05.mma and tcgen05.cp operands) only through a ``fence.proxy.async`` of the writing thread
(PTX ISA, "Async proxy"). Each byte therefore carries the thread whose generic write is not yet
fenced. Bytes of a live mbarrier object may be touched by mbarrier operations only.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

import numpy as np

from ...errors import Trap
from ...interface import Warp
from ...machine.shared_access import Words, numbers
from ...ptx.lanes import FULL
from ...truth import any_of

Key = TypeVar("Key", int, tuple[int, int])

_SHIFT = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4}
AFAR, CLOCKED = 0xFFFE, 0xFFFF
"""Marks of bytes of which clocks alone say whether a proxy fence covers their write: by a thread of
another CTA, or by `cp.async`, which writes some time behind its thread."""
_BARRIER_BYTES = 8


@lru_cache(maxsize=256)
def _tag_rows(warp: int, size: int) -> np.ndarray:
    """The marks of one store of ``size`` bytes by each lane of a warp, one element a lane."""
    threads = np.arange(32 * warp + 1, 32 * warp + 33, dtype=np.uint16)
    return np.repeat(threads, size).view(f"V{2 * size}")


def _widen(spans: dict[Key, tuple[int, int]], key: Key, low: int, high: int) -> None:
    """Let a span reach from ``low`` to ``high`` at least."""
    known = spans.get(key)
    if known is None or low < known[0] or high > known[1]:
        known = known or (low, high)
        spans[key] = (min(low, known[0]), max(high, known[1]))


class BusySource:
    """Bytes [``low``, ``high``) that a bulk store of one thread reads, until it has waited."""

    __slots__ = ("_owner", "high", "lane", "line", "low", "warp")

    def __init__(self, owner: SharedProxy, low: int, high: int, warp: Warp, lane: int):
        self._owner, self.low, self.high = owner, low, high
        self.warp, self.lane = warp.index, lane
        self.line = warp.program.source[warp.split.pc].line

    @property
    def busy(self) -> bool:
        """Whether the thread has not waited yet."""
        return self in self._owner.sources

    def release(self) -> None:
        """The thread has waited for the reading."""
        self._owner.sources.pop(self, None)

    def violation(self, what: str) -> Trap:
        """The Trap of a write to these bytes."""
        return Trap(
            "bulk-group",
            f"{what} writes shared offsets 0x{self.low:x}..0x{self.high:x}, which the bulk store"
            f" of warp {self.warp} lane {self.lane} (ptx:{self.line}) may still read; that thread"
            f" must cp.async.bulk.wait_group.read first",
        )


class SharedProxy:
    """Per-byte marks of one CTA's shared memory of ``size`` bytes (offsets in its window).

    ``tags`` is 0, 1 + the thread (32 * warp + lane) whose generic write awaits its fence, `AFAR`
    or `CLOCKED`. unfenced: by warp, the bytes between which generic writes await fences of their
    threads. clocked: whether clocks say whose writes are ordered before a fence.
    """

    def __init__(self, size: int, *, clocked: bool = True):
        padded = -size % 16 + size
        self._clocked = clocked
        self.tags = np.zeros(padded, np.uint16)
        self._tag_views = {size: self.tags.view(f"V{2 * size}") for size in _SHIFT}
        self._lines: dict[tuple[int, int], tuple[int, int]] = {}
        self._barriers = np.zeros(padded, bool)
        self._barrier_low = self._barrier_high = 0
        self.unfenced: dict[int, tuple[int, int]] = {}
        self._responses: dict[int, set[int]] = {}
        self.sources: dict[BusySource, None] = {}

    # -- generic proxy ---------------------------------------------------------------------

    def stored(self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int) -> None:
        """Lanes ``mask`` of ``warp`` wrote ``size`` bytes (a power of two) each at ``offsets``.

        ``offsets`` are int64 window offsets of the set lanes, aligned to ``size``.
        """
        low, high = int(np.minimum.reduce(offsets)), int(np.maximum.reduce(offsets)) + size
        if low < self._barrier_high and self._barrier_low < high:
            self._touch(offsets, size, "write")
        if self.sources:
            self._check_sources(offsets, size)
        self.tag(warp, mask, offsets, size, warp.program.source[warp.split.pc].line)

    def tag(self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int, line: int) -> None:
        """What lanes ``mask`` wrote there awaits their fences."""
        low, high = int(np.minimum.reduce(offsets)), int(np.maximum.reduce(offsets)) + size
        view, shift, rows = self._tag_views[size], _SHIFT[size], _tag_rows(warp.index, size)
        view[offsets >> shift] = rows if mask is FULL else rows[mask]
        _widen(self.unfenced, warp.index, low, high)
        _widen(self._lines, (warp.index, line), low, high)

    def stored_from_afar(self, offsets: np.ndarray, size: int) -> None:
        """A thread of another CTA wrote ``size`` bytes each, or an operation."""
        self.touched(offsets, size, "write")
        self._written_late(offsets, size, AFAR)

    def claimed(self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int) -> None:
        """Lanes ``mask`` have issued `cp.async`, which will write there."""
        self.stored(warp, mask, offsets, size)
        self._written_late(offsets, size, CLOCKED)

    def _written_late(self, offsets: np.ndarray, size: int, mark: int) -> None:
        """A generic write of ``size`` bytes each that no thread of this CTA does now."""
        if self._clocked:
            self.tags.reshape(-1, size)[offsets >> _SHIFT[size]] = mark

    def touched(self, offsets: np.ndarray, size: int, access: str) -> None:
        """Trap if a generic access of ``size`` bytes at one of ``offsets`` meets a barrier."""
        if not self._barrier_high or int(np.minimum.reduce(offsets)) >= self._barrier_high:
            return
        self._touch(offsets, size, access)

    def _touch(self, offsets: np.ndarray, size: int, access: str) -> None:
        hit = self._barriers[offsets] | self._barriers[offsets + (size - 1)]
        if size > _BARRIER_BYTES:
            hit |= self._barriers[offsets + _BARRIER_BYTES]
        if any_of(hit):
            at = int(offsets[hit.argmax()])
            raise Trap(
                "barrier-protocol",
                f"{access} of {size} bytes at shared offset 0x{at:x} touches a live mbarrier "
                f"object; only mbarrier operations may, until mbarrier.inval",
            )

    def fence(self, warp: Warp, mask: np.ndarray) -> None:
        """``fence.proxy.async`` by the lanes ``mask`` of ``warp``: their writes are visible.

        The fence may also stand behind a barrier, on the reader's side. Where no clocks say whose
        writes are ordered before it, it covers those of all warps.
        """
        for readers in self._responses.values():
            readers.discard(warp.index)
        if not self._clocked:
            self._fence_everything()
            return
        span = self.unfenced.get(warp.index)
        if span is None:
            return
        tags = self.tags[span[0] : span[1]]
        lanes = tags - np.uint16(32 * warp.index + 1)
        if mask is FULL:
            tags *= lanes >= 32
        else:
            mine = lanes < 32
            fenced = mine & mask[lanes & 31]
            tags[fenced] = 0
            if not np.array_equal(mine, fenced):
                return
        del self.unfenced[warp.index]
        for key in [key for key in self._lines if key[0] == warp.index]:
            del self._lines[key]

    def _fence_everything(self) -> None:
        for low, high in self.unfenced.values():
            self.tags[low:high] = 0
        self.unfenced.clear()
        self._lines.clear()

    # -- sources of bulk stores --------------------------------------------------------------

    def source(self, low: int, high: int, warp: Warp, lane: int) -> BusySource:
        """A bulk store of this thread reads the bytes [``low``, ``high``) from now on."""
        busy = BusySource(self, low, high, warp, lane)
        self.sources[busy] = None
        return busy

    def _check_sources(self, offsets: np.ndarray, size: int) -> None:
        for source in self.sources:
            if any_of((offsets < source.high) & (offsets + size > source.low)):
                raise source.violation(f"a store of {size} bytes")

    def check_idle(self, low: int, high: int, what: str) -> None:
        """Trap if an async-proxy write of the bytes [``low``, ``high``) meets a busy source."""
        for source in self.sources:
            if low < source.high and source.low < high:
                raise source.violation(what)

    # -- async proxy -----------------------------------------------------------------------

    def unfenced_in(self, low: int, high: int) -> bool:
        """Whether generic writes that await a fence may lie in the bytes [``low``, ``high``)."""
        return any(low < end and start < high for start, end in self.unfenced.values())

    def check_words(self, words: Words, what: str) -> None:
        """Trap if an async-proxy access to 8-byte ``words`` meets an unfenced generic write; `what`
        says who does what to them."""
        tags = self.tags.reshape(-1, 8)[words]
        if any_of(tags):
            at = int(numbers(words).ravel()[tags.reshape(-1, 8).any(1).argmax()]) * 8
            raise self._violation(at + int((self.tags[at : at + 8] != 0).argmax()), what)

    def check_span(self, low: int, high: int, what: str) -> None:
        """Same for the bytes [``low``, ``high``)."""
        if self.unfenced and any_of(self.tags[low:high]):
            raise self._violation(low + int((self.tags[low:high] != 0).argmax()), what)

    def written_words(self, words: Words) -> None:
        """An async-proxy write replaced these 8-byte words."""
        self.tags.reshape(-1, 8)[words] = 0

    # -- cancellation responses --------------------------------------------------------------

    def response_written(self, offset: int) -> None:
        """The async proxy wrote a launch control response to the 16 bytes at ``offset``."""
        self._responses[offset] = set()

    def read(self, warp: Warp, offsets: np.ndarray, size: int) -> None:
        """A generic read by a warp of the CTA: note it if it meets a response."""
        for offset, readers in self._responses.items():
            if any_of((offsets < offset + 16) & (offsets + size > offset)):
                readers.add(warp.index)

    def check_response(self, offset: int) -> None:
        """Trap if a response at ``offset`` was read by a warp that has not fenced since."""
        readers = self._responses.get(offset)
        if readers:
            raise Trap(
                "proxy-fence",
                f"a new response would overwrite shared offset 0x{offset:x}, which warp"
                f" {min(readers)} has read through the generic proxy without fence.proxy.async"
                f" afterwards",
            )

    @property
    def has_responses(self) -> bool:
        """Whether ``read`` must be told of reads."""
        return bool(self._responses)

    # -- barriers --------------------------------------------------------------------------

    def barrier_made(self, offset: int) -> None:
        """The 8 bytes at ``offset`` are an mbarrier object from now on."""
        end = offset + _BARRIER_BYTES
        self._barriers[offset:end] = True
        self._barrier_low = min(offset, self._barrier_low) if self._barrier_high else offset
        self._barrier_high = max(end, self._barrier_high)

    def barrier_ended(self, offset: int) -> None:
        """The object at ``offset`` was invalidated."""
        self._barriers[offset : offset + _BARRIER_BYTES] = False
        self._bound_barriers()

    def _bound_barriers(self) -> None:
        """All barriers lie in [low, high); both are 0 when there is none."""
        live = np.flatnonzero(self._barriers)
        self._barrier_low, self._barrier_high = (
            (int(live[0]), int(live[-1]) + 1) if len(live) else (0, 0)
        )

    def barrier_in(self, low: int, high: int) -> bool:
        """Whether an async-proxy access of the bytes [``low``, ``high``) meets a barrier."""
        meets = low < self._barrier_high and self._barrier_low < high
        return meets and any_of(self._barriers[low:high])

    def _violation(self, offset: int, what: str) -> Trap:
        warp, lane = divmod(int(self.tags[offset]) - 1, 32)
        return Trap(
            "proxy-fence",
            f"{what} shared offset 0x{offset:x}, which warp {warp} lane {lane} wrote through "
            f"the generic proxy (ptx:{self._written_line(warp, offset)}) without fence.proxy.async "
            f"afterwards",
        )

    def _written_line(self, warp: int, offset: int) -> int:
        """The last line of a warp whose unfenced stores reach around ``offset``."""
        lines = [
            line
            for (writer, line), (low, high) in self._lines.items()
            if writer == warp and low <= offset < high
        ]
        return lines[-1] if lines else 0
