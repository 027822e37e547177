"""The constraints on a schedule: each has a name, and a function that explains a violation.

What a pass would refuse is refused by the pass's own rule (`dialects/legality.py`). The other rules
avoid waste: they refuse a candidate if another one does the same with less.
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
from ..schedule_target import target_of_schedule
from ..tile_extents import extents_of
from ..waves import resident_ctas, tile_rounds
from .group_rules import (
    MMA_ROWS,
    group_columns,
    group_height,
    group_order,
    group_ring,
    level_tiles,
)
from .operand_rules import (
    mma_shape,
    multicast_slice,
    narrow_rows,
    operand_layout,
    tma_box,
    tma_row_pitch,
)
from .scheduler_rules import alternating_consumers, launch_control, one_wave, resident_clusters
from .staging_rules import pieces_ahead, staged_store
from .tensor_rules import added_scales
from .two_level_rules import (
    added_alone,
    added_cluster,
    added_columns,
    added_copies,
    added_registers,
    added_ring,
    added_staging,
    scaled_registers,
)
from .wide_ping_pong_rules import wide_tiles

COPIED_REGISTERS_MAX = 128  # of accumulators, beside a warpgroup that copies
COPIED_ODD_N_MAX = 240  # of the tile there, where each element of C is stored by itself
SHARING_MAX = 8  # CTAs of a cluster that any GPU takes (CUDA programming guide, clusters)
PART_K_TILES = 8  # with fewer, what is saved is less than what the parts cost

Rule = Callable[[Problem, Schedule, Target], str | None]
Broken = tuple[str, str]  # a rule's name, and how it is broken


def accumulator_registers(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A thread may hold only a limited part of an accumulator in registers."""
    m, n, _ = schedule.tile
    warpgroups = target.mma_warpgroups(m, n)
    if warpgroups is None:
        return legality.accumulator_registers(target, m, n)
    registers = m * n // (warpgroups * WARPGROUP_THREADS)
    broken = problem.column_scales and scaled_registers(problem, schedule, target, warpgroups)
    if broken:
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


def split_refusal(problem: Problem, target: Target) -> str | None:
    """Why CTAs of a cluster may not share a tile; None if they may."""
    if problem.grouped:
        return "K is not split where rows or K are grouped"
    if problem.further_bytes:
        return f"a split K stores one output, got {1 + len(problem.further_bytes)}"
    if problem.quantized:
        return "a split K sums no blocks that are quantised"
    if figures(target).split is None:
        return f"what a split K costs on {target.chip} was not measured"
    return None


def split_parts(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """K is split in a cluster if tiles are few and each part is long, and the chip's figures know
    the cost."""
    parts, (m, n) = schedule.split_k, problem.tiles(schedule)
    if parts == 1:
        return None
    if broken := split_refusal(problem, target):
        return broken
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
    """K is split over the grid if tiles are few, each part is long, and L2 can hold the sums."""
    parts, (m, n) = schedule.split_grid, problem.grid(schedule)
    if parts == 1:
        return None
    if schedule.split_k > 1:
        return f"K is split by {schedule.split_k} in clusters already"
    if broken := problem.parts_refusal(target):
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
    """With a split K, each cluster, or each group of CTAs of the grid, computes a single tile."""
    if schedule.split_k * schedule.split_grid == 1 or schedule.scheduler == "none":
        return None
    return f"a split K has one tile a cluster, got scheduler {schedule.scheduler}"


def wasted_tile(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """No axis may be covered by a smaller tile that keeps the groups of a reduction whole as
    well."""
    extents = (problem.most_rows, problem.n, problem.k)
    for number, (axis, extent, size) in enumerate(zip("MNK", extents, schedule.tile, strict=True)):
        if size <= extent:
            continue
        table = extents_of(problem, target)[number]
        smaller = [other for other in table if extent <= other < size]
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
    """The schedule with another tile size along an axis."""
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


def ring_depth(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A ring deeper than the K tiles that go through it is never full."""
    rounds = 1 if schedule.scheduler == "none" else tile_rounds(problem, schedule, target)
    steps = rounds * problem.k_tiles(schedule)
    if schedule.stages <= steps:
        return None
    return f"{schedule.stages} stages for {steps} K tiles in a CTA"


def grid_extent(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """The grid must be one that can be launched; static persistence takes one row of clusters."""
    rows, columns = problem.grid(schedule)
    if (counted := problem.counted_refusal(schedule)) is not None:
        return counted
    curve = legality.curve_tiles((rows, columns)) if schedule.order == "hilbert" else None
    if schedule.scheduler == "static":
        return curve or legality.counted_tiles((rows, columns))
    return curve or legality.grid_extents(target, (rows, columns))


def reduced_groups(problem: Problem, schedule: Schedule, target: Target) -> str | None:
    """A thread must have whole groups of the neighbours that the epilogue reduces. In tensor memory
    with 64 rows, each thread has half of the columns."""
    halved = target.has_tensor_memory and target.mma_rows(schedule.tile[0]) == MMA_ROWS
    wanted = problem.neighbours * problem.products * (2 if halved else 1)
    if not problem.neighbours or schedule.tile[1] % wanted == 0:
        return None
    return f"{schedule.tile[1]} columns are no multiple of {wanted}, that groups are reduced in"


# A search settles tile, cluster, scheduler, staging and stages in this order; the rules of a step
# look at nothing that a later step settles.
TILE_RULES: tuple[Rule, ...] = (
    mma_shape,
    accumulator_registers,
    added_columns,
    added_alone,
    added_registers,
    added_copies,
    added_scales,
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
"""The rules that the bounds of a sharing take for granted."""
SHARING_RULES = tuple(rule for rule in CLUSTER_RULES if rule not in OPERAND_RULES + ROOM_RULES)
AGENT_RULES: tuple[Rule, ...] = (
    split_alone,
    tensor_memory,
    launch_control,
    one_wave,
    resident_clusters,
    alternating_consumers,
)
"""The rules that only ask of an order which agent hands out tiles, and to how many consumers."""
RASTER_RULES: tuple[Rule, ...] = (group_height, group_order, grid_extent)
SCHEDULER_RULES = AGENT_RULES + RASTER_RULES
STAGING_RULES: tuple[Rule, ...] = (staged_store, pieces_ahead, added_staging)
STAGES_RULES: tuple[Rule, ...] = (shared_memory, ring_depth, added_ring, group_ring)

RULES: dict[str, Rule] = {
    rule.__name__.replace("_", "-"): rule
    for rule in (
        level_tiles,
        wide_tiles,
        *TILE_RULES,
        *CLUSTER_RULES,
        *SCHEDULER_RULES,
        *STAGING_RULES,
        *STAGES_RULES,
    )
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
    """The name of the first rule that the schedule breaks, and how; None if it keeps all.

    Tiles of equal height must keep the rules of the corresponding ordinary tiles.
    """
    if schedule.level:
        broken = _first_broken((level_tiles,), problem, schedule, target)
        return broken or broken_rule(problem, schedule.of_whole_tiles, target)
    problem, target = problem.seen_by(schedule), target_of_schedule(schedule, target)
    return _first_broken(tuple(RULES.values()), problem, schedule, target)


def broken_rules(problem: Problem, target: Target) -> Callable[[Schedule], Broken | None]:
    """`broken_rule` for many schedules: the rules of a step are asked once for what that step
    settles."""
    steps = [(rules, settled_by, {}) for rules, settled_by in STEPS]

    def broken(schedule: Schedule) -> Broken | None:
        if schedule.level or schedule.wide:
            return broken_rule(problem, schedule, target)
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
