"""Checks of products with block scales.

scales      views of scales, atoms or linear, come after a and b; each is loaded into the tiles of
            its operand's scales, at the places of that operand's tiles; every K step multiplies its
            own
"""

from __future__ import annotations

import math
from typing import Any

from ....dialects import scaled_legality
from ....dialects.dtypes import DTYPES
from ....dialects.layout import BLOCKED
from ....dialects.mlir import ir
from ....dialects.target import Target
from ....dialects.tile import CopyOp, KernelOp, LoadOp
from ....dialects.tile.blockwise import BLOCKWISE_MMAS
from ....dialects.tile.scales import SCALED_MMAS, ScaledPairMmaOp, depth_of, mma_of
from ....dialects.tile_types import SmemType
from ...base import refused, require, walk
from ...batches import argument_of, map_definition
from ...indices import linear_form, place_of
from ...shared_scales import SCALES, padding_read, scale_names, scaled_extents, shared_by

ATOM = (32, 4, 4)


def is_scaled(kernel: KernelOp) -> bool:
    """Whether a kernel multiplies operands with block scales."""
    return bool(walk(kernel, SCALED_MMAS))


def check_scale_views(kernel: KernelOp) -> None:
    """The views of scales: there are two where the MMAs have scales, and they are atoms."""
    blockwise = bool(walk(kernel, BLOCKWISE_MMAS))
    wanted = list(SCALES) if is_scaled(kernel) or blockwise else []
    names = [name for name in _names(kernel) if name in SCALES]
    if names != wanted or scale_names(kernel) != wanted:
        raise refused(
            kernel, f"scales: the views after a and b must be {wanted}, got {names}; rename them"
        )
    if blockwise:
        return  # each MMA is held to what it reads
    for name, view in zip(wanted, list(kernel.body.blocks[0].arguments)[2:], strict=False):
        type_ = ir.MemRefType(view.type)
        if scales_stack(type_) is None:
            raise refused(
                kernel,
                f"scales: {name} must be atoms, one after the other, [rows/128, blocks/4, 32, 4, "
                f"4], or linear, [rows, blocks], got {type_}",
            )
        if type_.rank < 5 and shared_by(kernel, view) is None:
            rows, blocks = scaled_extents(kernel, view)
            raise refused(
                kernel,
                f"scales: linear {name} must be for {rows} rows of {blocks} blocks, or of whole 4 "
                f"blocks, got {type_}",
            )


def scales_stack(view: ir.MemRefType) -> int | None:
    """How many dims of stacks a view of scales has before its matrix; None where it is of others.

    It has one element after the other, and is atoms, or rows of blocks.
    """
    if not view.has_static_shape or not 2 <= view.rank <= 6:
        return None
    strides, offset = view.get_strides_and_offset()
    dense = [math.prod(view.shape[at + 1 :]) for at in range(view.rank)]
    if offset != 0 or list(strides) != dense:
        return None
    if view.rank >= 5:
        return view.rank - 5 if tuple(view.shape[-3:]) == ATOM else None
    return view.rank - 2 if view.rank <= 3 else None


def check_scale_load(kernel: KernelOp, op: Any) -> None:
    """A load of scales is from scales, and one of scales alone is blocked."""
    by_threads = isinstance(op, LoadOp | CopyOp)
    view: Any = argument_of(op.view) if by_threads else map_definition(op.map).view
    blocked = op.tile.type.layout.is_of_scales
    number = ir.BlockArgument(view).arg_number if isinstance(view.owner, ir.Block) else -1
    if number not in (2, 3) or not blocked or len(scale_names(kernel)) != 2:
        raise refused(op, "scales: blocked tiles must be loaded from scales, got others; swap them")
    if not by_threads and op.tile.type.layout.swizzle != BLOCKED:
        raise refused(op, "scales: TMA moves whole lines of atoms, got parts; copy them by threads")
    if not by_threads:
        require(op, padding_read(kernel), "copy them by threads, which clear it", "scales: ")


def check_scaled_mma(kernel: KernelOp, op: Any, target: Target) -> None:
    """Whether the target has a block-scaled MMA for the tiles, and they stand at its place."""
    mma, (m, n) = mma_of(op), op.acc.type.shape
    tile = m, n, depth_of(op)
    pair = isinstance(op, ScaledPairMmaOp)
    for broken in (
        scaled_legality.scaled_kind(target, mma),
        scaled_legality.scaled_pair(m, pair),
        scaled_legality.scaled_rows(target, m),
        scaled_legality.scaled_columns(target, n),
        scaled_legality.scaled_depth(mma, tile[2]),
    ):
        require(op, broken, where="shapes: ")
    if str(op.acc.type.element) != "f32":
        raise refused(op, f"shapes: must sum in f32, got {op.acc.type.element}")
    columns = ir.MemRefType(kernel.body.blocks[0].arguments[0].type).shape[-1]
    k = columns * 2 if mma.packed else columns
    if op.extent.value != k:
        raise refused(op, f"scales: extent must be K, {k}, got {op.extent.value}; say K")
    for value, tile in ((op.a_type.value, op.a.type), (op.b_type.value, op.b.type)):
        _check_elements(op, value, tile, mma.packed)
    form = linear_form(op.j)
    if form is None or not form.is_just(op.j) or place_of(op.j) != 1:
        raise refused(
            op,
            "scales: j must be the N place of its tile, got another index; take the store's",
        )


def _check_elements(op: Any, dtype: str, tile: SmemType, packed: bool) -> None:
    """Whether a tile holds elements of a type as the MMA reads them, two in a byte if `packed`."""
    wanted, layout = DTYPES["u8" if packed else dtype].mlir, tile.layout
    if str(tile.element) != wanted:
        rule = f"shapes: a tile of {dtype} must hold {wanted}"
        raise refused(op, f"{rule}, got {tile.element}; give the tile that type")
    narrow = DTYPES[dtype].bits < 8
    if narrow and (layout.major != "k" or (not packed and layout.swizzle != "128B")):
        got = f"{layout.major!r} and {layout.swizzle!r}"
        raise refused(op, f"shapes: {dtype} must be 'k' and '128B', got {got}; load it so")


def _names(kernel: KernelOp) -> list[str]:
    return [ir.StringAttr(name).value for name in kernel.arg_names]
