"""The memory plan of a kernel, checked: everything has a place of its own, in what there is.

    place      what `plan-memory` places stands in the kernel itself, before what uses it
    apart      no two things share bytes of shared memory, or columns of an allocation
    inside     all lies in the bytes that the launch asks for, no more than the chip has

It runs on a module that comes in planned, as one that a person has edited; offsets that one op can
tell to be wrong are for its verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..dialects.mlir import ir
from ..dialects.sm_memory import (
    ADDRESS_BYTES,
    BARRIER_BYTES,
    MEMORY_OPS,
    BarriersOp,
    ColumnsOp,
    SharedMemoryOp,
    SlotMemoryOp,
    TensorMemoryOp,
    TileMemoryOp,
    size_of,
)
from ..dialects.tile import KernelOp
from .base import refused, target_of, walk


def check_memory(module: ir.Module) -> None:
    """Refuse, at the op, a planned kernel of the module that breaks a rule."""
    for kernel in module.body.operations:
        if isinstance(kernel, KernelOp) and walk(kernel, SharedMemoryOp):
            _check_kernel(kernel, target_of(module).shared_bytes)


def _check_kernel(kernel: KernelOp, most: int) -> None:
    for op in walk(kernel, MEMORY_OPS):
        if op.operation.parent != kernel.operation:
            raise refused(op, "place: must stand in the kernel itself, got it inside another op")
    sizes, allocations = walk(kernel, SharedMemoryOp), walk(kernel, TensorMemoryOp)
    for ops in (sizes, allocations):
        if len(ops) > 1:
            raise refused(ops[1], "place: a CTA has one, got a second; drop it")
    size = sizes[0].bytes.value
    if size > most:
        raise refused(sizes[0], f"inside: a CTA can have {most} bytes, got {size}; use fewer slots")
    ranges = sorted(_ranges(kernel), key=lambda each: each[:2])
    for (_, end, _), (start, _, op) in pairwise(ranges):
        if start < end:
            raise refused(op, f"apart: bytes below {end} are taken, got byte {start}; move it")
    if ranges and ranges[-1][1] > size:
        end, op = ranges[-1][1:]
        raise refused(op, f"inside: must end by byte {size}, got {end}; ask for more bytes")
    _check_columns(walk(kernel, ColumnsOp))


def _ranges(kernel: KernelOp) -> list[tuple[int, int, Any]]:
    """(first byte, end, op) of all that lies in shared memory."""
    found = []
    for op in walk(kernel, SlotMemoryOp):
        found += [(start, end, op) for start, end, _ in op.places()]
    for op in walk(kernel, TileMemoryOp | BarriersOp | TensorMemoryOp):
        found.append((op.offset.value, op.offset.value + byte_size(op), op))
    return found


def byte_size(op: TileMemoryOp | BarriersOp | TensorMemoryOp) -> int:
    """Bytes that an op with one offset takes."""
    if isinstance(op, TileMemoryOp):
        return size_of(op.tile.type)
    return op.slots.value * BARRIER_BYTES if isinstance(op, BarriersOp) else ADDRESS_BYTES


def _check_columns(columns: Sequence[ColumnsOp]) -> None:
    for before, op in pairwise(sorted(columns, key=lambda each: each.first.value)):
        end = before.first.value + before.slots.value * before.each.value
        if op.first.value < end:
            raise refused(
                op, f"apart: columns below {end} are taken, got column {op.first.value}; move it"
            )
