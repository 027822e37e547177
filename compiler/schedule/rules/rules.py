"""The rules that a schedule must keep: each a name and a function that says how one is broken.

What a pass would refuse is refused by the pass's own rule (`dialects/legality.py`). The others are
about waste: they refuse what another candidate does with less.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from operator import attrgetter

from ....dialects import legality
from ....dialects.dynamic import DYNAMIC
from ....dialects.target import WARPGROUP_THREADS, Target
from ..chips.chip_figures import figures
from ..problem import Problem, Schedule
from ..tile_extents import extents_of
from ..waves import resident_ctas, tile_rounds
from .added_rules import (
    added_cluster,
    added_columns,
    added_copies,
    added_registers,
    added_ring,
    scaled_registers,
)
from .operand_rules import (
    mma_shape,
    multicast_slice,
    narrow_rows,
    operand_layout,
    tma_box,
    tma_row_pitch,
)
from .staging_rules import pieces_ahead, staged_store

COPIED_REGISTERS_MAX = 128  # of accumulators, beside a warpgroup that copies
COPIED_ODD_N_MAX = 240  # of the tile there, where each element of C is stored by itself
GROUP_COLUMNS = 256  # of 64 rows of one of several tiles of a group
GROUP_STAGES = 4
GROUP_ROWS_HIGH = 256  # of a group in the mean, from which on tiles in turns have 128
PING_PONG_N = 128  # as narrow as the tile of one of two consumers may be, if C is wider
SHARING_MAX = 8  # CTAs of a cluster that any GPU takes (CUDA programming guide, clusters)
WIDE_CLUSTER = 4  # CTAs
MMA_ROWS = 64  # of the smaller MMA of a tensor memory
PART_K_TILES = 8  # with fewer, what is saved is less than what the parts cost

Rule = Callable[[Problem, Schedule, Target], str | None]
Broken = tuple[str, str]  # a rule's name, and how it is broken


def accumulator_registers(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A thread may hold only so much of an accumulator that is kept in registers."""
    m, n, _ = schedule.tile
    warpgroups = target.mma_warpgroups(m, n)
    if warpgroups is None:
        return legality.accumulator_registers(target, m, n)
    registers = m * n // (warpgroups * WARPGROUP_THREADS)
    if problem.column_scales and (broken := scaled_registers(schedule, warpgroups)):
        return broken
    by_tma = problem.by_tma("a") and problem.by_tma("b")
    copied = not target.has_tensor_memory and not by_tma
    if copied and (warpgroups > 2 or registers > COPIED_REGISTERS_MAX):
        shown = f"{registers} registers a thread of {warpgroups} warpgroups"
        return f"{shown} leave too few for threads that copy what TMA can't address"
    if copied and warpgroups > 1 and n > COPIED_ODD_N_MAX and problem.n % 2:
        return (
            f"{n} columns, each stored by itself, leave too few registers beside threads that copy "
            f"what TMA can't address, {COPIED_ODD_N_MAX} don't"
        )
    return None


