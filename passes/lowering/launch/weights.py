"""What a launch needs to know about narrow weights."""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir
from ....dialects.tile import KernelOp
from ....dialects.tile.weights import WeightMmaOp, scale_views
from ....dialects.tile_types import element_bytes
from ...base import walk
from ...batches import argument_of


def describe_weights(kernel: KernelOp) -> dict[str, Any]:
    """How many elements of K share a scale, where weights have some."""
    groups = [op.group.value for op in walk(kernel, WeightMmaOp) if op.scales is not None]
    return {"weights": {"group": groups[0]}} if groups else {}


def say_weights(kernel: KernelOp, tensors: list[dict[str, Any]]) -> None:
    """Say of the tensor b, whose view may be one of bytes, what it holds."""
    for op in walk(kernel, WeightMmaOp)[:1]:
        tensors[1]["dtype"] = op.b_type.value


def reads_beside_weights(kernel: KernelOp) -> list[tuple[ir.Value, int]]:
    """The arguments that are scales and zeros, and the bytes that threads read of them at once."""
    return [
        (argument_of(each), element_bytes(ir.MemRefType(each.type).element_type))
        for op in walk(kernel, WeightMmaOp)
        for each in scale_views(op).values()
    ]
