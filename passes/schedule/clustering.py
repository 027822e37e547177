"""Lets neighbouring CTAs share operand tiles and, in pairs, one MMA.

    tma_load %a → %ta     each of the CTAs along N loads a part of A's rows for all of them
                    →     tma_multicast %a → %ta {axis = "n", parts = CN}
    tma_load %b → %tb     each of the CTAs along M, likewise
    mma %acc, %ta, %tb    pairs: each CTA loads half of B's rows; the even one issues
                    →     pair_mma %acc, %ta, %tb/2

CTAs of a cluster that need the same tile of an operand share the load: each loads a part, and TMA
multicasts it to all of them. All parts have the same number of whole rows. A part may begin inside
a swizzle pattern, since the pattern depends on addresses only. A pair also shares an MMA
(cta_group::2): each of its CTAs holds its rows of A and half of B's rows, and the even one, the
leader CTA, issues the MMA for both.

If TMA cannot address an operand, the threads of each CTA copy it into their own slots. These copies
are not shared between CTAs, except that each CTA of a pair copies only half of B; the warps of both
then arrive at the leader CTA's barrier. The other operand is still multicast.

A launch may prefer clusters of `shape` and use `fallback` clusters where no large one fits. Both
run the same program: in a fallback cluster, a CTA also loads the parts of the CTAs that are
missing.

Ranks run along M first, so a pair is adjacent along M. If K is split over a cluster, the splits
together form one cluster of CM×CN×S CTAs; if it is split over the grid, each split has clusters of
CM×CN.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from ...dialects import legality, scaled_legality, store_legality
from ...dialects.fallback import FALLBACK
from ...dialects.layout import HALVED, SHIFTED, widest_swizzle
from ...dialects.mlir import arith, ir
from ...dialects.pipe import CreateOp
from ...dialects.ragged_maps import plain_rank
from ...dialects.record import record
from ...dialects.target import Target
from ...dialects.tile import (
    CopyOp,
    CtaTileOp,
    KernelOp,
    LoadOp,
    MmaOp,
    PairMmaOp,
    PairRankOp,
    StagedStoreOp,
    TmaLoadOp,
    TmaMulticastOp,
)
from ...dialects.tile.batches import BatchOp
from ...dialects.tile.blockwise import OF_BLOCKS, BlockwiseMmaOp, BlockwisePairMmaOp
from ...dialects.tile.duals import DualMmaOp, DualPairMmaOp
from ...dialects.tile.scales import ScaledMmaOp, ScaledPairMmaOp, of_scales, smem_operands
from ...dialects.tile.sums import ViewMmaOp
from ...dialects.tile_types import DYNAMIC, SmemType, integer, integers, integers_of
from ..base import (
    PassLog,
    auto_option,
    defining_op,
    is_swapped,
    kernel_around,
    parse_bool,
    parse_extents,
    refused,
    require,
    target_of,
    the_kernel,
    walk,
)
from ..batches import batch_of, drop_unused, loaded_argument, set_map, view_behind, view_of_map
from ..clone import index_constant
from ..duals import arg_names, arguments_of_b
from ..dynamic_rows import counted_axis, least_rows
from ..groups import group_of, whole_groups
from ..indices import differs_along
from ..mma_uses import pair_step_of
from ..rings import is_operand_ring, retype_ring
from ..tensor_maps import load_map_type, multicast_map, multicast_refusal
from .pipelining import self_filled


@record
class Clustering:
    """Single CTAs → clusters that multicast operand tiles and pairs that share an MMA.

    `shape` is the number of CTAs along M and along N. auto is a pair where the tile allows one, two
    CTAs along M where the target has no pairs and TMA loads B, and otherwise a single CTA. `pair`
    takes 2-CTA MMAs (cta_group::2); auto takes them where the shape is even along M and the tile
    allows them. Their N is a multiple of 32, or with pair=true of 16 for 16-bit floats whose B has
    K contiguous, with 128 or 256 rows a CTA. `fallback` is the shape of the smaller clusters that a
    GPU may launch in place of one that does not fit; auto is none.
    """

    name: ClassVar[str] = "clustering"
    shape: tuple[int, int] | None = auto_option(parse_extents(2), "CTAs along M and N, as 2x1")
    pair: bool | None = auto_option(parse_bool, "true or false")
    fallback: tuple[int, int] | None = auto_option(parse_extents(2), "CTAs along M and N, as 2x1")

    def __call__(self, module: ir.Module, log: PassLog) -> None:
        kernel = the_kernel(module, self.name)
        target = target_of(module)
        _check_place(kernel)
        refusal = _cluster_refusal(kernel, target)
        if refusal:
            if self.shape is not None or self.pair or self.fallback:
                raise refused(kernel, f"clustering: {refusal}; drop clustering")
            log.remark(kernel, f"clustering: a lone CTA: {refusal}")
            log.did("no clusters")
            return
        mma = walk(kernel, MmaOp)[0]
        no_pair = _pair_refusal(mma, target, bool(self.pair))
        parts = integers_of(kernel.cluster)[2]
        lone = self.pair is False or parts > 1
        lone = lone or (bool(no_pair) if target.mma.pairs else not _shares_b(kernel))
        shape = self.shape or ((1, 1) if lone else (2, 1))
        pair = self._pair(mma, shape, no_pair)
        if self.pair is None and target.mma.pairs and no_pair:
            log.remark(mma, f"clustering: no 2-CTA MMAs: {no_pair}")
        _check_shape(kernel, shape, target)
        if self.fallback is not None:
            _check_fallback(kernel, shape, self.fallback, pair, target)
        _set_cluster(kernel, shape)
        if self.fallback is not None:
            kernel.operation.attributes[FALLBACK] = integers([*self.fallback, 1])
        if pair:
            _split_b(kernel, mma)
        self._multicast(kernel, shape, pair, log)
        smaller = f" or {self.fallback[0]}x{self.fallback[1]}" if self.fallback else ""
        log.did(f"clusters of {shape[0]}x{shape[1]}{smaller}{', 2-CTA MMAs' if pair else ''}")

    def _pair(self, mma: MmaOp, shape: tuple[int, int], no_pair: str | None) -> bool:
        if self.pair and no_pair:
            raise refused(mma, f"clustering: {no_pair}; drop pair=true")
        if self.pair:
            require(mma, legality.pair_cluster(shape), where="clustering: ")
        wanted = self.pair is None or self.pair
        return wanted and no_pair is None and shape[0] % 2 == 0

    def _multicast(
        self, kernel: KernelOp, shape: tuple[int, int], pair: bool, log: PassLog
    ) -> None:
        """Share A along N and B along M where the rows can be cut into parts."""
        along_n, along_m = ("n", shape[1]), ("m", shape[0] // 2 if pair else shape[0])
        names = arg_names(kernel)
        for load in _fills(kernel):
            name = names[_argument_number(load)]
            of_b = names[_operand_index(kernel, load)].startswith("b")  # scales, too
            axis, parts = along_m if of_b else along_n
            if parts == 1:
                continue
            if isinstance(load, CopyOp):
                log.remark(load, f"clustering: every CTA copies all of {name} by its threads")
                continue
            broken = multicast_refusal(load.tile.type.layout, parts)
            if broken:
                log.remark(load, f"clustering: every CTA loads all of {name}: {broken}")
                continue
            _multicast_load(load, axis, parts)


def _check_place(kernel: KernelOp) -> None:
    if integers_of(kernel.cluster)[:2] != [1, 1]:
        raise refused(kernel, "clustering: the kernel has clusters already; run it once")
    if not walk(kernel, CtaTileOp):
        raise refused(kernel, "clustering: tiles are handed out already; run it before persistence")


def _cluster_refusal(kernel: KernelOp, target: Target) -> str | None:
    """Why the kernel's CTAs can't share operands, or None when they can."""
    if walk(kernel, ViewMmaOp):
        return "threads read operands from global memory as they multiply"
    if walk(kernel, LoadOp):
        return "an operand comes through no pipe, and only its own CTA waits for it"
    rings = [create for create in walk(kernel, CreateOp) if is_operand_ring(create)]
    if any(self_filled(create, target) for create in rings):
        return "threads multiply what they copied themselves, and other CTAs have no part in it"
    return None


def _pair_refusal(mma: MmaOp, target: Target, asked: bool) -> str | None:
    """Why the tile allows no 2-CTA MMA; one that is asked for may have an N of finer steps."""
    m, n = mma.acc.type.shape
    step = pair_step_of(mma, target) if asked else None
    broken = legality.pair_tile(target, m, n, step)
    if target.mma.pairs and integers_of(kernel_around(mma).cluster)[2] > 1:
        return "the parts of a split K are sums of lone CTAs"
    if target.adds_products and walk(kernel_around(mma), CopyOp):
        return "threads copy an operand, and each CTA's add products of both"
    staged = walk(kernel_around(mma), StagedStoreOp)
    if isinstance(mma, DualMmaOp):
        broken = broken or legality.dual_pair(target, m, n)
    return broken or (store_legality.staged_pair(m) if staged else None)


def _check_shape(kernel: KernelOp, shape: tuple[int, int], target: Target) -> None:
    *grid, _ = integers_of(kernel.grid)
    parts = integers_of(kernel.cluster)[2]
    broken = legality.cluster_size(target, shape, parts)
    require(kernel, broken, "use a smaller shape", "clustering: ")
    if parts > 1:
        cure = "take a shape that divides them"
        batch = batch_of(kernel)
        grid[0] = grid[0] if batch is None else batch.tiles.value
        require(kernel, legality.split_clusters(grid, shape), cure, "clustering: ")


def _check_fallback(
    kernel: KernelOp,
    shape: tuple[int, int],
    fallback: tuple[int, int],
    pair: bool,
    target: Target,
) -> None:
    parts = integers_of(kernel.cluster)[2]
    broken = legality.fallback_cluster(target, shape, fallback, pair, parts)
    require(kernel, broken, "drop fallback", "clustering: ")


def _shares_b(kernel: KernelOp) -> bool:
    """Whether CTAs along M could share B: by multicast, where TMA loads it."""
    names = arg_names(kernel)
    return any(names[_operand_index(kernel, load)] == "b" for load in walk(kernel, TmaLoadOp))


def _set_cluster(kernel: KernelOp, shape: tuple[int, int]) -> None:
    """Round the grid up to whole clusters: tiles past the edge are filled and dropped."""
    *grid, parts = integers_of(kernel.grid)
    rounded = [
        extent if extent == DYNAMIC else -(-extent // size) * size
        for extent, size in zip(grid, shape, strict=True)
    ]
    batch = batch_of(kernel)
    if batch is not None:
        rounded[0] = _whole_matrices(batch, shape[0])
    group = group_of(kernel)
    if group is not None:
        axis = counted_axis(kernel)
        rounded[axis] = whole_groups(group, shape[axis])
    kernel.operation.attributes["grid"] = integers([*rounded, parts])
    kernel.operation.attributes["cluster"] = integers([*shape, integers_of(kernel.cluster)[2]])


def _whole_matrices(batch: BatchOp, size: int) -> int:
    """Let each matrix have whole clusters along M; the tiles of all of them, if they are known."""
    if batch.tiles.value == DYNAMIC:
        return DYNAMIC
    tiles = -(-batch.tiles.value // size) * size
    batch.operation.attributes["tiles"] = integer(tiles)
    return DYNAMIC if batch.count.value == DYNAMIC else batch.count.value * tiles


def _split_b(kernel: KernelOp, mma: MmaOp) -> None:
    """Each CTA of a pair takes half of B's rows; the MMA becomes the pair's."""
    bs = arguments_of_b(kernel)
    halves = {number: _halve_ring(kernel, smem_operands(mma)[number]) for number in bs}
    _align_scales(kernel, mma)
    top = next(iter(walk(kernel, CtaTileOp)))
    with ir.InsertionPoint.after(top.operation), mma.location:
        rank = PairRankOp(rank=ir.IndexType.get()).rank
    for load in _fills(kernel):
        if _operand_index(kernel, load) in bs:
            if differs_along(load.i, 0) or differs_along(load.j, 0):
                raise refused(
                    load,
                    "clustering: a pair must need the same tile of b, got an index that differs "
                    "along M; drop pair=true",
                )
            with ir.InsertionPoint(load), load.location:
                index = arith.addi(arith.muli(load.i, index_constant(2)), rank)
            load.operation.operands[2] = index
            if isinstance(load, TmaLoadOp):
                _remap(load, halves[_operand_index(kernel, load)])
    for each in walk(kernel, MmaOp):
        with ir.InsertionPoint(each), each.location:
            _pair_mma(each)
        each.operation.erase()


def _pair_mma(mma: MmaOp) -> None:
    """The MMA of a pair; each CTA has the scales of all of the pair's columns."""
    operands = {"acc": mma.acc, "a": mma.a, "b": mma.b, "accumulate": mma.accumulate}
    if isinstance(mma, DualMmaOp):
        DualPairMmaOp(**operands, b2=mma.b2)
        return
    if isinstance(mma, BlockwiseMmaOp):
        block_fields = {name: getattr(mma, name) for name in OF_BLOCKS}
        BlockwisePairMmaOp(**operands, **block_fields)
        return
    if not isinstance(mma, ScaledMmaOp):
        PairMmaOp(**operands)
        return
    ScaledPairMmaOp(**operands, **of_scales(mma))


