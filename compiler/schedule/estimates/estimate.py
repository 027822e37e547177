"""The estimated time of a schedule in microseconds, from shapes and figures of the chip.

    step        one K tile of one CTA: the slowest of tensor core, shared memory, L2, copies and
                barriers, and a share of the second slowest
    main loop   K tiles × step, or more where the ring is too short to hide the latency
    fill        the first TMA round trip        start    what a CTA does before it
    epilogue    tensor memory → global memory; with a split K, by way of the cluster's shared memory

    one tile a CTA   waves × (start + fill + main loop + epilogue)
    persistent       start + fill + tiles a CTA × max(main loop, epilogue) + last epilogue
    issuers store    start + fill + tiles a CTA × (main loop + epilogue): one role does both, and
                     a little from one tile to the next, a share of both where an epilogue computes
    ping-pong        as persistent, two tiles no faster than one's main loop and epilogue, and a
                     share of what is hidden
    total            the larger of that and start + fill + the bytes that DRAM must move + epilogue,
                     a share of the shorter of main loops and DRAM, and of what the first of several
                     waves asks of DRAM beyond its part; of groups of many rows stores count as
                     main loops do

The figures rank schedules; they are no promise of a time. Kernel launch is left out: it is the same
for all. Every figure says where it comes from, or that it is assumed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ....dialects.release_steps import releases_late
from ....dialects.target import Target
from ..chips.chip_figures import figures, split_figures
from ..chips.figure_sets import ChipFigures
from ..elementwise import larger, smaller
from ..extents import round_up
from ..problem import Problem, Schedule
from ..schedule_target import target_of_schedule
from ..waves import tile_rounds, wave_shape
from .costs import Estimate as Estimate
from .costs import copy_cycles, dram_bytes, gathered_cycles
from .epilogue_costs import epilogue_cycles
from .group_costs import levelled, uneven_groups
from .l2_costs import l2_cycles
from .tensor_estimate import tensor_estimate
from .two_level_costs import added_cycles

SHARING_MAX = 8  # parts of K in a cluster: as many were measured
SERVED_AT_ONCE = 16  # CTAs that begin with the same rows and don't wait for each other
TURNS_AHEAD = 1
"""By how many slots the ring of ping-pong consumers counts as deeper where rows are grouped: fitted
to an H100's times of 64x256 tiles with four and five stages, in eleven shapes."""
TURNS_BESIDE = 0.5
"""The same where pieces of a residual or of a second output take the place of stages. With tiles of
128x128 in twelve shapes, an H200 took as long with five stages beside a residual as with six
without, and 4 % longer with four; with two outputs and five stages it took 0.96 to 1.005 of the
time of six."""


def estimate(problem: Problem, schedule: Schedule, target: Target) -> Estimate:
    """The expected time of the schedule on the multiprocessors of `target`, in all its parts."""
    if schedule.level:
        whole = schedule.of_whole_tiles
        problem = problem.seen_by(whole)
        return levelled(problem, whole, estimate(problem, whole, target))
    problem, target = problem.seen_by(schedule), target_of_schedule(schedule, target)
    if target.has_tensor_memory:
        return tensor_estimate(problem, schedule, target)
    step = step_of(step_cycles(problem, schedule, target), target)
    return with_known(problem, schedule, target, step, order_of(problem, schedule, target))


def total_us(problem: Problem, schedule: Schedule, target: Target) -> float:
    """The total microseconds alone. `estimate` also says what limits them, for which it makes
    further comparisons."""
    if schedule.level or target.has_tensor_memory:
        return estimate(problem, schedule, target).total_us
    problem, target = problem.seen_by(schedule), target_of_schedule(schedule, target)
    step = step_of(step_cycles(problem, schedule, target), target)
    order = order_of(problem, schedule, target)
    epilogue = epilogue_cycles(problem, schedule, target)
    return spans_of(problem, schedule, target, step, order, epilogue).total_us


class Step(NamedTuple):
    """Cycles of one K tile of one CTA, and the cycles for which each resource is busy. All
    schedules with the same tile, cluster and parts of K share one."""

    cycles: float
    busy: dict[str, float]

    @property
    def bound(self) -> str:
        """The resource that is busy for the most cycles."""
        return max(self.busy, key=lambda name: self.busy[name])


class Order(NamedTuple):
    """What schedules of one `Step` share if they hand out tiles alike: waves, cycles until the
    first operands arrive, DRAM time, and the DRAM time of the first wave beyond its share."""

    rounds: int
    fill: float
    dram_us: float
    early_us: float


def step_of(busy: dict[str, float], target: Target) -> Step:
    """The step in which each resource is busy for the given cycles (`step_cycles`)."""
    return Step(together(busy, target), busy)


