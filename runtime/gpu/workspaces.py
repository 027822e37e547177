"""Workspaces in which the CTAs of a launch exchange accumulators.

Launches of one stream run one after the other, so that all of them share it; so do those of one
stream that a graph captures. Everything else may run at the same time and has memory of its own.
What must start with zeros is cleared once, since each kernel leaves zeros behind. Memory is kept as
long as the process runs, but for what torch lends a graph that it captures: that is the graph's.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .captures import Captures

Need = tuple[int, bool]
"""Bytes, and whether they must be 0 when a kernel starts."""
PER_THREAD = 2  # CU_STREAM_PER_THREAD: one handle, a stream in every thread
CHUNK_BYTES, ALIGNMENT_BYTES = 2**20, 256


@dataclass
class Workspaces:
    """The workspaces of one GPU."""

    captures: Captures
    index: int
    _blocks: dict[Any, tuple[int, int]] = field(default_factory=dict)
    _zeros: tuple[int, int] = (0, 0)  # where the rest of a chunk of zeros begins and ends
    _lock: Any = field(default_factory=threading.Lock)

    def find(self, where: str, needs: Sequence[Need], stream: int) -> tuple[int, ...]:
        """An address for each need of a launch on a stream. Raises DriverError."""
        capture = self.captures.number(where, stream)
        thread = threading.get_ident() if stream == PER_THREAD else 0
        return tuple(
            self._address(where, (stream, thread, capture, number), need)
            for number, need in enumerate(needs)
        )

    def _address(self, where: str, key: tuple[int, int, int, int], need: Need) -> int:
        size, is_zero = need
        stream, _, capture, _ = key
        if capture and not is_zero:
            lent = _lent_by_torch(self.index, stream, size)
            if lent:
                return lent
        address, held = self._blocks.get(key, (0, 0))
        if held >= size:
            return address
        with self._lock:
            made = self._take_zeros(where, size) if is_zero else self._allocate(where, size)
            self._blocks[key] = made
        return made[0]

    def _allocate(self, where: str, size: int) -> tuple[int, int]:
        """A new block: as large as the next power of two, so that few are outgrown."""
        rounded = max(CHUNK_BYTES, 1 << (size - 1).bit_length())
        driver, what = self.captures.driver, f"{where}: workspace of {rounded} bytes"
        with driver.entered(where, self.captures.context), driver.loading(where):
            return int(driver.check(what, driver.api.cuMemAlloc(rounded))), rounded

    def _take_zeros(self, where: str, size: int) -> tuple[int, int]:
        """A part of a chunk that was cleared."""
        rounded = -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        start, end = self._zeros
        if end - start < rounded:
            start, held = self._allocate(where, rounded)
            end = start + held
            self._clear(where, start, held)
        self._zeros = start + rounded, end
        return start, rounded

    def _clear(self, where: str, address: int, size: int) -> None:
        """On a stream of its own, since that of the launch may be capturing."""
        driver, api = self.captures.driver, self.captures.driver.api
        with driver.entered(where, self.captures.context), driver.loading(where):
            flags = int(api.CUstream_flags.CU_STREAM_NON_BLOCKING)
            stream = driver.check(where, api.cuStreamCreate(flags))
            driver.check(where, api.cuMemsetD8Async(address, 0, size, stream))
            driver.check(where, api.cuStreamSynchronize(stream))
            driver.check(where, api.cuStreamDestroy(stream))


def _lent_by_torch(index: int, stream: int, size: int) -> int:
    """Memory of the graph that torch captures on this stream, 0 where it captures none.

    Torch may give it to a later tensor of the same capture, as soon as this returns: what uses that
    comes after this launch.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    current = torch.cuda.current_stream(index)
    with torch.cuda.device(index):
        if current.cuda_stream != stream or not torch.cuda.is_current_stream_capturing():
            return 0
        return torch.empty(size, dtype=torch.uint8, device=current.device).data_ptr()
