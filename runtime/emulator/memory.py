"""Memory regions with checked, vectorised access (PTX ISA §5.1 state spaces).

A `Region` is a run of bytes at an address. Every access is checked for bounds and natural
alignment; regions that track writing also refuse reads of bytes nobody wrote. A `Space` is
what `ld`/`st` see: it finds the region of each lane's address.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

import numpy as np

from .errors import Trap

if TYPE_CHECKING:
    from .warp import Warp

UINT = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_ALL_WRITTEN = 0xFF

SHARED_WINDOW = 1 << 46
LOCAL_WINDOW = 1 << 45
PARAM_WINDOW = 3 << 44
CONST_WINDOW = 5 << 44
GLOBAL_BASE = 0x7F00_0000_0000
SHARED_FIRST_OFFSET = 0x400
"""The first usable byte of a CTA's shared window: addresses of shared memory are never 0."""
WINDOW_SIZE = 1 << 40
NEAR_BYTES = 1 << 20
"""How far from an allocation an address may be to be explained by it."""

Issuer = tuple["Warp", np.ndarray]
"""The warp of an access and the lanes that its addresses belong to, in order."""


def _subset(who: Issuer | None, lanes: np.ndarray | slice) -> Issuer | None:
    """The issuer of some of its lanes, selected by position."""
    if who is None or isinstance(lanes, slice):
        return who
    mask = np.zeros(32, bool)
    mask[np.flatnonzero(who[1])[lanes]] = True
    return who[0], mask


class Region:
    """Bytes `lowest … len(data)-1` of `data`, at addresses `base + index`.

    data: uint8[n]; index 0 is at address `base`, also when the first `lowest` bytes are not
    accessible. written: uint8[n], 0xFF where a byte was written, or None when not tracked.
    allowed: uint8[n], 0xFF where a byte may be touched, or None for everywhere.
    proxy, owner: for shared memory, its `SharedProxy` marks and its CTA.
    `name` completes "past the end of …" in messages.
    """

    proxy = None
    owner = None

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
        self._views: dict[tuple[int, int], tuple] = {}
        self._written_views: dict[tuple[int, int], np.ndarray] = {}

    @property
    def start(self) -> int:
        """The first legal address."""
        return self.base + self.lowest

    @property
    def end(self) -> int:
        """One past the last legal address."""
        return self.base + len(self.data)

    def _typed(self, data: np.ndarray, width: int, count: int) -> np.ndarray:
        skip = self.lowest + -self.start % (width * count)
        usable = max(0, len(data) - skip) // (width * count) * (width * count)
        typed = data[skip : skip + usable].view(UINT[width])
        return typed.reshape(-1, count) if count > 1 else typed

    def _view(self, width: int, count: int) -> tuple:
        size = width * count
        origin = self.start + -self.start % size
        view = (
            self._typed(self.data, width, count),
            np.uint64(origin),
            np.int64(size.bit_length() - 1),
            self.end - size - origin,
            size - 1,
        )
        self._views[width, count] = view
        if self.written is not None:
            self._written_views[width, count] = self._typed(self.written, width, count)
        return view

    def index(self, addresses: np.ndarray, width: int, count: int = 1) -> np.ndarray | None:
        """Element indices (int64[k]) of aligned, in-bounds addresses (uint64[k]), else None."""
        view = self._views.get((width, count)) or self._view(width, count)
        relative = addresses - view[1]
        if view[3] < 0 or np.maximum.reduce(relative) > view[3]:
            return None
        if view[4] and np.bitwise_or.reduce(relative) & view[4]:
            return None
        return relative.view(np.int64) >> view[2]

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
        if self.proxy is not None:
            self.proxy.touched(self._offsets(addresses), width * count, "read")
        if self.written is not None:
            written = self._written_views[width, count]
            if not self._complete(written[index]):
                raise self._unwritten(addresses, width * count)
        if self.allowed is not None:
            self._check_allowed(addresses, width * count, "read")
        return self._views[width, count][0][index]

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
        if self.proxy is not None:
            self._note_store(addresses, width * count, who)
        if self.allowed is not None:
            self._check_allowed(addresses, width * count, "write")
        self._views[width, count][0][index] = values
        if self.written is not None:
            written = self._written_views[width, count]
            written[index] = np.iinfo(written.dtype).max

    def _offsets(self, addresses: np.ndarray) -> np.ndarray:
        return (addresses - np.uint64(self.base)).view(np.int64)

    def _note_store(self, addresses: np.ndarray, size: int, who: Issuer | None) -> None:
        offsets = self._offsets(addresses)
        if who is not None and who[0].cta is self.owner:
            self.proxy.stored(*who, offsets, size)
        else:
            self.proxy.touched(offsets, size, "write")

    @staticmethod
    def _complete(written: np.ndarray) -> bool:
        flat = written.ravel() if written.ndim > 1 else written
        return np.bitwise_and.reduce(flat) == np.iinfo(written.dtype).max

    def check_range(self, address: int, size: int, access: str = "read", align: int = 1) -> int:
        """Check `size` bytes at `address` and return their index in `data`; Trap if not legal."""
        if address < self.start or address + size > self.end:
            raise self._out_of_bounds(address, size, access)
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
        if self.written is not None and not self.written[at : at + size].all():
            raise self._unwritten(np.array([address], np.uint64), size)
        self._check_allowed(np.array([address], np.uint64), size, "read")
        return self.data[at : at + size].copy()

    def write_bytes(self, address: int, values: np.ndarray, align: int = 1) -> None:
        """Write uint8 values to a checked range."""
        at = self.check_range(address, len(values), "write", align)
        self._check_allowed(np.array([address], np.uint64), len(values), "write")
        self.data[at : at + len(values)] = values
        if self.written is not None:
            self.written[at : at + len(values)] = _ALL_WRITTEN

    def _check_allowed(self, addresses: np.ndarray, size: int, access: str) -> None:
        if self.allowed is None:
            return
        for address in addresses.tolist():
            at = address - self.base
            if not self.allowed[at : at + size].all():
                raise Trap(
                    "out-of-bounds",
                    f"{self.space} {access} of {size} bytes at"
                    f" 0x{address:x} touches bytes between the elements of {self.name}",
                )

    def refusal(self, addresses: np.ndarray, size: int, access: str) -> Trap:
        """The Trap for the first bad address of a failed access."""
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

    def _unwritten(self, addresses: np.ndarray, size: int) -> Trap:
        for address in addresses.tolist():
            at = address - self.base
            if not self.written[at : at + size].all():
                break
        return Trap(
            "uninitialised-read",
            f"{self.space} read of {size} bytes at 0x{address:x}"
            f" of {self.name}, which were never written",
        )


