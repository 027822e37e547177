"""Limits of stores through shared memory, by TMA and by threads; see `legality`."""

from __future__ import annotations

import functools
import math

from .layout import SPAN_BYTES, UNIT_BYTES, piece_layout
from .mma_units import MMA_SYNC, WARP, WARPGROUP
from .target import Target, targets_with

STAGED_PAIR_ROWS = 128  # with 64, half of N lies in the upper lanes, and pieces are cut across both
TMEM_COLUMNS_READ = 32
"""Columns of tensor memory that a thread reads at once."""


def stored_rows(row_bytes: int) -> str | None:
    """TMA writes all 16 bytes that a row ends in, which must not be another's (H200, seen)."""
    if row_bytes % UNIT_BYTES == 0:
        return None
    return f"its rows must be whole units of {UNIT_BYTES} bytes, got {row_bytes} bytes"


def staged_pairs(target: Target, columns: int) -> str | None:
    """Threads store pieces of what warps hold: pairs of neighbours, of which rows are made."""
    if target.mma.issuer != WARP:
        return f"threads store pieces of sums of {MMA_SYNC.name}, got those of {target.mma.name}"
    if columns % 2 == 0:
        return None
    return f"its rows must be whole pairs of elements, got {columns}"


def matrix_stores(target: Target) -> str | None:
    """stmatrix came with TMA (PTX ISA, stmatrix: target notes)."""
    if target.async_agents:
        return None
    chips = targets_with(lambda each: each.async_agents)
    return f"stmatrix is for {chips}, got {target.chip}"


def stored_by_warpgroups(
    target: Target, m: int, n: int, transposed: bool, in_groups: bool
) -> str | None:
    """Warpgroups store rows of their own where two or more hold a tile, and rows lie in line."""
    warpgroups = target.mma_warpgroups(m, n) or 1
    holds = not target.has_tensor_memory and target.mma.issuer != WARP
    if not holds or warpgroups < 2:
        return f"two warpgroups must hold a tile for each to store its rows, got {m}x{n} sums"
    if target.adds_from_tensor_memory:
        return "rows of a warpgroup must lie in line, got those of products from tensor memory"
    if transposed:
        return "rows of a warpgroup must lie in line, got exchanged operands"
    return "the rows of a tile must be of one matrix, got those of a group" if in_groups else None


def odd_pieces(target: Target) -> bool:
    """Whether rows of a piece may be any odd number of units: those of warpgroups that hold sums,
    8 columns at a time. Columns of tensor memory and of warps come in powers of two."""
    return not target.has_tensor_memory and target.mma.issuer == WARPGROUP


@functools.cache
def staged_piece(m: int, n: int, columns: int, item_bytes: int, odd: bool = False) -> str | None:
    """A piece of a staged store is one swizzle span wide or, if `odd`, an odd number of units."""
    piece = piece_layout(m, columns, item_bytes, odd)
    if n % columns == 0 and not piece.fits() and piece.chunks == 1:
        return None
    sizes = "16, 32, 64 or 128 bytes" + " or an odd multiple of 16 in whole 8 columns" * odd
    got = f"{columns} columns of {item_bytes} bytes"
    return f"columns must divide the tile's {n} and be {sizes}, got {got}"


def widest_piece(m: int, n: int, item_bytes: int, odd: bool, span: int = 128) -> int:
    """The columns of the widest pieces of a tile of `n`, up to `span` bytes."""
    most = min(n, span // item_bytes)
    widths = (each for each in range(most, 0, -1) if not staged_piece(m, n, each, item_bytes, odd))
    return next(widths, UNIT_BYTES // item_bytes)


def columns_beside(columns: int, c_bytes: int, item_bytes: int) -> int:
    """Columns of a piece of an output beside C: those of C's where they fit a span, else as many
    bytes as that has."""
    if columns * item_bytes <= max(SPAN_BYTES.values()):
        return columns
    return max(1, columns * c_bytes // max(c_bytes, item_bytes))


def staged_blocks(piece_bytes: int, bits: int, block: int) -> str | None:
    """A piece of elements with block scales is whole blocks."""
    if piece_bytes * 8 % (bits * block) == 0:
        return None
    return f"pieces of {piece_bytes} bytes are no whole blocks of {block} elements of {bits} bits"


def staged_quantized(
    target: Target, m: int, n: int, piece_bytes: int, bits: int, block: int
) -> str | None:
    """Each thread has whole blocks of a row of a piece, and writes whole units of 16 bytes."""
    if not target.has_tensor_memory:
        return f"threads of {target.mma.name} have pairs of a row, and no whole units"
    if bits not in (4, 8):
        return f"pieces of one swizzle are no whole elements of {bits} bits"
    columns = piece_bytes * 8 // bits
    broken = staged_piece(m, n * bits // 8, piece_bytes, 1)
    broken = broken or staged_blocks(piece_bytes, bits, block)
    halves = 1 if target.mma_rows(m) == 128 else 2  # of 64 rows a thread has half of the columns
    own = math.gcd(TMEM_COLUMNS_READ, columns // halves)
    if broken or (own % block == 0 and own * bits % (8 * UNIT_BYTES) == 0):
        return broken
    return f"a thread reads {own} columns of a piece of {columns}, no whole blocks or 16 bytes"


def staged_rows(target: Target, m: int, piece_bytes: int) -> str | None:
    """With MMAs of 64 rows each thread has half of a row's columns, and writes whole units."""
    if target.mma_rows(m) != 64 or piece_bytes >= 2 * UNIT_BYTES:
        return None
    return f"a tile of {m} rows needs pieces of {2 * UNIT_BYTES} bytes, got {piece_bytes}"


def staged_pair(m: int) -> str | None:
    """A pair of 64-row CTAs keeps half of N in the upper lanes."""
    if m >= STAGED_PAIR_ROWS:
        return None
    return f"a staged epilogue of a pair needs {STAGED_PAIR_ROWS} rows a CTA, got {m}"
