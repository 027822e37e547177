"""Checks of `tiling` and of later passes on products with narrow weights.

    tile.weight_matmul(%a, %b, %s)   →   %ta = load %a[%i, %k]     %tb = load %b[%j, %k]
                                         weight_mma %acc, %ta, %tb, %j, %k, %s

A warp that multiplies by itself (mma.sync) widens its columns of B. Warpgroups widen their rows of
A into registers (wgmma), or tensor memory (tcgen05.mma): A and B are exchanged for them.

                                     →   %ta = load %b[%i, %k]     %tb = load %a[%j, %k]
                                         exchanged_weight_mma %acc, %ta, %tb, %i, %k, %s

Weights of four bits lie two to a byte in global and in shared memory: their views and tiles are of
bytes.
"""

from __future__ import annotations

import math
from typing import Any

from ..dialects import legality, weight_legality
from ..dialects.dtypes import DTYPES, DType, weight_dtype
from ..dialects.layout import UNIT_BYTES
from ..dialects.mlir import ir
from ..dialects.mma_units import MMA_SYNC, PRODUCT_SLOTS, WARP
from ..dialects.sm.types import attribute_of
from ..dialects.target import Target
from ..dialects.tile import KernelOp, MatmulOp
from ..dialects.tile.weights import (
    SCALES,
    ZEROS,
    ExchangedWeightMmaOp,
    WeightMatmulOp,
    WeightMmaOp,
    scale_views,
)
from .base import refused, require, target_of, use_mma, walk

MMA_K, WIDENED_K = 16, 32
"""Elements along K of an MMA, and those that a thread widens together for wgmma."""

WEIGHT_TILE = (64, 128, 64)
"""Of whose sums threads hold those of a group and those of all."""


def choose_weight_mma(module: ir.Module, matmul: WeightMatmulOp, asked: str | None) -> Target:
    """Let the module's kernel multiply by fragments, which threads can widen.

    Those of mma.sync, or where it is asked for those of wgmma: products of groups are added apart.
    """
    apart = has_groups(matmul.group.value, _depth(matmul), matmul.scales is not None)
    target = target_of(module)
    transposed, units = target.widening_mma(apart), (target.mma, *target.other_mmas)
    names = [MMA_SYNC.name, *([] if transposed is None else [transposed.name])]
    known = [each.name for each in units if each.name in names]
    if asked not in (None, *known):
        rule = f"tiling: mma must be {' or '.join(sorted(known))} for weights that threads widen"
        raise refused(matmul, f"{rule}, got {asked}; leave it out")
    use_mma(module, asked or MMA_SYNC.name)
    target = target_of(module)
    require(matmul, weight_legality.weight_type(target, weights_of(matmul).name), "", "tiling: ")
    return target


def weights_of(matmul: WeightMatmulOp) -> DType:
    """The type of the weights."""
    dtype = weight_dtype(str(matmul.b.type.element_type))
    assert dtype is not None  # its verifier has asked
    return dtype


