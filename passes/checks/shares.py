"""The rules of `check_kernel` where each thread multiplies by itself."""

from __future__ import annotations

from typing import Any

from ...dialects import legality
from ...dialects.mlir import ir
from ...dialects.target import WARP_THREADS, Target
from ...dialects.tile import KernelOp
from ...dialects.tile_sums import ViewMmaOp
from ...dialects.tile_types import bits_of
from ..base import refused, require
from ..batches import argument_of
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
    for number, view in enumerate((op.a, op.b)):
        if argument_of(view) != kernel.body.blocks[0].arguments[number]:
            raise refused(op, "views: must read a and b, got others; swap them")
    m, n = op.acc.type.shape
    for index, extent in ((op.i, m), (op.j, n), (op.k, op.depth.value)):
        check_index(kernel, op, index, extent)
