"""Rows of C, or matrices of a stack, that a launch says: how the program asks for them, and how
many tiles they are.

    rows        memref.dim of a view, which becomes a parameter of the kernel
    M tiles     tile.tile_count of C's rows, once for the kernel
    matrices    likewise, and tile.stack_tiles of C's matrices
    K           memref.dim of A, and tile.group_steps of it, where loops over K tiles end

A launch says them by views with a dynamic first dim, `memref<?x128xbf16, 1>`. Nothing is known of
such a number but that it is positive: each tile may hang over the last row. No tile hangs over a
matrix, `memref<?x64x128xbf16, 1>`. Where a launch says both, `memref<?x?x128xbf16, 1>`, matrices
lie one after the other: the step from one to the next is as many rows as there are.

Where A has M contiguous, what a launch says is also how long its rows in memory are, along K:
`memref<?x128xbf16, strided<[1, ?]>, 1>`. The module says of which number M is a multiple.

K may be any number where its elements are the rows of A and B in memory, as in gradients of
weights: `memref<128x?xbf16, strided<[1, 128]>, 1>`. TMA and copies give zeros past the last one.
"""

from __future__ import annotations

from typing import Any

from ..dialects.mlir import arith, ir, memref
from ..dialects.sm.threads import PrologueOp
from ..dialects.sm.types import attribute_of
from ..dialects.tile import MMAS, KernelOp
from ..dialects.tile.batches import BatchOp, CountedBatchOp, StackTilesOp
from ..dialects.tile.boxes import BoxRowsOp
from ..dialects.tile.groups import GroupStartsOp
from ..dialects.tile.loads import TmaLoadOp
from ..dialects.tile.place import CountedPlaceOp, PlaceOp, TileCountOp
from ..dialects.tile.sums import ViewMmaOp
from ..dialects.tile_types import DYNAMIC, extent_of, integer, integers, integers_of
from .base import MULTIPLE_ATTRIBUTE, ROWS_ATTRIBUTE, is_swapped, refused, walk
from .batches import batch_of, map_definition
from .build import as_i32, constant, i32
from .clone import constant_of, index_constant
from .groups import group_of, spare_rows, starts_of
from .thread_rules import acting

ROWS_MOST = 2**31 - 1
DEPTH_MOST = 2**30
"""The largest K that a launch says: elements of steps ahead of it are counted in 32 bits, too."""
ROWS, MATRICES, DEPTH = "m", "batch", "k"
"""The names of what a launch says, in the order of parameters."""


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
    """Whether a launch says a size of C."""
    return has_dynamic_rows(kernel) or has_dynamic_stack(kernel)


def has_dynamic_depth(kernel: KernelOp) -> bool:
    """Whether a launch says K."""
    return is_of_any_depth(kernel.body.blocks[0].arguments[0].type)


def is_of_any_depth(view: ir.Type) -> bool:
    """Whether a launch says how many columns a view [MN, K] has."""
    type_ = ir.MemRefType(view)
    return type_.rank == 2 and extent_of(type_, 1) == DYNAMIC


def is_said_depth(kernel: KernelOp, count: ir.Value) -> bool:
    """Whether a value is the K that a launch says: the columns of a or b."""
    op = None if isinstance(count.owner, ir.Block) else count.owner
    if op is None or op.name != "memref.dim" or constant_of(op.operands[1]) != 1:
        return False
    found = op.operands[0]
    return found in list(kernel.body.blocks[0].arguments)[:2] and is_of_any_depth(found.type)


def size_names(kernel: KernelOp) -> tuple[str, ...]:
    """The names of the sizes of the product that a launch says."""
    said = {ROWS: has_dynamic_rows(kernel), MATRICES: has_dynamic_stack(kernel)}
    said[DEPTH] = has_dynamic_depth(kernel)
    return tuple(name for name, is_said in said.items() if is_said)


def has_counted_matrices(kernel: KernelOp) -> bool:
    """Whether a launch says how many tiles each matrix of a stack has."""
    batch = batch_of(kernel)
    return batch is not None and batch.tiles.value == DYNAMIC


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


def rows_multiple(op: Any) -> int:
    """The number of which the rows of a launch are a multiple, according to the module of an op."""
    module = module_of(op)
    if MULTIPLE_ATTRIBUTE not in module.attributes:
        return 1
    attribute, (least, most) = module.attributes[MULTIPLE_ATTRIBUTE], row_bounds(op)
    found = ir.IntegerAttr(attribute).value if isinstance(attribute, ir.IntegerAttr) else 0
    if not 1 <= found <= most or most // found * found < least:
        rule = f"{MULTIPLE_ATTRIBUTE} must be a number of which rows from {least} to {most} are"
        raise refused(module, f"{rule} multiples, got {attribute}; name one")
    return found


def check_bounds(op: Any, dynamic: bool) -> None:
    """Refuse bounds that no rows have, or that are none."""
    row_bounds(op)
    rows_multiple(op)
    for name in (ROWS_ATTRIBUTE, MULTIPLE_ATTRIBUTE):
        if not dynamic and name in module_of(op).attributes:
            rule = f"{name} is of a module whose c has any number of rows"
            raise refused(op, f"{rule}, got a known one; drop it")


def module_of(op: Any) -> ir.Operation:
    """The module that an op stands in."""
    module = op.operation
    while module.parent is not None:
        module = module.parent
    return module


