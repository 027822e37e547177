"""Checks of MMAs: shapes, layouts and types that their instruction supports."""

from __future__ import annotations

from typing import Any

from ....dialects import legality, split_legality, weight_legality
from ....dialects.dtypes import DTYPES, DType, mix_refusal, operand_dtype
from ....dialects.layout import LINEAR
from ....dialects.mlir import ir
from ....dialects.sm.memory import TileMemoryOp
from ....dialects.target import Target
from ....dialects.tile import CopyOp, KernelOp, LoadOp, PairMmaOp
from ....dialects.tile.blockwise import BLOCKWISE_MMAS
from ....dialects.tile.duals import DUAL_MMAS, DualPairMmaOp
from ....dialects.tile.scales import SCALED_MMAS, smem_operands
from ....dialects.tile.short import SHORT_MMAS
from ....dialects.tile.weights import WeightMmaOp
from ....dialects.tile_types import SmemType, integers_of
from ...base import defining_op, is_swapped, refused, require, walk
from ...batches import argument_of, loaded_argument
from ...duals import arg_names
from ...mma_uses import pair_step_of
from .blockwise import check_blockwise_mma
from .handles import loads_of
from .scales import check_scaled_mma
from .short import check_short_mma
from .weights import check_weight_mma


def check_mma(kernel: KernelOp, op: Any, target: Target) -> None:
    """Whether the target has an MMA for the tiles."""
    tiles: list[Any] = smem_operands(op)
    loaded = {isinstance(each.owner.opview, LoadOp | TileMemoryOp) for each in tiles}
    if len(loaded) > 1:
        raise refused(
            op, "shapes: both tiles must be in a slot, or loaded by threads, got one each"
        )
    _check_origin(kernel, op)
    if isinstance(op, SCALED_MMAS):
        check_scaled_mma(kernel, op, target)
        _check_pair(kernel, op, target)
    elif isinstance(op, WeightMmaOp):
        check_weight_mma(kernel, op, target)
    else:
        _check_plain(kernel, op, tiles, target)


def _check_plain(kernel: KernelOp, op: Any, tiles: list[Any], target: Target) -> None:
    """The same of tiles that MMAs multiply as they are; `tiles` may hold scales beside them."""
    a = check_types(op, op.a.type.element, op.b.type.element, target)
    if target.threads_multiply:
        return  # any shape, in any layout: `check_shares` asks for registers
    if isinstance(op, DUAL_MMAS):
        _check_dual(op, target)
    if isinstance(op, SHORT_MMAS):
        check_short_mma(kernel, op, target)
    vectors: list[Any] = []
    if isinstance(op, BLOCKWISE_MMAS):
        check_blockwise_mma(kernel, op, target)
        vectors = op.vectors
    k = op.a.type.layout.k
    require(op, legality.added_depth(target, k), "cut K by 128", "shapes: ")
    require(op, split_legality.split_depth(target, k), "cut K so", "shapes: ")
    layouts = [each.type.layout for each in tiles if each not in vectors]
    if any(layout.swizzle == LINEAR for layout in layouts):
        raise refused(
            op, f"shapes: {target.mma.name} reads no linear tiles, got one; run swizzle-selection"
        )
    m, n = op.acc.type.shape
    by_rows = "mn" not in {layout.major for layout in layouts}
    if not _covers(target, m, n, k, a) or not (by_rows or a.bytes in target.mma.mn_major_bytes):
        raise refused(
            op,
            f"shapes: must be tiles that MMAs of {target.chip} cover, got {m}x{n}x{k} of {a.name}; "
            "take other tiles",
        )
    _check_pair(kernel, op, target)


def _covers(target: Target, m: int, n: int, k: int, a: DType) -> bool:
    """Whether MMAs of the target make up m × n × k, with sums that a CTA has room for."""
    rows = target.mma_rows(m)
    if rows is None or m > target.box_max or target.mma_warpgroups(m, n) is None:
        return False
    step = target.mma_n_step(rows, n, a.is_integer)
    return n % step == 0 and n <= target.mma.n_max and k % target.k_step(a.k_per_mma) == 0


def _check_pair(kernel: KernelOp, op: Any, target: Target) -> None:
    (_, n), pair = op.acc.type.shape, isinstance(op, PairMmaOp)
    step = pair_step_of(op, target)
    if pair and (n % step or integers_of(kernel.cluster)[0] % 2):
        rule = f"a pair must have an N by {step} and a cluster of an even number along M"
        got = f"N {n} and {integers_of(kernel.cluster)[0]} along M"
        raise refused(op, f"shapes: {rule}, got {got}; drop pairs")
    if pair and target.adds_products and walk(kernel, CopyOp):
        rule = "a pair whose threads add products must have operands that TMA loads"
        raise refused(op, f"shapes: {rule}, got copies of threads; drop pairs")


def _check_dual(op: Any, target: Target) -> None:
    """Whether each product has whole MMAs of the sums."""
    (m, n), integers = op.acc.type.shape, isinstance(op.acc.type.element, ir.IntegerType)
    pair = legality.dual_pair(target, m, n) if isinstance(op, DualPairMmaOp) else None
    require(op, legality.dual_tile(target, m, n, integers) or pair, "take another tile", "shapes: ")


def check_types(op: Any, a_type: ir.Type, b_type: ir.Type, target: Target) -> DType:
    """What the target's MMA makes of A, if it takes A and B together and sums as the op says."""
    require(op, weight_legality.has_weights(target), "run tiling for another", "shapes: ")
    a, b = (operand_dtype(str(each), target.mma.name) for each in (a_type, b_type))
    if a is None or b is None or mix_refusal(a, b):
        rule = f"a and b must be of types that {target.mma.name} multiplies"
        raise refused(op, f"shapes: {rule}, got {a_type} and {b_type}; convert them before")
    if str(op.acc.type.element) != DTYPES[a.accumulator].mlir:
        raise refused(
            op, f"shapes: must sum in {DTYPES[a.accumulator].mlir}, got {op.acc.type.element}"
        )
    return a


def _check_origin(kernel: KernelOp, op: Any) -> None:
    """Whether a's tile is loaded from a, and b's from b, and so their scales and the second b's."""
    swapped = is_swapped(kernel)
    for number, operand in _numbered(op):
        number = number ^ 1 if swapped else number
        for view in _origins(operand):
            if view != number:
                names = [arg_names(kernel)[each] for each in (number, view)]
                raise refused(
                    op,
                    f"views: must take a's tiles from a and b's from b, got {names[0]} from "
                    f"{names[1]}; swap them",
                )


def _numbered(op: Any) -> list[tuple[int, Any]]:
    """The tiles that an MMA reads, with the kernel's arguments that they must be loaded from."""
    if not isinstance(op, BLOCKWISE_MMAS):
        return list(enumerate(smem_operands(op)))
    four = enumerate((op.a, op.b, op.a_scales, op.b_scales))
    return [(number, each) for number, each in four if isinstance(each.type, SmemType)]


def _origins(tile: ir.Value) -> set[int]:
    """Which arguments of the kernel a tile is loaded from."""
    part = defining_op(tile)
    if isinstance(part, LoadOp):
        return {ir.BlockArgument(argument_of(part.view)).arg_number}
    if isinstance(part, TileMemoryOp):
        copies = [use.owner.opview for use in tile.uses if use.owner.name == "tile.copy"]
        return {ir.BlockArgument(argument_of(copy.view)).arg_number for copy in copies}
    return {ir.BlockArgument(loaded_argument(load)).arg_number for load in loads_of(part)}
