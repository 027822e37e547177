"""The estimate of kernels with tcgen05.mma, from published measurements of a B200.

    MMA         N/2 cycles for 32 bytes of K, or as long as its operands take to be read; a pair's
                of 128 rows half of that
    load        the bytes of a K tile at the rate of one multiprocessor's port, which multicast does
                not relieve; rows of boxes 16 bytes wide one after another
    steps       of MMAs and loads, see `tensor_steps`
    tile        start + first load + steps + completion + epilogue
    residents   CTAs that fit a multiprocessor together overlap all of that but its resources
    waves       a CTA a tile: tiles, and from one to the next what it takes to replace a CTA
    persistent  start + first load + tiles × the longest of main loop, epilogue and launch control
                + the last epilogue
    clock       the highest that the power limit leaves for the share of cycles with MMAs

The total is launch + cycles by clock, or, where that is longer, launch + what DRAM moves, first
load, cold as that of all, and epilogue; and a share of the shorter of DRAM and all K tiles.
`tools/ladder/published.py` has kernels that this is held to.
"""

from __future__ import annotations

from typing import NamedTuple

from ....dialects.target import WARP_THREADS, Target
from ..cached import asked_once
from ..chips.chip_figures import figures, tensor_figures
from ..problem import SECTOR_BYTES, Problem, Schedule
from ..waves import resident_ctas, tile_rounds
from .costs import (
    Estimate,
    computed_cycles,
    dram_bytes,
    epilogue_operand_cycles,
    first_wave_bytes,
    gathered_cycles,
    part_cycles,
    scale_cycles,
    vector_cycles,
)
from .tensor_steps import CHOSEN, Steps, Traits, main_loop, memory_cycles, steps_of

COLUMNS_READ = 32  # of a row that a thread stores without shared memory
ROLE_WARPS, SHARED_WARPS = 6, 4  # TMA, MMA and four that read tensor memory, or those alone


def tensor_estimate(
    problem: Problem, schedule: Schedule, target: Target, traits: Traits = CHOSEN
) -> Estimate:
    """The expected time of the schedule on the multiprocessors of `target`, in all its parts."""
    steps = steps_of(problem, schedule, target, traits)
    epilogue = epilogue_cycles(problem, schedule, target, traits)
    moved = moved_us(problem, schedule, target)
    found = spans_of(problem, schedule, target, steps, moved, epilogue, traits)
    clock, residents = found.clock, found.residents
    epilogue = steps.completion + epilogue + gathered_cycles(problem, schedule, target)
    bound = max(steps.busy, key=steps.busy.__getitem__)
    waits = residents * (steps.k_tiles * steps.step) < found.main
    return Estimate(
        total_us=found.total_us,
        work_us=found.work_us,
        dram_us=moved.us,
        main_loop_us=_us(found.main, clock),
        epilogue_us=_us(epilogue, clock),
        fill_us=_us(steps.fill, clock),
        start_us=_us(steps.start, clock),
        rounds=tile_rounds(problem, schedule, target),
        bound="DRAM" if found.streams else "latency" if waits else bound,
        residents=residents,
        clock=clock,
    )


class Spans(NamedTuple):
    """Microseconds of the total and of the multiprocessors, whether DRAM takes the longest
    (`streams`), cycles of a CTA's main loop, CTAs that share a multiprocessor, and the clock in
    GHz."""

    total_us: float
    work_us: float
    streams: bool
    main: float
    residents: int
    clock: float


