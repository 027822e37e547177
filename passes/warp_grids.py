"""Which warps hold which part of a tile, with mma.sync (`tile.warp_grid`)."""

from __future__ import annotations

from typing import NamedTuple

from ..dialects.mma_units import WARP, warp_grid
from ..dialects.target import Target
from ..dialects.tile import KernelOp
from ..dialects.tile_types import AccumulatorType, integers, integers_of
from .base import refused

WARP_GRID_ATTRIBUTE = "tile.warp_grid"  # of a kernel: warps along M and N


class WarpTile(NamedTuple):
    """The part of a tile that each of `grid` warps has, in elements."""

    grid: tuple[int, int]
    m: int
    n: int

    @property
    def warps(self) -> int:
        return self.grid[0] * self.grid[1]


def say_grid(kernel: KernelOp, grid: tuple[int, int]) -> None:
    """Write the grid down."""
    kernel.operation.attributes[WARP_GRID_ATTRIBUTE] = integers(list(grid))


def warp_tile(kernel: KernelOp, sums: AccumulatorType, target: Target) -> WarpTile:
    """The part of one warp of a tile's sums: by the kernel's grid, else by the target's rule."""
    m, n = sums.shape
    grid = said_grid(kernel) or warp_grid(m, n, target.mma)
    if grid is None or m % (16 * grid[0]) or n % (8 * grid[1]):
        shape = "none" if grid is None else "x".join(map(str, grid))
        raise refused(
            kernel, f"warps: each must have whole MMAs of 16x8 of a {m}x{n} tile, got {shape} warps"
        )
    return WarpTile(grid, m // grid[0], n // grid[1])


def warps_of(kernel: KernelOp, shape: tuple[int, int], target: Target) -> int:
    """Warps that hold or read the sums of a tile."""
    grid = said_grid(kernel) if target.mma.issuer == WARP else None
    return grid[0] * grid[1] if grid else target.mma_warps(*shape) or 0


def said_grid(kernel: KernelOp) -> tuple[int, int] | None:
    """The grid that a kernel says, None where it says none."""
    attributes = kernel.operation.attributes
    if WARP_GRID_ATTRIBUTE not in attributes:
        return None
    said = attributes[WARP_GRID_ATTRIBUTE]
    try:
        along_m, along_n = integers_of(said)
    except (ValueError, TypeError):
        along_m = along_n = 0
    if min(along_m, along_n) < 1:
        raise refused(kernel, f"{WARP_GRID_ATTRIBUTE} must be two counts of warps, got {said}")
    return along_m, along_n
