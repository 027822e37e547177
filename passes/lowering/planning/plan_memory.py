"""Allocates shared and tensor memory for tiles, barriers and accumulators.

    pipe.create : ring<3, [a, b]>   →     %ab    = sm.slot_memory {offsets = [0, 49152], slots = 3}
                                          %full  = sm.barriers {offset = 73728, arrivals = 1}
                                          %empty = sm.barriers {offset = 73752, arrivals = 1}
                                          %ring  = sm.ring(%full, %empty, %ab)

Tiles come first, aligned to their swizzle pattern, and barriers after them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar, get_args

from ....dialects.fallback import FALLBACK_ARRIVALS
from ....dialects.mlir import ir
from ....dialects.mma_units import PRODUCT_SLOTS
from ....dialects.pipe import RingType
from ....dialects.record import record
from ....dialects.shared_columns import PLACES, SHARED
from ....dialects.sm.memory import (
    BarriersOp,
    BarriersType,
    ColumnsOp,
    ProductColumnsOp,
    ScaleColumnsOp,
    SharedMemoryOp,
    SlotMemoryOp,
    TensorMemoryOp,
    TensorMemoryType,
    TermsOp,
    TileMemoryOp,
    WeightColumnsOp,
)
from ....dialects.sm.ring_memory import (
    MEMORY_OPS,
    AheadRingOp,
    CopyRingOp,
    ReusedRingOp,
    RingOp,
    StagingOp,
    TurnsOp,
)
from ....dialects.target import Target
from ....dialects.tile import AccumulatorOp, CopyOp, KernelOp, LoadOp
from ....dialects.tile.sums import AddLanesOp
from ....dialects.tile_types import integer, integers
from ...base import PassLog, defining_op, refused, target_of, the_kernel, walk
from ...plan import (
    MMA_DONE,
    PRODUCTS_DONE,
    PRODUCTS_READY,
    Plan,
    ProductsPlan,
    RingPlan,
    ScalesPlan,
    make_plan,
)
from ...reused_slots import drain_of
from ...ring_fills import is_self_filled
from ...team import team_op
from .memory_table import summary_of


@record
class PlanMemory:
    """`pipe.create` → `sm.ring` in `sm.slot_memory` or `sm.columns`, with its `sm.barriers`.

    `tile.load` → `tile.copy` into an `sm.tile_memory` of its own. Accumulators of tensor memory get
    columns of one allocation (`sm.tensor_memory`). A phase of a barrier counts the arrivals of all
    that fill, or empty, a slot: one for each warp, for each CTA that issues MMAs on it, or for the
    thread that announces the bytes of TMA copies. For an accumulator outside a ring, the barrier
    `mma.done` signals that its MMAs are complete. `tilewright explain memory` prints the plan.
    """

    name: ClassVar[str] = "plan-memory"
    makes: ClassVar[tuple[str, ...]] = tuple(op.OPERATION_NAME for op in get_args(MEMORY_OPS))

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        if walk(kernel, MEMORY_OPS):
            raise refused(kernel, "plan-memory: memory is planned already; run it once")
        target = target_of(module)
        plan = make_plan(kernel, target)
        with ir.InsertionPoint.after(team_op(kernel)), kernel.location:
            replaced = _write(kernel, plan, target)
        for op in replaced:  # not before: new ops stand in front of the first of them
            op.operation.erase()
        log.did(summary_of(kernel))


def _write(kernel: KernelOp, plan: Plan, target: Target) -> list[Any]:
    """Write the plan as ops. Returns the ops that it replaces, which are unused afterwards."""
    replaced: list[Any] = []
    SharedMemoryOp(bytes=integer(plan.shared_bytes))
    allocation = None
    if plan.tmem_columns:
        allocation = TensorMemoryOp(
            columns=integer(plan.tmem_columns),
            offset=integer(plan.tmem_address),
            memory=TensorMemoryType.get(),
        ).memory
    if plan.scales is not None:
        _scale_columns(plan.scales, allocation)
    for load in walk(kernel, LoadOp):
        place = _place_buffer(load, plan.buffers[load.tile])
        replaced.append(_replace(load, place))
    for added, (offset, type_) in plan.parts.items():
        place = TileMemoryOp(offset=integer(offset), tile=type_).tile
        with ir.InsertionPoint(added), added.location:
            AddLanesOp(acc=added.acc, lanes=added.lanes, parts=place)
        replaced.append(added)
    if plan.terms is not None:
        slots = {"offsets": integers(list(plan.terms.offsets)), "slots": integer(plan.terms.slots)}
        memory = RingType.of(plan.terms.slots, plan.terms.tiles).slot
        TermsOp(memory=SlotMemoryOp(**slots, memory=memory).memory)
    if plan.products is not None:
        _product_columns(plan.products, allocation)
    for accumulator in walk(kernel, AccumulatorOp) if target.has_tensor_memory else []:
        first, type_ = plan.accumulators[accumulator.acc], accumulator.acc.type
        each = target.accumulator_columns(*type_.shape)
        replaced.append(_replace(accumulator, _columns(allocation, type_, first, 1, each)))
    labels: Counter[str] = Counter()
    for ring, placed in plan.rings.items():
        labels[placed.kind] += 1
        number = labels[placed.kind]
        label = placed.kind if number == 1 else f"{placed.kind}{number}"
        replaced.append(_replace(ring.owner, _ring(ring, placed, label, allocation, target)))
    if plan.mma_done is not None:
        _barriers(MMA_DONE, plan.mma_done, 1, 1)
    return replaced


def _scale_columns(scales: ScalesPlan, allocation: ir.Value | None) -> None:
    places = {"a_first": scales.a, "b_first": scales.b, "end": scales.end, "slots": scales.places}
    attributes = {name: integer(value) for name, value in places.items()}
    empty = None
    if scales.empty is not None:
        empty = _barriers("scales.empty", scales.empty, scales.places, 1)
    ScaleColumnsOp(memory=allocation, empty=empty, **attributes)


def _product_columns(products: ProductsPlan, allocation: ir.Value | None) -> None:
    done = _barriers(PRODUCTS_DONE, products.done, PRODUCT_SLOTS, 1)
    if products.ready is not None:
        _barriers(PRODUCTS_READY, products.ready, PRODUCT_SLOTS, 1)
    numbers = {"first": 0, "slots": products.slots, "each": products.each}
    numbered = {name: integer(value) for name, value in numbers.items()}
    ProductColumnsOp(memory=allocation, done=done, **numbered)
    if products.weights:
        first = integer(products.slots * products.each)
        WeightColumnsOp(memory=allocation, first=first, each=integer(products.weights))


def _replace(op: Any, value: ir.Value) -> Any:
    op.operation.results[0].replace_all_uses_with(value)
    return op


def _place_buffer(load: LoadOp, offset: int) -> ir.Value:
    """Let all threads copy a tile outside rings to the same address each time."""
    place = TileMemoryOp(offset=integer(offset), tile=load.tile.type).tile
    CopyOp(
        view=load.view,
        tile=place,
        i=load.i,
        j=load.j,
        ip=ir.InsertionPoint(load),
        loc=load.location,
    )
    return place


def _ring(
    ring: ir.Value[RingType],
    placed: RingPlan,
    label: str,
    allocation: ir.Value | None,
    target: Target,
) -> ir.Value:
    if placed.kind == "turns":
        return TurnsOp(**_both_barriers(placed, label), ring=ring.type).ring
    memory = _memory(ring, placed, allocation)
    if placed.kind == "staging":
        return StagingOp(memory=memory, ring=ring.type).ring
    if placed.kind == "ahead":
        full = _barriers(f"{label}.full", placed.full, placed.stages, placed.full_count)
        drain = drain_of(ring)
        if drain is not None:
            within = defining_op(drain.ring).memory
            return ReusedRingOp(full=full, memory=memory, within=within, ring=ring.type).ring
        return AheadRingOp(full=full, memory=memory, ring=ring.type).ring
    if is_self_filled(ring, target):
        return CopyRingOp(memory=memory, ring=ring.type).ring
    return RingOp(
        **_both_barriers(placed, label),
        memory=memory,
        under_way=integer(placed.under_way),
        ring=ring.type,
    ).ring


def _both_barriers(placed: RingPlan, label: str) -> dict[str, ir.Value]:
    empty = placed.empty, placed.stages, placed.empty_count, placed.empty_fallback
    return {
        "full": _barriers(f"{label}.full", placed.full, placed.stages, placed.full_count),
        "empty": _barriers(f"{label}.empty", *empty),
    }


def _memory(ring: ir.Value[RingType], placed: RingPlan, allocation: ir.Value | None) -> ir.Value:
    if placed.kind == "accumulator":
        (type_,) = ring.type.tiles
        slots = PLACES if placed.shared else placed.stages
        acc = _columns(allocation, type_, placed.column, slots, placed.slot_columns)
        if placed.shared:
            defining_op(acc).operation.attributes[SHARED] = integer(placed.shared)
        return acc
    offsets, slots = integers(list(placed.tiles)), integer(placed.stages)
    return SlotMemoryOp(offsets=offsets, slots=slots, memory=ring.type.slot).memory


def _columns(
    allocation: ir.Value | None, type_: ir.Type, first: int, slots: int, each: int
) -> ir.Value:
    return ColumnsOp(
        memory=allocation, first=integer(first), slots=integer(slots), each=integer(each), acc=type_
    ).acc


def _barriers(
    label: str, offset: int, slots: int, arrivals: int, in_fallback: int | None = None
) -> ir.Value:
    made = BarriersOp(
        label=ir.StringAttr.get(label),
        offset=integer(offset),
        slots=integer(slots),
        arrivals=integer(arrivals),
        barriers=BarriersType.of(slots),
    )
    if in_fallback is not None:
        made.operation.attributes[FALLBACK_ARRIVALS] = integer(in_fallback)
    return made.barriers
