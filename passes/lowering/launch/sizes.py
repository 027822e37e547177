"""Sizes in a manifest that are known only at launch (docs/manifest.md)."""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir
from ....dialects.tile import KernelOp
from ....dialects.tile.batches import MatrixOp
from ....dialects.tile.loads import TensorMapOp
from ....dialects.tile.place import PlaceOp
from ....dialects.tile_types import DYNAMIC, extent_of, integers_of
from ...base import ROWS_ATTRIBUTE, walk
from ...batches import batch_of, is_dynamic_step, step_of
from ...dynamic_rows import (
    DEPTH,
    MATRICES,
    ROWS,
    counted_axis,
    has_counted_matrices,
    has_dynamic_depth,
    has_dynamic_size,
    has_dynamic_stack,
    row_bounds,
    rows_multiple,
    size_names,
)
from ...groups import group_of, spare_rows


def size_parameters(kernel: KernelOp) -> list[dict[str, Any]]:
    """M, with its bounds and multiple where the module says some, and the matrices of a stack."""
    found: list[dict[str, Any]] = [{"kind": "size", "size": name} for name in size_names(kernel)]
    if found and rows_multiple(kernel) > 1:
        found[0]["multiple"] = rows_multiple(kernel)
    if found and ROWS_ATTRIBUTE in kernel.operation.parent.attributes:
        found[0] |= dict(zip(("least", "most"), row_bounds(kernel), strict=True))
    return found


def grid_of(kernel: KernelOp, tile: tuple[int, int]) -> list[Any]:
    """CTAs along x, y and z; of any size, those along x or y as a formula (docs/manifest.md)."""
    grid, cluster = integers_of(kernel.grid), integers_of(kernel.cluster)
    if not has_dynamic_size(kernel):
        return grid
    places = walk(kernel, PlaceOp)
    if has_dynamic_stack(kernel):
        return _grid_of_stack(kernel, tile[0] * cluster[0], places)
    axis = counted_axis(kernel)
    formula = {"size": ROWS, "rows": tile[axis] * cluster[axis], "clusters": 1}
    group = group_of(kernel)
    if group is not None:
        formula["spare"] = spare_rows(group)
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


def _grid_of_stack(kernel: KernelOp, rows: int, places: list[Any]) -> list[Any]:
    """Each matrix has as many clusters, of `rows` rows where a launch says those; where places are
    counted, along both axes, and shared."""
    grid, cluster = integers_of(kernel.grid), integers_of(kernel.cluster)
    batch = batch_of(kernel)
    assert batch is not None  # check_stacks has asked
    if has_counted_matrices(kernel):
        formula = {"size": ROWS, "rows": rows, "clusters": 1, "times": MATRICES}
    else:
        clusters = batch.tiles.value // cluster[0]
        formula = {"size": MATRICES, "rows": 1, "clusters": clusters}
    formula["ctas"] = cluster[0]
    if grid[0] != DYNAMIC:  # the most, which share out the tiles
        formula["clusters"] *= integers_of(places[0].tiles)[1] // cluster[1]
        formula["most"] = grid[0] // cluster[0]
    return [formula, *grid[1:]]


def shape_of(kernel: KernelOp, view: ir.Value, type_: ir.MemRefType) -> list[int | str]:
    """The extents of an argument, the name of the size where a launch says one."""
    extents = [extent_of(type_, dim) for dim in range(type_.rank)]
    names = list(size_names(kernel))
    if names == [DEPTH]:
        return [DEPTH if extent == DYNAMIC else extent for extent in extents]
    if len(names) == 2 and not (type_.rank == 3 or _is_stack(view)):
        names = [ROWS]
    elif len(names) == 2:
        names = [MATRICES, ROWS]
    return [names.pop(0) if extent == DYNAMIC else extent for extent in extents]


def _is_stack(view: ir.Value) -> bool:
    """Whether matrices are taken of an argument, or something for each."""
    return any(use.owner.name == MatrixOp.OPERATION_NAME for use in view.uses)


def strides_of(view: ir.MemRefType) -> list[Any]:
    """Those of an argument; between matrices of any number of rows as many times a row's, and
    between rows in memory of any length that."""
    if view.rank == 0:
        return []
    strides = view.get_strides_and_offset()[0]
    found: list[Any] = [per_row(1) if is_dynamic_step(each) else each for each in strides]
    if view.rank == 3 and is_dynamic_step(strides[0]):
        found[0] = per_row(-step_of(view))
    return found


def per_row(times: int) -> dict[str, Any]:
    """A size that is `times` the number of rows, which a launch gives."""
    return {"size": ROWS, "times": times}


def map_dims(kernel: KernelOp, op: TensorMapOp) -> list[int | str]:
    """The dims of a map; the last one of a stack's are its matrices."""
    dims, of_stack = list(op.map.type.dims), ir.MemRefType(op.view.type).rank == 3
    name = DEPTH if has_dynamic_depth(kernel) else ROWS
    named: list[int | str] = [name if extent == DYNAMIC else extent for extent in dims]
    if of_stack and has_dynamic_stack(kernel) and dims[-1] == DYNAMIC:
        named[-1] = MATRICES
    return named


def map_strides(strides: list[int]) -> list[Any]:
    """The strides of a map in bytes."""
    return [per_row(-each) if each < 0 else each for each in strides]


def box_sizes(extents: list[int]) -> list[Any]:
    """The extents of a box; rows that a launch gives count up to a maximum."""
    return [each if each > 0 else {"size": ROWS, "most": -each} for each in extents]
