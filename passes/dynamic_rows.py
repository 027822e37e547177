"""Rows of C, or matrices of a stack, that a launch says: how the program asks for them, and how
many tiles they are.

    rows        memref.dim of a view, which becomes a parameter of the kernel
    M tiles     tile.tile_count of C's rows, once for the kernel
    matrices    likewise, and tile.stack_tiles of C's matrices

A launch says them by views with a dynamic first dim, `memref<?x128xbf16, 1>`. Nothing is known of
such a number but that it is positive: each tile may hang over the last row. No tile hangs over a
matrix, `memref<?x64x128xbf16, 1>`. A launch says one of the two.
"""

from __future__ import annotations

from typing import Any

from ..dialects.mlir import ir, memref
from ..dialects.sm_threads import PrologueOp
from ..dialects.sm_types import attribute_of
from ..dialects.tile import MMAS, KernelOp
from ..dialects.tile_batches import StackTilesOp
from ..dialects.tile_boxes import BoxRowsOp
from ..dialects.tile_groups import GroupStartsOp
from ..dialects.tile_loads import TmaLoadOp
from ..dialects.tile_place import CountedPlaceOp, PlaceOp, TileCountOp
from ..dialects.tile_sums import ViewMmaOp
from ..dialects.tile_types import DYNAMIC, extent_of, integers, integers_of
from .base import ROWS_ATTRIBUTE, is_swapped, refused, walk
from .batches import batch_of, map_definition
from .build import as_i32, constant, i32
from .clone import index_constant
from .groups import group_of, starts_of
from .thread_rules import acting

ROWS_MOST = 2**31 - 1


def rows_of(view: ir.Value) -> int | ir.Value:
    """The rows of a view: their number, or emitted here as i32 where a launch says it."""
    known = extent_of(view.type, 0)
    return as_i32(memref.dim(view, index_constant(0))) if known == DYNAMIC else known


def has_dynamic_rows(kernel: KernelOp) -> bool:
    """Whether a launch says how many rows C has."""
    c = list(kernel.body.blocks[0].arguments)[-1]
    return extent_of(c.type, ir.MemRefType(c.type).rank - 2) == DYNAMIC


def has_dynamic_stack(kernel: KernelOp) -> bool:
    """Whether a launch says how many matrices C is a stack of."""
    c = list(kernel.body.blocks[0].arguments)[-1]
    return ir.MemRefType(c.type).rank == 3 and extent_of(c.type, 0) == DYNAMIC


def has_dynamic_size(kernel: KernelOp) -> bool:
    """Whether a launch says one of the sizes of C."""
    return has_dynamic_rows(kernel) or has_dynamic_stack(kernel)


def row_bounds(op: Any) -> tuple[int, int]:
    """The fewest and the most rows that a launch says, by the module of an op."""
    module = module_of(op)
    if ROWS_ATTRIBUTE not in module.attributes:
        return 1, ROWS_MOST
    attribute = module.attributes[ROWS_ATTRIBUTE]
    numbers = list(attribute) if isinstance(attribute, ir.ArrayAttr) else []
    bounds = [ir.IntegerAttr(each).value for each in numbers if isinstance(each, ir.IntegerAttr)]
    if len(numbers) != 2 or len(bounds) != 2 or not 1 <= bounds[0] <= bounds[1] <= ROWS_MOST:
        rule = f"{ROWS_ATTRIBUTE} must be the fewest and the most rows, from 1 to {ROWS_MOST}"
        raise refused(module, f"{rule}, got {attribute}; name two")
    return bounds[0], bounds[1]


def check_bounds(op: Any, dynamic: bool) -> None:
    """Refuse bounds that no rows have, or that are none."""
    row_bounds(op)
    if not dynamic and ROWS_ATTRIBUTE in module_of(op).attributes:
        rule = f"{ROWS_ATTRIBUTE} is of a module whose c has any number of rows"
        raise refused(op, f"{rule}, got a known one; drop it")


