"""What a manifest has in the place of a size that a launch says (docs/bundle.md)."""

from __future__ import annotations

from typing import Any

from ...dialects.tile import KernelOp
from ...dialects.tile_place import PlaceOp
from ...dialects.tile_types import DYNAMIC, integers_of
from ..base import ROWS_ATTRIBUTE, walk
from ..batches import batch_of
from ..dynamic_rows import counted_axis, has_dynamic_size, has_dynamic_stack, row_bounds

SIZE, STACK = "m", "batch"


def size_name(kernel: KernelOp) -> str:
    """The name of the size that a launch says, if it says one."""
    return STACK if has_dynamic_stack(kernel) else SIZE


def size_parameter(kernel: KernelOp) -> dict[str, Any]:
    """M, with its bounds where the module says some, or the matrices of a stack."""
    names = ("least", "most") if ROWS_ATTRIBUTE in kernel.operation.parent.attributes else ()
    found = {"kind": "size", "size": size_name(kernel)}
    return found | dict(zip(names, row_bounds(kernel), strict=False))


def grid_of(kernel: KernelOp, tile: tuple[int, int]) -> list[Any]:
    """CTAs along x, y and z; of any size, those along x or y as a formula (docs/bundle.md)."""
    grid, cluster = integers_of(kernel.grid), integers_of(kernel.cluster)
    if not has_dynamic_size(kernel):
        return grid
    places = walk(kernel, PlaceOp)
    axis = counted_axis(kernel)
    formula = {"size": size_name(kernel), "rows": tile[axis] * cluster[axis], "clusters": 1}
    if has_dynamic_stack(kernel):
        return _grid_of_stack(kernel, places)
    if grid[axis] == DYNAMIC:
        formula["ctas"] = cluster[axis]
        return [*grid[:axis], formula, *grid[axis + 1 :]]
    formula["ctas"] = cluster[0]
    if places and DYNAMIC in integers_of(places[0].tiles):  # the most, which share out the tiles
        formula["clusters"] = integers_of(places[0].tiles)[1 - axis] // cluster[1 - axis]
        formula["most"] = grid[0] // cluster[0]
    else:  # all of M is in one tile
        formula["clusters"] = grid[0] // cluster[0]
    return [formula, *grid[1:]]


def _grid_of_stack(kernel: KernelOp, places: list[Any]) -> list[Any]:
    """Each matrix has as many clusters; where places are counted, along both axes, and shared."""
    grid, cluster = integers_of(kernel.grid), integers_of(kernel.cluster)
    batch = batch_of(kernel)
    assert batch is not None  # check_stacks has asked
    clusters = batch.tiles.value // cluster[0]
    formula = {"size": STACK, "rows": 1, "clusters": clusters, "ctas": cluster[0]}
    if grid[0] != DYNAMIC:  # the most, which share out the tiles
        formula["clusters"] *= integers_of(places[0].tiles)[1] // cluster[1]
        formula["most"] = grid[0] // cluster[0]
    return [formula, *grid[1:]]


def sizes(extents: list[int], size: str) -> list[int | str]:
    """Extents, the name of the size where a launch says one."""
    return [size if extent == DYNAMIC else extent for extent in extents]


def box_sizes(extents: list[int]) -> list[Any]:
    """Those of a box; of rows that a launch says as many as there are, up to a number."""
    return [each if each > 0 else {"size": SIZE, "most": -each} for each in extents]