def order_of(problem: Problem, schedule: Schedule, target: Target) -> Order:
    chip = figures(target)
    return Order(
        rounds=tile_rounds(problem, schedule, target),
        fill=chip.tma_latency + shared_row_cycles(problem, schedule, target),
        dram_us=dram_bytes(problem, schedule, target) / chip.dram_rate,
        early_us=chip.first_wave * first_wave_us(problem, schedule, target),
    )


def with_known(
    problem: Problem, schedule: Schedule, target: Target, step: Step, order: Order
) -> Estimate:
    """The estimate of a schedule with this step and order."""
    epilogue = epilogue_cycles(problem, schedule, target)
    found = spans_of(problem, schedule, target, step, order, epilogue)
    epilogue += gathered_cycles(problem, schedule, target)
    return Estimate(
        total_us=found.total_us,
        work_us=found.work_us,
        dram_us=order.dram_us,
        main_loop_us=microseconds(target, found.main),
        epilogue_us=microseconds(target, epilogue),
        fill_us=microseconds(target, order.fill),
        start_us=microseconds(target, found.start),
        rounds=order.rounds,
        bound=_bound(problem, schedule, step, found),
    )


def _bound(problem: Problem, schedule: Schedule, step: Step, found: Spans) -> str:
    """What limits a schedule."""
    if found.streaming_us > found.work_us:
        return "DRAM"
    waits = found.main > problem.k_tiles(schedule) * step.cycles
    return "latency" if waits else step.bound


class Spans(NamedTuple):
    """Microseconds of the total, of the busiest multiprocessor, and of DRAM with what comes before
    and after it; cycles of a CTA's main loop and of its start."""

    total_us: float
    work_us: float
    streaming_us: float
    main: float
    start: float


def spans_of(
    problem: Problem,
    schedule: Schedule,
    target: Target,
    step: Step,
    order: Order,
    epilogue: float,
) -> Spans:
    """The spans of a schedule with this step, order and epilogue, which a search knows for many
    schedules."""
    streamed = problem.k_tiles(schedule) * step.cycles
    main = larger(streamed, refill_cycles(problem, schedule, step.cycles, target))
    gathered = gathered_cycles(problem, schedule, target)
    rounds, fill, dram_us, early_us = order
    start = start_cycles(schedule, target)
    work = work_cycles(problem, schedule, rounds, (main, epilogue, fill + start), target)
    work *= uneven_groups(problem, schedule, target)
    work_us = microseconds(target, work + gathered)
    streaming_us = dram_us + microseconds(target, fill + start + (epilogue + gathered))
    parts = schedule.split_k * schedule.split_grid > 1
    loops_us = 0 if parts else microseconds(target, rounds * main)
    loops_us = work_us if problem.cut else loops_us
    total_us = combined_us(target, work_us, streaming_us, loops_us, dram_us, early_us)
    return Spans(total_us, work_us, streaming_us, main, start)


def combined_us(
    target: Target,
    work_us: float,
    streaming_us: float,
    loops_us: float,
    dram_us: float,
    early_us: float = 0.0,
) -> float:
    """The total from the times of the busiest multiprocessor and of DRAM, which do not overlap
    completely."""
    overlap_us = figures(target).dram_share * smaller(loops_us, dram_us)
    return larger(work_us, streaming_us) + overlap_us + early_us


def shared_row_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """The delay of the first loads if many CTAs start with the same rows and these start inside
    sectors.

    L2 serves more than a few requests for such a row one after another. Multicast divides them. For
    later loads the CTAs have drifted apart.
    """
    if not problem.unaligned:
        return 0
    (rows, columns), tiles = wave_shape(problem, schedule, target), problem.tiles(schedule)
    (m, n, _), (cluster_m, cluster_n) = schedule.tile, schedule.cluster
    of_a = max(0, min(columns, tiles[1]) / cluster_n - SERVED_AT_ONCE)
    of_b = max(0, min(rows, tiles[0]) / cluster_m - SERVED_AT_ONCE)
    a = of_a * min(m, problem.m) * ("a" in problem.unaligned)
    b = of_b * min(n, problem.n) * ("b" in problem.unaligned)
    return figures(target).shared_row * max(a, b)


def start_cycles(schedule: Schedule, target: Target) -> float:
    """Cycles from a CTA's start to its first load, and what a cluster adds at both ends."""
    chip = figures(target)
    start = chip.cta_start + (chip.shared_twice if min(schedule.cluster) > 1 else 0)
    if schedule.split_k > 1:
        return start + split_figures(target).start
    return start + cluster_cycles(schedule.cluster_size, chip)


def cluster_cycles(ctas: int, chip: ChipFigures) -> float:
    """What a cluster of `ctas` CTAs adds at both ends, growing with each doubling beyond two."""
    return chip.cluster_start + chip.cluster_doubled * math.log2(ctas / 2) if ctas > 1 else 0


