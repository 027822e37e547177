"""Every schedule that may be chosen for a problem, step by step, and which of two is simpler.

    tiles       M, N and K of a CTA's tile
    ways        of a tile: K as a whole, or in parts
    sharings    of a way: the useful clusters, each with its deepest ring
    orders      of a sharing: the ways to hand out tiles
    leaves      of an order: the schedules, each with its deepest ring
    candidates  all of them, also those that break a rule

Nothing here imports MLIR.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product, takewhile

from ....dialects.target import Target
from ..chips.chip_figures import figures
from ..problem import Problem, Schedule, exchanged
from ..rules.group_rules import level_schedule
from ..rules.rules import (
    AGENT_RULES,
    OPERAND_RULES,
    PART_K_TILES,
    RASTER_RULES,
    SHARING_MAX,
    STAGES_RULES,
    STAGING_RULES,
    keeps,
    wasted_tile,
)
from ..rules.scheduler_rules import WIDE_CLUSTER
from ..rules.staging_rules import WHOLE_SECTORS
from ..schedule import GROUPED, PLAIN
from ..tile_extents import M_TILES, extents_of, k_extents, n_extents
from ..waves import band_of, resident_ctas, resident_in_clusters
from .stagings import STAGING_ORDER, deepest, leaves_l1, ways_to_store
from .wide_ping_pong import wide_ping_pong_schedules

# (CTAs along M and N, 2-CTA MMA), the simplest first.
CLUSTERS = (
    ((1, 1), False),
    ((2, 1), True),
    ((1, 2), False),
    ((2, 1), False),
    ((2, 2), False),
    ((2, 2), True),
    ((4, 1), True),
)
# Where it is known how many find room: what one operand costs L2, divided by up to eight. They hand
# out no tiles: an H200 has no room for as many of them as would share its multiprocessors.
WIDE_CLUSTERS = tuple((shape, False) for shape in ((1, 4), (4, 1), (2, 4), (4, 2), (1, 8), (8, 1)))
PART_WAVES = (1, 2, 3)  # of CTAs, which parts of K over the grid make up
PART_CLUSTER, PART_GAIN = 8, 0.9
PART_MARGIN = 1.04
"""By how much faster K in parts over the grid must be estimated to be chosen. On the measured
tables, the choices for an H100 are best from 1.02 to 1.06, with 15 or 16 shapes under 0.9 instead
of 17 at 1.1; those for an H200 are alike at all of them (`benchmarks/estimate/fit_estimate.py
--today`)."""
SPLITS = range(1, SHARING_MAX + 1)  # CTAs that share a tile
# (scheduler, raster order), the simplest scheduler first; among orders that the estimate can't tell
# apart, the one that an H200 was fastest with.
SCHEDULERS = (
    ("none", "m"),
    ("static", "grouped"),
    ("static", "n"),
    ("static", "m"),
    ("static", "hilbert"),
    ("clc", "grouped"),
    ("clc", "hilbert"),
)
# Tiles that share one of the larger operand, which is B, one after the other.
SWAPPED_SCHEDULERS = (SCHEDULERS[0], SCHEDULERS[2], SCHEDULERS[1], *SCHEDULERS[3:])
MMA_ROWS = 64  # the fewest of an MMA of a tensor core by tiles
ADDED_ROWS = 32
"""The most rows of C where threads add products and A and B may be exchanged: then they add no more
than those rows."""
STAGES = (2, 4)  # and the deepest that fits
PAIR_ROWS = 128  # of each CTA
LONG_K_TILES = 2  # the last of all, one and two rows of a 128-byte swizzle

Rank = tuple[float, tuple[int, ...]]


def sides(problem: Problem) -> list[Problem]:
    """The problem as it is and, where that may be faster, with A and B exchanged."""
    return [problem, exchanged(problem)] if _may_swap(problem) else [problem]


def _may_swap(problem: Problem) -> bool:
    """Whether exchanging A and B may help: if M is neither one whole MMA nor an even number of
    them, or is given at launch; or if only columns have scales, which then become scales of rows.
    The columns of a tile come in steps of 8 or 16; stores of 16 bits are transposed."""
    scales = problem.column_scales and not problem.row_scales
    stored = problem.c_bytes == 2 or (scales and problem.c_bytes == WHOLE_SECTORS)
    others = problem.further_bytes or problem.quantized or not stored
    added = problem.adds_products and problem.m > ADDED_ROWS and not scales
    several = problem.products > 1 or added or problem.gathered
    if problem.dynamic_m:
        beside = problem.beside or problem.epilogue_instructions
        gaps = any(problem.leading) or problem.b_major != "k"
        others = others or beside or gaps or not problem.most_m
    even = problem.m == MMA_ROWS or problem.m % (2 * MMA_ROWS) == 0
    gains = problem.dynamic_m or not even or scales
    return not (others or several or problem.grouped) and gains


def tiles(problem: Problem, target: Target) -> Iterator[tuple[int, int, int]]:
    """Every candidate tile, also those that break a rule."""
    accumulators = target.mma.accumulators
    return product(M_TILES[accumulators], n_extents(problem, target), _k_tiles(problem))


def useful_tiles(
    problem: Problem, target: Target
) -> Iterator[tuple[tuple[int, int], tuple[int, ...]]]:
    """Rows and columns of candidate tiles with all their depths of K, without those longer than the
    shortest that covers an axis (`wasted_tile`)."""
    rows, columns, every_k = extents_of(problem, target)
    depths = _k_tiles(problem)
    if not problem.neighbours:  # whose groups a longer one may divide
        rows = _useful(rows, problem.most_rows, rows)
        columns = _useful(columns, problem.n, columns)
        depths = _useful(depths, problem.k, every_k)
    return ((tile, depths) for tile in product(rows, columns))


def _useful(sizes: tuple[int, ...], extent: int, table: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes that are no longer than the shortest of a table that covers the extent."""
    covering = min([size for size in table if size >= extent], default=extent)
    return tuple([size for size in sizes if size <= covering])


