"""Checks of products with narrow weights.

weights     an MMA of fragments multiplies the tiles, at their own places along N and K: mma.sync
            takes weights as its B, wgmma and tcgen05.mma as their A; scales and zeros are the views
            after a and b, one row for each of b
steps       as those of products with scales of 128: threads ask for the next step's scales
"""

from __future__ import annotations

from typing import Any

from ....dialects import weight_legality
from ....dialects.dtypes import DTYPES, WEIGHT_SCALES, group_refusal, stored_dtype
from ....dialects.layout import LINEAR
from ....dialects.mlir import ir
from ....dialects.mma_units import WARP
from ....dialects.target import Target
from ....dialects.tile import KernelOp
from ....dialects.tile.weights import ZEROS, ExchangedWeightMmaOp, scale_views
from ...base import refused, require
from ...batches import argument_of
from ...indices import linear_form, place_of
from ...weights import depth_of_kernel, has_groups, weight_names


def check_weight_mma(kernel: KernelOp, op: Any, target: Target) -> None:
    """Whether warps multiply fragments that their threads can widen."""
    bits, depth = DTYPES[op.b_type.value].bits, depth_of_kernel(kernel)
    transposed = isinstance(op, ExchangedWeightMmaOp)
    _check_mma(op, transposed, depth, target)
    require(op, weight_legality.weight_type(target, op.b_type.value), "", "weights: ")
    _check_tiles(op, target)
    k, group = op.depth, op.group.value
    require(op, weight_legality.weight_depth(k, bits, group, depth), "cut K otherwise", "weights: ")
    broken = group_refusal(depth, group, op.scales is not None)
    require(op, broken and f"group {broken}", "", "weights: ")
    _check_views(kernel, op, depth)
    form = linear_form(op.j)
    if form is None or not form.is_just(op.j) or place_of(op.j) != (0 if transposed else 1):
        raise refused(
            op,
            "weights: j must be the N place of its tile, got another index; take the store's",
        )


def _check_mma(op: Any, transposed: bool, depth: int, target: Target) -> None:
    """Whether the MMA takes weights where they are, and adds products of groups apart."""
    widening = target.widening_mma(has_groups(op.group.value, depth, op.scales is not None))
    fits = target.mma == widening if transposed else target.mma.issuer == WARP
    if not fits:
        rule = "weights: B must be those of mma.sync"
        rule += "" if widening is None else f", and A those of {widening.name}"
        raise refused(op, f"{rule}, got {target.mma.name}; run tiling for it")


def _check_tiles(op: Any, target: Target) -> None:
    """Shapes that MMAs cover, and the types of what is not widened and of the sums."""
    (name, wide), (m, n) = op.sides[1], op.acc.type.shape
    known = {DTYPES[each].mlir for each in ("bf16", "f16")}
    if str(wide.element) not in known or str(op.acc.type.element) != "f32":
        got = f"{wide.element} and sums in {op.acc.type.element}"
        rule = f"weights: {name} must hold bf16 or f16, summed in f32"
        raise refused(op, f"{rule}, got {got}; give it one of those types")
    rows = target.mma_rows(m)
    fits = rows is not None and n % target.mma_n_step(rows, n) == 0 and n <= target.mma.n_max
    if not fits or target.mma_warpgroups(m, n) is None or m > target.box_max:
        raise refused(op, f"shapes: no MMA of {target.chip} covers {m}x{n}; take other tiles")
    if wide.layout.swizzle == LINEAR:
        rule = f"shapes: {target.mma.name} reads no linear tiles"
        raise refused(op, f"{rule}, got one; run swizzle-selection")


def _check_views(kernel: KernelOp, op: Any, depth: int) -> None:
    """Scales and zeros are arguments of the kernel, [N, groups], row by row."""
    arguments, views = list(kernel.body.blocks[0].arguments), scale_views(op)
    if weight_names(kernel) != list(views):
        rule = f"weights: the views after a and b must be {list(views)}"
        raise refused(kernel, f"{rule}, got {weight_names(kernel)}; rename them")
    rows = ir.MemRefType(arguments[1].type).shape[0]
    for number, (name, view) in enumerate(views.items(), 2):
        type_, wanted = ir.MemRefType(view.type), [rows, depth // op.group.value]
        strides, offset = type_.get_strides_and_offset()
        dense = list(strides) == [wanted[1], 1] and offset == 0
        if argument_of(view) != arguments[number] or list(type_.shape) != wanted or not dense:
            shown = "x".join(map(str, wanted))
            rule = f"weights: {name} must be those of b, {shown}, one row after the other"
            raise refused(op, f"{rule}, got {type_}; give the argument that type")
        dtype = stored_dtype(str(type_.element_type))
        known = ("u8",) if name == ZEROS else WEIGHT_SCALES
        if dtype is None or dtype.name not in known:
            kinds = ", ".join(known)
            raise refused(op, f"weights: {name} must be of {kinds}, got {type_}; convert them")
