"""The candidate tile sizes along M, N and K, by where the accumulators are."""

from __future__ import annotations

import functools

from ...dialects.layout import UNIT_BYTES
from ...dialects.mma_units import REGISTERS, TENSOR_MEMORY
from ...dialects.target import Target
from .problem import Problem

M_TILES: dict[str, tuple[int, ...]] = {TENSOR_MEMORY: (64, 128), REGISTERS: (64, 128, 192, 256)}
N_TILES: dict[str, tuple[int, ...]] = {
    TENSOR_MEMORY: (16, 32, 64, 96, 128, 160, 192, 256),
    REGISTERS: tuple(range(16, 257, 16)),
}
# Those that clusters of two share are whole 16 columns, or of a pair's MMA 32.
SWAPPED_STEPS: dict[str, tuple[int, ...]] = {TENSOR_MEMORY: (16, 32), REGISTERS: (8, 16)}
FEW_TILES = 24  # along an axis: with more, those of any size waste little
K_TILE_BYTES = (32, 64, 128, 256)  # 32 are what one MMA takes


def extents_of(problem: Problem, target: Target) -> tuple[tuple[int, ...], ...]:
    """The candidate sizes of tiles along M, N and K, in elements."""
    rows = M_TILES[target.mma.accumulators]
    return rows, n_extents(problem, target), k_extents(problem)


def k_extents(problem: Problem) -> tuple[int, ...]:
    """The candidate sizes of tiles along K, in elements."""
    return tuple(size // problem.element_bytes for size in K_TILE_BYTES)


def n_extents(problem: Problem, target: Target) -> tuple[int, ...]:
    """The candidate sizes of tiles along N, in elements.

    If two products share A, each B has half of the tile, in whole units of 16 bytes where B is
    N-major. Where A and B are exchanged, the sizes of which few tiles cover N are the least
    multiples of each step that cover it with that many tiles.
    """
    accumulators = target.mma.accumulators
    usual = N_TILES[accumulators]
    if not problem.swapped:
        contiguous = problem.products == 2 and problem.b_major == "mn"
        step = 2 * UNIT_BYTES // problem.element_bytes if contiguous else 1
        return tuple(each for each in usual if each % step == 0)
    extent = problem.most_m if problem.dynamic_m else problem.n
    return _covering(extent, usual, SWAPPED_STEPS[accumulators], target.mma.n_max)


@functools.lru_cache(4096)
def _covering(
    extent: int, usual: tuple[int, ...], steps: tuple[int, ...], most: int
) -> tuple[int, ...]:
    """The usual sizes of which many tiles cover the extent, and the least multiples of each step of
    which few do."""
    found = {each for each in usual if -(-extent // each) > FEW_TILES}
    for step in steps:
        least = (-(-extent // (step * count)) * step for count in range(1, FEW_TILES + 1))
        found |= {each for each in least if each <= most}
    return tuple(sorted(found))