def spans_of(
    problem: Problem,
    schedule: Schedule,
    target: Target,
    steps: Steps,
    moved: Moved,
    epilogue: float,
    traits: Traits = CHOSEN,
) -> Spans:
    """The spans of a schedule with these steps and this epilogue, which a search knows for many
    schedules."""
    epilogue = steps.completion + epilogue
    gathered = gathered_cycles(problem, schedule, target)
    residents = residents_of(problem, schedule, target, traits)
    main = main_loop(steps, schedule.stages, traits)
    cold = memory_cycles(tensor_figures(target).cold_fill, target, traits.clock)
    cycles = cold + (
        _waves(problem, schedule, target, residents, (steps, main, epilogue), traits)
        if schedule.scheduler == "none"
        else _persistent(problem, schedule, target, (steps, main, epilogue), traits)
    )
    cycles, epilogue = cycles + gathered, epilogue + gathered
    clock = clock_under_load(problem, schedule, target, cycles, steps.mma, traits)
    launch = tensor_figures(target).launch
    flow = steps.k_tiles * steps.step
    work_us = launch + _us(cycles, clock) + max(0.0, moved.early_us - _us(flow, clock))
    streaming_us = launch + moved.us + _us(cold + steps.before + epilogue, figures(target).clock)
    loops = loop_cycles(problem, schedule, steps, target)
    total_us = combined_us(target, work_us, streaming_us, loops, moved.us)
    return Spans(total_us, work_us, streaming_us > work_us, main, residents, clock)


def combined_us(
    target: Target, work_us: float, streaming_us: float, loops: float, dram_us: float
) -> float:
    """The total from the times of the busiest multiprocessor and of DRAM. They do not overlap
    completely: a share of the shorter of DRAM and all K tiles is added."""
    overlap_us = min(_us(loops, figures(target).clock), dram_us)
    return max(work_us, streaming_us) + figures(target).dram_share * overlap_us


def loop_cycles(problem: Problem, schedule: Schedule, steps: Steps, target: Target) -> float:
    """The least cycles of the K tiles of a multiprocessor, one after the other."""
    return tile_rounds(problem, schedule, target) * steps.k_tiles * steps.step


def _us(cycles: float, clock: float) -> float:
    return cycles / (clock * 1e3)


def clock_under_load(
    problem: Problem,
    schedule: Schedule,
    target: Target,
    cycles: float,
    mma: float,
    traits: Traits,
) -> float:
    """The clock in GHz at which the chip keeps its power limit: power grows with the cube of the
    clock.

    Power is what the rest of the chip takes, and what the tensor cores take for their share of all
    cycles.
    """
    if traits.clock:
        return traits.clock
    tensor = tensor_figures(target)
    at_work = problem.ctas(schedule) * problem.k_tiles(schedule) * mma
    share = at_work / (target.multiprocessors * cycles)
    power = tensor.idle_power + getattr(tensor.power, traits.inputs) * share
    return figures(target).clock * min(1.0, power ** (-1 / 3))


class Moved(NamedTuple):
    """Microseconds of DRAM in total, and for the first of several waves."""

    us: float
    early_us: float


def moved_us(problem: Problem, schedule: Schedule, target: Target) -> Moved:
    """The DRAM time, computed once for all schedules that hand out tiles alike."""
    known, tiles = _known_moved(problem, target), (schedule.tile, schedule.pair)
    asked = *tiles, schedule.scheduler, schedule.order, schedule.group
    if asked not in known:
        plan, rate = schedule.plan, figures(target).dram_rate
        early = first_wave_bytes(problem, plan, target)
        known[asked] = Moved(dram_bytes(problem, plan, target) / rate, early / rate)
    return known[asked]


@asked_once
def _known_moved(problem: Problem, target: Target) -> dict[tuple[object, ...], Moved]:
    return {}


def residents_of(problem: Problem, schedule: Schedule, target: Target, traits: Traits) -> int:
    """The number of CTAs that share a multiprocessor."""
    if schedule.scheduler != "none":  # as many CTAs as multiprocessors
        return 1
    used = schedule.stages * problem.stage_bytes(schedule) + problem.staging_bytes(schedule)
    return residents_with(used, schedule.tile, target, traits)


def residents_with(used: int, tile: tuple[int, int, int], target: Target, traits: Traits) -> int:
    """The number of CTAs of one tile each that share a multiprocessor, by the shared memory that
    each uses, by tensor memory and by threads."""
    fit = target.multiprocessor_shared_bytes // (used + target.cta_reserved_shared_bytes)
    return max(1, min(fit, residents_at_most(tile, target, traits)))


