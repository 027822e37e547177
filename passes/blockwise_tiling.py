"""What `tiling` asks of a product with scales in f32 for 128 elements of K.

    tile.blockwise_matmul(%a, %b, %sa, %sb)  →  %ta = load %a[%i, %k]    %tb = load %b[%j, %k]
                                                blockwise_mma %acc, %ta, %tb, %sa, %sb, %i, %j, %k

Threads multiply by the scales and add, so the target's MMA is one whose products they add.
"""

from __future__ import annotations

from typing import Any

from ..dialects.dtypes import BLOCKWISE
from ..dialects.mlir import ir
from ..dialects.target import WGMMA_ADDED, Target
from ..dialects.tile import MatmulOp
from ..dialects.tile_blockwise import BlockwiseMatmulOp, BlockwiseMmaOp
from ..dialects.tile_types import element_bytes
from .base import refused, target_of, use_mma

NAMES = ("a_scales", "b_scales")
DEPTH = 64


def choose_blockwise_mma(module: ir.Module, matmul: BlockwiseMatmulOp, asked: str | None) -> Target:
    """Let the module's kernel multiply by an MMA whose products threads scale and add."""
    chip = target_of(module).chip
    units = (target_of(module).mma, *target_of(module).other_mmas)
    if WGMMA_ADDED.name not in [unit.name for unit in units]:
        rule = "tiling: threads multiply by scales of 128 elements on sm_90a"
        raise refused(matmul, f"{rule}, got {chip}; compile for that")
    if asked not in (None, WGMMA_ADDED.name):
        rule = f"tiling: mma must be {WGMMA_ADDED.name} for scales of 128 elements"
        raise refused(matmul, f"{rule}, got {asked}; leave it out")
    use_mma(module, WGMMA_ADDED.name)
    return target_of(module)


def blockwise_depth(matmul: MatmulOp, target: Target) -> int:
    """The K of a tile where none is asked for."""
    if not target.adds_products:
        return DEPTH
    return BLOCKWISE if element_bytes(matmul.a.type.element_type) == 1 else DEPTH


def blockwise_scales(matmul: MatmulOp) -> dict[str, ir.Value]:
    """The scales of a product by their names in the kernel, if it has such."""
    if not isinstance(matmul, BlockwiseMatmulOp):
        return {}
    return dict(zip(NAMES, (matmul.a_scales, matmul.b_scales), strict=True))


def blockwise_mma(matmul: BlockwiseMatmulOp, scales: list[ir.Value], where: dict[str, Any]) -> None:
    """Emit the MMA of a K step; `scales` are the views of this matrix."""
    forms = {"a_form": matmul.a_form, "b_form": matmul.b_form}
    BlockwiseMmaOp(**where, a_scales=scales[0], b_scales=scales[1], **forms)