def module_of(op: Any) -> ir.Operation:
    """The module that an op stands in."""
    module = op.operation
    while module.parent is not None:
        module = module.parent
    return module


def bound_rows(module: Any, rows: tuple[int, int]) -> None:
    """Let the module say the fewest and the most rows of a launch."""
    module.operation.attributes[ROWS_ATTRIBUTE] = integers(list(rows))


def least_rows(op: Any) -> int:
    """The fewest rows that a launch says."""
    return row_bounds(op)[0]


def count_tiles(kernel: KernelOp) -> ir.Value:
    """The tiles along C's rows, in whole clusters, as i32; emitted in front of the program.

    They lie along M, or along N where MMAs multiply tiles of B by tiles of A. Those of all matrices
    of a stack lie along M.
    """
    for op in walk(kernel, TileCountOp | StackTilesOp | GroupStartsOp):
        return op.count
    entry = kernel.body.blocks[0]
    axis, tile = counted_axis(kernel), counted_extent(kernel)
    first = next(op for op in acting(entry) if not isinstance(op, PrologueOp))
    group, batch = group_of(kernel), batch_of(kernel)
    with ir.InsertionPoint(first), kernel.location:
        if group is not None:
            return starts_of(group).count
        rows = memref.dim(list(entry.arguments)[-1], index_constant(0))
        if has_dynamic_stack(kernel) and batch is not None:
            return StackTilesOp(matrices=rows, each=batch.tiles, count=i32()).count
        whole = attribute_of(integers_of(kernel.cluster)[axis])
        return TileCountOp(rows=rows, tile=attribute_of(tile), whole=whole, count=i32()).count


def counted_axis(kernel: KernelOp) -> int:
    """0 where tiles of C's rows, or of its matrices, lie along M, 1 where they lie along N."""
    return int(is_swapped(kernel) and not has_dynamic_stack(kernel))


def counted_extent(kernel: KernelOp) -> int:
    """The rows of C in a tile."""
    mma = next(iter(walk(kernel, (*MMAS, ViewMmaOp))), None)
    return 1 if mma is None else mma.acc.type.shape[counted_axis(kernel)]


def known_tiles(kernel: KernelOp, tiles: list[int], order: str) -> list[int]:
    """Tiles along M and N, -1 along M where they are counted: groups have fewer than there may be.

    A curve is a table of all that there may be.
    """
    counted = group_of(kernel) is not None and order != "hilbert"
    return [DYNAMIC, *tiles[1:]] if counted else tiles


def clusters_along_m(kernel: KernelOp, tiles: int) -> ir.Value:
    """How many clusters there are along M, of so many tiles or, where those are -1, of all."""
    size = integers_of(kernel.cluster)[0]
    return constant(tiles // size) if tiles != DYNAMIC else count_tiles(kernel) // size


def box_rows(load: TmaLoadOp) -> ir.Value:
    """Rows of a load's boxes, which a launch says, as i32; emitted here."""
    view, most = map_definition(load.map).view, load.tile.type.layout.rows
    rows = memref.dim(view, index_constant(0))
    return BoxRowsOp(rows=rows, most=attribute_of(most), count=i32()).count


def kernel_of(op: Any) -> KernelOp:
    """The kernel that an op stands in."""
    around = op.operation.parent
    while around.name != KernelOp.OPERATION_NAME:
        around = around.parent
    return around.opview


def place_at(kernel: KernelOp, number: ir.Value, how: dict[str, Any]) -> PlaceOp:
    """Emit the place of a tile by its number; `how` is the tiles, their order and group."""
    index = ir.IndexType.get()
    if DYNAMIC not in integers_of(how["tiles"]):
        return PlaceOp(number=number, **how, i=index, j=index)
    return CountedPlaceOp(number=number, counted=count_tiles(kernel), **how, i=index, j=index)
