"""Splits the K steps of a tile over CTAs, which add up their accumulators in order.

    grid = [M, N, 1]                        grid = [M, N, S], cluster = [1, 1, S]
                                            %part = split_rank * P               P = ⌈K/S⌉
    for %k in 0 .. K {                      for %k in 0 .. P {
      load %a[%i, %k]                  →      load %a[%i, %part + %k]
      load %b[%j, %k]                         load %b[%j, %part + %k]
      mma %acc }                              mma %acc }
    store %acc, %c[%i, %j] {epilogue}       reduced_store %acc, %partials, %c[%i, %j] {epilogue}

This is for shapes with fewer tiles than multiprocessors and a long K. Every part has the same
number of steps; steps past the end of K load zeros. One thread sums an element in the order of
ranks, so that the sum is the same in every run. Within a cluster this needs neither a workspace nor
atomics. Over the grid, clusters remain free for operands, and there may be many parts, which start
at different times:

                                            grid = [M, N, S], cluster = [1, 1, 1]
                                            %partials = workspace; %arrivals = workspace {zero}
    store %acc, %c[%i, %j] {epilogue}  →    gathered_store %acc, %partials, %arrivals, %c[%i, %j]

Where all CTAs of the grid can run at once, each waits a while for the others of its tile and adds
up a share of the rows; what others have given up is the last one's. In a larger grid no CTA waits,
and the one that finishes a tile last adds up all its parts.

If K is known only at launch, the number of steps of a part is computed from it:

    for %k in 0 .. group_steps %K, T   →    %each = group_steps %K, T * S
                                            %part = split_start %rank, %each
                                            for %k in 0 .. %each

Parts that get no K steps add zeros.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from ...dialects import legality
from ...dialects.layout import TileLayout, widest_swizzle
from ...dialects.mlir import arith, ir, scf
from ...dialects.pipe import CreateOp, RingType, RoleOp
from ...dialects.record import record
from ...dialects.sm.types import GLOBAL
from ...dialects.target import Target
from ...dialects.tile import (
    MMAS,
    CopyOp,
    CtaTileOp,
    KernelOp,
    LoadOp,
    ReducedStoreOp,
    SplitRankOp,
    SplitStartOp,
    StoreOp,
    TmaLoadOp,
)
from ...dialects.tile.blockwise import BLOCKWISE_MMAS
from ...dialects.tile.groups import GroupDepthOp, GroupStepsOp
from ...dialects.tile.outputs import StoreGroupsOp
from ...dialects.tile.parts import ANY, ZERO, GatheredStoreOp, WorkspaceOp
from ...dialects.tile.quantized import StoreQuantizedOp
from ...dialects.tile.scales import SCALED_MMAS
from ...dialects.tile.weights import WeightMmaOp
from ...dialects.tile_types import SmemType, integer, integers, integers_of
from ...dialects.verify import products_of, summed_extents
from ..base import (
    PassLog,
    one_of,
    option,
    parse_positive,
    refused,
    require,
    target_of,
    the_kernel,
    walk,
)
from ..batches import view_of_map
from ..clone import constant_of, group_steps_of, index_constant, iterations_of
from ..dynamic_rows import DEPTH_MOST, has_dynamic_depth
from ..groups import group_of
from ..indices import linear_form
from ..rings import used_shared_bytes

CLUSTER, GRID = "cluster", "grid"
PARTS_MAX = 65_535
"""CTAs along z of a grid (CUDA programming guide, technical specifications)."""


@record
class SplitK:
    """One CTA a tile → `parts` CTAs, each with its share of the K steps.

    The pass takes a program of single CTAs with direct stores, before `pipelining`. With `parts` 1
    the program stays unchanged. The default pipeline omits this pass. `over` says which CTAs share
    a tile: those of a cluster, which exchange their accumulators through distributed shared memory,
    or those of the grid, which write them to a workspace in global memory. The runtime allocates
    the workspace; a word of it counts the parts that have finished a tile, and is reset to 0.
    """

    name: ClassVar[str] = "split-k"
    parts: int = option(2, parse_positive, "a number of CTAs that share a tile")
    over: str = option(CLUSTER, one_of(CLUSTER, GRID), "cluster or grid")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        if self.parts == 1:
            log.did("one part")
            return
        broken = legality.one_program(target_of(module))
        require(kernel, broken, f"drop {self.name}", f"{self.name}: ")
        if group_of(kernel) is not None or walk(kernel, GroupDepthOp):
            what = "K" if group_of(kernel) is None else "rows"
            raise refused(kernel, f"split-k: {what} must be of one group, got groups; drop split-k")
        loop, store = _check_place(kernel)
        _check_steps(kernel, loop, self.parts)
        self._check_size(kernel, store, target_of(module))
        if has_dynamic_depth(kernel):
            each, first = "any number of", _count_steps(kernel, loop, self.parts)
        else:
            each = self._steps_each(kernel, loop, log)
            first = _known_steps(kernel, loop, each)
        self._spread(kernel)
        _take_part(loop, first)
        (_gather if self.over == GRID else _reduce)(kernel, store, self.parts)
        log.did(f"{self.parts} parts of {each} K steps{' over the grid' * (self.over == GRID)}")

    def _check_size(self, kernel: KernelOp, store: StoreOp, target: Target) -> None:
        if products_of(store) > 1:
            require(kernel, legality.dual_split(target), "drop it", "split-k: ")
        if self.over == GRID:
            if self.parts > PARTS_MAX:
                rule = f"split-k: parts over the grid must be up to {PARTS_MAX}"
                raise refused(kernel, f"{rule}, got {self.parts}; take fewer parts")
            return
        broken = legality.cluster_size(target, (1, 1), self.parts)
        cure = "take fewer parts" if target.cluster_max > 1 else "take over=grid"
        require(kernel, broken, cure, "split-k: ")
        needed = _partials(store).layout.slot_bytes
        free = target.shared_bytes - used_shared_bytes(kernel)
        if needed > free:
            raise refused(
                store,
                f"split-k: a part of the tile needs {needed} bytes, over the {free} that are "
                "left; use a smaller tile",
            )

    def _steps_each(self, kernel: KernelOp, loop: scf.ForOp, log: PassLog) -> int:
        """K steps of one part; says so where that leaves CTAs without work."""
        steps = len(iterations_of(loop) or ())
        each = -(-steps // self.parts)
        used = -(-steps // each)
        if used < self.parts and self.over == GRID:
            rule = f"split-k: each part over the grid must have K steps, got {steps}"
            raise refused(kernel, f"{rule} in {self.parts} parts; take {used}")
        if used < self.parts:
            log.remark(
                kernel,
                f"split-k: {steps} K steps are {used} parts of {each}, got parts={self.parts}; "
                f"CTAs without work: {self.parts - used}",
            )
        return each

    def _spread(self, kernel: KernelOp) -> None:
        grid = integers_of(kernel.grid)
        kernel.operation.attributes["grid"] = integers([*grid[:2], self.parts])
        together = 1 if self.over == GRID else self.parts
        kernel.operation.attributes["cluster"] = integers([1, 1, together])


def _check_place(kernel: KernelOp) -> tuple[scf.ForOp, StoreOp]:
    """The loop over K and the store; refuses a program that later passes have changed."""
    _check_launch(kernel)
    store = _the_store(kernel)
    loops = walk(kernel, scf.ForOp)
    if len(loops) != 1:
        raise refused(
            kernel, f"split-k: K must be one loop, got {len(loops)}; run it before pipelining"
        )
    return loops[0], store


def _check_launch(kernel: KernelOp) -> None:
    """Whether each CTA has a tile of its own, and nobody in it a role."""
    cluster, grid = integers_of(kernel.cluster), integers_of(kernel.grid)
    if cluster[2] > 1 or grid[2] > 1:
        raise refused(kernel, "split-k: K is split already; run it once")
    if cluster != [1, 1, 1]:
        raise refused(kernel, "split-k: CTAs of a cluster load together; drop clustering")
    if not walk(kernel, CtaTileOp):
        raise refused(kernel, "split-k: tiles are handed out already; drop persistence")
    if walk(kernel, RoleOp):
        raise refused(
            kernel, "split-k: the program has roles already; run it before warp-specialization"
        )


def _the_store(kernel: KernelOp) -> StoreOp:
    """What stores the sums, by threads and once."""
    stores = walk(kernel, StoreOp | StoreGroupsOp)
    for quantized in walk(kernel, StoreQuantizedOp):
        rule = "split-k: C with scales of blocks must be stored by one CTA"
        raise refused(quantized, f"{rule}, got the sums of several; drop split-k")
    if not stores:
        raise refused(
            kernel, "split-k: threads store the sums, got a staged store; drop epilogue-staging"
        )
    if len(stores) > 1:
        raise refused(
            kernel,
            f"split-k: the sums must be stored once, got {len(stores)} outputs; drop split-k",
        )
    return stores[0]


def _check_steps(kernel: KernelOp, loop: scf.ForOp, parts: int) -> None:
    """Refuse a loop of which a part is not what the loop does on a part of K."""
    steps, counter = iterations_of(loop), loop.induction_variable
    if steps is None or (steps.start, steps.step) != (0, 1):
        got = "bounds that are not known" if steps is None else f"{steps.start} by {steps.step}"
        raise refused(loop, f"split-k: must count from 0 in steps of 1, got {got}; renumber it")
    limit = group_steps_of(loop.upperBound)
    if limit is not None and limit.less.value:
        got = f"an end {limit.less.value} before"
        raise refused(loop, f"split-k: must take all steps along K, got {got}; let less be 0")
    for mma in (mma for kind in MMAS for mma in walk(kernel, kind)):
        if mma.operation.parent != loop.operation or not _starts_at(mma.accumulate, counter):
            raise refused(
                mma,
                "split-k: must stand in the loop over K and accumulate where its counter is not "
                "0, got another place or flag; write it so",
            )
    for load in walk(kernel, LoadOp | CopyOp | TmaLoadOp):
        _check_load(load, loop, len(steps), parts)


def _starts_at(flag: ir.Value, counter: ir.Value) -> bool:
    """Whether a flag is `counter != 0`."""
    if isinstance(flag.owner, ir.Block) or flag.owner.name != "arith.cmpi":
        return False
    left, right = flag.owner.operands
    predicate = ir.IntegerAttr(flag.owner.attributes["predicate"]).value
    return predicate == arith.CmpIPredicate.ne and left == counter and constant_of(right) == 0


def _check_load(load: Any, loop: scf.ForOp, steps: int, parts: int) -> None:
    counter = loop.induction_variable
    of_vector = load.tile.type.layout.is_vector and load.i == counter
    step, rows = (load.i, load.j) if of_vector else (load.j, load.i)
    inside, row = load.operation.parent == loop.operation, linear_form(rows)
    if not inside or step != counter or row is None or counter in row.factors:
        raise refused(
            load, "split-k: must load step k of K in iteration k, got another; index it by the loop"
        )
    view = view_of_map(load.map) if isinstance(load, TmaLoadOp) else load.view.type
    extent, tile = (view.shape[0], 1) if of_vector else (view.shape[1], load.tile.type.layout.k)
    if steps % parts and steps * tile < extent:
        raise refused(
            load,
            f"split-k: steps past the loop's end must load zeros, got a loop that ends at "
            f"{steps * tile} of {extent}; take parts that divide its {steps} steps",
        )


def _rank(kernel: KernelOp) -> ir.Value:
    """Which part this CTA sums, emitted after its place."""
    place = walk(kernel, CtaTileOp)[0]
    with ir.InsertionPoint.after(place.operation), place.location:
        return SplitRankOp(rank=ir.IndexType.get()).rank


def _known_steps(kernel: KernelOp, loop: scf.ForOp, each: int) -> ir.Value:
    """Let the loop run over `each` steps; the first of this CTA's."""
    rank = _rank(kernel)
    with ir.InsertionPoint(loop), loop.operation.location:
        first = arith.muli(rank, index_constant(each))
        loop.operation.operands[1] = index_constant(each)
    return first


