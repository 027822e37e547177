"""Lets each CTA compute many tiles, one after the other.

    pipe.role "load" { body(%i, %j) }   →   pipe.role "load" { for_each_tile (%i, %j) { body } }

With `scheduler=clc`, tiles are not assigned in advance. A CTA that is done takes over the work of a
cluster that has not been launched yet (cluster launch control). A separate role claims that
cluster and passes it to the other roles through a ring:

                                            pipe.role "load" { for_each_claim %claims … }
                                            pipe.role "scheduler" { claim %claims }

Every role iterates over the same tiles in the same order. If tensor memory has room, the
accumulator ring gets a second slot, so that the epilogue of one tile overlaps the MMAs of the next.
Where block scales leave no room for that, the accumulators of two tiles may share columns: the
epilogue reads these first (`dialects/shared_columns.py`).
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...dialects import legality, scaled_legality
from ...dialects.dynamic import joined
from ...dialects.fallback import fallback_of
from ...dialects.mlir import ir
from ...dialects.pipe import (
    REGISTERS_STEP,
    ClaimOp,
    ClaimType,
    CreateOp,
    ForEachClaimOp,
    RingType,
    RoleOp,
    SetRegistersOp,
)
from ...dialects.record import record
from ...dialects.shared_columns import SHARED
from ...dialects.target import WARP_THREADS, Target
from ...dialects.tile import (
    AccumulatorOp,
    CtaTileOp,
    ForEachTileOp,
    KernelOp,
    PairRankOp,
    TensorMapOp,
)
from ...dialects.tile.scales import SCALED_MMAS, depth_of, mma_of
from ...dialects.tile_types import DYNAMIC, AccumulatorType, integer, integers, integers_of
from ...dialects.verify import GROUP_DEFAULT, ORDERS
from ..base import (
    PassLog,
    auto_option,
    many,
    one_of,
    option,
    parse_positive,
    refused,
    require,
    target_of,
    the_kernel,
    walk,
)
from ..clone import Mapping, clone, is_pure, replace_in
from ..rings import retype_ring
from ..shared_columns import columns_to_share
from ..tile_order import said_order

OVERLAPPING_STAGES = 2
CLAIMS = 2
STAYS = (TensorMapOp, CreateOp, AccumulatorOp, CtaTileOp, PairRankOp, SetRegistersOp)


@record
class Persistence:
    """One tile a CTA → a loop over tiles around every role.

    `scheduler` assigns tiles at a static stride, or by cluster launch control (`clc`) with `depth`
    claims in flight (auto: 2). `ctas` is the number of CTAs launched with a static stride; auto is
    one per multiprocessor.

    `order` is the order of tiles. `m` goes along M and `n` along N. With the two others, CTAs that
    work at the same time share operands in L2: `grouped` goes along M within groups of `group`
    tiles (auto: 8), and `hilbert` follows a curve whose next cluster of tiles is always a
    neighbour. The curve is a table in the kernel's module. For grouped products with a static
    stride, `grouped` starts again with each group of rows.
    """

    name: ClassVar[str] = "persistence"
    scheduler: str = option("static", one_of("static", "clc"), "static or clc")
    depth: int | None = auto_option(parse_positive, "a number of claims under way at once")
    order: str = option("grouped", one_of(*ORDERS), "m, n, grouped or hilbert")
    group: int | None = auto_option(parse_positive, "a number of tiles along M")
    ctas: int | None = auto_option(parse_positive, "a number of CTAs")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        target = target_of(module)
        places = walk(kernel, CtaTileOp)
        if len(places) != 1:
            raise refused(kernel, "persistence: the program loops over tiles already; run it once")
        if integers_of(kernel.cluster)[2] > 1:
            raise refused(kernel, "persistence: the CTAs of a cluster share a tile; drop split-k")
        if integers_of(kernel.grid)[2] > 1:
            raise refused(kernel, "persistence: the CTAs along z share a tile; drop split-k")
        if said_order(kernel) is not None:
            raise refused(
                kernel, "persistence: CTAs have an order already; leave out that of tiling"
            )
        self._check_options(kernel, target)
        tiles = integers_of(kernel.grid)[:2]
        self._check_tiles(kernel, tiles)
        shown = joined(tiles)
        claims = self._claims(kernel) if self.scheduler == "clc" else None
        derived = _derived(kernel, places[0])
        for block in _programs(kernel):
            self._wrap(block, (places[0], derived), tiles, claims)
        for op in reversed([places[0], *derived]):
            op.operation.erase()
        doubled = _double_accumulators(kernel, target)
        if claims is None:
            clusters = self._shrink_grid(kernel, target)
            log.did(f"{many(clusters, 'cluster')} for {shown} tiles{doubled}")
        else:
            _add_scheduler(kernel, claims, target)
            log.did(f"cluster launch control over {shown} tiles{doubled}")

    def _check_options(self, kernel: KernelOp, target: Target) -> None:
        if self.scheduler == "clc":
            broken = legality.launch_control(target)
            require(kernel, broken, "use scheduler=static", "persistence: ")
        if self.scheduler == "clc" and fallback_of(kernel) is not None:
            rule = "persistence: scheduler=clc takes over clusters of one shape, got a fallback"
            raise refused(kernel, f"{rule}; use scheduler=static")
        if self.scheduler == "static" and self.depth is not None:
            raise refused(kernel, "persistence: depth is for scheduler=clc, got scheduler=static")
        if self.scheduler == "clc" and self.ctas is not None:
            raise refused(kernel, "persistence: ctas is for scheduler=static, got scheduler=clc")
        if self.order != "grouped" and self.group is not None:
            raise refused(
                kernel, f"persistence: group is for order=grouped, got order={self.order}"
            )

    def _check_tiles(self, kernel: KernelOp, tiles: list[int]) -> None:
        if DYNAMIC in tiles:
            rule = "persistence: order=hilbert is a table of known tiles, got any number"
            require(kernel, rule if self.order == "hilbert" else None, "use order=grouped")
            return
        counted, curve = legality.counted_tiles(tiles), legality.curve_tiles(tiles)
        require(kernel, counted, "use a larger tile", "persistence: ")
        if self.order == "hilbert":
            require(kernel, curve, "use order=grouped", "persistence: ")

    def _claims(self, kernel: KernelOp) -> ir.Value:
        """The ring through which every role learns which cluster was claimed."""
        if not walk(kernel, RoleOp):
            raise refused(
                kernel,
                "persistence: scheduler=clc needs a role that asks for tiles; "
                "run warp-specialization first",
            )
        top = ir.InsertionPoint.at_block_begin(kernel.body.blocks[0])
        with top, kernel.location:
            return CreateOp(ring=RingType.of(self.depth or CLAIMS, [ClaimType.get()])).ring

    def _shrink_grid(self, kernel: KernelOp, target: Target) -> int:
        """How many clusters are launched; the grid becomes one row of them.

        Where a size is dynamic they are the most; a launch with fewer tiles leaves out the rest.
        """
        tiles, cluster = integers_of(kernel.grid)[:2], integers_of(kernel.cluster)
        ctas = self.ctas or target.multiprocessors
        clusters = ctas // (cluster[0] * cluster[1])
        if DYNAMIC not in tiles:
            clusters = min(clusters, tiles[0] * tiles[1] // (cluster[0] * cluster[1]))
        clusters = max(1, clusters)
        kernel.operation.attributes["grid"] = integers([clusters * cluster[0], cluster[1], 1])
        return clusters

    def _wrap(
        self,
        block: ir.Block,
        places: tuple[CtaTileOp, list[Any]],
        tiles: list[int],
        claims: ir.Value | None,
    ) -> None:
        """Put a program into a loop over tiles, and take the tile from the loop."""
        place, derived = places
        program = [op for op in _from_first_effect(block, derived) if op not in derived]
        index = ir.IndexType.get()
        with ir.InsertionPoint(program[0]), program[0].operation.location:
            group = integer(self.group or GROUP_DEFAULT)
            order = ir.StringAttr.get(self.order)
            how = {"tiles": integers(tiles), "order": order, "group": group}
            loop = ForEachTileOp(**how) if claims is None else ForEachClaimOp(ring=claims, **how)
        body = loop.body.blocks.append(index, index)
        for op in program:
            body.append(op.operation)
        mapping: Mapping = dict(zip((place.i, place.j), body.arguments, strict=True))
        with ir.InsertionPoint.at_block_begin(body), place.location:
            for op in _needed(derived, body):
                clone(op, mapping)
        replace_in(body, mapping)


def _add_scheduler(kernel: KernelOp, claims: ir.Value, target: Target) -> None:
    """Add a warp that claims tiles."""
    with ir.InsertionPoint(kernel.body.blocks[0]), kernel.location:
        role = RoleOp(agent=ir.StringAttr.get("scheduler"), warps=integer(1))
    with ir.InsertionPoint(role.body.blocks.append()), kernel.location:
        ClaimOp(ring=claims)
    threads = kernel.threads.value + WARP_THREADS
    kernel.operation.attributes["threads"] = integer(threads)
    _leave_registers(kernel, target)


def _leave_registers(kernel: KernelOp, target: Target) -> None:
    """Let roles that take registers leave the scheduler those that a launch gives it."""
    launched = target.launch_registers(kernel.threads.value)
    asked = walk(kernel, SetRegistersOp)
    takers = [op for op in asked if op.count.value > launched]
    kept = sum(_warps_of(op) * op.count.value for op in asked if op not in takers)
    pool = sum(map(_warps_of, asked)) * launched - kept
    for op in takers:
        most = pool // sum(map(_warps_of, takers)) // REGISTERS_STEP * REGISTERS_STEP
        op.operation.attributes["count"] = integer(min(op.count.value, most))


def _warps_of(op: SetRegistersOp) -> int:
    return op.operation.parent.opview.warps.value  # pyright: ignore[reportAttributeAccessIssue]


def _from_first_effect(block: ir.Block, derived: list[Any]) -> list[Any]:
    """The ops of a program from the first that must run once per tile."""
    ops, values = list(block.operations), {each for op in derived for each in op.operation.results}

    def is_of_tile(op: Any) -> bool:
        return op not in derived and bool(values.intersection(op.operation.operands))

    first = next(index for index, op in enumerate(ops) if not _stays(op) or is_of_tile(op))
    for op in ops[first:]:
        if isinstance(op, STAYS):
            op.operation.move_before(ops[first].operation)
    return [op for op in ops[first:] if not isinstance(op, STAYS)]


def _derived(kernel: KernelOp, place: CtaTileOp) -> list[Any]:
    """The ops outside roles that depend on the CTA's tile, which each tile computes again."""
    values: set[ir.Value] = {place.i, place.j}
    derived = []
    for op in list(kernel.body.blocks[0].operations):
        if is_pure(op) and values.intersection(op.operation.operands):
            values.update(op.operation.results)
            derived.append(op)
    return derived


