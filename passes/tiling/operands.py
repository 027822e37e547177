"""The operands of a tile: of a matrix, one matrix of a batch, or a part of a group.

stacks        %batch = batch …    %a1 = matrix %a[%batch], …
groups of M   %group = group …    %a1 = rows of %a of %group    %b1 = matrix %b[%group], …
groups of K   %batch, %depth …    %a1 = columns of a matrix of %a of %depth, …
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...dialects.mlir import ir
from ...dialects.tile import CtaTileOp, MatmulOp
from ...dialects.tile.blockwise import BlockwiseMatmulOp
from ...dialects.tile.duals import DualMatmulOp
from ...dialects.tile.grouped_products import (
    BY_ATOMS,
    BY_COLUMNS,
    BY_ROWS,
    GATHERED,
    GROUPED_PRODUCTS,
    groups_rows,
)
from ...dialects.tile.groups import (
    OFFSETS,
    ORDER,
    ROWS,
    GroupDepthOp,
    GroupedMatmulOp,
    OrderedMatmulOp,
)
from ...dialects.tile_types import DYNAMIC, extent_of
from ...dialects.verify import logical_shape
from ..duals import B2
from ..dynamic_rows import row_bounds
from ..weights import weight_scales
from .blockwise import blockwise_scales
from .places import (
    batch_at,
    columns_at,
    depth_at,
    gathered_at,
    group_at,
    matrix_at,
    rows_at,
    scales_at,
)
from .scaled import scales_of
from .swap import transposed


@dataclass
class Operands:
    """Views of what a tile is of.

    a, b: the operands of the MMA, exchanged if the kernel exchanges them. beside: what the op takes
    beside them, by the names of the kernel's arguments. outputs: C, and those beside it. row,
    column: where the tile lies in these views, in tiles. depth: their K in elements; of groups of K
    it is the most, and `group_depth` says what the group has of it; -1 where a launch says it.
    """

    a: Any
    b: Any
    beside: dict[str, Any]
    outputs: list[Any]
    row: ir.Value
    column: ir.Value
    depth: int
    group_depth: GroupDepthOp | None = None


def beside_of(matmul: MatmulOp) -> dict[str, ir.Value]:
    """What an op takes beside A and B, by the names of the kernel's arguments, in their order."""
    found = block_scales(matmul) or weight_scales(matmul)
    if isinstance(matmul, DualMatmulOp):
        found[B2] = matmul.b2
    if isinstance(matmul, (GroupedMatmulOp, *GROUPED_PRODUCTS)):
        found[OFFSETS] = matmul.offsets
    if isinstance(matmul, GATHERED):
        found[ROWS] = matmul.rows
    if isinstance(matmul, OrderedMatmulOp):
        found[ORDER] = matmul.order
    return found


def block_scales(matmul: MatmulOp) -> dict[str, ir.Value]:
    """The scales of blocks of A and of B, if they have some."""
    return blockwise_scales(matmul) or scales_of(matmul)


def operands_of(
    matmul: MatmulOp,
    a_and_b: tuple[Any, Any],
    beside: dict[str, Any],
    outputs: list[Any],
    tile: tuple[int, int, int],
    swap: bool,
) -> Operands:
    """What the tile of this CTA is of, where all of the product's views are given."""
    a, b = reversed(a_and_b) if swap else a_and_b
    cta = CtaTileOp(i=ir.IndexType.get(), j=ir.IndexType.get())
    depth = max(logical_shape(matmul.a.type, matmul.a_major.value)[1], DYNAMIC)
    whole = Operands(a, b, beside, outputs, cta.i, cta.j, depth)
    if outputs[0].type.rank == 3:
        _take_matrix(matmul, whole, cta, tile[0], swap)
    elif groups_rows(matmul):
        _take_group(matmul, whole, cta, tile[1 if swap else 0], swap)
    if swap:
        whole.outputs = [transposed(each) for each in whole.outputs]
    return whole


def _take_matrix(
    matmul: MatmulOp, operands: Operands, cta: CtaTileOp, tile_m: int, swap: bool
) -> None:
    """One matrix of each stack; what is no stack, all matrices share."""
    beside = operands.beside
    c, axis, most = operands.outputs[0].type, 2 if swap else 1, row_bounds(matmul)[1]
    batch = batch_at(cta, c, tile_m, axis, most, beside.get(ORDER))
    operands.row = batch.row

    def one_of(view: Any) -> Any:
        return view if view.type.rank == 2 else matrix_at(view, batch.batch)

    operands.a, operands.b = one_of(operands.a), one_of(operands.b)
    operands.outputs = [one_of(view) for view in operands.outputs]
    if B2 in beside:
        beside[B2] = one_of(beside[B2])
    sides = (matmul.a, matmul.b)
    for name, side in zip(block_scales(matmul), sides, strict=False):
        if side.type.rank == 3:
            beside[name] = matrix_at(beside[name], batch.batch)
    if isinstance(matmul, GroupedMatmulOp):
        depth = operands.group_depth = depth_at(batch, beside[OFFSETS], operands.depth)
        operands.a, operands.b = columns_at(operands.a, depth), columns_at(operands.b, depth)


def _take_group(
    matmul: MatmulOp, operands: Operands, cta: CtaTileOp, tile_rows: int, swap: bool
) -> None:
    """The rows of one group, of A also those that it names, and its own matrix of B."""
    beside, extent = operands.beside, extent_of(operands.outputs[0].type, 0)
    group = group_at(cta.j if swap else cta.i, beside[OFFSETS], extent, tile_rows)
    a, b = (operands.b, operands.a) if swap else (operands.a, operands.b)
    if isinstance(matmul, GATHERED):
        a = gathered_at(a, group, beside[ROWS])
    else:
        a = rows_at(a, group)
    b = matrix_at(b, group.group)
    if swap:
        operands.a, operands.b, operands.column = b, a, group.row
    else:
        operands.a, operands.b, operands.row = a, b, group.row
    of_rows, *of_columns = block_scales(matmul) or [None]
    if of_rows:
        beside[of_rows] = scales_at(beside[of_rows], group, _form_of(matmul, beside[of_rows].type))
    for name in [*of_columns, B2]:
        if name in beside:
            beside[name] = matrix_at(beside[name], group.group)
    operands.outputs = [rows_at(view, group) for view in operands.outputs]


def _form_of(matmul: MatmulOp, scales: ir.MemRefType) -> str:
    """What the lines of the scales of a group's rows are."""
    if isinstance(matmul, BlockwiseMatmulOp):
        return BY_COLUMNS
    return BY_ATOMS if scales.rank == 5 else BY_ROWS
