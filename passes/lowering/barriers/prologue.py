"""The start and the end of a kernel: barriers, tensor memory, synchronisation.

    sm.prologue          one lane: sm.barrier_init of every slot, sm.fence "mbarrier_init",
                         sm.prefetch_tensor_map; then zeros, where `expand-loops` put some
    sm.cta_place         of a cluster: which of its CTAs this is; `sm.in_preferred`: of which shape
    sm.early             a lane of a warp that has no part in that asks L2 for the first tiles
    sm.cta_barrier       what was done so far is there for all threads
    sm.first_warp        sm.tmem_alloc, sm.tmem_relinquish
    sm.tmem_base         the threads that use tensor memory meet; loads have begun
    ...
    sm.cta_barrier       nobody reads tensor memory, or writes to another CTA, any more
    sm.first_warp        sm.tmem_dealloc

In a cluster its CTAs meet: none may write to one that has not begun, or has ended, and a pair asks
for tensor memory together (PTX ISA, tcgen05.alloc: the peer CTA must have been launched). A CTA
alone whose threads all use tensor memory takes it before they meet, and meets once. Threads that
share nothing but global memory begin at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from ....dialects import sm
from ....dialects.fallback import FALLBACK_ARRIVALS, fallback_of
from ....dialects.mlir import ir
from ....dialects.mma_units import WAIT_GROUP
from ....dialects.sm.memory import BarriersOp, TensorMemoryOp
from ....dialects.sm.ring_memory import MEMORY_OPS, AheadRingOp, CopyRingOp, StagingOp
from ....dialects.sm.threads import LANE, EarlyOp, FirstWarpOp, InPreferredOp, PrologueOp
from ....dialects.tile import AccumulatorOp, KernelOp, TensorMapOp
from ....dialects.tile.marks import MarkOp
from ... import build
from ...base import defining_op, walk
from ...kernel_parameters import parameters_of
from ...tmem_users import TmemMeeting
from .rings import Rings, barrier_of, converge, run

PLACES = (sm.TeamOp, *get_args(MEMORY_OPS), sm.PositionOp, sm.TallyOp, TensorMapOp, MarkOp)


def place_ends(kernel: KernelOp, rings: Rings) -> None:
    """Put the start before the kernel's program, and the end after it."""
    body = kernel.body.blocks[0]
    in_registers = rings.target.mma.completion == WAIT_GROUP
    sums = walk(kernel, AccumulatorOp) if in_registers else []
    _place_registers(body, sums)
    first = _first(body, (*PLACES, PrologueOp, EarlyOp), sums)
    with ir.InsertionPoint(first), kernel.location:
        written = bool(walk(kernel, PrologueOp))
        maps = [each.map for each in parameters_of(kernel) if each.map is not None]
        meets = written or bool(maps) or _shares_memory(kernel, rings)
        if meets:
            _fill_prologue(kernel, rings, maps)
        if rings.cluster.size > 1:
            sm.CtaPlaceOp()
        if fallback_of(kernel) is not None:
            InPreferredOp()
        for early in walk(kernel, EarlyOp):
            early.operation.move_before(first.operation)
        base = _take_tensor_memory(kernel, rings, written) if meets else None
        # Threads touch global memory once the grids before this one allow it.
        sm.AwaitGridsOp.of()
    with ir.InsertionPoint(body), kernel.location:
        _end(rings, base)


def _place_registers(body: ir.Block, sums: list[AccumulatorOp]) -> None:
    """Sums that warpgroups hold come after what is in memory, before the prologue."""
    first = _first(body, PLACES, sums)
    for accumulator in sums:
        accumulator.operation.move_before(first.operation)


def _first(body: ir.Block, places: tuple[type, ...], sums: list[AccumulatorOp]) -> Any:
    """The first op that is not one of `places`, nor of `sums`."""
    return next(op for op in body.operations if not isinstance(op, places) and op not in sums)


def _shares_memory(kernel: KernelOp, rings: Rings) -> bool:
    """Whether threads wait for barriers, or share tensor memory or that of a cluster."""
    return rings.cluster.size > 1 or any(_slots(rings)) or bool(walk(kernel, TensorMemoryOp))


