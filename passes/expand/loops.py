"""Expands tiles, stores and reductions into loops, and the end of each agent into ops.

    tile.for_each_tile (i, j)     for number = this cluster's .. tiles step clusters
                            →       %i, %j = tile.place %number

    tile.store %acc               for start = 0 .. N step columns that a thread reads at a time
                            →       %values = tile.read_row %sums, start
                                    if row < rows of c: tile.write_row %values

    tile.staged_store %acc        %sums = tile.await_sums %acc
                                  for start = 0 .. N step columns
                                    %buffer = tile.staging_buffer
                                    sm.run by "lane": sm.bulk_wait {pending = buffers - 1}
                                    sm.named_barrier
                            →       %values = tile.read_row %sums, start
                                    for neighbours in a row, 16 bytes or a pair of them:
                                      %outputs = tile.apply_epilogue %values
                                    tile.write_unit %outputs, %buffer, or tile.write_matrices
                                    sm.fence "async_shared"
                                    sm.named_barrier
                                    sm.run by "lane": tile.tma_store %buffer, start; sm.bulk_commit
                                    tile.next_buffer

    several tile.staged_store     the pieces of all that begin with the same columns are written
    of the same sums        →       between two meetings, and TMA stores them as one group

    tile.load_ahead                 tile.load_piece of the first pieces; of a store that reads them
                            →       %piece = tile.await_piece before f, and after the last meeting
                                    tile.load_piece of a later one (`expand/ahead.py`)

    tile.read_ahead               tile.read_operand of each place that the thread's part of f reads,
                            →       which f takes as tile.held_element (`expand/reads.py`)

Threads write one piece while TMA stores another: a buffer is written again once TMA has read it.
Where threads store the pieces, too, all write as many as there are buffers, meet, and store those
(`expand/pieces.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from ...dialects import sm
from ...dialects.mlir import ir, scf
from ...dialects.pipe import AcquireOp, DrainOp
from ...dialects.record import record
from ...dialects.sm.threads import ConvergeOp, WarpsOp
from ...dialects.target import Target
from ...dialects.tile import (
    CopyOp,
    GatheredStoreOp,
    KernelOp,
    LoadOp,
    ReducedStoreOp,
    StagedStoreOp,
    StoreOp,
    TmaGatherOp,
    TmaLoadOp,
    TmaMulticastOp,
)
from ...dialects.tile.marks import MarkOp
from ...dialects.tile.outputs import StoreGroupsOp
from ...dialects.tile.quantized import StoreQuantizedOp
from ...dialects.tile.staged_quantized import stored_tile
from ...dialects.tile.stores import NextBufferOp, StagingBufferOp, TmaStoreOp
from ...dialects.tile.sums import ViewMmaOp
from ...dialects.tile_types import integer, integers, integers_of
from ..base import PassLog, many, one_of, option, parse_count, refused, target_of, the_kernel, walk
from ..build import constant
from ..clone import Mapping
from ..outputs import stored_by_threads, stored_together
from ..rings import is_operand_ring
from ..shared_columns import in_turn, pieces_before, release_now, shared_by
from ..shared_scales import say_shared
from ..team import Team, by_one_lane
from ..whole import say_whole
from .ahead import await_pieces, expand_load_ahead, load_later, loads_of
from .clearing import expand_clearing
from .copies import expand_copies
from .early import expand_early
from .groups import expand_groups
from .matrices import store_matrices
from .pieces import expand_pieces
from .reads import end_reads, expand_reads
from .reduction import expand_gathered_store, expand_reduced_store
from .rows import awaited, expand_store, hand_back, store_columns
from .sums import expand_sums
from .thread_sums import expand_shares
from .tiles import expand_tiles
from .walks import expand_walks
from .writes import Piece

ROWS, MATRICES = "rows", "matrices"
STORES = {ROWS: store_columns, MATRICES: store_matrices}
SUMMED = ReducedStoreOp | GatheredStoreOp
LOADS = TmaLoadOp | TmaGatherOp | TmaMulticastOp | CopyOp | LoadOp | ViewMmaOp


@record
class ExpandLoops:
    """`tile.for_each_tile` → `scf.for`; stores → loops over rows, or over pieces of the tile.

    Tiles are numbered in the order in which they are handed out, and `tile.place` computes the
    indices of a tile from its number. Loops over claimed clusters stay, since only the claim says
    which tile is next. Copies and stores say which of their indices name tiles that all lie inside
    the view (`whole`); along the others, they compare rows and columns with the view's extents.

    A piece goes through a buffer of the staging ring. Threads write one piece while TMA stores
    another, and write a buffer again once TMA has read it. A loop cannot index accumulators in
    registers, so the pieces of these are unrolled.

    A store by threads reads a thread's row of tensor memory some columns at a time, and writes them
    (`tile.write_row`) if the row lies in C. If K is split over a cluster, each CTA writes its
    accumulator to shared memory (`tile.write_partial`), the cluster synchronises, and threads add
    up those of all CTAs (`sm.mapa`). If K is split over the grid, the accumulators go to global
    memory. Each CTA adds up a share of the rows (`sm.claim_parts`); in a grid too large to run at
    once, the last CTA of a tile adds up all of them (`sm.count_arrival`).

    `reads` says how threads read accumulators in tensor memory to store them. With `rows`, a thread
    gets adjacent columns of one row, by tcgen05.ld.32x32b and the like, and stores up to 32 bytes
    at once. With `matrices`, it gets pairs of columns in every 8 columns of two rows, by
    tcgen05.ld.16x256b, and stores a pair at once. Accumulators in registers always lie so.

    Copies by threads that shift bytes in registers are gathered: all copies of a slot stand
    together before its commit (`tile.copy_together`).

    Rows of operand tiles that no copy fills are cleared in loops (`tile.clear_unit`). Threads that
    issue MMAs together clear them before their first MMA, while the first loads are in flight.
    Otherwise all threads clear them before the program begins (`sm.prologue`).

    `early` is the number of K steps whose tiles one lane of the load agent prefetches into L2 while
    other threads initialise barriers and wait for the cluster (`sm.early`); 0 is none. It is not
    for kernels whose CTAs claim their tiles, since these do not know the first ones in advance.

    The end of each agent becomes ops, too. Once its loads are issued, dependent grids may start. In
    a cluster it waits until all slots that it filled are empty, since other CTAs still arrive on
    their barriers. Agents beside a `tile.reduced_store` synchronise with the cluster, and one that
    stored by TMA waits until its last piece has been read.
    """

    name: ClassVar[str] = "expand-loops"
    makes: ClassVar[tuple[str, ...]] = ("tile.apply_epilogue", "sm.launch_dependents")
    reads: str = option(ROWS, one_of(ROWS, MATRICES), "rows or matrices")
    early: int = option(0, parse_count, "0 or a number of steps along K")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        if is_expanded(kernel):
            raise refused(kernel, "expand-loops: loops are written out already; run it once")
        target, stores = target_of(module), walk(kernel, StagedStoreOp)
        self._check(kernel)
        for owner in walk(kernel, WarpsOp) or [kernel]:
            with end_of(owner), owner.location:
                _end(kernel, owner)
        pieces = [_expand(kernel, together, target) for together in stored_together(stores)]
        expand_load_ahead(kernel)
        end_reads(kernel)
        self._expand_stores_by_threads(kernel, target)
        expand_copies(kernel)
        expand_clearing(kernel, target)
        expand_sums(kernel, target)
        expand_tiles(kernel)
        expand_walks(kernel)
        early = expand_early(kernel, self.early)
        if self.early and not early:
            rule = (
                "expand-loops: early needs an agent that loads tiles by TMA, the first ones known"
            )
            raise refused(kernel, f"{rule}, got early={self.early}; leave early out")
        say_whole(kernel)
        say_shared(kernel)
        asked = f", {early} tiles asked for early" if early else ""
        log.did(f"{many(len(stores), 'store')} in {many(sum(pieces), 'piece')}{asked}")

    def _expand_stores_by_threads(self, kernel: KernelOp, target: Target) -> None:
        """Write out those that no buffer stages, each kind in its way."""
        for store in walk(kernel, StoreOp):
            if target.threads_multiply:
                expand_shares(kernel, store)
            else:
                expand_store(kernel, store, target, STORES[self.reads])
        for store in walk(kernel, StoreGroupsOp | StoreQuantizedOp):
            expand_groups(kernel, store, target)
        for store in walk(kernel, ReducedStoreOp):
            expand_reduced_store(kernel, store, target)
        for store in walk(kernel, GatheredStoreOp):
            expand_gathered_store(kernel, store, target)

    def _check(self, kernel: KernelOp) -> None:
        """Refuse an option that no store of the kernel reads."""
        other = next(iter(walk(kernel, StagedStoreOp | SUMMED)), None)
        if other is None and not walk(kernel, StoreOp):
            other = next(iter(walk(kernel, StoreGroupsOp | StoreQuantizedOp)), None)
        if self.reads != ROWS and other is not None:
            rule = f"expand-loops: reads={self.reads} must come with tile.store"
            raise refused(other, f"{rule}, got {other.operation.name}; leave reads out")


def end_of(owner: Any) -> ir.InsertionPoint:
    """After what an agent does; a mark of its end stays the last."""
    block = owner.body.blocks[0]
    last = list(block.operations)[-1]
    return ir.InsertionPoint(last) if isinstance(last, MarkOp) else ir.InsertionPoint(block)


def _end(kernel: KernelOp, owner: Any) -> None:
    """What the agent of the kernel, or the one agent that it is, does before it ends."""
    if walk(owner, LOADS):
        sm.LaunchDependentsOp.of()
    m, n, _ = integers_of(kernel.cluster)
    for ring in _filled_rings(owner) if m * n > 1 else ():
        with by_one_lane():
            DrainOp(ring=ring, slots=integer(ring.type.stages))
    if walk(kernel, ReducedStoreOp) and not walk(owner, ReducedStoreOp):
        ConvergeOp()
        sm.ClusterBarrierOp.of(releases=True)
    stores = [store for store in walk(owner, StagedStoreOp) if not stored_by_threads(store)]
    if stores:
        with by_one_lane(max(store.parts for store in stores)):
            sm.BulkWaitOp.of(pending=0)


def _filled_rings(owner: Any) -> list[ir.Value[Any]]:
    """The rings whose operand tiles the agent fills."""
    rings = dict.fromkeys(acquire.ring for acquire in walk(owner, AcquireOp))
    return [ring for ring in rings if is_operand_ring(ring.owner.opview)]


def _expand(kernel: KernelOp, stores: list[StagedStoreOp], target: Target) -> int:
    """Write out stores whose pieces go to memory together; the number of pieces."""
    first = stores[0]
    if stored_by_threads(first):
        return expand_pieces(kernel, first, target)
    (_, n), columns = stored_tile(first), first.staging.type.tiles[0].layout.k
    shared = shared_by(stores) if target.has_tensor_memory else 0
    with ir.InsertionPoint(first), first.location:
        made = [partial(Piece, kernel, target, store, awaited(store)) for store in stores]
        vectors = await_pieces([load for load in loads_of(stores) if load.is_vector])
        if target.has_tensor_memory:
            _loop_over_pieces(stores, made, vectors, shared)
            hand_back(first)
        else:
            for start in range(0, n, columns):
                _pass_on(stores, made, constant(start), vectors)
            expand_reads(kernel, stores)
    for store in stores:
        store.operation.erase()
    return len(stores) * (n // columns)


def _loop_over_pieces(
    stores: list[StagedStoreOp],
    pieces: list[Callable[..., Piece]],
    vectors: Mapping,
    shared: int,
) -> None:
    """One loop, or, where sums share columns with those of the next tile, one over the pieces that
    have them, after which the sums are released, and one over the others."""
    (_, n), columns = stored_tile(stores[0]), stores[0].staging.type.tiles[0].layout.k
    early = pieces_before(stores, shared) * columns if shared else 0
    for begin, end in ((0, early), (early, n)) if early else ((0, n),):
        loop = scf.ForOp(*(constant(bound) for bound in (begin, end, columns)))
        with ir.InsertionPoint(loop.body):
            start = loop.induction_variable
            at = in_turn(stores, start) if early else start
            _pass_on(stores, pieces, at, vectors)
            scf.YieldOp([])
        if end == early:
            release_now(stores)


def _pass_on(
    stores: list[StagedStoreOp],
    pieces: list[Callable[..., Piece]],
    start: ir.Value,
    vectors: Mapping,
) -> None:
    """A piece of each store on its way through the buffer whose turn it is; `vectors` are there for
    all pieces."""
    first = stores[0]
    team, parts, stages = Team.of(first), first.parts, first.staging.type.stages
    loads = [load for load in loads_of(stores) if not load.is_vector]
    rings = [store.staging for store in stores]
    buffers = [StagingBufferOp(staging=each, buffer=each.type.tiles[0]).buffer for each in rings]
    with by_one_lane(parts):
        sm.BulkWaitOp.of(pending=stages - 1)
    team.meet(parts)
    beside, read = vectors | await_pieces(loads), {}
    for piece, buffer in zip(pieces, buffers, strict=True):
        piece(buffer, start, beside, read).write()
    sm.FenceOp.of(kind="async_shared")
    team.meet(parts)
    with by_one_lane(parts):
        for store, buffer in zip(stores, buffers, strict=True):
            where = {"map": store.to, "i": store.i, "j": store.j, "start": start}
            TmaStoreOp(buffer=buffer, extents=integers(list(stored_tile(store))), **where)
        sm.BulkCommitOp.of()
        load_later(loads, start)
    for ring in rings:
        NextBufferOp(staging=ring)


def is_expanded(kernel: Any) -> bool:
    """Whether `expand-loops` has been on the kernel: it says where grids may start."""
    return bool(walk(kernel, sm.LaunchDependentsOp))