def residents_at_most(tile: tuple[int, int, int], target: Target, traits: Traits) -> int:
    """The same by tensor memory and threads alone, whatever shared memory each CTA uses."""
    columns = traits.columns or target.accumulator_columns(*tile[:2])
    columns = target.tmem_columns // target.allocated_columns(columns)
    warps = ROLE_WARPS if traits.roles else SHARED_WARPS
    return min(columns, int(tensor_figures(target).threads) // (warps * WARP_THREADS))


def _waves(
    problem: Problem,
    schedule: Schedule,
    target: Target,
    residents: int,
    parts: tuple[Steps, float, float],
    traits: Traits,
) -> float:
    """Cycles of all tiles if each CTA has one: full waves, then one with the remaining tiles.

    `parts` are a CTA's steps, the time that they take alone, and its epilogue. The resources that
    several CTAs of a multiprocessor use add up.
    """
    steps, main, epilogue = parts
    flow = steps.k_tiles * steps.step
    slots, ctas = resident_ctas(schedule, target), problem.ctas(schedule)
    full, left = divmod(ctas, slots * residents)
    turnover = memory_cycles(tensor_figures(target).cta_turnover, target, traits.clock)

    def wave(count: int) -> float:
        return steps.before + (max(main, count * flow) if count > 1 else main) + epilogue

    last = wave(-(-left // slots)) if left else 0.0
    waves = full + (left > 0)
    return full * wave(residents) + last + (waves - 1) * turnover


def _persistent(
    problem: Problem,
    schedule: Schedule,
    target: Target,
    parts: tuple[Steps, float, float],
    traits: Traits,
) -> float:
    """Cycles of the tiles of one CTA, whose ring continues from tile to tile.

    A program without roles, or whose roles meet, stores a tile before it loads the next one.
    """
    steps, main, epilogue = parts
    rounds = tile_rounds(problem, schedule, target)
    if traits.joined or not traits.roles:
        return steps.start + rounds * (steps.fill + main + epilogue)
    period = steps.k_tiles * max(steps.step, steps.ring / schedule.stages)
    query = (figures(target).clc_query or 0) if schedule.scheduler == "clc" else 0
    return steps.before + rounds * max(period, epilogue, query) + epilogue


def epilogue_cycles(
    problem: Problem, schedule: Schedule, target: Target, traits: Traits = CHOSEN
) -> float:
    """Cycles from the accumulator to global memory; two staging buffers overlap both halves.

    Four warps read the accumulator. Rows of 16 bytes are half a sector, which takes as long as a
    whole one.
    """
    m, n, _ = schedule.tile
    read = read_cycles(problem, schedule, target)
    if schedule.split_grid > 1:
        return read + part_cycles(problem, schedule, target)
    read += scale_cycles(problem, schedule, target)
    read += vector_cycles(problem, schedule, target)
    stored_bytes = problem.output_bytes(m * n // problem.products)
    if schedule.staging is None:
        stored = stored_bytes / figures(target).direct_store_rate
        beside = epilogue_operand_cycles(problem, schedule, target, 0)
        halves = traits.half_sectors or problem.row_bytes(COLUMNS_READ) < SECTOR_BYTES
        return read + stored * (2 if halves else 1) + beside
    columns, buffers = schedule.staging
    store = stored_bytes / figures(target).tma_store_rate
    staged = read + store
    if buffers > 1:
        staged = max(read, store) + min(read, store) * columns / n
    piece = staged / problem.pieces(schedule)
    return staged + epilogue_operand_cycles(problem, schedule, target, piece)


def read_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles in which threads read the sums of a tile and compute C from them."""
    m, n, _ = schedule.tile
    read = m * n / tensor_figures(target).read_rate
    if schedule.split_grid > 1:  # the last CTA computes C
        return read
    return read + computed_cycles(problem, schedule, target)
