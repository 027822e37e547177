"""The layout of shared memory and tensor memory of a CTA."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..dialects.fallback import fallback_of
from ..dialects.layout import LINEAR, SLOT_ALIGNMENT, TileLayout
from ..dialects.mlir import ir, scf
from ..dialects.mma_units import PRODUCT_SLOTS
from ..dialects.pipe import ClaimType, CreateOp, RingType, TileOp, TurnType
from ..dialects.scaled_legality import SCALE_PLACES
from ..dialects.shared_columns import PLACES, shared_of
from ..dialects.sm.memory import BARRIER_BYTES, CLAIM_BYTES, BarriersOp
from ..dialects.sm.threads import ISSUER, TEAM, WarpsOp, who_runs
from ..dialects.target import Target
from ..dialects.terms import TermForm
from ..dialects.tile import (
    AccumulatorOp,
    CopyOp,
    KernelOp,
    LoadOp,
    MmaOp,
    PairMmaOp,
    TmaMulticastOp,
)
from ..dialects.tile.scales import SCALED_MMAS
from ..dialects.tile.sums import WARP_LANES, AddLanesOp
from ..dialects.tile_types import AccumulatorType, SmemType, element_bytes, integers_of
from .base import defining_op, refused, walk
from .cluster import Cluster
from .copy_width import is_asynchronous
from .operand_terms import terms_of
from .reused_slots import drain_of, reused_start
from .ring_fills import agent_of, has_copies, is_self_filled, releases, ring_tiles, shared_fills
from .rings import is_ahead_ring, is_operand_ring, lies_in_operands
from .thread_shares import share_of
from .weights import product_slots, widened_columns

# Of threads that copy, before they wait for the oldest.
SLOTS_UNDER_WAY_MAX = 2
MMA_DONE, PRODUCTS_DONE, PRODUCTS_READY = "mma.done", "products.done", "products.ready"


class RingPlan(NamedTuple):
    """Where a ring lies and how many arrivals make a slot full and empty.

    `kind` is "operands", "staging", "ahead", "accumulator", "claims" or "turns". `tiles` are byte
    offsets of each payload tile's (or the claims') first slot, `full` and `empty` those of the
    barriers, of pieces loaded ahead `full` alone; an
    accumulator ring has tensor-memory `column` and `slot_columns` instead of tiles, and `shared` of
    these in both places of a slot that has two. `under_way` is
    how many slots a thread goes on to fill with cp.async before it waits for the first. In a
    fallback cluster a slot is empty after `empty_fallback` arrivals, where these are others.
    """

    kind: str
    stages: int
    layouts: tuple[TileLayout, ...] = ()
    tiles: tuple[int, ...] = ()
    column: int = 0
    slot_columns: int = 0
    shared: int = 0
    full: int = 0
    empty: int = 0
    full_count: int = 1
    empty_count: int = 1
    empty_fallback: int | None = None
    under_way: int = 0


class ScalesPlan(NamedTuple):
    """Where the block scales of a K step go in tensor memory: A's from column `a` on, B's from `b`
    on, up to `end`; `places` of them, one after the other. `empty` are the barriers of the places,
    where K steps are under way together."""

    a: int
    b: int
    end: int
    places: int = 1
    empty: int | None = None


class ProductsPlan(NamedTuple):
    """Where products that threads add go in tensor memory: `slots` of so many columns `each`, from
    the first on, and the barriers that tell when they are `done`, and of pairs `ready`. After them
    two times as many columns as MMAs read `weights` from, where threads widen some."""

    each: int
    done: int
    slots: int
    weights: int
    ready: int | None = None

    @property
    def columns(self) -> int:
        """The columns of all accumulators."""
        return self.slots * self.each + PRODUCT_SLOTS * self.weights


class TermsPlan(NamedTuple):
    """The terms of f32 tiles in a slot, and the byte offsets of their first slots."""

    tiles: tuple[SmemType, ...]
    offsets: tuple[int, ...]
    slots: int


@dataclass
class Plan:
    """Offsets from the start of dynamic shared memory, in bytes."""

    buffers: dict[ir.Value, int] = field(default_factory=dict)
    rings: dict[ir.Value[RingType], RingPlan] = field(default_factory=dict)
    accumulators: dict[ir.Value, int] = field(default_factory=dict)
    cluster: Cluster = field(default_factory=Cluster)
    fallback: Cluster | None = None
    mma_done: int | None = None
    tmem_address: int = 0
    tmem_columns: int = 0
    scales: ScalesPlan | None = None
    products: ProductsPlan | None = None
    terms: TermsPlan | None = None
    parts: dict[AddLanesOp, tuple[int, SmemType]] = field(default_factory=dict)
    shared_bytes: int = 0


def make_plan(kernel: KernelOp, target: Target) -> Plan:
    """Place every tile, barrier and accumulator of the kernel; refuse what does not fit."""
    plan = Plan(cluster=cluster_of(kernel), fallback=fallback_cluster_of(kernel))
    cursor = _Cursor()
    for load in walk(kernel, LoadOp):
        layout = load.tile.type.layout
        plan.buffers[load.tile] = cursor.take(layout.size_bytes, SLOT_ALIGNMENT)
    for added in walk(kernel, AddLanesOp):
        if added.lanes.value > WARP_LANES:
            plan.parts[added] = _place_parts(kernel, added, cursor)
    _place_rings(kernel, plan, cursor)
    if target.mma.splits is not None:
        plan.terms = _place_terms(kernel, target, target.mma.splits, cursor)
    if target.has_tensor_memory:
        _place_accumulators(kernel, plan, target)
    if target.adds_from_tensor_memory:
        plan.products = _place_products(kernel, target, cursor)
        plan.tmem_columns = _allocated(kernel, plan.products.columns, target)
    for ring, placed in plan.rings.items():
        plan.rings[ring] = _place_barriers(ring, placed, plan, target, cursor)
    if plan.scales is not None and _steps_under_way(kernel) > 1:
        start = cursor.take(plan.scales.places * BARRIER_BYTES, BARRIER_BYTES)
        plan.scales = plan.scales._replace(empty=start)
    plan.mma_done = cursor.take(BARRIER_BYTES, BARRIER_BYTES) if plan.accumulators else None
    if plan.tmem_columns:
        plan.tmem_address = cursor.take(4, 4)
    plan.shared_bytes = _padded(cursor.end, plan, target)
    if plan.shared_bytes > target.shared_bytes:
        raise refused(
            kernel,
            f"needs {plan.shared_bytes} bytes of shared memory, over the {target.shared_bytes} of "
            f"{target.chip}; use a smaller tile or fewer stages",
        )
    return plan


def _place_parts(kernel: KernelOp, added: AddLanesOp, cursor: _Cursor) -> tuple[int, SmemType]:
    """Where the warps that share elements tell what they have of them, a row each."""
    share, element = share_of(kernel, added.acc), added.acc.type.element
    warps, values = kernel.threads.value // WARP_LANES, share.m * share.n
    layout = TileLayout(warps, values, element_bytes(element), "k", LINEAR)
    return cursor.take(layout.size_bytes, SLOT_ALIGNMENT), SmemType.of(layout, element)


def _place_rings(kernel: KernelOp, plan: Plan, cursor: _Cursor) -> None:
    """Give each ring its bytes; buffers that may lie in operands begin where these do, pieces that
    come later where slots are left."""
    creates = sorted(walk(kernel, CreateOp), key=_alignment, reverse=True)
    reusing = [create for create in creates if lies_in_operands(create.ring)]
    operands = [create for create in creates if reusing and is_operand_ring(create)]
    for create in operands:
        plan.rings[create.ring] = _place_tiles(create, cursor)
    ends = [cursor.end]
    for create in reusing:
        over = _Cursor(reused_start(create.ring, plan.rings))
        plan.rings[create.ring] = _place_tiles(create, over)
        ends.append(over.end)
    cursor.end = max(ends)
    for create in sorted(creates, key=lambda each: drain_of(each.ring) is not None):
        placed = plan.rings.pop(create.ring, None) or _place_tiles(create, cursor)
        plan.rings[create.ring] = placed


def _padded(used_bytes: int, plan: Plan, target: Target) -> int:
    """Shared memory to ask for: in a cluster, enough to keep out CTAs that would wait for columns.

    tcgen05.alloc blocks while others hold the columns, and the CTAs of a cluster wait for each
    other after it: two clusters that each got one of two multiprocessors would wait for ever.
    """
    if plan.cluster.size == 1 or not plan.tmem_columns:
        return used_bytes
    return max(used_bytes, target.shared_bytes_to_fit(plan.tmem_columns))


class _Cursor:
    """Hands out aligned byte ranges, one after the other."""

    def __init__(self, start: int = 0) -> None:
        self.end = start

    def take(self, size_bytes: int, alignment: int) -> int:
        start = -(-self.end // alignment) * alignment
        self.end = start + size_bytes
        return start


def _alignment(create: CreateOp) -> int:
    """What a ring's slots must be aligned to: large ones first leaves no gaps."""
    return CLAIM_BYTES if isinstance(create.ring.type.tiles[0], ClaimType) else SLOT_ALIGNMENT


