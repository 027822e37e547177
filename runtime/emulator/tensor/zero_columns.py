"""The zero-column mask descriptor of tcgen05.mma.ws (PTX ISA §9.7.16.4.3).

It names columns of B that count as zero. Each group of lanes has a mask of its own columns, in
which runs of used and of zero columns take turns. By the section's examples, the field at bit 40 is
the length of the zero runs and that at bit 48 of the used ones, each less one.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..errors import Trap
from .tensor_memory import LANES

_SECTION = "9.7.16.4.3"
_RESERVED = 0b111 << 36 | 0b11 << 62


@lru_cache(maxsize=256)
def zero_columns(word: int, m: int, n: int) -> np.ndarray:
    """``bool[n]``: which columns of B are zero for an operation of shape ``m`` x ``n``."""
    where = f"zero-column mask descriptor 0x{word:016x}"
    if word & _RESERVED:
        raise Trap("descriptor", f"{where}: bits 36-38 and 62-63 must be zero")
    if not _field(word, 39, 1):
        return np.zeros(n, bool)
    groups = LANES // m
    parts = [_mask(word, group, n // groups, where) for group in range(groups)]
    return np.concatenate(parts)


def column_shift(word: int, m: int, most: int) -> int:
    """By how many columns B is shifted: the first one that is used; ``most``: what the instruction
    descriptor allows."""
    shift, limit = _field(word, 56, 6), min(most, 16 if m == 32 else 32)
    if shift > limit:
        raise Trap("descriptor", f"zero-column mask descriptor 0x{word:016x}: a column shift of at "
                                 f"most {limit} goes with M={m} and bits 30-31 of the instruction "
                                 f"descriptor, got {shift}")  # fmt: skip
    return shift


def _mask(word: int, group: int, count: int, where: str) -> np.ndarray:
    """The mask of one group of lanes: it starts inside of its first run."""
    start, zero_first = _field(word, 8 * group, 8), bool(_field(word, 32 + group, 1))
    zero, used = _field(word, 40, 8) + 1, _field(word, 48, 8) + 1
    if start >= (zero if zero_first else used):
        raise Trap("unmodelled", f"{where}: start count {start} beyond the first span of group "
                                 f"{group} (PTX ISA section {_SECTION})")  # fmt: skip
    place = (np.arange(count) + start) % (zero + used)
    return place < zero if zero_first else place >= used


def _field(word: int, low: int, bits: int) -> int:
    return word >> low & (1 << bits) - 1