def _fill_prologue(kernel: KernelOp, rings: Rings, maps: list[Any]) -> None:
    """Barriers and tensor maps come before what is in the prologue already."""
    made = walk(kernel, PrologueOp)
    prologue = made[0] if made else _prologue()
    for map_ in maps:
        if not map_.operation.is_before_in_block(prologue.operation):
            map_.operation.move_before(prologue.operation)
    with ir.InsertionPoint.at_block_begin(prologue.body.blocks[0]):
        with run(LANE):
            _init_barriers(rings)
            for map_ in maps:
                sm.PrefetchTensorMapOp.of(map_.map)
        converge()


def _prologue() -> PrologueOp:
    op = PrologueOp()
    op.body.blocks.append()
    return op


def _init_barriers(rings: Rings) -> None:
    if not rings.target.async_agents:  # no fence for mbarriers, and none to initialise
        return
    for op, slot in _slots(rings):
        barrier = barrier_of(op.barriers, build.constant(slot))
        init = sm.BarrierInitOp.of(barrier, count=op.arrivals.value)
        if FALLBACK_ARRIVALS in op.operation.attributes:
            said = op.operation.attributes[FALLBACK_ARRIVALS]
            init.operation.attributes[FALLBACK_ARRIVALS] = said
    if rings.target.async_agents:  # else no proxy but the threads' own arrives on them
        build.fence("mbarrier_init")


def _slots(rings: Rings) -> Iterator[tuple[BarriersOp, int]]:
    """Every barrier: of each slot of a ring the full one, then the empty one."""
    if rings.done is not None:
        yield defining_op(rings.done), 0
    if rings.scales is not None:
        barriers = defining_op(rings.scales)
        yield from ((barriers, slot) for slot in range(barriers.slots.value))
    for barriers in map(defining_op, rings.products):
        yield from ((barriers, slot) for slot in range(barriers.slots.value))
    for ring in rings.rings.values():
        if isinstance(ring.op, StagingOp | CopyRingOp):
            continue
        for slot in range(ring.stages):
            yield defining_op(ring.op.full), slot
            if not isinstance(ring.op, AheadRingOp):
                yield defining_op(ring.op.empty), slot


def _take_tensor_memory(kernel: KernelOp, rings: Rings, written: bool) -> Any:
    """The meeting, and tensor memory before it; the op that gives its address, if there is some.

    Where nothing but barriers was `written`, which a fence has ordered, it releases nothing: a
    release waits for what is under way, 0.55 us on an H100.
    """
    memory = next(iter(walk(kernel, TensorMemoryOp)), None)
    if memory is None:
        _meet(rings, releases=written)
        return None
    meeting = TmemMeeting.of(kernel, memory)
    if rings.cluster.size > 1:
        build.cluster_barrier(written)
    elif meeting.apart:
        sm.CtaBarrierOp.of()
    with _first_warp():
        to = build.shared_at(memory.offset.value)
        sm.TmemAllocOp.of(to, columns=memory.columns.value, cta_group=rings.cta_group)
        sm.TmemRelinquishOp.of(cta_group=rings.cta_group)
    rings.fence("tcgen05_before")
    if meeting.apart:
        base = sm.TmemBaseOp.of(memory.memory, **meeting._asdict())
        rings.fence("tcgen05_after")
        return base
    sm.CtaBarrierOp.of()
    rings.fence("tcgen05_after")
    return sm.TmemBaseOp.of(memory.memory, **meeting._asdict())


def _end(rings: Rings, base: Any) -> None:
    """Tensor memory goes back once every warp has read it.

    In a cluster none ends while another may still signal its barriers. Only with parts of K do
    threads read another CTA's shared memory, which the meeting then orders too.
    """
    if base is not None or rings.cluster.size > 1:
        _meet(rings, releases=rings.cluster.split > 1)
    if base is not None:
        columns = defining_op(base.memory).columns.value
        with _first_warp():
            sm.TmemDeallocOp.of(base.address, columns=columns, cta_group=rings.cta_group)


def _first_warp() -> ir.InsertionPoint:
    return ir.InsertionPoint(FirstWarpOp().body.blocks.append())


def _meet(rings: Rings, releases: bool) -> None:
    """All threads of the CTA, or of its cluster, meet; tcgen05 work is ordered across it."""
    rings.fence("tcgen05_before")
    sm.CtaBarrierOp.of() if rings.cluster.size == 1 else build.cluster_barrier(releases)
    rings.fence("tcgen05_after")