def bound_rows(module: Any, least: int, most: int, multiple: int = 1) -> None:
    """Let the module say the fewest and the most rows of a launch, and their multiple."""
    module.operation.attributes[ROWS_ATTRIBUTE] = integers([least, most])
    if multiple > 1:
        module.operation.attributes[MULTIPLE_ATTRIBUTE] = integer(multiple)


def least_rows(op: Any) -> int:
    """The fewest rows that a launch says."""
    return row_bounds(op)[0]


def count_tiles(kernel: KernelOp) -> ir.Value:
    """The tiles along C's rows, in whole clusters, as i32; emitted in front of the program.

    They lie along M, or along N where MMAs multiply tiles of B by tiles of A. Those of all matrices
    of a stack lie along M. Of groups they are those that the offsets say, or where a launch has a
    CTA for each those that groups of so many rows may have.
    """
    group, batch = group_of(kernel), batch_of(kernel)
    launched = has_launched_groups(kernel)
    found = walk(kernel, StackTilesOp) or walk(kernel, TileCountOp)
    found = found or ([] if launched else walk(kernel, GroupStartsOp))
    if found:
        return found[0].count
    entry = kernel.body.blocks[0]
    first = _first_op(kernel, entry)
    with ir.InsertionPoint(first), kernel.location:
        c = list(entry.arguments)[-1]
        if group is not None:
            if launched:
                return _tiles_of_rows(kernel, c, spare_rows(group))
            return starts_of(group).count
        if not has_dynamic_stack(kernel) or batch is None:
            return _tiles_of_rows(kernel, c)
        tiles = batch.tiles.value
        each = _tiles_of_rows(kernel, c) if tiles == DYNAMIC else constant(tiles)
        matrices = memref.dim(c, index_constant(0))
        return StackTilesOp(matrices=matrices, each=each, count=i32()).count


def _first_op(kernel: KernelOp, entry: ir.Block) -> Any:
    """The first op that does more than compute a value; before it what counts tiles of matrices."""
    acts = next(op for op in acting(entry) if not isinstance(op, PrologueOp))
    if not has_counted_matrices(kernel):
        return acts
    return next(op for op in entry.operations if isinstance(op, BatchOp) or op == acts)


def has_launched_groups(kernel: KernelOp) -> bool:
    """Whether a launch has a CTA for each tile that groups of its rows may have."""
    along_rows = integers_of(kernel.grid)[counted_axis(kernel)]
    return group_of(kernel) is not None and along_rows == DYNAMIC


def _tiles_of_rows(kernel: KernelOp, c: ir.Value, spare: int = 0) -> ir.Value:
    """Emit the tiles along the rows of C and so many more, or of each of its matrices."""
    axis = counted_axis(kernel)
    rows = memref.dim(c, index_constant(ir.MemRefType(c.type).rank - 2))
    rows = arith.addi(rows, index_constant(spare)) if spare else rows
    tile, whole = counted_extent(kernel), integers_of(kernel.cluster)[axis]
    how = {"tile": attribute_of(tile), "whole": attribute_of(whole)}
    return TileCountOp(rows=rows, **how, count=i32()).count


def count_matrices(kernel: KernelOp) -> None:
    """Tell each `tile.batch` of matrices with any number of rows how many tiles those have."""
    if not has_counted_matrices(kernel):
        return
    count_tiles(kernel)
    (each,) = (op.count for op in walk(kernel, TileCountOp))
    index = ir.IndexType.get()
    for op in walk(kernel, BatchOp):
        with ir.InsertionPoint(op), op.location:
            operands = {"i": op.i, "tiles": op.tiles, "count": op.count}
            made = CountedBatchOp(**operands, each=each, batch=index, row=index)
        for old, new in zip(op.operation.results, made.operation.results, strict=True):
            old.replace_all_uses_with(new)
        op.operation.erase()


def counted_axis(kernel: KernelOp) -> int:
    """0 where tiles of C's rows, or of its matrices, lie along M, 1 where they lie along N."""
    return int(is_swapped(kernel) and not has_dynamic_stack(kernel))


def counted_extent(kernel: KernelOp) -> int:
    """The rows of C in a tile."""
    mma = next(iter(walk(kernel, (*MMAS, ViewMmaOp))), None)
    return 1 if mma is None else mma.acc.type.shape[counted_axis(kernel)]


def known_tiles(kernel: KernelOp, tiles: list[int], order: str) -> list[int]:
    """Tiles along M and N, -1 along rows of C where they are counted: groups have fewer than there
    may be.

    A curve is a table of all that there may be.
    """
    if group_of(kernel) is None or order == "hilbert":
        return tiles
    axis = counted_axis(kernel)
    return [DYNAMIC if each == axis else tiles[each] for each in range(2)]


def clusters_along_m(kernel: KernelOp, tiles: int) -> ir.Value:
    """How many clusters there are along M, of so many tiles or, where those are -1, of all."""
    size = integers_of(kernel.cluster)[0]
    return constant(tiles // size) if tiles != DYNAMIC else count_tiles(kernel) // size


def box_rows(load: TmaLoadOp) -> ir.Value:
    """Rows of a load's boxes, which a launch says, as i32; emitted here."""
    view, most = map_definition(load.map).view, load.tile.type.layout.rows
    rows = memref.dim(view, index_constant(ir.MemRefType(view.type).rank - 2))
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
