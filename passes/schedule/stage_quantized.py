"""Stages elements with block scales in shared memory, from which TMA stores them.

    store_quantized %acc, %c, %scales   →   %map = tensor_map %c, as bytes
                                            staged_quantized %acc, %map, %staging, %scales

Elements are packed, so a piece is so many bytes of a row: whole blocks, as much as each thread has
of a row in whole units of 16 bytes. Where that, or TMA, is not to be had, threads store as before.
"""

from __future__ import annotations

from typing import Any

from ...dialects import legality, store_legality
from ...dialects.layout import TileLayout, widest_swizzle
from ...dialects.mlir import ir
from ...dialects.pipe import CreateOp, RingType
from ...dialects.target import Target
from ...dialects.tile import KernelOp
from ...dialects.tile.quantized import StoreQuantizedOp
from ...dialects.tile.staged_quantized import StagedQuantizedOp
from ...dialects.tile_types import SmemType, bits_of
from ...dialects.verify import tile_of_c
from ..base import PassLog
from ..batches import map_of_view, step_bytes
from ..tensor_maps import byte_map, byte_refusal


def piece_of(store: StoreQuantizedOp, columns: int | None) -> TileLayout:
    """One swizzle span of a row's bytes, or those of so many columns."""
    m, n = tile_of_c(store)
    row_bytes = (columns or n) * bits_of(store.view.type.element_type) // 8
    whole = TileLayout(m, row_bytes, 1, "k")
    swizzle = widest_swizzle(whole)
    span = TileLayout(m, row_bytes, 1, "k", swizzle).span
    return TileLayout(m, row_bytes if columns else span, 1, "k", swizzle)


def refusal(store: StoreQuantizedOp, piece: TileLayout, target: Target) -> str | None:
    """Why threads store the elements straight from registers."""
    view, (m, n) = store.view.type, tile_of_c(store)
    bits, block = bits_of(view.element_type), store.block.value
    return (
        store_legality.staged_quantized(target, m, n, piece.k, bits, block)
        or byte_refusal(view, piece, target)
        or legality.stack_pitch(target, step_bytes(store.view))
    )


def stage_quantized(
    store: StoreQuantizedOp, piece: TileLayout, buffers: int, kernel: KernelOp
) -> None:
    """Put the staged store in the place of the other one."""
    smem = SmemType.of(piece, ir.IntegerType.get_signless(8))
    with ir.InsertionPoint.at_block_begin(kernel.body.blocks[0]), store.location:
        to = map_of_view(store.view, byte_map(store.view.type, smem))
        staging = CreateOp(ring=RingType.of(buffers, [smem])).ring
    with ir.InsertionPoint(store), store.location:
        where: dict[str, Any] = {"acc": store.acc, "to": to, "staging": staging}
        how = {"scales": store.scales, "block": store.block, "rounding": store.rounding}
        new = StagedQuantizedOp(
            i=store.i,
            j=store.j,
            write=ir.StringAttr.get("rows"),
            element=ir.TypeAttr.get(store.view.type.element_type),
            **where,
            **how,
        )
    store.epilogue.blocks[0].append_to(new.epilogue)
    store.operation.erase()


def say_refused(store: StoreQuantizedOp, reason: str, log: PassLog) -> None:
    """Tell the user who stores the elements."""
    log.remark(store, f"epilogue-staging: c is stored by threads, with scales of blocks: {reason}")
