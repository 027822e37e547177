"""Checks of products on CUDA cores."""

from __future__ import annotations

from typing import Any

from ....dialects import legality
from ....dialects.dtypes import operand_dtype
from ....dialects.mlir import ir
from ....dialects.target import WARP_THREADS, Target
from ....dialects.tile import KernelOp
from ....dialects.tile.sums import DualLaneMmaOp, LaneMmaOp, ViewMmaOp
from ....dialects.tile_types import bits_of
from ...base import refused, require
from ...batches import argument_of
from .mma import check_types
from .operands import check_index


def check_shares(
    agent: Any, held: list[tuple[int, int]], warps: int, target: Target, sums: ir.Type | None = None
) -> None:
    """Whether each thread of an agent can hold its share of the sums."""
    bytes_ = bits_of(sums) // 8 if sums is not None else legality.REGISTER_BYTES
    for shape in held:
        broken = legality.thread_registers(target, shape, warps * WARP_THREADS, bytes_)
        require(agent, broken, "take more threads", where="roles: ")


def check_view_mma(kernel: KernelOp, op: ViewMmaOp, target: Target) -> None:
    """Whether threads can multiply what they read from the views."""
    if not target.threads_multiply:
        rule = f"views: threads that multiply by themselves read them, got {target.mma.name}"
        raise refused(op, f"{rule}; load tiles")
    check_types(op, op.a.type.element_type, op.b.type.element_type, target)
    views = (op.a, op.b, op.b2) if isinstance(op, DualLaneMmaOp) else (op.a, op.b)
    for number, view in enumerate(views):
        if argument_of(view) != kernel.body.blocks[0].arguments[number]:
            raise refused(op, "views: must read a and b, got others; swap them")
    if isinstance(op, LaneMmaOp):
        _check_lanes(kernel, op, target)
    m, n = op.acc.type.shape
    n //= len(views) - 1
    for index, extent in ((op.i, m), (op.j, n), (op.k, op.depth.value)):
        check_index(kernel, op, index, extent)


def _check_lanes(kernel: KernelOp, op: LaneMmaOp, target: Target) -> None:
    """Whether threads hold what lanes share of the sums."""
    dtype = operand_dtype(str(op.a.type.element_type), target.mma.name)
    assert dtype is not None  # check_types has asked
    products = 2 if isinstance(op, DualLaneMmaOp) else 1
    tile = (*op.acc.type.shape, op.depth.value)
    threads, lanes = kernel.threads.value, op.lanes.value
    broken = legality.lanes(target, tile, threads, lanes, products, dtype)
    require(op, broken, "take another tile", "shapes: ")