def _place_tiles(create: CreateOp, cursor: _Cursor) -> RingPlan:
    stages, tiles = create.ring.type.stages, create.ring.type.tiles
    if isinstance(tiles[0], AccumulatorType):
        return RingPlan("accumulator", stages)
    if isinstance(tiles[0], ClaimType):
        return RingPlan("claims", stages, tiles=(cursor.take(stages * CLAIM_BYTES, CLAIM_BYTES),))
    if isinstance(tiles[0], TurnType):
        return RingPlan("turns", stages)
    layouts = tuple(tile.layout for tile in tiles if isinstance(tile, SmemType))
    places = [cursor.take(stages * layout.slot_bytes, SLOT_ALIGNMENT) for layout in layouts]
    kind = "operands" if is_operand_ring(create) else "staging"
    kind = "ahead" if is_ahead_ring(create.ring) else kind
    return RingPlan(kind, stages, layouts, tuple(places))


def ready_of(kernel: KernelOp) -> list[BarriersOp]:
    """The barriers that tell the first CTA of a pair that products may be made in both."""
    return [op for op in walk(kernel, BarriersOp) if op.label.value == PRODUCTS_READY]


def cluster_of(kernel: KernelOp) -> Cluster:
    """The kernel's cluster, pairs and multicasts."""
    m, n, split = integers_of(kernel.cluster)
    found = walk(kernel, TmaMulticastOp | PairMmaOp)
    pair = any(isinstance(op, PairMmaOp) for op in found)
    shared = {op.axis.value for op in found if isinstance(op, TmaMulticastOp)}
    return Cluster(m, n, pair, "n" in shared, "m" in shared, split)


