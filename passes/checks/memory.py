"""Checks of the memory plan of a kernel: nothing overlaps, and everything fits.

    place      what `plan-memory` places stands in the kernel itself, and all has a place
    apart      no two things share bytes of shared memory, or columns of an allocation; a place or
               a barrier is one ring's; buffers of a store by threads may lie where operands lay
    inside     all lies in the bytes that the launch asks for, no more than the chip has

It runs on a module that comes in planned, as one that a person has edited; offsets that one op can
tell to be wrong are for its verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ...dialects.mlir import ir
from ...dialects.mma_units import PRODUCT_SLOTS
from ...dialects.pipe import CreateOp
from ...dialects.shared_columns import SHARED, shared_of
from ...dialects.sm.memory import (
    BarriersOp,
    ColumnsOp,
    ProductColumnsOp,
    ScaleColumnsOp,
    SharedMemoryOp,
    SlotMemoryOp,
    TensorMemoryOp,
    TermsOp,
    TileMemoryOp,
    WeightColumnsOp,
    byte_size,
)
from ...dialects.sm.positions import SlotOp
from ...dialects.sm.ring_memory import (
    MEMORY_OPS,
    AheadRingOp,
    CopyRingOp,
    ReusedRingOp,
    RingOp,
    StagingOp,
    TurnsOp,
)
from ...dialects.target import Target
from ...dialects.tile import AccumulatorOp, KernelOp, LoadOp, MmaOp
from ...dialects.tile.scales import smem_operands
from ...dialects.tile.stores import AwaitSumsOp, PartPlaceOp, StagingBufferOp
from ...dialects.tile_types import integers_of
from ..base import defining_op, operations, refused, target_of, walk
from ..operand_terms import terms_of
from ..plan import PRODUCTS_READY, cluster_of, ready_of
from ..reused_slots import drain_of, reused_place_of
from ..rings import lies_in_operands, slot_parts
from ..weights import product_slots, widened_columns

COLUMNS = ColumnsOp | ScaleColumnsOp | ProductColumnsOp | WeightColumnsOp
RINGS = RingOp | TurnsOp | StagingOp | AheadRingOp | CopyRingOp


def check_memory(module: ir.Module) -> None:
    """Refuse, at the op, a planned kernel of the module that breaks a rule."""
    for kernel in module.body.operations:
        if isinstance(kernel, KernelOp):
            ops = list(operations(kernel.operation))
            planned = [op for op in ops if isinstance(op, MEMORY_OPS)]
            if planned:
                _check_places(kernel, planned)
                _check_unplaced(ops, target_of(module))
                _check_products(kernel, ops, target_of(module))
                _check_terms(kernel, ops, target_of(module))
                _check_bytes(planned, target_of(module))


def _check_places(kernel: KernelOp, planned: list[Any]) -> None:
    for op in planned:
        if op.operation.parent != kernel.operation:
            raise refused(op, "place: must stand in the kernel itself, got it inside another op")
    for kind in (SharedMemoryOp, TensorMemoryOp):
        found = [op for op in planned if isinstance(op, kind)]
        if len(found) > 1:
            raise refused(found[1], "place: a CTA has one, got a second; drop it")
    if not any(isinstance(op, SharedMemoryOp) for op in planned):
        raise refused(
            planned[0], "place: a plan must say how many bytes it takes, got no sm.shared_memory"
        )
    labels = [op.label.value for op in planned if isinstance(op, BarriersOp)]
    for op in planned:
        if isinstance(op, BarriersOp) and labels.count(op.label.value) > 1:
            raise refused(op, f"place: labels must differ, got two {op.label.value!r}; rename one")
        if isinstance(op, BarriersOp | SlotMemoryOp) and len(_rings(op)) > 1:
            raise refused(op, "apart: must be for one ring, got more; give each its own")


def _rings(op: BarriersOp | SlotMemoryOp) -> list[Any]:
    (value,) = op.operation.results
    rings = [use for use in value.uses if isinstance(use.owner.opview, RINGS)]
    return [use for use in rings if not _is_within(use.owner.opview, value)]


def _is_within(ring: Any, memory: ir.Value) -> bool:
    """Whether the ring has slots in that memory of another one."""
    return isinstance(ring, ReusedRingOp) and ring.within == memory


def _check_unplaced(ops: list[Any], target: Target) -> None:
    unplaced = (CreateOp, LoadOp, AccumulatorOp) if target.has_tensor_memory else (CreateOp, LoadOp)
    for op in ops:
        if isinstance(op, unplaced):
            raise refused(op, "place: must have one in a planned kernel, got none; plan it, too")


def _check_products(kernel: KernelOp, ops: list[Any], target: Target) -> None:
    """Where threads add products of tensor memory, these have columns for a whole tile."""
    found = [op for op in ops if isinstance(op, ProductColumnsOp)]
    wanted = int(target.adds_from_tensor_memory)
    if len(found) != wanted:
        where = found[0] if found else kernel
        rule = f"products: {target.mma.name} has {wanted} sm.product_columns"
        raise refused(where, f"{rule}, got {len(found)}; run plan-memory")
    for op in ops if found else ():
        if isinstance(op, AccumulatorOp):
            each = target.accumulator_columns(*op.acc.type.shape)
            arrivals = defining_op(found[0].done).arrivals.value
            if (found[0].each.value, arrivals) != (each, 1):
                got = f"{found[0].each.value} and {arrivals}"
                rule = f"products: must have {each} columns each, and one arrival"
                raise refused(found[0], f"{rule}, got {got}; make room")
            _check_ready(kernel, found[0])
            slots, wanted = found[0].slots.value, product_slots(kernel)
            if slots != wanted:
                rule = f"products: threads add or read {wanted} in turns here"
                raise refused(found[0], f"{rule}, got {slots}; run plan-memory")
    _check_widened(kernel, [op for op in ops if isinstance(op, WeightColumnsOp)], bool(found))


def _check_ready(kernel: KernelOp, products: ProductColumnsOp) -> None:
    """A pair whose threads add products needs a barrier per slot by which the second CTA signals
    the first."""
    wanted = [(PRODUCT_SLOTS, 1)] if cluster_of(kernel).pair else []
    got = [(op.slots.value, op.arrivals.value) for op in ready_of(kernel)]
    if got != wanted:
        rule = f"products: a pair has {PRODUCT_SLOTS} barriers {PRODUCTS_READY!r} of one arrival"
        raise refused(products, f"{rule}, others have none, got {got}; run plan-memory")


def _check_widened(kernel: KernelOp, found: list[WeightColumnsOp], in_memory: bool) -> None:
    """Weights that threads widen for MMAs of tensor memory have columns there, no others do."""
    wanted = widened_columns(kernel) if in_memory else 0
    got = [op.each.value for op in found]
    if got != ([wanted] if wanted else []):
        rule = f"products: weights that threads widen have {wanted} columns each time"
        raise refused(found[0] if found else kernel, f"{rule}, got {got or 0}; run plan-memory")


def _check_terms(kernel: KernelOp, ops: list[Any], target: Target) -> None:
    """Where threads split tiles, the terms of those that MMAs multiply have a place."""
    found, form = [op for op in ops if isinstance(op, TermsOp)], target.mma.splits
    wanted = int(form is not None)
    if len(found) != wanted:
        where = found[0] if found else kernel
        rule = f"terms: {target.mma.name} has {wanted} sm.terms"
        raise refused(where, f"{rule}, got {len(found)}; run plan-memory")
    if form is None:
        return
    held = [op for op in ops if isinstance(op, AccumulatorOp)]
    if len(held) != 1:
        rule = f"terms: have the place of one accumulator's steps, got {len(held)}"
        raise refused(found[0], f"{rule}; let one agent multiply")
    for mma in [op for op in ops if isinstance(op, MmaOp)]:
        tiles = terms_of(mma, form)
        if tuple(found[0].memory.type.tiles) != tiles:
            operands = ", ".join(str(each.type) for each in smem_operands(mma))
            rule = f"terms: must be those of {operands}"
            raise refused(found[0], f"{rule}, got {found[0].memory.type}; run plan-memory")


def _check_bytes(planned: list[Any], target: Target) -> None:
    (asked,) = [op for op in planned if isinstance(op, SharedMemoryOp)]
    size, most = asked.bytes.value, target.shared_bytes
    if size > most:
        raise refused(asked, f"inside: a CTA can have {most} bytes, got {size}; use fewer slots")
    left = [op for op in planned if isinstance(op, ReusedRingOp)]
    for ring in left:
        _check_reused(ring)
    pieces = [defining_op(ring.memory) for ring in left]
    reusing = [op for op in planned if isinstance(op, SlotMemoryOp) and _lies_in_operands(op)]
    _check_no_overlap([op for op in planned if op not in [*reusing, *pieces]])
    others = [op for op in planned if op not in [*reusing, *pieces] and not _holds_operands(op)]
    for each in reusing:  # stores follow each other, and all threads meet between them
        _check_no_overlap([each, *others])
    for _, end, op in _ranges(planned):
        if end > size:
            raise refused(op, f"inside: must end by byte {size}, got {end}; ask for more bytes")
    _check_columns([op for op in planned if isinstance(op, COLUMNS)], target)


def _check_reused(ring: ReusedRingOp) -> None:
    """Pieces in slots that A or B have left lie in bytes of these, and where the drain says."""
    operands, memory = defining_op(ring.within), defining_op(ring.memory)
    ((start, end, _),) = memory.places()
    if not any(first <= start and end <= last for first, last, _ in operands.places()):
        rule = "apart: pieces in slots of operands must lie in those of one of them"
        raise refused(memory, f"{rule}, got bytes {start} to {end - 1}; move them")
    drain = drain_of(ring.ring)
    if drain is None:
        return
    place = reused_place_of(drain, ring.ring)
    offset, tile = integers_of(operands.offsets)[place.tile], operands.memory.type.tiles[place.tile]
    wanted = offset + place.first * tile.layout.slot_bytes
    if start != wanted:
        rule = f"apart: pieces lie where slot {place.first} is left, at byte {wanted}"
        raise refused(memory, f"{rule}, got {start}; move them")


def _check_no_overlap(planned: list[Any]) -> None:
    ranges = sorted(_ranges(planned), key=lambda each: each[:2])
    for (_, end, _), (start, _, op) in pairwise(ranges):
        if start < end:
            raise refused(op, f"apart: bytes below {end} are taken, got byte {start}; move it")


def _holds_operands(op: Any) -> bool:
    """Whether it is of tiles of A and B, which are read by the time that a result is stored."""
    if isinstance(op, SlotMemoryOp):
        return all(isinstance(use.owner.opview, RingOp | CopyRingOp) for use in _rings(op))
    return isinstance(op, TileMemoryOp)


def _lies_in_operands(memory: SlotMemoryOp) -> bool:
    """Whether it is of buffers that threads fill and store when they have read their operands."""
    rings = [use.owner.opview for use in _rings(memory)]
    if not rings or not all(isinstance(ring, StagingOp) for ring in rings):
        return False
    kernel = memory.operation.parent
    stand = [op.operation.parent == kernel for op in walk(kernel.opview, AwaitSumsOp)]
    written_out = all(stand) and all(_stored_in_parts(ring.ring) for ring in rings)
    return written_out or any(lies_in_operands(ring.ring) for ring in rings)


def _stored_in_parts(ring: ir.Value) -> bool:
    """Whether the buffers of a ring that is written out are stored by threads, as parts of rows."""
    users = [use.owner.opview for use in ring.uses]
    tiles = [user.buffer for user in users if isinstance(user, StagingBufferOp)]
    for user in users:
        if isinstance(user, SlotOp):
            tiles += [part.tile for part in slot_parts(user.slot)]
    return any(isinstance(use.owner.opview, PartPlaceOp) for tile in tiles for use in tile.uses)


def _ranges(planned: list[Any]) -> list[tuple[int, int, Any]]:
    """(first byte, end, op) of all that lies in shared memory."""
    found = []
    for op in planned:
        if isinstance(op, SlotMemoryOp):
            found += [(start, end, op) for start, end, _ in op.places()]
        elif isinstance(op, TileMemoryOp | BarriersOp | TensorMemoryOp):
            found.append((op.offset.value, op.offset.value + byte_size(op), op))
    return found


def _check_columns(columns: Sequence[COLUMNS], target: Target) -> None:
    for op in columns:
        if isinstance(op, ColumnsOp):
            least, each = target.accumulator_columns(*op.acc.type.shape), op.each.value
            if each < least:
                rule = f"inside: {op.acc.type} must have {least} columns"
                raise refused(op, f"{rule}, got {each} each; give it as many")
            if shared_of(op) and not any(use.owner.name == "sm.ring" for use in op.acc.uses):
                rule = f"apart: {SHARED} must be of a ring of one slot"
                raise refused(op, f"{rule}, got an accumulator in no ring; drop it")
    for before, op in pairwise(sorted(columns, key=columns_of)):
        end, first = columns_of(before)[1], columns_of(op)[0]
        if first < end:
            raise refused(op, f"apart: columns below {end} are taken, got column {first}; move it")


def columns_of(op: COLUMNS) -> tuple[int, int]:
    """The first column that an op takes, and the first after them."""
    if not isinstance(op, ColumnsOp):
        return op.columns
    return op.first.value, op.end