class Space:
    """Several regions behind one address range, found by address.

    `last` is the region hit most recently, tried first.
    """

    def __init__(self, name: str):
        self.name = name
        self.regions: list[Region] = []
        self._starts: list[int] = []
        self.last: Region | None = None

    def add(self, region: Region) -> Region:
        """Add a region that overlaps no other."""
        at = bisect.bisect(self._starts, region.start)
        self._starts.insert(at, region.start)
        self.regions.insert(at, region)
        self.last = region
        return region

    def region_at(self, address: int) -> Region:
        """The region that contains `address`; Trap out-of-bounds names the nearest one if none."""
        at = bisect.bisect(self._starts, address) - 1
        if at >= 0 and address < self.regions[at].end:
            return self.regions[at]
        raise self._nowhere(address, at)

    def _nowhere(self, address: int, at: int) -> Trap:
        if not self.regions:
            return Trap(
                "out-of-bounds",
                f"{self.name} access at 0x{address:x}, and the launch has no {self.name} memory",
            )
        near = self.regions[max(at, 0)]
        behind = address >= near.end
        far = address - near.end if behind else near.start - address
        side = "past the end" if behind else "before the start"
        hint = f"it is {far} bytes {side} of {near.name} ({near.end - near.start} bytes)"
        return Trap(
            "out-of-bounds",
            f"{self.name} access at 0x{address:x} is in no allocation;"
            f" {hint if far < NEAR_BYTES else 'none is near'}",
        )

    def load(self, addresses: np.ndarray, width: int, count: int = 1) -> np.ndarray:
        """Values uint[k] (or [k, count]) at uint64[k] addresses."""
        region = self.last
        index = region.index(addresses, width, count) if region else None
        if index is None:
            return self._load_split(addresses, width, count)
        return region.load_index(index, addresses, width, count)

    def _load_split(self, addresses: np.ndarray, width: int, count: int) -> np.ndarray:
        shape = (len(addresses), count) if count > 1 else len(addresses)
        values = np.empty(shape, UINT[width])
        for region, lanes in self._groups(addresses):
            values[lanes] = region.load(addresses[lanes], width, count)
        return values

    def store(
        self,
        addresses: np.ndarray,
        values: np.ndarray,
        width: int,
        count: int = 1,
        who: Issuer | None = None,
    ) -> None:
        """Write uint values [k] (or [k, count]) at uint64[k] addresses.

        who: the warp and the bool[32] mask whose k set lanes the addresses belong to.
        """
        region = self.last
        index = region.index(addresses, width, count) if region else None
        if index is not None and region.writable:
            region.store_index(index, addresses, values, width, count, who)
            return
        for region, lanes in self._groups(addresses):
            region.store(addresses[lanes], values[lanes], width, count, _subset(who, lanes))

    def _groups(self, addresses: np.ndarray):
        owners = [self.region_at(address) for address in addresses.tolist()]
        for region in dict.fromkeys(owners):
            yield region, np.array([owner is region for owner in owners])
        self.last = owners[0]