def stored_weights(matmul: MatmulOp, tensor: ir.RankedTensorType) -> ir.RankedTensorType:
    """A tensor as its tiles are taken: weights of four bits are bytes."""
    dtype = weight_dtype(str(tensor.element_type))
    if not isinstance(matmul, WeightMatmulOp) or dtype is None or dtype.bits == 8:
        return tensor
    *outer, k = tensor.shape
    return ir.RankedTensorType.get([*outer, k * dtype.bits // 8], ir.Type.parse(DTYPES["u8"].mlir))


def weights_per_byte(matmul: MatmulOp) -> int:
    """Elements of B that an element of its tiles holds."""
    return 8 // weights_of(matmul).bits if isinstance(matmul, WeightMatmulOp) else 1


def has_groups(group: int, depth: int, scaled: bool) -> bool:
    """Whether there are scales of less than all of K, `depth`."""
    return scaled and group != depth


def check_weight_tile(
    matmul: WeightMatmulOp, tile: tuple[int, int, int], target: Target, swap: bool
) -> None:
    """Refuse a tile that fragments do not cover, or that no memory of `target` can hold.

    With `swap` its rows are those of weights.
    """
    m, n, k = tile
    if target.mma.issuer != WARP and not swap:
        rule = f"tiling: {target.mma.name} takes weights for its A"
        raise refused(matmul, f"{rule}, got those of B; exchange them by swap=true")
    weights = weights_of(matmul)
    require(matmul, legality.tile_rows(target, m))
    require(matmul, legality.tile_columns(target, m, n, False))
    group = matmul.group.value
    require(matmul, weight_legality.weight_depth(k, weights.bits, group, _depth(matmul)))
    of_c = (n, m, k) if swap else tile
    require(
        matmul, weight_legality.weight_memory(target, of_c, weights.bits), "make the tile smaller"
    )
    require(matmul, legality.accumulator_registers(target, m, n), "make the tile smaller")
    if target.adds_from_tensor_memory:
        depth = _depth(matmul)
        broken = weight_legality.weight_columns(target, n, k, group, depth)
        require(matmul, broken, "make the tile smaller")


def weight_mma(
    matmul: WeightMatmulOp, views: list[ir.Value], where: dict[str, Any], swap: bool
) -> None:
    """Emit the MMA of a K step; `views` are those of scales and zeros."""
    beside = dict(zip(scale_views(matmul), views, strict=True))
    op_class = ExchangedWeightMmaOp if swap else WeightMmaOp
    op_class(**where, **beside, b_type=attribute_of(weights_of(matmul).name), group=matmul.group)


def weight_scales(matmul: MatmulOp) -> dict[str, ir.Value]:
    """Scales and zeros of weights by their names in the kernel, if the product has some."""
    return scale_views(matmul) if isinstance(matmul, WeightMatmulOp) else {}


def segment(k: int, group: int, depth: int) -> int:
    """K of the parts of a tile of `k` that are of one group each, `depth` being all of K."""
    return k if group in (0, depth) else math.gcd(k, group)


def weight_names(kernel: KernelOp) -> list[str]:
    """The names of the views of scales and zeros of weights that a kernel has."""
    if not walk(kernel, WeightMmaOp):
        return []
    names = [ir.StringAttr(name).value for name in kernel.arg_names]
    return [name for name in names[2:4] if name in (SCALES, ZEROS)]


def groups_of_mmas(kernel: KernelOp) -> int:
    """Groups of wgmma that one `tile` op issues: of weights one for each `WIDENED_K` of K, so that
    registers of A are free as soon as they have been read."""
    return next((-(-op.depth // WIDENED_K) for op in walk(kernel, ExchangedWeightMmaOp)), 1)


def product_slots(kernel: KernelOp) -> int:
    """How many products tensor memory has that threads add: MMAs of weights without groups add to
    one, which threads read at last."""
    alone = [op for op in walk(kernel, ExchangedWeightMmaOp) if not _is_grouped(kernel, op)]
    return 1 if alone else PRODUCT_SLOTS


def widened_columns(kernel: KernelOp) -> int:
    """Columns of tensor memory with the weights that MMAs read together, two to a column: those of
    a step, or of a group in it."""
    return max((part_of(kernel, op) // 2 for op in walk(kernel, ExchangedWeightMmaOp)), default=0)


def _is_grouped(kernel: KernelOp, op: ExchangedWeightMmaOp) -> bool:
    return has_groups(op.group.value, depth_of_kernel(kernel), op.scales is not None)


def part_of(kernel: KernelOp, op: WeightMmaOp) -> int:
    """K of the parts of a step that are of one group each."""
    return segment(op.depth, op.group.value, depth_of_kernel(kernel))


def depth_of_kernel(kernel: KernelOp) -> int:
    """All of K."""
    return ir.MemRefType(kernel.body.blocks[0].arguments[0].type).shape[-1]


def unit_of(bits: int) -> int:
    """What a tile's K is a multiple of: whole MMAs, and rows of whole 16 bytes."""
    return math.lcm(MMA_K, UNIT_BYTES * 8 // bits)


def _depth(matmul: WeightMatmulOp) -> int:
    return list(matmul.a.type.shape)[-1]
