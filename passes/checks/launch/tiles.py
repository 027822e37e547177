"""Checks of which tiles the CTAs of a kernel compute.

tiles       every CTA computes its own tile, or all roles walk the same tiles; all of C is
            covered by whole clusters
"""

from __future__ import annotations

from typing import Any

from ....dialects.pipe import ForEachClaimOp
from ....dialects.tile import CtaTileOp, KernelOp
from ....dialects.tile_types import DYNAMIC, integers_of
from ...base import refused
from ...dynamic_rows import (
    check_bounds,
    counted_axis,
    has_dynamic_rows,
    has_dynamic_size,
    has_dynamic_stack,
)


def check_tiles(kernel: KernelOp, places: list[CtaTileOp], loops: list[Any]) -> None:
    """The tiles that the CTAs of a kernel compute: at its places, or in its loops over tiles."""
    grid, cluster = integers_of(kernel.grid), integers_of(kernel.cluster)
    check_bounds(kernel, has_dynamic_rows(kernel))
    check_counted(kernel, grid)
    if grid[2] != cluster[2] and (loops or cluster[2] > 1):
        raise refused(
            kernel,
            "tiles: must be one cluster deep, "
            f"got {grid} of {cluster}; give the grid the depth of a cluster",
        )
    if len(places) + bool(loops) != 1:
        raise refused(
            kernel,
            "tiles: the program must have one tile.cta_tile or loops over tiles, got "
            f"{len(places)} and {len(loops)}; take one of the two",
        )
    for loop in loops:
        _check_loop(kernel, loop, loops[0])


def check_counted(kernel: KernelOp, tiles: list[int]) -> None:
    """A launch says how many tiles there are along the rows of C, or of its matrices, if those are
    dynamic."""
    if DYNAMIC not in tiles:
        return
    if not has_dynamic_size(kernel):
        c = list(kernel.body.blocks[0].arguments)[-1].type
        rule = "tiles: a launch says the grid of a dynamic M or batch"
        raise refused(
            kernel, f"{rule}, got c of {c}; give it a dynamic size, or the grid a number of tiles"
        )
    if tiles.index(DYNAMIC) != counted_axis(kernel):
        axes = ("N", "M") if counted_axis(kernel) == 0 else ("M", "N")
        what = "matrices" if has_dynamic_stack(kernel) else "rows"
        rule = f"tiles: a launch says those along {axes[1]}, where the {what} of c are"
        raise refused(kernel, f"{rule}, got {DYNAMIC} along {axes[0]}; exchange them")


def _check_loop(kernel: KernelOp, loop: Any, first: Any) -> None:
    grid, cluster = integers_of(kernel.grid), integers_of(kernel.cluster)
    tiles = integers_of(loop.tiles)
    check_counted(kernel, tiles)
    pairs = zip(tiles, cluster, strict=False)
    known = [size if extent == DYNAMIC else extent for extent, size in pairs]
    if len(known) != 2 or min(known) < 1 or any(map(int.__mod__, known, cluster[:2])):
        raise refused(
            loop,
            f"tiles: must be whole clusters of {cluster[0]}x{cluster[1]}, got {tiles}; round "
            "them up",
        )
    wanted = tiles if isinstance(loop, ForEachClaimOp) else [grid[0], cluster[1]]
    if grid[:2] != wanted:
        rule = "a CTA a tile" if isinstance(loop, ForEachClaimOp) else "one row of clusters"
        raise refused(
            kernel,
            f"tiles: the grid must be {rule}, {wanted[0]}x{wanted[1]}, got "
            f"{grid[0]}x{grid[1]}; change the grid",
        )
    for name in ("tiles", "order", "group"):
        if loop.operation.attributes[name] != first.operation.attributes[name]:
            raise refused(
                loop,
                f"tiles: all roles must walk the same tiles, got another {name} than the first "
                "loop's; give all of them one",
            )
