"""Checks of `tiling` on products with f32 scales of 128 elements of K.

    tile.blockwise_matmul(%a, %b, %sa, %sb)  →  %ta = load %a[%i, %k]    %tb = load %b[%j, %k]
                                                %fa = load %sa[%k, %i]
                                                blockwise_mma %acc, %ta, %tb, %fa, %sb, %i, %j, %k

Threads multiply by the scales and add, so the target's MMA is one whose products they add. Scales
of single rows come to shared memory with their tile, where a step of K has one of each row. Others
threads read from their views, and so those of groups of rows, of which TMA brings none: they begin
within 16 bytes.
"""

from __future__ import annotations

from typing import Any

from ...dialects.dtypes import BLOCKWISE, BLOCKWISE_FORMS
from ...dialects.layout import LINEAR, TileLayout
from ...dialects.mlir import ir
from ...dialects.target import Target, targets_with
from ...dialects.tile import LoadOp, MatmulOp
from ...dialects.tile.blockwise import BlockwiseMatmulOp, BlockwiseMmaOp
from ...dialects.tile_types import SmemType, element_bytes
from ..base import refused, target_of, use_mma
from ..groups import form_of_scales

NAMES = ("a_scales", "b_scales")
DEPTH = 64


def choose_blockwise_mma(module: ir.Module, matmul: BlockwiseMatmulOp, asked: str | None) -> Target:
    """Let the module's kernel multiply by an MMA whose products threads scale and add."""
    chip, unit = target_of(module).chip, target_of(module).added_mma
    if unit is None:
        chips = targets_with(lambda target: target.added_mma is not None)
        rule = f"tiling: threads multiply by scales of 128 elements on {chips}"
        raise refused(matmul, f"{rule}, got {chip}; compile for one of them")
    if asked not in (None, unit.name):
        rule = f"tiling: mma must be {unit.name} for scales of 128 elements"
        raise refused(matmul, f"{rule}, got {asked}; leave it out")
    use_mma(module, unit.name)
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


def blockwise_mma(
    matmul: BlockwiseMatmulOp, scales: list[ir.Value], where: dict[str, Any], swap: bool
) -> None:
    """Emit the MMA of a K step; `scales` are the views of this matrix, of A's and of B's. With
    `swap` B is the MMA's A."""
    forms = {"a_form": matmul.a_form, "b_form": matmul.b_form}
    if swap:
        scales = scales[::-1]
        forms = dict(zip(forms, reversed(forms.values()), strict=True))
    rows, whole = where["acc"].type.shape, where["a"].type.layout.k == BLOCKWISE
    brought = {
        f"{name}_scales": _load_vector(view, extent, where[at], where["k"])
        if whole and forms[f"{name}_form"].value == BLOCKWISE_FORMS[0] and not form_of_scales(view)
        else view
        for name, view, extent, at in zip("ab", scales, rows, "ij", strict=True)
    }
    BlockwiseMmaOp(**where, **brought, **forms)


def _load_vector(view: ir.Value, rows: int, place: ir.Value, step: ir.Value) -> ir.Value:
    """The scales of a tile's rows, which lie side by side."""
    element = ir.MemRefType(view.type).element_type
    layout = TileLayout(1, rows, element_bytes(element), "k", LINEAR)
    return LoadOp(tile=SmemType.of(layout, element), view=view, i=step, j=place).tile
