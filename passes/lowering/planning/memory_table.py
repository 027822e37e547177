"""The memory plan of a kernel as a table: addresses, and arrivals of each phase."""

from __future__ import annotations

from typing import Any

from ....dialects.mlir import ir
from ....dialects.shared_columns import shared_of
from ....dialects.sm.memory import (
    BarriersOp,
    ColumnsOp,
    ProductColumnsOp,
    ScaleColumnsOp,
    SharedMemoryOp,
    SlotMemoryOp,
    TensorMemoryOp,
    TileMemoryOp,
    WeightColumnsOp,
    byte_size,
)
from ....dialects.tile import KernelOp
from ....dialects.tile_types import SmemType
from ...base import walk

HEADINGS = ("where", "what", "slots", "arrivals")
Row = tuple[str, str, str, str]


def memory_rows(kernel: KernelOp) -> list[Row]:
    """The plan as a table: where, what, slots, and the arrivals that make a phase of a barrier."""
    shared = []
    for op in walk(kernel, SlotMemoryOp):
        for start, end, type_ in op.places():
            shared.append((start, end, _payload(type_), f"{op.slots.value}", ""))
    for op in walk(kernel, TileMemoryOp | BarriersOp | TensorMemoryOp):
        shared.append((op.offset.value, op.offset.value + byte_size(op), *_described(op)))
    rows = [(f"byte {start} to {end - 1}", *said) for start, end, *said in sorted(shared)]
    rows += [_column_row(op) for op in walk(kernel, ColumnsOp)]
    rows += [_product_row(op) for op in walk(kernel, ProductColumnsOp)]
    rows += [_weight_row(op) for op in walk(kernel, WeightColumnsOp)]
    return rows + [row for op in walk(kernel, ScaleColumnsOp) for row in _scale_rows(op)]


def summary_of(kernel: KernelOp) -> str:
    """How much of each memory the CTA takes."""
    size = sum(op.bytes.value for op in walk(kernel, SharedMemoryOp))
    columns = sum(op.columns.value for op in walk(kernel, TensorMemoryOp))
    tensor = f", {columns} tensor-memory columns" if columns else ""
    return f"{size} bytes of shared memory{tensor}"


def _described(op: Any) -> tuple[str, str, str]:
    if isinstance(op, BarriersOp):
        return f"mbarriers {op.label.value}", f"{op.slots.value}", f"{op.arrivals.value}"
    if isinstance(op, TileMemoryOp):
        return _payload(op.tile.type), "1", ""
    return f"address of {op.columns.value} columns of tensor memory", "1", ""


def _payload(type_: ir.Type) -> str:
    if not isinstance(type_, SmemType):
        return "answer of cluster launch control"
    layout = type_.layout
    swizzle = "no" if layout.swizzle == "none" else layout.swizzle
    return f"{layout.mn}x{layout.k} {type_.element}, {layout.major}-major, {swizzle} swizzle"


def _column_row(op: ColumnsOp) -> Row:
    first, slots, type_ = op.first.value, op.slots.value, op.acc.type
    end, shape = op.end, "x".join(map(str, type_.shape))
    shared = f", {shared_of(op)} columns shared" if shared_of(op) else ""
    return f"column {first} to {end - 1}", f"{shape} {type_.element}{shared}", f"{slots}", ""


def _product_row(op: ProductColumnsOp) -> Row:
    first, end = op.columns
    return f"column {first} to {end - 1}", "products of tiles", f"{op.slots.value}", ""


def _weight_row(op: WeightColumnsOp) -> Row:
    first, end = op.columns
    slots = (end - first) // op.each.value
    return f"column {first} to {end - 1}", "weights that threads have widened", f"{slots}", ""


def _scale_rows(op: ScaleColumnsOp) -> list[Row]:
    first, second, end = op.a_first.value, op.b_first.value, op.end.value
    return [
        (f"column {place + start} to {place + stop - 1}", f"scales of {name}", "1", "")
        for place in range(0, op.columns[1] - first, end - first)
        for name, start, stop in (("a", first, second), ("b", second, end))
    ]
