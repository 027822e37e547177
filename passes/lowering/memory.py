"""The plan that `plan-memory` has written into a kernel, as later steps of the lowering read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dialects.pipe import ClaimType
from ...dialects.sm_memory import (
    BarriersOp,
    ColumnsOp,
    RingOp,
    SharedMemoryOp,
    StagingOp,
    TensorMemoryOp,
    TileMemoryOp,
    TurnsOp,
)
from ...dialects.tile import KernelOp
from ...dialects.tile_types import AccumulatorType, SmemType, integers_of
from ..base import defining_op
from ..plan import MMA_DONE, Plan, RingPlan, cluster_of, parameters_of


def read_plan(kernel: KernelOp) -> Plan:
    """Where everything of a kernel lies, by the ops that say so."""
    plan = Plan(cluster=cluster_of(kernel), parameters=parameters_of(kernel))
    for op in kernel.body.blocks[0].operations:
        reader = READERS.get(type(op))
        if reader is not None:
            reader(plan, op)
    return plan


def _read_size(plan: Plan, op: SharedMemoryOp) -> None:
    plan.shared_bytes = op.bytes.value


def _read_tensor_memory(plan: Plan, op: TensorMemoryOp) -> None:
    plan.tmem_columns, plan.tmem_address = op.columns.value, op.offset.value


def _read_tiles(plan: Plan, op: TileMemoryOp) -> None:
    plan.buffers[op.tile] = op.offset.value


def _read_columns(plan: Plan, op: ColumnsOp) -> None:
    if all(use.owner.name != "sm.ring" for use in op.acc.uses):
        plan.accumulators[op.acc] = op.first.value


def _read_barriers(plan: Plan, op: BarriersOp) -> None:
    if op.label.value == MMA_DONE:
        plan.mma_done = op.offset.value


def _read_staging(plan: Plan, op: StagingOp) -> None:
    plan.rings[op.ring] = RingPlan("staging", op.ring.type.stages, **_tiles(op))


def _read_turns(plan: Plan, op: TurnsOp) -> None:
    plan.rings[op.ring] = RingPlan("turns", op.ring.type.stages, **_barriers(op))


def _read_ring(plan: Plan, op: RingOp) -> None:
    kind = KINDS[type(op.ring.type.tiles[0])]
    place = _columns(op) if kind == "accumulator" else _tiles(op)
    plan.rings[op.ring] = RingPlan(
        kind, op.ring.type.stages, under_way=op.under_way.value, **_barriers(op), **place
    )


def _barriers(op: RingOp | TurnsOp) -> dict[str, Any]:
    full, empty = defining_op(op.full), defining_op(op.empty)
    return {
        "full": full.offset.value,
        "empty": empty.offset.value,
        "full_count": full.arrivals.value,
        "empty_count": empty.arrivals.value,
    }


def _tiles(op: RingOp | StagingOp) -> dict[str, Any]:
    types = [type_ for type_ in op.ring.type.tiles if isinstance(type_, SmemType)]
    layouts = tuple(type_.layout for type_ in types)
    return {"layouts": layouts, "tiles": tuple(integers_of(defining_op(op.memory).offsets))}


def _columns(op: RingOp) -> dict[str, Any]:
    part = defining_op(op.memory)
    return {"column": part.first.value, "slot_columns": part.each.value}


KINDS = {
    SmemType: "operands",
    AccumulatorType: "accumulator",
    ClaimType: "claims",
}
READERS: dict[type, Callable[[Plan, Any], None]] = {
    SharedMemoryOp: _read_size,
    TensorMemoryOp: _read_tensor_memory,
    TileMemoryOp: _read_tiles,
    ColumnsOp: _read_columns,
    BarriersOp: _read_barriers,
    StagingOp: _read_staging,
    RingOp: _read_ring,
    TurnsOp: _read_turns,
}
