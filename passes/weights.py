"""What `tiling` asks of a product whose weights threads widen, and what passes ask of its kernel.

    tile.weight_matmul(%a, %b, %s)   →   %ta = load %a[%i, %k]     %tb = load %b[%j, %k]
                                         weight_mma %acc, %ta, %tb, %j, %k, %s

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
from ..dialects.sm_types import attribute_of
from ..dialects.target import MMA_SYNC, Target
from ..dialects.tile import KernelOp, MatmulOp
from ..dialects.tile_weights import SCALES, ZEROS, WeightMatmulOp, WeightMmaOp, scale_views
from .base import refused, require, target_of, use_mma, walk

MMA_K = 16


WEIGHT_TILE = (64, 128, 64)
"""Of whose sums threads hold those of a group and those of all."""


def choose_weight_mma(module: ir.Module, matmul: WeightMatmulOp, asked: str | None) -> Target:
    """Let the module's kernel multiply by fragments, which threads can widen."""
    if asked not in (None, MMA_SYNC.name):
        rule = f"tiling: mma must be {MMA_SYNC.name} for weights that threads widen"
        raise refused(matmul, f"{rule}, got {asked}; leave it out")
    use_mma(module, MMA_SYNC.name)
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


def check_weight_tile(matmul: WeightMatmulOp, tile: tuple[int, int, int], target: Target) -> None:
    """Refuse a tile that fragments do not cover, or that no memory of `target` can hold."""
    m, n, k = tile
    weights = weights_of(matmul)
    require(matmul, legality.tile_rows(target, m))
    require(matmul, legality.tile_columns(target, m, n, False))
    group = matmul.group.value
    require(matmul, weight_legality.weight_depth(k, weights.bits, group, _depth(matmul)))
    require(
        matmul, weight_legality.weight_memory(target, tile, weights.bits), "make the tile smaller"
    )
    require(matmul, legality.accumulator_registers(target, m, n), "make the tile smaller")


def weight_mma(matmul: WeightMatmulOp, views: list[ir.Value], where: dict[str, Any]) -> None:
    """Emit the MMA of a K step; `views` are those of scales and zeros."""
    beside = dict(zip(scale_views(matmul), views, strict=True))
    WeightMmaOp(**where, **beside, b_type=attribute_of(weights_of(matmul).name), group=matmul.group)


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


def unit_of(bits: int) -> int:
    """What a tile's K is a multiple of: whole MMAs, and rows of whole 16 bytes."""
    return math.lcm(MMA_K, UNIT_BYTES * 8 // bits)


def _depth(matmul: WeightMatmulOp) -> int:
    return list(matmul.a.type.shape)[-1]
