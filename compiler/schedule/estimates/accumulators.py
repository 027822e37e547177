"""How many accumulators tensor memory holds beside block scales, and what the next tile waits for.

Nothing here imports MLIR.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....dialects import scaled_legality, store_legality
from ....dialects.dtypes import ScaledMma
from ....dialects.target import Target

OVERLAPPING = 2


def held_sums(target: Target, mma: ScaledMma, tile: Sequence[int], parts: int) -> tuple[int, int]:
    """How many accumulators tensor memory holds, and the scales of how many K steps; a part of K
    has one."""
    most = scaled_legality.SCALE_PLACES
    for held in ((OVERLAPPING, most), (1, most))[parts > 1 :]:
        if scaled_legality.scaled_tensor_memory(target, mma, tile, *held) is None:
            return held
    return 1, 1


def shared_columns(target: Target, mma: ScaledMma, tile: Sequence[int], row_bytes: int) -> int:
    """Columns that the accumulators of two tiles share (`persistence`), 0 where they share none:
    two have room, or TMA does not store rows of C of so many bytes."""
    if store_legality.stored_rows(row_bytes):
        return 0
    return scaled_legality.scaled_columns_over(target, mma, tile, OVERLAPPING)


def late_share(held: int, shared: int, n: int, columns: int) -> float:
    """The share of a tile's epilogue that the next tile's MMAs wait for: none of it, the pieces of
    so many columns that have shared ones, or all."""
    if held == OVERLAPPING:
        return 0
    return min(1, -(-shared // columns) * columns / n) if shared else 1