def _needed(derived: list[Any], body: ir.Block) -> list[Any]:
    """The derived values that ops in a block use, at any depth."""
    read, needed = _read_in(body), []
    for op in reversed(derived):
        if read.intersection(op.operation.results):
            read.update(op.operation.operands)
            needed.append(op)
    return needed[::-1]


def _read_in(block: ir.Block) -> set[ir.Value]:
    """The operands of the ops in a block."""
    read: set[ir.Value] = set()
    for op in block.operations:
        read.update(op.operation.operands)
        for region in op.operation.regions:
            for inner in region:
                read |= _read_in(inner)
    return read


def _programs(kernel: KernelOp) -> list[ir.Block]:
    """The blocks of the roles, or of the kernel if it has none."""
    roles = walk(kernel, RoleOp)
    return [role.body.blocks[0] for role in roles] or [kernel.body.blocks[0]]


def _stays(op: Any) -> bool:
    """Whether an op is executed once for all tiles."""
    return is_pure(op) or isinstance(op, STAYS)


def _double_accumulators(kernel: KernelOp, target: Target) -> str:
    for create in walk(kernel, CreateOp):
        (first, *_) = create.ring.type.tiles
        if not isinstance(first, AccumulatorType):
            continue
        if not _overflow(kernel, target, first):
            retype_ring(create, OVERLAPPING_STAGES, [first])
            return f", {OVERLAPPING_STAGES} accumulators"
        shared = columns_to_share(kernel, create.ring, target)
        if shared:
            create.operation.attributes[SHARED] = integer(shared)
            return f", {OVERLAPPING_STAGES} accumulators that share {many(shared, 'column')}"
    return ""


def _overflow(kernel: KernelOp, target: Target, sums: AccumulatorType) -> str | None:
    """Why tensor memory cannot hold the accumulators of two tiles, besides scales."""
    for mma in walk(kernel, SCALED_MMAS):
        tile, both = (
            (*sums.shape, depth_of(mma)),
            (OVERLAPPING_STAGES, scaled_legality.SCALE_PLACES),
        )
        return scaled_legality.scaled_tensor_memory(target, mma_of(mma), tile, *both)
    return legality.accumulator_columns(target, *sums.shape, OVERLAPPING_STAGES)