class SharedSpace(Space):
    """Shared memory as one CTA sees it (PTX ISA §5.1.7).

    A shared address is `rank << 24 | offset`; the CTA's own bytes also answer to the plain
    offset when `alias` is set (`.shared::cta`). Peers' regions are added by the cluster.
    """

    def __init__(self, own: Region, peers: tuple[Region, ...] = (), *, alias: bool):
        super().__init__("shared")
        self.own = own
        self.alias = alias and own.base != 0
        for region in (*peers, own):
            self.add(region)

    def translate(self, addresses: np.ndarray) -> np.ndarray:
        """Plain offsets of the own CTA become own-window addresses."""
        if not self.alias:
            return addresses
        return np.where(addresses < 1 << 24, addresses + np.uint64(self.own.base), addresses)

    def load(self, addresses: np.ndarray, width: int, count: int = 1) -> np.ndarray:
        return super().load(self.translate(addresses), width, count)

    def store(
        self,
        addresses: np.ndarray,
        values: np.ndarray,
        width: int,
        count: int = 1,
        who: Issuer | None = None,
    ) -> None:
        super().store(self.translate(addresses), values, width, count, who)


class LocalSpace(Space):
    """The per-thread memory of one warp: `lane << 24 | offset` (PTX ISA §5.1.5).

    size: bytes a thread has; frames: the same bytes as uint8[32, size]. A lane's address leads to its own bytes; the bytes of all lanes lie
    one behind the other in one region.
    """

    def __init__(self, data: np.ndarray, size: int):
        super().__init__("local")
        self.size = size
        self.frames = data.reshape(32, size)
        self.add(Region("the thread's local memory", 0, data, space="local"))

    def _flat(self, addresses: np.ndarray, size: int) -> np.ndarray:
        offsets = addresses & np.uint64(0xFFFFFF)
        worst = int(np.maximum.reduce(offsets))
        if worst + size > self.size or int(np.maximum.reduce(addresses)) >> 29:
            raise Trap(
                "out-of-bounds",
                f"local access of {size} bytes at offset 0x{worst:x} of"
                f" the thread's {self.size} bytes of local memory",
            )
        if np.bitwise_or.reduce(offsets) & np.uint64(size - 1):
            raise Trap(
                "misaligned", f"local access of {size} bytes must be aligned to {size} bytes"
            )
        return (addresses >> np.uint64(24)) * np.uint64(self.size) + offsets

    def load(self, addresses: np.ndarray, width: int, count: int = 1) -> np.ndarray:
        return super().load(self._flat(addresses, width * count), width, count)

    def store(
        self,
        addresses: np.ndarray,
        values: np.ndarray,
        width: int,
        count: int = 1,
        who: Issuer | None = None,
    ) -> None:
        super().store(self._flat(addresses, width * count), values, width, count)


class GenericSpace:
    """Generic addresses of one CTA: windows of shared, local, param and const, else global.

    PTX ISA §5.1 "generic addressing". `windows` maps a window's base to the space behind it and
    the amount to subtract (0 for spaces that use generic addresses themselves).
    """

    def __init__(self, global_: Space, windows: dict[int, tuple[Space, int]]):
        self.global_ = global_
        self.windows = windows

    def resolve(self, address: int) -> tuple[Space, int]:
        """The space of a generic address and the amount to subtract from it."""
        for base, target in self.windows.items():
            if base <= address < base + WINDOW_SIZE:
                return target
        return self.global_, 0

    def groups(self, addresses: np.ndarray):
        """Yield (space, addresses in that space, lane selection) until all lanes are covered."""
        space, shift = self.resolve(int(addresses[0]))
        if len(addresses) == 1 or self._same(addresses, space):
            yield space, addresses - np.uint64(shift), slice(None)
            return
        targets = [self.resolve(address) for address in addresses.tolist()]
        for target in dict.fromkeys(targets):
            lanes = np.array([other == target for other in targets])
            yield target[0], addresses[lanes] - np.uint64(target[1]), lanes

    def _same(self, addresses: np.ndarray, space: Space) -> bool:
        low, high = int(np.minimum.reduce(addresses)), int(np.maximum.reduce(addresses))
        return self.resolve(low)[0] is space and self.resolve(high)[0] is space

    def load(self, addresses: np.ndarray, width: int, count: int = 1) -> np.ndarray:
        shape = (len(addresses), count) if count > 1 else len(addresses)
        values = np.empty(shape, UINT[width])
        for space, local, lanes in self.groups(addresses):
            values[lanes] = space.load(local, width, count)
        return values

    def store(
        self,
        addresses: np.ndarray,
        values: np.ndarray,
        width: int,
        count: int = 1,
        who: Issuer | None = None,
    ) -> None:
        for space, local, lanes in self.groups(addresses):
            space.store(local, values[lanes], width, count, _subset(who, lanes))

    def read_bytes(self, address: int, size: int, align: int = 1) -> np.ndarray:
        """A checked copy of uint8[size] at one generic address."""
        space, shift = self.resolve(address)
        return space.region_at(address - shift).read_bytes(address - shift, size, align)
