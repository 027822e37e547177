"""How often shared memory must be accessed for one instruction of a warp.

The model, which is that of the CUDA C++ Programming Guide (shared memory, compute capability 5.0
and later): 32 banks, consecutive 4-byte words in consecutive banks, one word a bank and pass; any
number of lanes may use the same word of a pass. Accesses of 8 bytes a lane are served half a warp
at a time, of 16 bytes a quarter (a matrix of ldmatrix and stmatrix is eight rows of 16 bytes). A
pass is what profilers call a wavefront. Chips may merge more; none needs more.

Two more rules are for engines. The tensor core reads an operand by 8x8 matrices, eight rows of 16
bytes, as ldmatrix does: that is what the canonical layouts of the PTX ISA are made of. A copy
engine moves a box row by row, a pass for 128 bytes or what a row has of them. The second is an
inference: the published times of boxes 16 and 128 bytes wide ("tcgen05 for dummies", v1 and v2)
differ by about the number of their rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

BANKS = 32
WORD = 4
PASS_BYTES = BANKS * WORD
ROWS, CHUNK_BYTES, CHUNK_WORDS = 8, 16, 2
"""Of an 8x8 matrix; a word of an operand has 64 bits."""


class Passes(NamedTuple):
    """needed: passes of one instruction; least: without a conflict; ways: of the worst part."""

    needed: int
    least: int
    ways: int


class Matrices(NamedTuple):
    """count: 8x8 matrices; needed: passes of all; ways: of the worst."""

    count: int
    needed: int
    ways: int


def joined(parts: list[Passes]) -> Passes:
    """Passes of one instruction that has several parts."""
    needed, least, ways = zip(*parts, strict=True)
    return Passes(sum(needed), sum(least), max(ways))


def row_passes(size: int, rows: int) -> Passes:
    """Passes of `size` bytes that an engine moves in rows of one size.

    Bytes of a row lie in different banks, also under a swizzle, which exchanges chunks of 128.
    """
    needed = rows * -(-size // rows // PASS_BYTES)
    least = -(-size // PASS_BYTES)
    return Passes(needed, least, -(-needed // least))


def matrix_passes(words: np.ndarray) -> Matrices:
    """Of an operand as its 64-bit words, int64[rows, words of a row]; columns where it is
    MN-major. Matrices that stick out are left out."""
    rows, chunks = words.shape[0] // ROWS, words.shape[1] // CHUNK_WORDS
    first = words[: rows * ROWS, : chunks * CHUNK_WORDS : CHUNK_WORDS] // CHUNK_WORDS
    groups = first.reshape(rows, ROWS, chunks).swapaxes(1, 2).reshape(-1, ROWS)
    places = PASS_BYTES // CHUNK_BYTES
    worst = np.max([(groups % places == place).sum(axis=1) for place in range(places)], axis=0)
    return Matrices(len(worst), int(worst.sum()), int(worst.max(initial=0)))


def count_passes(addresses: np.ndarray, lanes: np.ndarray, size: int) -> Passes:
    """Passes for uint64[k] addresses of `size` bytes each, issued by the lanes int64[k]."""
    words = addresses[:, None] // WORD + np.arange(max(size // WORD, 1), dtype=np.uint64)
    parts = lanes * max(size, WORD) // PASS_BYTES
    ways = [_ways(words[parts == part]) for part in np.unique(parts)]
    return Passes(sum(ways), len(ways), max(ways, default=0))


def _ways(words: np.ndarray) -> int:
    """The most different words that one bank must deliver."""
    return int(np.bincount((np.unique(words) % BANKS).astype(np.int64)).max())
