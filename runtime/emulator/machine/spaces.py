"""State spaces as `ld` and `st` see them: the region of each lane's address is found here.

Source: PTX ISA §5.1 (state spaces, generic addressing).
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..errors import Trap
from ..ptx.addresses import WINDOW_SIZE
from ..truth import any_of
from .memory import NEAR_BYTES, UINT, Issuer, Region

_OWN_ADDRESSES = 1 << 32
"""Addresses inside of a state space lie below, generic ones do not."""


def _joined(
    parts: Iterable[tuple[Any, np.ndarray, np.ndarray | slice]], lanes: int, width: int, count: int
) -> np.ndarray:
    """uint[lanes] (or [lanes, count]), of what each part has: its memory, addresses and lanes."""
    values = np.empty((lanes, count) if count > 1 else lanes, UINT[width])
    for memory, addresses, own in parts:
        values[own] = memory.load(addresses, width, count)
    return values


def _subset(who: Issuer | None, lanes: np.ndarray | slice) -> Issuer | None:
    """The issuer of some of its lanes, selected by position."""
    if who is None or isinstance(lanes, slice):
        return who
    mask = np.zeros(32, bool)
    mask[np.flatnonzero(who[1])[lanes]] = True
    return who[0], mask


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

    def contains(self, address: int) -> bool:
        """Whether a region contains ``address``."""
        at = bisect.bisect(self._starts, address) - 1
        return at >= 0 and address < self.regions[at].end

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
        if far >= NEAR_BYTES:
            hint = "none is near"
        if address < _OWN_ADDRESSES:
            hint += "; mov gives a variable's address in its own space, cvta makes it generic"
        return Trap(
            "out-of-bounds", f"{self.name} access at 0x{address:x} is in no allocation; {hint}"
        )

    def load(self, addresses: np.ndarray, width: int, count: int = 1) -> np.ndarray:
        """Values uint[k] (or [k, count]) at uint64[k] addresses."""
        region, index, addresses = self._find(addresses, width, count)
        if index is None:
            return self._load_split(addresses, width, count)
        return region.load_index(index, addresses, width, count)

    def _find(
        self, addresses: np.ndarray, width: int, count: int
    ) -> tuple[Region, np.ndarray | None, np.ndarray]:
        """The first lane's region, the element indices if it holds all lanes, and where they lie.

        Spaces whose addresses are not those of their regions translate them here.
        """
        region = self.last
        index = region.index(addresses, width, count) if region else None
        if region is None or index is None:
            region = self.region_at(int(addresses[0]))
            index = region.index(addresses, width, count)
            self.last = region
        return region, index, addresses

    def _load_split(self, addresses: np.ndarray, width: int, count: int) -> np.ndarray:
        groups = self._groups(addresses)
        parts = ((region, addresses[lanes], lanes) for region, lanes in groups)
        return _joined(parts, len(addresses), width, count)

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
        region, index, addresses = self._find(addresses, width, count)
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


class WindowSpace(Space):
    """`.param` or `.const`: addresses are generic ones, or without the window's base, which
    addresses of 32 bits cannot hold. own: they must be those of the space (PTX ISA §6.4.1)."""

    def __init__(self, name: str, window: int, *, own: bool = False):
        super().__init__(name)
        self._window, self._own = np.uint64(window), own

    def _find(
        self, addresses: np.ndarray, width: int, count: int
    ) -> tuple[Region, np.ndarray | None, np.ndarray]:
        return super()._find(self.generic(addresses), width, count)

    def generic(self, addresses: np.ndarray) -> np.ndarray:
        """The generic addresses of those of the space."""
        if self._own and any_of(addresses & self._window):
            raise Trap(
                "address-space",
                f"0x{int(addresses.max()):x} is a generic address, and not one of .{self.name};"
                f" cvta.to.{self.name} makes it one",
            )
        return addresses | self._window


class SharedSpace(Space):
    """Shared memory as one CTA sees it (PTX ISA §5.1.7).

    A shared address is `rank << 24 | offset`. With `own_only` it is `.shared::cta`: the CTA's own
    bytes, which also answer to the plain offset, of which `warn` hears: it may be meant for rank 0.
    Without, it is `.shared::cluster`, to which the CTA adds the regions of its peers.
    """

    def __init__(self, own: Region, *, own_only: bool, warn: Callable[[int], None] | None = None):
        super().__init__("shared")
        self.own, self.own_only, self._warn = own, own_only, warn
        self.add(own)

    def _translate(self, addresses: np.ndarray) -> np.ndarray:
        """Plain offsets of the own CTA become own-window addresses."""
        if not self.own_only or not self.own.base:
            return addresses
        plain = addresses < 1 << 24
        if self._warn and any_of(plain):
            self._warn(int(addresses[plain][0]))
        return np.where(plain, addresses + np.uint64(self.own.base), addresses)

    def _find(
        self, addresses: np.ndarray, width: int, count: int
    ) -> tuple[Region, np.ndarray | None, np.ndarray]:
        index = self.own.index(addresses, width, count)
        if index is not None:
            return self.own, index, addresses
        return super()._find(self._translate(addresses), width, count)

    def _nowhere(self, address: int, at: int) -> Trap:
        rank, own = address >> 24, self.own.base >> 24
        if not self.own_only or rank in (0, own) or rank >= 1 << 8:
            return super()._nowhere(address, at)
        return Trap(
            "address-space",
            f"0x{address:x} is in the shared memory of cluster rank {rank}; .shared::cta reaches"
            f" rank {own}, the own CTA, only",
        )


class LocalSpace(Space):
    """The per-thread memory of one warp: `lane << 24 | offset` (PTX ISA §5.1.5).

    size: bytes a thread has; frames: the bytes of all lanes, uint8[32, size]. A lane's address
    leads to its own bytes; they lie one behind the other in one region.
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

    def _find(
        self, addresses: np.ndarray, width: int, count: int
    ) -> tuple[Region, np.ndarray | None, np.ndarray]:
        return super()._find(self._flat(addresses, width * count), width, count)


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
        return _joined(self.groups(addresses), len(addresses), width, count)

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
