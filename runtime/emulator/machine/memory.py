"""Memory regions with checked, vectorised access, and the address windows (PTX ISA §5.1).

A `Region` is a run of bytes at an address. Every access is checked for bounds and natural
alignment; regions that track writing also refuse reads of bytes nobody wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from ..errors import Trap
from ..interface import Warp
from ..truth import all_of
from .events import Watcher

UINT = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
CELL = {size: np.dtype(kind) for size, kind in UINT.items()} | {
    16: np.dtype("V16"),
    32: np.dtype("V32"),
}
"""How the bytes of one lane's access are moved as one element."""
_WRITTEN_CELL = {size: np.frombuffer(b"\xff" * size, kind)[0] for size, kind in CELL.items()}
_ALL_WRITTEN = 0xFF

READ, WRITTEN = 1, 2
"""How a byte has been touched."""
NEAR_BYTES = 1 << 20
"""How far from an allocation an address may be to be explained by it."""

Issuer = tuple["Warp", np.ndarray]
"""The warp of an access and the lanes that its addresses belong to, in order."""


def _hears(watcher: Watcher, event: str) -> bool:
    return getattr(type(watcher), event) is not getattr(Watcher, event)


def _whole_words(data: np.ndarray) -> np.ndarray:
    """uint64: the bytes as words; a ragged end is left off."""
    return data[: len(data) // 8 * 8].view(np.uint64)


@cache
def _zeros(size: int) -> bytes:
    return bytes(size)


class Region:
    """Bytes `lowest … len(data)-1` of `data`, at addresses `base + index`.

    data: uint8[n], words: the same as uint64; index 0 is at address `base`, also when the first
    `lowest` bytes are not accessible. written: uint8[n], 0xFF where a byte was written, or None
    when not tracked; written_words: the same as uint64, meaningless when not tracked.
    allowed: uint8[n], 0xFF where a byte may be touched, or None for everywhere.
    watchers: who is told of accesses, in this order; `Watcher`. touched: see `separate`.
    `name` completes "past the end of …" in messages.
    """

    watchers: tuple[Watcher, ...] = ()
    closed = False
    awaited = False
    touched: np.ndarray | None = None

    def __init__(
        self,
        name: str,
        base: int,
        data: np.ndarray,
        *,
        space: str = "global",
        lowest: int = 0,
        writable: bool = True,
        track: bool = False,
        allowed: np.ndarray | None = None,
    ):
        self.name, self.base, self.data, self.space = name, base, data, space
        self.lowest, self.writable, self.allowed = lowest, writable, allowed
        self.written = np.zeros(len(data), np.uint8) if track else None
        self.words = _whole_words(data)
        self.written_words = self.words if self.written is None else _whole_words(self.written)
        self._views: dict[int, tuple] = {}
        self._heard: dict[str, tuple[Callable, ...]] = {}

    @property
    def start(self) -> int:
        """The first legal address."""
        return self.base + self.lowest

    @property
    def end(self) -> int:
        """One past the last legal address."""
        return self.base + len(self.data)

    def close(self) -> None:
        """The CTA that owns it has exited: every later access is refused."""
        self.closed = True
        self._views = {}

    def expect(self, awaited: bool) -> None:
        """Whether a prerequisite grid still works on it: then every access is refused."""
        self.awaited = awaited
        self._views = {}

    def separate(self, touched: np.ndarray) -> None:
        """Go on with a copy of the bytes, and note in `touched`, uint8[n], what happens to each."""
        self.data, self.touched, self._views = self.data.copy(), touched, {}
        self.words = _whole_words(self.data)

    def _cells(self, data: np.ndarray, size: int) -> np.ndarray:
        skip = self.lowest + -self.start % size
        usable = max(0, len(data) - skip) // size * size
        return data[skip : skip + usable].view(CELL[size])

    def watch(self, watcher: Watcher) -> None:
        """Tell one more of accesses, after those who are there."""
        self.watchers = (*self.watchers, watcher)
        self._heard = {}

    def unwatch(self, watcher: Watcher) -> None:
        """Tell one of them of no more accesses."""
        self.watchers = tuple(each for each in self.watchers if each is not watcher)
        self._heard = {}

    def heard(self, event: str) -> tuple[Callable, ...]:
        """What to call at an event, a method of `Watcher`: of those who do something then."""
        heard = self._heard.get(event)
        if heard is None:
            own = [each for each in self.watchers if _hears(each, event)]
            heard = self._heard[event] = tuple(getattr(each, event) for each in own)
        return heard

    def written_cells(self, size: int) -> np.ndarray:
        """The marks of `written` as the cells of ``size`` bytes that `index` numbers."""
        return (self._views.get(size) or self._view(size))[5]

    def _view(self, size: int) -> tuple:
        origin = self.start + -self.start % size
        written = None if self.written is None else self._cells(self.written, size)
        view = (
            self._cells(self.data, size),
            np.uint64(origin),
            np.uint64(size.bit_length() - 1),
            -1 if self.closed or self.awaited else self.end - size - origin,
            np.uint64(size - 1),
            written,
        )
        self._views[size] = view
        return view

    def index(self, addresses: np.ndarray, width: int, count: int = 1) -> np.ndarray | None:
        """Element indices (int64[k]) of aligned, in-bounds addresses (uint64[k]), else None."""
        size = width * count
        view = self._views.get(size) or self._view(size)
        relative = addresses - view[1]
        if view[3] < 0 or np.maximum.reduce(relative) > view[3]:
            return None
        if size > 1 and (relative & view[4]).tobytes() != _zeros(relative.nbytes):
            return None
        return (relative >> view[2]).view(np.int64)

    def load(self, addresses: np.ndarray, width: int, count: int = 1) -> np.ndarray:
        """Values uint{8·width}[k] (or [k, count]) at uint64[k] addresses; Trap on a bad one."""
        index = self.index(addresses, width, count)
        if index is None:
            raise self.refusal(addresses, width * count, "read")
        return self.load_index(index, addresses, width, count)

    def load_index(
        self, index: np.ndarray, addresses: np.ndarray, width: int, count: int
    ) -> np.ndarray:
        """The same at checked element indices, as `index` returns them."""
        size = width * count
        for tell in self.heard("loading"):
            tell(self, addresses, index, size)
        view = self._views[size]
        if self.touched is not None:
            self.touched[self._bytes_of(addresses, size)] |= READ
        if self.allowed is not None:
            self._check_allowed(addresses, size, "read")
        values = view[0][index]
        return values if count == 1 else values.view(UINT[width]).reshape(-1, count)

    def store(
        self,
        addresses: np.ndarray,
        values: np.ndarray,
        width: int,
        count: int = 1,
        who: Issuer | None = None,
    ) -> None:
        """Write uint values [k] (or [k, count]); where addresses coincide the last lane wins."""
        index = self.index(addresses, width, count)
        if index is None or not self.writable:
            raise self.refusal(addresses, width * count, "write")
        self.store_index(index, addresses, values, width, count, who)

    def store_index(
        self,
        index: np.ndarray,
        addresses: np.ndarray,
        values: np.ndarray,
        width: int,
        count: int,
        who: Issuer | None,
    ) -> None:
        """The same at checked element indices, as `index` returns them."""
        size = width * count
        for tell in self.heard("storing"):
            tell(self, addresses, size, values, who)
        if self.touched is not None:
            self.touched[self._bytes_of(addresses, size)] |= WRITTEN
        if self.allowed is not None:
            self._check_allowed(addresses, size, "write")
        view = self._views[size]
        if count > 1:
            values = np.ascontiguousarray(values).view(CELL[size]).reshape(-1)
        view[0][index] = values
        if view[5] is not None:
            view[5][index] = _WRITTEN_CELL[size]

    def offsets(self, addresses: np.ndarray) -> np.ndarray:
        """int64[k]: where addresses lie in `data`."""
        return (addresses - np.uint64(self.base)).view(np.int64)

    def _bytes_of(self, addresses: np.ndarray, size: int) -> np.ndarray:
        return self.offsets(addresses)[:, None] + np.arange(size)

    def check_range(self, address: int, size: int, access: str = "read", align: int = 1) -> int:
        """Check `size` bytes at `address` and return their index in `data`; Trap if not legal."""
        if address < self.start or address + size > self.end:
            raise self._out_of_bounds(address, size, access)
        if self.awaited:
            raise self._unawaited(access)
        if address % align:
            raise Trap(
                "misaligned",
                f"{self.space} {access} at 0x{address:x} must be aligned to {align} bytes",
            )
        if access == "write" and not self.writable:
            raise self._read_only()
        return address - self.base

    def read_bytes(self, address: int, size: int, align: int = 1) -> np.ndarray:
        """A copy of `size` checked (and written, where tracked) bytes, uint8[size]."""
        at = self.check_range(address, size, "read", align)
        self._check_allowed(np.array([address], np.uint64), size, "read")
        self._touch(at, size, READ)
        for tell in self.heard("reading"):
            tell(self, at, size)
        return self.data[at : at + size].copy()

    def write_bytes(self, address: int, values: np.ndarray, align: int = 1) -> None:
        """Write uint8 values to a checked range."""
        at = self.check_range(address, len(values), "write", align)
        self._check_allowed(np.array([address], np.uint64), len(values), "write")
        self._touch(at, len(values), WRITTEN)
        for tell in self.heard("writing"):
            tell(self, at, values)
        self.data[at : at + len(values)] = values
        if self.written is not None:
            self.written[at : at + len(values)] = _ALL_WRITTEN

    def _touch(self, at: int, size: int, how: int) -> None:
        if self.touched is not None:
            self.touched[at : at + size] |= how

    def _check_allowed(self, addresses: np.ndarray, size: int, access: str) -> None:
        if self.allowed is None:
            return
        for address in addresses.tolist():
            at = address - self.base
            if not all_of(self.allowed[at : at + size]):
                raise Trap(
                    "out-of-bounds",
                    f"{self.space} {access} of {size} bytes at"
                    f" 0x{address:x} touches bytes between the elements of {self.name}",
                )

    def refusal(self, addresses: np.ndarray, size: int, access: str) -> Trap:
        """The Trap for the first bad address of a failed access."""
        if self.closed:
            return Trap("exited-cta", f"{self.space} {access} of {self.name}, which has exited")
        if self.awaited:
            return self._unawaited(access)
        for address in addresses.tolist():
            if address < self.start or address + size > self.end:
                return self._out_of_bounds(address, size, access)
            if address % size:
                return Trap(
                    "misaligned",
                    f"{self.space} {access} of {size} bytes at"
                    f" 0x{address:x} must be aligned to {size} bytes, got remainder"
                    f" {address % size}",
                )
        return self._read_only()

    def _unawaited(self, access: str) -> Trap:
        return Trap(
            "dependent-launch",
            f"{self.space} {access} of {self.name} before griddepcontrol.wait: a prerequisite grid"
            " may still work on it",
        )

    def _read_only(self) -> Trap:
        return Trap("read-only", f"{self.space} write to {self.name}, which is read-only")

    def _out_of_bounds(self, address: int, size: int, access: str) -> Trap:
        if address < self.start:
            side = f"{self.start - address} bytes before the start of"
        else:
            side = f"{address + size - self.end} bytes past the end of"
        extent = self.end - self.start
        return Trap(
            "out-of-bounds",
            f"{self.space} {access} of {size} bytes at 0x{address:x}"
            f" goes {side} {self.name} ({extent} bytes)",
        )