def pair_shape(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A 2-CTA MMA needs an even cluster M, a CTA tile of 64 or 128 rows, N in steps of 32."""
    m, n, _ = schedule.tile
    if not schedule.pair:
        return None
    dual = legality.dual_pair(target, m, n) if problem.products == 2 else None
    return legality.pair_tile(target, m, n) or dual or legality.pair_cluster(schedule.cluster)


def cluster_size(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A cluster has only so many CTAs."""
    return legality.cluster_size(target, schedule.cluster)


def idle_cta(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Every CTA of a cluster must have a tile."""
    for axis, tiles, ctas in zip("MN", problem.tiles(schedule), schedule.cluster, strict=True):
        if ctas > tiles:
            return f"a cluster of {ctas} along {axis} has only {tiles} tiles there"
    return None


def split_parts(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """K is split where tiles are few and each part is long, if the chip's figures know its cost."""
    parts, (m, n) = schedule.split_k, problem.tiles(schedule)
    if parts == 1:
        return None
    if problem.grouped:
        return "K is not split where rows or K are grouped"
    if problem.further_bytes:
        return f"a split K stores one output, got {1 + len(problem.further_bytes)}"
    if problem.quantized:
        return "a split K sums no blocks that are quantised"
    if figures(target).split is None:
        return f"what a split K costs on {target.chip} was not measured"
    tiles = (m, n)
    if problem.counts_tiles(schedule):
        tiles = (m, DYNAMIC) if problem.swapped else (DYNAMIC, n)
    broken = legality.split_clusters(tiles, schedule.cluster)
    if broken:
        return broken
    if schedule.cluster_size * parts > SHARING_MAX:
        return f"{parts} parts of {schedule.cluster_size} CTAs are over {SHARING_MAX} a cluster"
    if 2 * m * n > target.multiprocessors:
        return f"{m * n} tiles are over half of {target.multiprocessors} multiprocessors"
    most = resident_ctas(schedule, target)
    if m * n * parts > most:
        return f"{m * n} tiles in {parts} parts are over the {most} CTAs that run at once"
    if problem.k_tiles(schedule) < PART_K_TILES:
        return f"a part has {problem.k_tiles(schedule)} K tiles, under {PART_K_TILES}"
    return None


def grid_parts(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """K is split over the grid where tiles are few, each part is long, and L2 keeps the sums."""
    parts, (m, n) = schedule.split_grid, problem.grid(schedule)
    if parts == 1:
        return None
    if schedule.split_k > 1:
        return f"K is split by {schedule.split_k} in clusters already"
    if broken := problem.parts_refusal():
        return broken
    if problem.counts_tiles(schedule):
        if figures(target).split is not None:
            return "K of tiles that a launch counts is split in clusters where that was measured"
        if not problem.most_m:
            return "K is split over the grid of tiles whose most are known"
        m = -(-problem.most_m // schedule.tile[0]) * problem.batch
    if figures(target).parts is None:
        return f"what parts of a grid cost on {target.chip} is not known"
    if m * n > target.multiprocessors:
        return f"{m * n} tiles are over {target.multiprocessors} multiprocessors"
    if problem.k_tiles(schedule) < PART_K_TILES:
        return f"a part has {problem.k_tiles(schedule)} K tiles, under {PART_K_TILES}"
    steps = -(-problem.k // schedule.tile[2])
    used = -(-steps // problem.k_tiles(schedule))
    if used != parts:
        return f"{steps} K tiles are {used} parts, got {parts}"
    size, most = problem.parts_bytes(schedule), int(figures(target).l2_size / 2)
    return (
        f"sums of parts take {size} bytes, over the {most} of half of L2" if size > most else None
    )


def split_alone(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Tiles that a cluster shares are computed once each."""
    if schedule.split_k * schedule.split_grid == 1 or schedule.scheduler == "none":
        return None
    return f"a split K has one tile a cluster, got scheduler {schedule.scheduler}"


def wasted_tile(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """No axis may be covered by a smaller tile, in which groups are reduced as well."""
    extents = (problem.most_rows, problem.n, problem.k)
    tables = extents_of(problem, target)
    for number, (axis, extent, size) in enumerate(zip("MNK", extents, schedule.tile, strict=True)):
        if size <= extent:
            continue
        smaller = [other for other in tables[number] if extent <= other < size]
        if problem.neighbours:
            smaller = [
                other
                for other in smaller
                if not reduced_groups(problem, _with_extent(schedule, number, other), target)
            ]
        if smaller:
            return f"{axis} = {extent} is covered by a tile of {smaller[0]}, {size} wastes the rest"
    return None


def _with_extent(schedule: Schedule, number: int, extent: int) -> Schedule:
    """The schedule with another tile along an axis."""
    m, n, k = (extent if at == number else size for at, size in enumerate(schedule.tile))
    return replace(schedule, tile=(m, n, k))


def shared_memory(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Stages, staging buffers and barriers must fit the shared memory of one CTA."""
    stage, staging = problem.stage_bytes(schedule), problem.staging_bytes(schedule)
    needed = schedule.stages * stage + staging + legality.RESERVED_BYTES
    if needed <= target.shared_bytes:
        return None
    return (
        f"{schedule.stages} stages of {stage} bytes, {staging} of staging and "
        f"{legality.RESERVED_BYTES} of barriers are {needed} bytes, over {target.shared_bytes}"
    )


def tensor_memory(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """The accumulators must fit the tensor memory: two of them when tiles overlap."""
    m, n, _ = schedule.tile
    buffers = 1 if schedule.scheduler == "none" else 2
    return legality.accumulator_columns(target, m, n, buffers)


def launch_control(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Cluster launch control is for chips that have it."""
    return legality.launch_control(target) if schedule.scheduler == "clc" else None


def ring_depth(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A ring deeper than the K tiles that go through it is never full."""
    rounds = 1 if schedule.scheduler == "none" else tile_rounds(problem, schedule, target)
    steps = rounds * problem.k_tiles(schedule)
    if schedule.stages <= steps:
        return None
    return f"{schedule.stages} stages for {steps} K tiles in a CTA"


def one_wave(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Persistence needs more tiles than CTAs run at once; then groups have it, wide clusters don't.

    The next cluster of four CTAs waits until so many places of one GPC are free: on an H200 each of
    43 such schedules was slower than others of its problem, by 5 to 112 %. CTAs of one tile were by
    14 to 39 % of groups of 64 and 128 rows, and by 11 and 17 % of groups a third of which had none:
    CTAs without a row multiply all the same.
    """
    ctas, slots = problem.ctas(schedule), resident_ctas(schedule, target)
    if schedule.scheduler == "none":
        if not target.issuers_store or ctas <= slots:
            return None
        wide = schedule.cluster_size >= WIDE_CLUSTER
        if wide or problem.grouped == "m":
            what = f"in clusters of {schedule.cluster_size}" if wide else "of groups"
            return f"{ctas} CTAs {what} are more than the {slots} at once"
        return None
    if ctas > slots:
        return None
    return f"{ctas} tiles run at once on {slots} multiprocessors, there is no next tile"


def resident_clusters(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Clusters that take a static share of the tiles must all find room at once."""
    size = schedule.cluster_size
    launched, resident = target.multiprocessors // size, resident_ctas(schedule, target) // size
    if schedule.scheduler != "static" or launched <= resident:
        return None
    return f"{launched} clusters of {size} share the tiles, {resident} run at once"


def group_height(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A group as high as the grid is the order along M, but where it begins anew with each of the
    problem's groups."""
    rows, _ = problem.grid(schedule)
    if schedule.order != "grouped" or schedule.group < rows or problem.grouped == "m":
        return None
    return f"a group of {schedule.group} is no less than the {rows} tiles along M"


def group_columns(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Of tiles of 64 rows, of which groups have several, those of fewer columns than 256 took up to
    18 % longer on an H100."""
    m, n, _ = schedule.tile
    least = min(GROUP_COLUMNS, problem.n)
    plain = not problem.adds_products and problem.products == 1 and target.issuers_store
    if not (plain and problem.cut and m == MMA_ROWS and n < least):
        return None
    return f"tiles of {m}x{n} of groups were slower than those of {least} columns on an H100"


def group_ring(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Of groups of few rows tiles of 64x256 in turns took up to 5 % less with four stages than with
    five, on an H100 and an H200: DRAM is the limit, and reads ahead only keep more of L2."""
    m, n, _ = schedule.tile
    few = problem.cut and schedule.ping_pong and m == MMA_ROWS and n >= GROUP_COLUMNS
    if not few or schedule.stages <= GROUP_STAGES:
        return None
    return f"{schedule.stages} stages of {m}x{n} in turns were slower than {GROUP_STAGES} of groups"


def group_order(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Matrices of groups are read once where tiles are computed group by group."""
    if problem.grouped != "m" or schedule.scheduler != "static" or schedule.order == "grouped":
        return None
    return f"tiles {schedule.raster} are not computed group by group"


def alternating_consumers(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Two consumers take turns in a loop over tiles, which one warpgroup each can hold."""
    m, n, _ = schedule.tile
    if not schedule.ping_pong:
        return None
    if problem.adds_products:
        return "consumers take turns with the tensor core, which waits for one that adds products"
    broken = legality.alternating_consumers(target)
    if broken:
        return broken
    if schedule.scheduler == "none":
        return "consumers take turns where a CTA has several tiles, got scheduler none"
    broken = legality.consumer_warpgroups(m, n, target.mma_warpgroups(m, n) or 0)
    if broken:
        return broken
    if n < min(PING_PONG_N, problem.n):
        return f"tiles of {n} columns were slower than 128x{PING_PONG_N} in turns on an H200"
    if problem.cut and m == MMA_ROWS and problem.m >= GROUP_ROWS_HIGH:
        return (
            f"tiles of {m} rows of groups of {problem.m} were slower than 128 in turns on both GPUs"
        )
    return None


def grid_extent(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """The grid must be one that can be launched; static persistence takes one row of clusters."""
    rows, columns = problem.grid(schedule)
    if (counted := problem.counted_refusal(schedule)) is not None:
        return counted
    curve = legality.curve_tiles((rows, columns)) if schedule.order == "hilbert" else None
    if schedule.scheduler == "static":
        return curve or legality.counted_tiles((rows, columns))
    return curve or legality.grid_extents(target, (rows, columns))


# A search settles tile, cluster, scheduler, staging and stages in this order; the rules of a step
# look at nothing that a later step settles.
def reduced_groups(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """Threads have whole groups of neighbours that the epilogue reduces: in tensor memory of 64
    rows, each of half the columns."""
    halved = target.has_tensor_memory and target.mma_rows(schedule.tile[0]) == MMA_ROWS
    wanted = problem.neighbours * problem.products * (2 if halved else 1)
    if not problem.neighbours or schedule.tile[1] % wanted == 0:
        return None
    return f"{schedule.tile[1]} columns are no multiple of {wanted}, that groups are reduced in"


TILE_RULES: tuple[Rule, ...] = (
    mma_shape,
    accumulator_registers,
    added_columns,
    added_registers,
    added_copies,
    wasted_tile,
    reduced_groups,
    group_columns,
)
OPERAND_RULES: tuple[Rule, ...] = (operand_layout, narrow_rows, tma_box)
CLUSTER_RULES: tuple[Rule, ...] = (
    split_parts,
    grid_parts,
    pair_shape,
    cluster_size,
    idle_cta,
    *OPERAND_RULES,  # of the cluster they only ask whether it is of pairs
    tma_row_pitch,
    multicast_slice,
    added_cluster,
)
ROOM_RULES: tuple[Rule, ...] = (idle_cta, split_parts, tma_row_pitch)
"""Those that the bounds of a sharing take for granted."""
SHARING_RULES = tuple(rule for rule in CLUSTER_RULES if rule not in OPERAND_RULES + ROOM_RULES)
SCHEDULER_RULES: tuple[Rule, ...] = (
    split_alone,
    tensor_memory,
    launch_control,
    one_wave,
    resident_clusters,
    alternating_consumers,
    group_height,
    group_order,
    grid_extent,
)
STAGING_RULES: tuple[Rule, ...] = (staged_store, pieces_ahead)
STAGES_RULES: tuple[Rule, ...] = (shared_memory, ring_depth, added_ring, group_ring)

RULES: dict[str, Rule] = {
    rule.__name__.replace("_", "-"): rule
    for rule in (*TILE_RULES, *CLUSTER_RULES, *SCHEDULER_RULES, *STAGING_RULES, *STAGES_RULES)
}
NAMES = {rule: name for name, rule in RULES.items()}


_SHARED = ("tile", "swap", "cluster", "pair", "box", "split_k", "split_grid")
_SCHEDULED = (*_SHARED, "scheduler", "order", "group", "ping_pong")
# The rules of each step, and what a schedule has settled by then.
STEPS: tuple[tuple[tuple[Rule, ...], Callable[[Schedule], Hashable]], ...] = (
    (TILE_RULES, attrgetter("tile", "swap")),
    (CLUSTER_RULES, attrgetter(*_SHARED)),
    (SCHEDULER_RULES, attrgetter(*_SCHEDULED)),
    (STAGING_RULES, attrgetter(*_SCHEDULED, "staging", "ahead")),
    (STAGES_RULES, attrgetter(*_SCHEDULED, "staging", "ahead", "vectors", "stages")),
)


def broken_rule(problem: Problem, schedule: Schedule, target: Target) -> Broken | None:
    """(name, how) of the first rule that the schedule breaks, or None."""
    problem = problem.seen_by(schedule)
    return _first_broken(tuple(RULES.values()), problem, schedule, target)


def broken_rules(problem: Problem, target: Target) -> Callable[[Schedule], Broken | None]:
    """`broken_rule` for many schedules: a step's rules are asked once for what is settled there."""
    steps = [(rules, settled_by, {}) for rules, settled_by in STEPS]

    def broken(schedule: Schedule) -> Broken | None:
        for rules, settled_by, answers in steps:
            settled = settled_by(schedule)
            if settled not in answers:
                seen = problem.seen_by(schedule)
                answers[settled] = _first_broken(rules, seen, schedule, target)
            if found := answers[settled]:
                return found
        return None

    return broken


def _first_broken(
    rules: tuple[Rule, ...], problem: Problem, schedule: Schedule, target: Target
) -> Broken | None:
    for rule in rules:
        reason = rule(problem, schedule, target)
        if reason:
            return NAMES[rule], reason
    return None


def keeps(rules: tuple[Rule, ...], problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Whether the schedule breaks none of `rules`."""
    for rule in rules:  # `all` takes a third longer, and a search asks thousands of times
        if rule(problem, schedule, target) is not None:
            return False
    return True