def fallback_cluster_of(kernel: KernelOp) -> Cluster | None:
    """The fallback cluster of a kernel, if it has one; pairs and multicasts are the same."""
    sizes = fallback_of(kernel)
    return None if sizes is None else cluster_of(kernel)._replace(m=sizes[0], n=sizes[1])


def _place_barriers(
    ring: ir.Value,
    placed: RingPlan,
    plan: Plan,
    target: Target,
    cursor: _Cursor,
) -> RingPlan:
    cluster = plan.cluster
    if placed.kind == "staging" or is_self_filled(ring, target):
        return placed
    if placed.kind == "ahead":
        return placed._replace(full=cursor.take(placed.stages * BARRIER_BYTES, BARRIER_BYTES))
    full, empty = (cursor.take(placed.stages * BARRIER_BYTES, BARRIER_BYTES) for _ in range(2))
    if placed.kind == "operands":
        counts = (each.release_count() for each in (cluster, plan.fallback or cluster))
        count, less = (releases(ring, _consumer_warps(ring), each, target) for each in counts)
        placed = placed._replace(empty_fallback=less if less != count else None)
    elif placed.kind == "claims":
        count = _claim_readers(ring, cluster)
    else:
        count = _consumer_warps(ring) * (2 if cluster.pair else 1)
    placed = placed._replace(full=full, empty=empty, empty_count=count)
    if placed.kind == "turns":
        return placed._replace(full_count=_agent_warps(_commits(ring)[0].owner))
    return _fill_by_threads(ring, placed, cluster) if has_copies(ring) else placed


def _fill_by_threads(ring: ir.Value, placed: RingPlan, cluster: Cluster) -> RingPlan:
    """Each warp that copies arrives by itself; on a slot as late as its reader can bear.

    The reader may hold a slot until it has the next (a late release), and the producer asks for
    one that is empty: that leaves all slots but two.
    """
    copies = [copy for tile in ring_tiles(ring, "acquire") for copy in shared_fills(tile)]
    in_loops = all(isinstance(use.owner.parent.opview, scf.ForOp) for use in _commits(ring))
    late = in_loops and any(isinstance(copy, CopyOp) and is_asynchronous(copy) for copy in copies)
    under_way = min(SLOTS_UNDER_WAY_MAX, max(0, placed.stages - 2)) if late else 0
    warps = _agent_warps(copies[0].operation) * (2 if cluster.pair else 1)
    return placed._replace(full_count=warps, under_way=under_way)


def _commits(ring: ir.Value) -> list[ir.OpOperand]:
    return [use for use in ring.uses if use.owner.name == "pipe.commit"]