def _halve_ring(kernel: KernelOp, b: ir.Value[SmemType]) -> SmemType:
    """Give B's tiles half their rows, in the widest swizzle up to theirs that fits."""
    part = defining_op(b)
    ring = part.slot.owner.operands[0]
    create = next(c for c in walk(kernel, CreateOp) if c.ring == ring and is_operand_ring(c))
    tiles = create.ring.type.tiles
    layout = replace(b.type.layout, mn=b.type.layout.mn // 2)
    if layout.fits():
        layout = replace(layout, swizzle=widest_swizzle(layout))
    tiles[part.index.value] = half = SmemType.of(layout, b.type.element)
    retype_ring(create, create.ring.type.stages, tiles)
    return half


def _align_scales(kernel: KernelOp, mma: MmaOp) -> None:
    """With 64 rows a CTA, the scales of its rows, and of both halves of N, begin at one column.

    In lines of an atom they begin at other words, and TMA moves whole lines: threads copy them.
    """
    if not isinstance(mma, ScaledMmaOp) or mma.acc.type.shape[0] != scaled_legality.PAIRED_ROWS:
        return
    ring = defining_op(mma.a_scales).slot.owner.operands[0]
    create = next(c for c in walk(kernel, CreateOp) if c.ring == ring)
    tiles = create.ring.type.tiles
    for value, form in ((mma.a_scales, SHIFTED), (mma.b_scales, HALVED)):
        layout = replace(value.type.layout, swizzle=form)
        tiles[defining_op(value).index.value] = SmemType.of(layout, value.type.element)
    retype_ring(create, create.ring.type.stages, tiles)
    for load in walk(kernel, TmaLoadOp):
        if load.tile.type.layout.is_of_scales:
            _copy_by_threads(load)
    drop_unused(kernel)


def _copy_by_threads(load: TmaLoadOp) -> None:
    with ir.InsertionPoint(load), load.location:
        CopyOp(view=view_behind(load.map), tile=load.tile, i=load.i, j=load.j)
    load.operation.erase()


def _remap(load: TmaLoadOp, tile: SmemType) -> None:
    rank = plain_rank(load.map.type)
    view, least = view_of_map(load.map), least_rows(load)
    set_map(load.map, load_map_type(view, tile, rank, lambda _: None, least))


def _multicast_load(load: TmaLoadOp, axis: str, parts: int) -> None:
    set_map(load.map, multicast_map(view_of_map(load.map), load.tile.type, parts))
    with ir.InsertionPoint(load), load.location:
        TmaMulticastOp(
            map=load.map,
            tile=load.tile,
            i=load.i,
            j=load.j,
            axis=ir.StringAttr.get(axis),
            parts=integer(parts),
        )
    load.operation.erase()


def _fills(kernel: KernelOp) -> list[TmaLoadOp | CopyOp]:
    """What fills the slots of rings, before any of it is multicast."""
    return [*walk(kernel, TmaLoadOp), *walk(kernel, CopyOp)]


def _operand_index(kernel: KernelOp, load: Any) -> int:
    """0 for a load of what MMAs take as A, 1 for B, more for their scales or the second B."""
    number = _argument_number(load)
    return number ^ 1 if is_swapped(kernel) else number


def _argument_number(load: Any) -> int:
    return ir.BlockArgument(loaded_argument(load)).arg_number
