"""What the shared memory of a CTA remembers about who wrote it: the proxy rule and live barriers.

Generic-proxy writes (``st.shared`` and the like) become visible to the async proxy (tensor copies,
tcgen05.mma and tcgen05.cp operands) only through a ``fence.proxy.async`` of the writing thread
(PTX ISA, "Async proxy"). Each byte therefore carries the thread whose generic write is not yet
fenced. Bytes of a live mbarrier object may be touched by mbarrier operations only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .errors import Trap

if TYPE_CHECKING:
    from .warp import Warp

_TAG_VIEWS = {1: np.uint16, 2: np.uint32}
_TAG_SPREAD = {1: 1, 2: 0x0001_0001}
_TAG_SPREAD_WIDE = 0x0001_0001_0001_0001
_BARRIER_BYTES = 8


class SharedProxy:
    """Per-byte marks of one CTA's shared memory of ``size`` bytes (offsets in its window).

    ``tags`` is 0 or 1 + the thread (32 * warp + lane) whose generic write awaits its fence.
    """

    def __init__(self, size: int):
        padded = -size % 16 + size
        self.tags = np.zeros(padded, np.uint16)
        self._lines = np.zeros(padded, np.uint32)
        self._barriers = np.zeros(padded, bool)
        self._live_barriers = 0
        self._spans: dict[int, tuple[int, int]] = {}

    # -- generic proxy ---------------------------------------------------------------------

    def stored(self, warp: Warp, mask: np.ndarray, offsets: np.ndarray, size: int) -> None:
        """Lanes ``mask`` of ``warp`` wrote ``size`` bytes (a power of two) each at ``offsets``.

        ``offsets`` are int64 window offsets of the set lanes, aligned to ``size``.
        """
        self.touched(offsets, size, "write")
        threads = np.flatnonzero(mask).astype(np.uint64) + np.uint64(32 * warp.index + 1)
        self._tag(offsets, size, threads)
        self._lines[offsets] = warp.program.source[warp.split.pc].line
        low, high = int(np.minimum.reduce(offsets)), int(np.maximum.reduce(offsets)) + size
        span = self._spans.get(warp.index)
        if span is not None:
            low, high = min(low, span[0]), max(high, span[1])
        self._spans[warp.index] = (low, high)

    def touched(self, offsets: np.ndarray, size: int, access: str) -> None:
        """Trap if a generic access of ``size`` bytes at one of ``offsets`` meets a barrier."""
        if not self._live_barriers:
            return
        hit = self._barriers[offsets] | self._barriers[offsets + (size - 1)]
        if size > _BARRIER_BYTES:
            hit |= self._barriers[offsets + _BARRIER_BYTES]
        if hit.any():
            at = int(offsets[hit.argmax()])
            raise Trap(
                "barrier-protocol",
                f"{access} of {size} bytes at shared offset 0x{at:x} touches a live mbarrier "
                f"object; only mbarrier operations may, until mbarrier.inval",
            )

    def fence(self, warp: Warp, mask: np.ndarray) -> None:
        """``fence.proxy.async`` by the lanes ``mask`` of ``warp``: their writes are visible."""
        span = self._spans.get(warp.index)
        if span is None:
            return
        tags = self.tags[span[0] : span[1]]
        lanes = tags - np.uint16(32 * warp.index + 1)
        mine = lanes < 32
        fenced = mine & mask[lanes & 31]
        tags[fenced] = 0
        if np.array_equal(mine, fenced):
            del self._spans[warp.index]

    # -- async proxy -----------------------------------------------------------------------

    def check_words(self, words: np.ndarray, what: str) -> None:
        """Trap if an async-proxy read of 8-byte ``words`` meets an unfenced generic write."""
        if not self._spans:
            return
        tags = self.tags.reshape(-1, 8)[words]
        if tags.any():
            at = int(words.ravel()[tags.reshape(-1, 8).any(1).argmax()]) * 8
            raise self._violation(at + int((self.tags[at : at + 8] != 0).argmax()), what)

    def check_span(self, low: int, high: int, what: str) -> None:
        """Same for the bytes [``low``, ``high``)."""
        if self._spans and self.tags[low:high].any():
            raise self._violation(low + int((self.tags[low:high] != 0).argmax()), what)

    def written_words(self, words: np.ndarray) -> None:
        """An async-proxy write replaced these 8-byte words."""
        if self._spans:
            self.tags.reshape(-1, 8)[words] = 0

    def written_span(self, low: int, high: int) -> None:
        """An async-proxy write replaced the bytes [``low``, ``high``)."""
        if self._spans:
            self.tags[low:high] = 0

    # -- barriers --------------------------------------------------------------------------

    def barrier_made(self, offset: int) -> None:
        """The 8 bytes at ``offset`` are an mbarrier object from now on."""
        self._barriers[offset : offset + _BARRIER_BYTES] = True
        self._live_barriers += 1

    def barrier_ended(self, offset: int) -> None:
        """The object at ``offset`` was invalidated."""
        self._barriers[offset : offset + _BARRIER_BYTES] = False
        self._live_barriers -= 1

    def barrier_in(self, low: int, high: int) -> bool:
        """Whether an async-proxy access of the bytes [``low``, ``high``) meets a barrier."""
        return bool(self._live_barriers) and bool(self._barriers[low:high].any())

    def _tag(self, offsets: np.ndarray, size: int, threads: np.ndarray) -> None:
        if size < 4:
            view = self.tags.view(_TAG_VIEWS[size])
            view[offsets >> (size - 1)] = threads * np.uint64(_TAG_SPREAD[size])
            return
        groups = self.tags.view(np.uint64)
        quads = offsets[:, None] // 4 + np.arange(size // 4)
        groups[quads] = (threads * np.uint64(_TAG_SPREAD_WIDE))[:, None]

    def _violation(self, offset: int, what: str) -> Trap:
        warp, lane = divmod(int(self.tags[offset]) - 1, 32)
        return Trap(
            "proxy-fence",
            f"{what} reads shared offset 0x{offset:x}, which warp {warp} lane {lane} wrote through "
            f"the generic proxy (ptx:{self._written_line(offset)}) without fence.proxy.async "
            f"afterwards",
        )

    def _written_line(self, offset: int) -> int:
        """Line of the store that covers ``offset``: noted at the first byte of each store."""
        low = max(0, offset - 15)
        lines, tags = self._lines[low : offset + 1], self.tags[low : offset + 1]
        starts = np.flatnonzero((lines != 0) & (tags == self.tags[offset]))
        return int(lines[starts[-1]]) if len(starts) else 0
