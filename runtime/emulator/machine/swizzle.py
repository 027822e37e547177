"""Shared-memory swizzles as address functions.

A swizzle exchanges bytes inside one 128-byte line: address bits of the line number (bits 7 and
up) are XORed into the bits that select a chunk of the line. The function acts on the absolute
shared-memory byte address, so where a pattern starts follows from the address alone.

Source: PTX ISA, section "Swizzling Modes" of the tensor copies (tables of 16-byte chunks per row).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

LINE_BYTES = 128
"""Bytes of the line inside which a swizzle exchanges chunks."""

PATTERN_BYTES = 1024
"""A multiple of every swizzle's period: addresses that differ by it swizzle alike."""

Address = TypeVar("Address", int, np.ndarray)


@dataclass(frozen=True, eq=False)
class Swizzle:
    """One swizzle mode: each of those below is equal to itself alone.

    ``span`` is the bytes of an inner row, ``chunk`` the bytes that stay together, ``rows`` the
    number of 128-byte lines after which the pattern repeats. ``flip`` exchanges the two 8-byte
    halves of each 16 bytes on odd lines.
    """

    name: str
    span: int
    chunk: int
    rows: int
    flip: bool = False

    @property
    def period(self) -> int:
        """Bytes after which the pattern repeats."""
        return LINE_BYTES * self.rows

    def apply(self, address: Address, base_offset: int = 0) -> Address:
        """Physical byte address of the logical byte ``address``.

        ``base_offset`` is the line number at which the pattern starts (descriptor bits 49-51).
        """
        line = (address >> 7) - base_offset
        moved = address ^ ((line & (self.rows - 1)) * self.chunk)
        return moved ^ ((line & 1) << 3) if self.flip else moved


NONE = Swizzle("none", 16, 16, 1)
B32 = Swizzle("32B", 32, 16, 2)
B64 = Swizzle("64B", 64, 16, 4)
B128 = Swizzle("128B", 128, 16, 8)
B128_ATOM_32B = Swizzle("128B_ATOM_32B", 128, 32, 4)
B128_ATOM_32B_FLIP_8B = Swizzle("128B_ATOM_32B_FLIP_8B", 128, 32, 4, flip=True)
B128_ATOM_64B = Swizzle("128B_ATOM_64B", 128, 64, 2)

MODES = (NONE, B32, B64, B128, B128_ATOM_32B, B128_ATOM_32B_FLIP_8B, B128_ATOM_64B)
"""Modes in the order of the driver's CUtensorMapSwizzle values 0..6."""