def sharings(
    problem: Problem, way: Schedule, boxes: dict[bool, str], target: Target
) -> Iterator[Schedule]:
    """A way with its cluster or, if that is open, with each useful cluster that finds room."""
    for cluster, pair in _useful_clusters(way, target):
        if pair not in boxes:
            continue
        branch = way.but(cluster=cluster, pair=pair, box=boxes[pair])
        for one in [branch] if way.split_grid == 1 else _parted(problem, branch, target):
            if one.cluster_size < WIDE_CLUSTER or _finds_room(problem, one, target):
                yield one


def _useful_clusters(way: Schedule, target: Target) -> list[tuple[tuple[int, int], bool]]:
    """The cluster of a way; or all clusters, where CTAs share tiles or have parts of K in tensor
    memory. With tensor memory and all of K there is no cluster for multicast alone: it saves
    nothing where the port of a multiprocessor is the limit, and it costs a start. With parts over
    the grid it may allow a better number of parts."""
    if way.split_k == 1 and not (way.split_grid > 1 and target.has_tensor_memory):
        return [(way.cluster, way.pair)]
    return [
        (cluster, pair)
        for cluster, pair in _clusters(target)
        if (cluster == (1, 1) or pair == target.pairs_by_default)
        and math.prod(cluster) * way.split_k <= SHARING_MAX
    ]


def _finds_room(problem: Problem, sharing: Schedule, target: Target) -> bool:
    """Whether such wide clusters find room, all at once or one after the other."""
    if problem.ctas(sharing) <= resident_ctas(sharing, target):
        return True
    return sharing.cluster_size <= widest_in_waves(target)


def widest_in_waves(target: Target) -> int:
    """The CTAs of the widest cluster that may compute more tiles than run at once (`one_wave`,
    `resident_clusters`)."""
    if target.launch_control or not target.issuers_store:
        return SHARING_MAX
    for size in (SHARING_MAX, WIDE_CLUSTER):
        if target.multiprocessors // size * size <= resident_in_clusters(size, target):
            return size
    return WIDE_CLUSTER // 2


