"""What a manifest has in the place of a size that a launch says (docs/bundle.md)."""

from __future__ import annotations

from typing import Any

from ...dialects.tile import KernelOp
from ...dialects.tile_place import PlaceOp
from ...dialects.tile_types import DYNAMIC, integers_of
from ..base import ROWS_ATTRIBUTE, is_swapped, walk
from ..dynamic_rows import counted_axis, has_dynamic_rows, row_bounds

SIZE = "m"
SIZE_PARAMETER = {"kind": "size", "size": SIZE}


def size_parameter(kernel: KernelOp) -> dict[str, Any]:
    """M, with its bounds where the module says some."""
    names = ("least", "most") if ROWS_ATTRIBUTE in kernel.operation.parent.attributes else ()
    return SIZE_PARAMETER | dict(zip(names, row_bounds(kernel), strict=False))


def grid_of(kernel: KernelOp, tile: tuple[int, int]) -> list[Any]:
    """CTAs along x, y and z; of a dynamic M, those along x or y as a formula (docs/bundle.md)."""
    grid, cluster = integers_of(kernel.grid), integers_of(kernel.cluster)
    if not has_dynamic_rows(kernel):
        return grid
    places = walk(kernel, PlaceOp)
    axis = counted_axis(kernel)
    formula = {"size": SIZE, "rows": tile[axis] * cluster[axis], "clusters": 1}
    if grid[axis] == DYNAMIC:
        formula["ctas"] = cluster[axis]
        return [*grid[:axis], formula, *grid[axis + 1 :]]
    formula["ctas"] = cluster[0]
    if places and DYNAMIC in integers_of(places[0].tiles):  # the most, which share out the tiles
        formula["clusters"] = integers_of(places[0].tiles)[1 - axis] // cluster[1 - axis]
        formula["most"] = grid[0] // cluster[0]
    elif is_swapped(kernel):  # all of M is in each tile
        formula |= {"rows": tile[1], "clusters": grid[0] // cluster[0]}
    return [formula, *grid[1:]]


def sizes(extents: list[int]) -> list[int | str]:
    """Extents, the name of the size where a launch says one."""
    return [SIZE if extent == DYNAMIC else extent for extent in extents]


def box_sizes(extents: list[int]) -> list[Any]:
    """Those of a box; of rows that a launch says as many as there are, up to a number."""
    return [each if each > 0 else {"size": SIZE, "most": -each} for each in extents]