def _count_steps(kernel: KernelOp, loop: scf.ForOp, parts: int) -> ir.Value:
    """The same of a K that a launch says: a step of all parts is as deep as theirs together."""
    rank, limit = _rank(kernel), group_steps_of(loop.upperBound)
    depth = limit.depth.value * parts
    sizes = {"depth": depth, "less": 0, "least": 1, "most": -(-DEPTH_MOST // depth)}
    index = ir.IndexType.get()
    with ir.InsertionPoint(loop), loop.operation.location:
        how = {name: integer(size) for name, size in sizes.items()}
        each = GroupStepsOp(count=limit.count, **how, steps=index).steps
        loop.operation.operands[1] = each
        limit.operation.erase()
        return SplitStartOp(rank=rank, steps=each, first=index).first


def _take_part(loop: scf.ForOp, first: ir.Value) -> None:
    """Let the loop load from this CTA's first step on."""
    with ir.InsertionPoint.at_block_begin(loop.body), loop.operation.location:
        step = arith.addi(first, loop.induction_variable)
    for load in walk(loop, LoadOp | CopyOp | TmaLoadOp):
        of_steps = list(load.operation.operands).index(loop.induction_variable)
        load.operation.operands[of_steps] = step
    for mma in walk(loop, (*SCALED_MMAS, *BLOCKWISE_MMAS, WeightMmaOp)):
        mma.operation.operands[list(mma.operation.operands).index(mma.k)] = step


def _partials(store: StoreOp) -> SmemType:
    """One CTA's accumulator in shared memory: rows as C has them, without bank conflicts."""
    plain = TileLayout(*summed_extents(store), legality.PARTIAL_BYTES, "k")
    return SmemType.of(replace(plain, swizzle=widest_swizzle(plain)), store.acc.type.element)


def _gather(kernel: KernelOp, store: StoreOp, parts: int) -> None:
    """Store the sum of the grid's parts, in the CTA that comes last."""
    m, n = summed_extents(store)
    place = walk(kernel, CtaTileOp)[0]
    with ir.InsertionPoint.after(place.operation), store.location:
        partials = _workspace([parts * m, n], store.acc.type.element, ANY)
        arrivals = _workspace([1, 1], ir.IntegerType.get_signless(32), ZERO)
    with ir.InsertionPoint(store), store.location:
        where = {"partials": partials, "arrivals": arrivals}
        new = GatheredStoreOp(acc=store.acc, **where, view=store.view, i=store.i, j=store.j)
    store.epilogue.blocks[0].append_to(new.epilogue)
    store.operation.erase()


def _workspace(shape: list[int], element: ir.Type, start: str) -> ir.Value:
    space = integer(GLOBAL)
    memory = ir.MemRefType.get(shape, element, memory_space=space)
    return WorkspaceOp(start=ir.StringAttr.get(start), memory=memory).memory


def _reduce(kernel: KernelOp, store: StoreOp, _: int) -> None:
    """Store the sum of the cluster's accumulators instead of this one."""
    top = ir.InsertionPoint.at_block_begin(kernel.body.blocks[0])
    with top, store.location:
        partials = CreateOp(ring=RingType.of(1, [_partials(store)])).ring
    with ir.InsertionPoint(store), store.location:
        where = {"partials": partials, "view": store.view, "i": store.i, "j": store.j}
        new = ReducedStoreOp(acc=store.acc, **where)
    store.epilogue.blocks[0].append_to(new.epilogue)
    store.operation.erase()