def _parted(problem: Problem, base: Schedule, target: Target) -> Iterator[Schedule]:
    """The schedule with K in as many parts over the grid as fill one to three waves of CTAs.

    More than one wave is taken only where that leaves a tenth less to the busiest multiprocessor.
    """
    tiles = math.prod(problem.grid(base))
    steps = -(-problem.k // base.tile[2])
    costs = figures(target)
    known = costs.parts and (target.has_tensor_memory or costs.split)
    known = known and base.cluster_size <= PART_CLUSTER
    if not known or steps < 2 * PART_K_TILES or tiles > target.multiprocessors:
        return
    for _, each in parts_in_waves(steps, tiles, resident_ctas(base, target)):
        yield base.but(split_grid=-(-steps // each))  # without parts that have no steps


def parts_in_waves(steps: int, tiles: int, at_once: int) -> Iterator[tuple[int, int]]:
    """The numbers of waves that parts of `tiles` tiles can fill if `at_once` CTAs run at once, and
    the steps of a part for each."""
    least = float(steps)
    for waves in PART_WAVES:
        most = min(waves * at_once // tiles, steps // PART_K_TILES)
        each = -(-steps // max(1, most))
        if waves * each < PART_GAIN * least:
            least = waves * each
            yield waves, each


def boxes_of(problem: Problem, tile: tuple[int, int, int], target: Target) -> dict[bool, str]:
    """The boxes for the tile of a single CTA and of a pair, where the rules for operands allow
    them."""
    found = {}
    for pair in (False, True) if target.pairs_by_default else (False,):
        one = PLAIN.but(tile=tile, pair=pair)
        one = one.but(box=_box(problem, one))
        if keeps(OPERAND_RULES, problem, one, target):
            found[pair] = one.box
    return found


def _every_sharing(target: Target) -> list[tuple[tuple[int, int], bool, int]]:
    """All (cluster, 2-CTA MMA, split): the CTAs of a cluster share operands, tiles or both."""
    splits = SPLITS if figures(target).split else SPLITS[:1]
    every = product(_clusters(target), splits)
    return [
        (cluster, pair, split)
        for (cluster, pair), split in every
        if split == 1 or (not pair and math.prod(cluster) * split <= SHARING_MAX)
    ]


def _clusters(target: Target) -> tuple[tuple[tuple[int, int], bool], ...]:
    return CLUSTERS + WIDE_CLUSTERS if figures(target).clusters_at_once else CLUSTERS


def orders(problem: Problem, sharing: Schedule, target: Target) -> Iterator[Schedule]:
    """A sharing with each legal way to hand out tiles; one tile per CTA if there are no further
    tiles."""
    every = _scheduled(problem, sharing, target)
    if problem.ctas(sharing) <= resident_ctas(sharing, target):
        every = takewhile(lambda one: one.scheduler == "none", every)
    legal: dict[tuple[str, bool | str], bool] = {}
    for one in every:
        agents, raster = (one.scheduler, one.ping_pong), (one.scheduler, one.order)
        if agents not in legal:
            legal[agents] = keeps(AGENT_RULES, problem, one, target)
        if legal[agents] and raster not in legal:
            legal[raster] = keeps(RASTER_RULES, problem, one, target)
        if legal[agents] and legal[raster]:
            yield one


def leaves(problem: Problem, order: Schedule, target: Target) -> Iterator[Schedule]:
    """The legal schedules with a way to hand out tiles, each with its deepest ring."""
    for staged in ways_to_store(problem, order.but(stages=1), target):
        if keeps(STAGING_RULES, problem, staged, target):
            yield from _rings(problem, staged, target)


def _scheduled(problem: Problem, base: Schedule, target: Target) -> Iterator[Schedule]:
    """The schedule with every way to hand out tiles, to one consumer role or to two."""
    wide = (base.cluster, base.pair) in WIDE_CLUSTERS
    for scheduler, order in SCHEDULERS[:1] if wide else SCHEDULERS:
        one = started(problem, base.but(scheduler=scheduler, order=order))
        if order == GROUPED:
            one = one.but(group=band_of(problem, one, target))
        yield one
        if _starts_tell(problem, one, target):
            yield one.but(order="m" if one.order == "n" else "n")
        if target.issuers_store and scheduler == "static":
            yield one.but(ping_pong=True)


def _starts_tell(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Whether it matters which tile is shared by CTAs that start one after the other."""
    alone = schedule.scheduler == "none" and schedule.cluster_size == 1 and not problem.grouped
    return alone and figures(target).answered_apart > 0 and min(problem.tiles(schedule)) > 1


def started(problem: Problem, schedule: Schedule) -> Schedule:
    """The schedule with CTAs of one tile each in the order in which they should start.

    Neighbours share a tile of the larger operand, which they then read from L2 at the same time. In
    clusters, which share operands already, they share a tile of the MMA's B, or of A if exchanged.
    """
    if schedule.scheduler != "none" or problem.grouped:
        return schedule
    seen = problem.seen_by(schedule)
    larger_a = schedule.swap if schedule.cluster_size > 1 else seen.m > seen.n
    return schedule.but(order="n" if larger_a else "m")


def _rings(problem: Problem, staged: Schedule, target: Target) -> Iterator[Schedule]:
    """The deepest ring and, where CTAs may share a multiprocessor, the rings that leave them
    room."""
    share = target.has_tensor_memory and staged.scheduler == "none"
    for stages in reversed(_tried_stages(problem, staged, target)):
        leaf = staged.but(stages=stages)
        if keeps(STAGES_RULES, problem, leaf, target):
            yield leaf
            if not share:
                return


def _tried_stages(problem: Problem, staged: Schedule, target: Target) -> list[int]:
    """Few stages and the deepest ring, and no more than leave L1 room where threads copy."""
    most, limited = deepest(problem, staged, target), leaves_l1(problem, target)
    return sorted({most, *(each for each in STAGES if each < most or not limited)})


def candidates(problem: Problem, target: Target) -> Iterator[Schedule]:
    """Every candidate, each once; a wasteful tile only in its plainest form."""
    for seen in sides(problem):
        yield from _candidates(seen, target)
    if problem.grouped == "m":
        yield level_schedule(problem)
    yield from wide_ping_pong_schedules(problem, target)


def _candidates(problem: Problem, target: Target) -> Iterator[Schedule]:
    for tile in tiles(problem, target):
        plain = Schedule(tile, swap=problem.swapped)
        if wasted_tile(problem, plain, target):
            yield plain
            continue
        boxes = {pair: _box(problem, plain.but(pair=pair)) for pair in (False, True)}
        for base in _variants(problem, plain, boxes, target):
            for stages in _tried_stages(problem, base, target):
                yield base.but(stages=stages)


def _variants(
    problem: Problem, plain: Schedule, boxes: dict[bool, str], target: Target
) -> Iterator[Schedule]:
    for cluster, pair in _clusters(target):
        shared = plain.but(cluster=cluster, pair=pair, box=boxes[pair])
        for scheduled in _scheduled(problem, shared, target):
            yield from ways_to_store(problem, scheduled, target)
        for parted in _parted(problem, shared, target):
            yield started(problem, parted)
    for cluster, pair, split in _every_sharing(target):
        if split > 1:
            shared = plain.but(cluster=cluster, pair=pair, box=boxes[pair])
            yield started(problem, shared.but(split_k=split))


def _k_tiles(problem: Problem) -> tuple[int, ...]:
    """Long K tiles, or the single short one that covers a short K."""
    every = k_extents(problem)
    covering = next((k for k in every if k >= problem.k), every[-1])
    return tuple(sorted({covering, *every[-LONG_K_TILES:]}))


def _box(problem: Problem, schedule: Schedule) -> str:
    """Boxes of rank 3 if one copy then brings a tile of several chunks."""
    layouts = problem.layouts(schedule)
    several = any(layout.chunks > 1 for layout in layouts)
    whole = all(
        problem.by_tma(name) and problem.contiguous(name) % layout.span == 0
        for name, layout in zip("ab", layouts, strict=True)
    )
    return "3d" if several and whole else "2d"


def simplicity_of_order(schedule: Schedule) -> int:
    if schedule.scheduler == "none":
        return 0
    known = SWAPPED_SCHEDULERS if schedule.swap else SCHEDULERS
    return known.index((schedule.scheduler, schedule.order))


def rank(total_us: float, schedule: Schedule) -> Rank:
    """Sorts schedules by estimated time, then by fewer agents, a deeper ring, and a shorter and
    smaller tile.

    Pairs should multiply 256 rows, as every published kernel does.
    """
    simplicity = (
        simplicity_of_order(schedule),
        schedule.ping_pong,
        (CLUSTERS + WIDE_CLUSTERS).index((schedule.cluster, schedule.pair)),
        schedule.pair and schedule.tile[0] < PAIR_ROWS,
        schedule.split_k * schedule.split_grid,
        schedule.split_grid,
        schedule.swap,
        STAGING_ORDER.get(schedule.staging, len(STAGING_ORDER)),
        schedule.ahead,
        -schedule.stages,
        schedule.tile[2],
        *schedule.tile[:2],
    )
    return total_us * margin(schedule), simplicity


def margin(schedule: Schedule) -> float:
    """A factor on the estimate of schedules that must be clearly faster than others to be
    chosen."""
    return PART_MARGIN if schedule.split_grid > 1 else 1