def work_cycles(
    problem: Problem,
    schedule: Schedule,
    rounds: int,
    tile: tuple[float, float, float],
    target: Target,
) -> float:
    """Cycles of the busiest multiprocessor, given a tile's main loop, its epilogue, and what comes
    before the first tile."""
    (main, epilogue, before), chip, between = tile, figures(target), 0.0
    if problem.has_epilogue:
        between = chip.together_share * (main + epilogue)
    if schedule.scheduler == "none":
        return rounds * (before + main + epilogue) + (rounds - 1) * between
    if schedule.ping_pong:
        period = max(main, (main + epilogue) / 2) + chip.second_share * min(main, epilogue)
        return before + (rounds - 1) * period + main + epilogue
    between += chip.next_tile
    return before + rounds * (main + epilogue) + (rounds - 1) * between


def microseconds(target: Target, cycles: float) -> float:
    return cycles / (figures(target).clock * 1e3)


def step_cycles(problem: Problem, schedule: Schedule, target: Target) -> dict[str, float]:
    """Cycles that each resource needs for one K tile of one CTA."""
    return {
        **own_cycles(problem, schedule, target),
        "L2": l2_cycles(problem, schedule, target),
    }


def own_cycles(problem: Problem, schedule: Schedule, target: Target) -> dict[str, float]:
    """The cycles of the resources that a multiprocessor has for itself, which a tile takes in every
    cluster."""
    return {
        "tensor core": tensor_core_cycles(problem, schedule, target),
        "shared memory": shared_cycles(problem, schedule, target),
        "thread copies": copy_cycles(problem, schedule, target),
        "barriers": figures(target).step_least,
    }


def together(busy: dict[str, float], target: Target) -> float:
    """Cycles of a step in which each resource is busy for the given cycles: they do not overlap
    completely."""
    slowest = second = 0.0
    for cycles in busy.values():
        second = larger(second, smaller(slowest, cycles))
        slowest = larger(slowest, cycles)
    return slowest + figures(target).second_share * second


def refill_cycles(problem: Problem, schedule: Schedule, step: float, target: Target) -> float:
    """Cycles of the main loop if a slot's next load starts only after its MMA.

    Where slots are released one step late (`release_steps`), one of them is always held back.
    """
    ring: float = max(1, schedule.stages - held_slots(problem, schedule, target))
    ring += turns_ahead(problem) if schedule.ping_pong else 0
    return refilled(problem.k_tiles(schedule), ring, step, figures(target).tma_latency)


def turns_ahead(problem: Problem) -> float:
    """By how many slots the ring of ping-pong consumers counts as deeper than it is."""
    if problem.cut:
        return TURNS_AHEAD
    return TURNS_BESIDE if problem.beside or problem.further_bytes else 0


def held_slots(problem: Problem, schedule: Schedule, target: Target) -> int:
    """The number of slots that are held back in a ring of several."""
    m, n, _ = schedule.tile
    scales = problem.row_scales, problem.column_scales
    return int(target.awaits_mmas and releases_late(target, m, n, *scales))


def refilled(steps: int, ring: float, step: float, latency: float) -> float:
    """Cycles of that many steps. A full ring of loads is in flight at a time: as many steps as the
    ring has slots take a latency and a step more, except those of the last ring."""
    later = max(0.0, steps / ring - 1)
    return later * (latency + step) + min(ring, steps) * step


def tensor_core_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles of the MMAs of one CTA's tile; a smaller MMA takes as long as one of the most rows.

    An MMA takes 32 bytes of K in the same time, whatever the type.
    """
    m, n, k = schedule.tile
    rows = round_up(m, target.mma.m[-1])
    of_16_bits = 2 * rows * n * k / figures(target).mma_rate
    mma = of_16_bits * problem.element_bytes / 2
    return mma + (added_cycles(problem, schedule, target, mma) if target.adds_products else 0)


def shared_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    return shared_bytes_per_step(problem, schedule, target) / figures(target).shared_rate


def shared_bytes_per_step(problem: Problem, schedule: Schedule, target: Target) -> int:
    """Bytes of A and B that MMAs read from one multiprocessor's shared memory a step.

    An MMA reads each once, and a pair halves B: B is read anew for every MMA down the tile.
    """
    m, _, k = schedule.tile
    k_bytes = k * problem.element_bytes
    a, b = m * k_bytes, schedule.b_rows * k_bytes
    return a + m // (target.mma_rows(m) or m) * b


def first_wave_us(problem: Problem, schedule: Schedule, target: Target) -> float:
    """The DRAM time of what the first of several waves asks for beyond its share of the
    operands."""
    rounds = tile_rounds(problem, schedule, target)
    if problem.batch > 1 or schedule.split_grid > 1:
        return 0  # of stacks a wave has matrices of its own
    (rows, columns), (m, n, _) = wave_shape(problem, schedule, target), schedule.tile
    touched = smaller(problem.m, rows * m) + smaller(problem.n, columns * n)
    early = touched - (problem.m + problem.n) / rounds  # of a single wave none
    return larger(0, early) * problem.k * problem.element_bytes / figures(target).dram_rate
