"""How often shared memory must be accessed for one instruction of a warp.

The model, which is that of the CUDA C++ Programming Guide (shared memory, compute capability 5.0
and later): 32 banks, consecutive 4-byte words in consecutive banks, one word a bank and pass; any
number of lanes may use the same word of a pass. Accesses of 8 bytes a lane are served half a warp
at a time, of 16 bytes a quarter (a matrix of ldmatrix and stmatrix is eight rows of 16 bytes). A
pass is what profilers call a wavefront. Chips may merge more; none needs more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

BANKS = 32
WORD = 4
PASS_BYTES = BANKS * WORD


class Passes(NamedTuple):
    """needed: passes of one instruction; least: without a conflict; ways: of the worst part."""

    needed: int
    least: int
    ways: int


def count_passes(addresses: np.ndarray, lanes: np.ndarray, size: int) -> Passes:
    """Passes for uint64[k] addresses of `size` bytes each, issued by the lanes int64[k]."""
    words = addresses[:, None] // WORD + np.arange(max(size // WORD, 1), dtype=np.uint64)
    parts = lanes * max(size, WORD) // PASS_BYTES
    ways = [_ways(words[parts == part]) for part in np.unique(parts)]
    return Passes(sum(ways), len(ways), max(ways, default=0))


def _ways(words: np.ndarray) -> int:
    """The most different words that one bank must deliver."""
    return int(np.bincount((np.unique(words) % BANKS).astype(np.int64)).max())