def _claim_readers(ring: ir.Value, cluster: Cluster) -> int:
    """Arrivals of a whole cluster that say that a claim has been read: of who asks, and of each
    warp or thread that runs tiles, as `assign-threads` has it."""
    total = 0
    for op in (use.owner for use in ring.uses):
        who = who_runs(op.opview)
        ctas = cluster.size // 2 if who == ISSUER else cluster.size
        total += ctas * (_agent_warps(op) if who == TEAM else 1)
    return total


def _consumer_warps(ring: ir.Value) -> int:
    """Warps of the agent that waits."""
    return _agent_warps(next(use.owner for use in ring.uses if use.owner.name == "pipe.wait"))


def _agent_warps(op: ir.Operation | ir.OpView) -> int:
    """Warps of the role, or the kernel, that runs an op."""
    agent = agent_of(op)
    return agent.warps.value if isinstance(agent, WarpsOp) else agent.threads.value // 32


def _place_accumulators(kernel: KernelOp, plan: Plan, target: Target) -> None:
    columns = 0
    for accumulator in walk(kernel, AccumulatorOp):
        plan.accumulators[accumulator.acc] = columns
        columns += target.accumulator_columns(*accumulator.acc.type.shape)
    for ring, placed in plan.rings.items():
        if placed.kind == "accumulator":
            each = target.accumulator_columns(*ring.type.accumulator.shape)
            shared = shared_of(ring.owner)
            plan.rings[ring] = placed._replace(column=columns, slot_columns=each, shared=shared)
            columns += PLACES * each - shared if shared else placed.stages * each
    plan.scales = _place_scales(kernel, columns, target)
    if plan.scales is not None:
        columns += plan.scales.places * (plan.scales.end - plan.scales.a)
    plan.tmem_columns = _allocated(kernel, columns, target)


def _allocated(kernel: KernelOp, columns: int, target: Target) -> int:
    """What to allocate for so many columns, if there are as many."""
    if columns <= target.tmem_columns:
        return target.allocated_columns(columns)
    raise refused(
        kernel,
        f"needs {columns} tensor-memory columns, over the {target.tmem_columns} of "
        f"{target.chip}; use a smaller tile",
    )


def _place_products(kernel: KernelOp, target: Target, cursor: _Cursor) -> ProductsPlan:
    """Two products of the one accumulator that the kernel has, or one that MMAs add to."""
    each = target.accumulator_columns(*_the_accumulator(kernel, target).acc.type.shape)
    pair = cluster_of(kernel).pair
    done, ready = (
        cursor.take(PRODUCT_SLOTS * BARRIER_BYTES, BARRIER_BYTES) if is_there else None
        for is_there in (True, pair)
    )
    assert done is not None
    return ProductsPlan(each, done, product_slots(kernel), widened_columns(kernel), ready)


def _the_accumulator(kernel: KernelOp, target: Target) -> AccumulatorOp:
    held = walk(kernel, AccumulatorOp)
    if len(held) != 1:
        rule = f"{target.mma.name} adds to one accumulator, got {len(held)}"
        raise refused(kernel, f"{rule}; let one agent multiply")
    return held[0]


def _place_terms(kernel: KernelOp, target: Target, form: TermForm, cursor: _Cursor) -> TermsPlan:
    """After the operands, slot by slot: those of the one agent that multiplies."""
    _the_accumulator(kernel, target)
    tiles = terms_of(walk(kernel, MmaOp)[0], form)
    pitches = [form.slots * each.layout.slot_bytes for each in tiles]
    offsets = tuple(cursor.take(each, SLOT_ALIGNMENT) for each in pitches)
    return TermsPlan(tiles, offsets, form.slots)


def _place_scales(kernel: KernelOp, first: int, target: Target) -> ScalesPlan | None:
    """After the accumulators: twice, where K steps are under way together and there is room.

    They fill what is allocated for that: a K step for which the ring has a slot has a place too.
    """
    for mma in walk(kernel, SCALED_MMAS):
        a, b = (each.type.layout.scale_columns for each in (mma.a_scales, mma.b_scales))
        steps = _steps_under_way(kernel)
        least = min(SCALE_PLACES, steps, (target.tmem_columns - first) // (a + b))
        columns = min(target.tmem_columns, first + max(1, least) * (a + b))
        room = (target.allocated_columns(columns) - first) // (a + b)
        return ScalesPlan(first, first + a, first + a + b, max(1, min(steps, room)))
    return None


def _steps_under_way(kernel: KernelOp) -> int:
    """K steps whose scales may be copied while the MMAs of earlier ones are under way."""
    (mma,) = walk(kernel, SCALED_MMAS)[:1]
    slot = defining_op(mma.a_scales)
    return defining_op(slot.slot).ring.type.stages if isinstance(slot, TileOp) else 1
