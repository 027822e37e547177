"""Swap-AB: rows of the accumulator are columns of C; transposes what depends on it.

%turned = tile.transposed %c                 store %acc, %turned[%i, %j]
element %e0 {axes = "n"}, one a column of C  →  {axes = "m"}, one a row of the sums
element %e1 {axes = "mn"}                    →  element (tile.transposed %e1) {axes = "mn"}
"""

from __future__ import annotations

from typing import Any

from ...dialects.mlir import ir
from ...dialects.mma_units import WARP
from ...dialects.target import Target
from ...dialects.tile import ElementOp, KernelOp, MatmulOp
from ...dialects.tile.batches import TransposedOp, transposed_view
from ...dialects.tile.blockwise import BlockwiseMatmulOp
from ...dialects.tile.grouped_products import GroupedScaledMatmulOp
from ...dialects.tile.groups import GroupedMatmulOp
from ...dialects.tile.outputs import KeepGroupsOp, kept_by
from ...dialects.tile.quantized import quantize_of
from ...dialects.tile.scales import ScaledMatmulOp
from ...dialects.tile.weights import WeightMatmulOp
from ..base import refused, walk
from ..batches import matrix_of
from ..groups import rows_of_group

EXCHANGED = {"": "", "m": "n", "n": "m", "mn": "mn"}
"""What is indexed by so much of C is indexed by so much of the sums, and the other way round."""


EXCHANGEABLE = (
    *(MatmulOp, WeightMatmulOp, GroupedMatmulOp, BlockwiseMatmulOp),
    *(ScaledMatmulOp, GroupedScaledMatmulOp),
)


def check_swap(matmul: MatmulOp, target: Target) -> None:
    """Refuse to exchange A and B where the rest cannot be turned."""
    block = matmul.epilogue.blocks[0]
    groups = any(isinstance(each, KeepGroupsOp) for each in kept_by(block))
    broken = None
    of_depth = isinstance(matmul, GroupedMatmulOp) and matmul.of_depth
    if type(matmul) not in EXCHANGEABLE or of_depth:
        got = "groups of K" if of_depth else matmul.operation.name
        broken = f"one product of matrices, or of groups of rows, got {got}"
    elif quantize_of(block) is not None or groups:
        broken = "outputs of single elements, got one that reduces neighbours of a row"
    elif target.mma.issuer == WARP or target.threads_multiply:
        broken = f"wgmma or tcgen05.mma, got {target.mma.name}"
    if broken:
        raise refused(matmul, f"tiling: swap needs {broken}; leave it out")


def transposed(view: Any) -> ir.Value[Any]:
    """The view of a matrix with its rows for columns."""
    return TransposedOp(view=view, transposed=transposed_view(view.type)).transposed


def transpose_elements(kernel: KernelOp) -> None:
    """Let epilogues read the other operands at places of the sums."""
    views: dict[ir.Value, ir.Value] = {}
    for element in walk(kernel, ElementOp):
        source, axes = element.source, element.axes.value
        element.operation.attributes["axes"] = ir.StringAttr.get(EXCHANGED[axes])
        if axes != "mn":
            continue
        if source not in views:
            with _behind(kernel, source), element.location:
                views[source] = transposed(source)
        element.operation.operands[0] = views[source]


def _behind(kernel: KernelOp, source: ir.Value) -> ir.InsertionPoint:
    """Where a view may first be read: at the top, or after the op that takes it of a stack
    or of groups."""
    part = matrix_of(source) or rows_of_group(source)
    if part is not None:
        return ir.InsertionPoint.after(part.operation)
    return ir.InsertionPoint.at_block_begin(kernel.body.blocks[0])
