"""How long a kernel with tcgen05.mma takes, from what others measured of a B200's parts.

    MMA         N/2 cycles for 32 bytes of K, or as long as its operands take to be read; a pair's
                of 128 rows half of that
    load        the bytes of a K tile at the rate of one multiprocessor's port, which multicast does
                not relieve; rows of boxes 16 bytes wide one after another
    chain       latency of TMA + load + MMAs + their completion: what one stage takes for a K tile
    step        the longest of MMAs, load and the chain shared by the stages, which is longer where
                several loads are under way; without roles for loads and MMAs each step waits for
                its own MMAs
    tile        start + first load + steps + completion + epilogue
    residents   CTAs that fit a multiprocessor together overlap all of that but its resources
    waves       a CTA a tile: tiles, and from one to the next what it takes to replace a CTA
    persistent  start + first load + tiles × the longest of main loop, epilogue and launch control
                + the last epilogue
    clock       the highest that the power limit leaves for the share of cycles with MMAs

The total is launch + cycles by clock, or, where that is longer, launch + what DRAM moves, first
load, cold as that of all, and epilogue. `tools/ladder/published.py` has kernels that this is held
to.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ....dialects.record import record
from ....dialects.target import WARP_THREADS, Target
from ..chips.chip_figures import figures, tensor_figures
from ..problem import LINE_BYTES, SECTOR_BYTES, Problem, Schedule
from ..schedule import PLAIN
from ..waves import resident_ctas, tile_rounds
from .costs import (
    Estimate,
    beside_cycles,
    computed_cycles,
    copy_cycles,
    dram_bytes,
    first_wave_bytes,
    gathered_cycles,
    part_cycles,
    scale_cycles,
    vector_cycles,
)

COLUMNS_READ = 32  # of a row that a thread stores without shared memory
MMA_K_BYTES = 32
ROW_BYTES = 16  # of a box without a swizzle (PTX ISA, canonical layouts)
ROLE_WARPS, SHARED_WARPS = 6, 4  # TMA, MMA and four that read tensor memory, or those alone


@record
class Traits:
    """What a kernel may have that the choice never makes; `inputs` are those of `Power`.

    `roles`: a warp for loads and one for MMAs. `columns`: of tensor memory that a CTA takes, where
    that is not what its accumulators need. `half_sectors`: a warp stores rows of 16 bytes. `clock`:
    GHz that a profiler held, 0 where the power limit decides.
    """

    swizzled: bool = True
    roles: bool = True
    columns: int | None = None
    half_sectors: bool = False
    inputs: str = "random"
    clock: float = 0


CHOSEN = Traits()


class Steps(NamedTuple):
    """A CTA's K tiles, in cycles each; `busy` by resource, `before` from its start to the first.

    A slot is free again after a `chain`, or `ring` where other loads are under way.
    """

    k_tiles: int
    busy: dict[str, float]
    step: float
    mma: float
    chain: float
    ring: float
    completion: float
    start: float
    fill: float

    @property
    def before(self) -> float:
        """From the start of a CTA until it can multiply."""
        return self.start + self.fill


def tensor_estimate(
    problem: Problem, schedule: Schedule, target: Target, traits: Traits = CHOSEN
) -> Estimate:
    """What the schedule is expected to take on the multiprocessors of `target`."""
    steps = steps_of(problem, schedule, target, traits.swizzled)
    epilogue = epilogue_cycles(problem, schedule, target, traits)
    moved = moved_us(problem, schedule.plan, target)
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
    """Microseconds of all and of the multiprocessors, whether DRAM is the longest (`streams`),
    cycles of a CTA's main loop, CTAs that share a multiprocessor, and GHz."""

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
    """Those of a schedule with these steps and epilogue, which a search knows of many."""
    epilogue = steps.completion + epilogue
    gathered = gathered_cycles(problem, schedule, target)
    residents = residents_of(problem, schedule, target, traits)
    main = main_loop(steps, schedule.stages, traits)
    cold = tensor_figures(target).cold_fill
    cycles = cold + (
        _waves(problem, schedule, target, residents, (steps, main, epilogue))
        if schedule.scheduler == "none"
        else _persistent(problem, schedule, target, (steps, main, epilogue), traits)
    )
    cycles, epilogue = cycles + gathered, epilogue + gathered
    clock = clock_under_load(problem, schedule, target, cycles, steps.mma, traits)
    launch = tensor_figures(target).launch
    flow = steps.k_tiles * steps.step
    work_us = launch + _us(cycles, clock) + max(0.0, moved.early_us - _us(flow, clock))
    streaming_us = launch + moved.us + _us(cold + steps.before + epilogue, figures(target).clock)
    total_us = max(work_us, streaming_us)
    return Spans(total_us, work_us, streaming_us > work_us, main, residents, clock)


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
    """GHz at which the chip keeps its power limit: power goes with the cube of the clock.

    Of the limit it is what the rest takes, and the tensor cores for their share of all cycles.
    """
    if traits.clock:
        return traits.clock
    tensor = tensor_figures(target)
    at_work = problem.ctas(schedule) * problem.k_tiles(schedule) * mma
    share = at_work / (target.multiprocessors * cycles)
    power = tensor.idle_power + getattr(tensor.power, traits.inputs) * share
    return figures(target).clock * min(1.0, power ** (-1 / 3))


def steps_of(problem: Problem, schedule: Schedule, target: Target, swizzled: bool = True) -> Steps:
    """The K tiles of a CTA: schedules of a tile and cluster have one."""
    one = PLAIN.but(
        tile=schedule.tile,
        cluster=schedule.cluster,
        pair=schedule.pair,
        split_grid=schedule.split_grid,
    )
    return _steps(problem, one, target, swizzled)


@functools.lru_cache(maxsize=1024)
def _steps(problem: Problem, schedule: Schedule, target: Target, swizzled: bool) -> Steps:
    tensor, chip = tensor_figures(target), figures(target)
    busy = step_busy(problem, schedule, target, swizzled)
    mma, load = busy["tensor core"], max(list(busy.values())[1:])
    pair, single = tensor.pair_latency + tensor.peer_signal, float(tensor.mma_latency)
    completion = pair if schedule.pair else single  # until those see it who wait, in both CTAs
    heard = tensor.peer_signal if schedule.pair else 0.0  # by the leader, of both loads
    chain = chip.tma_latency + load + heard + mma + completion
    return Steps(
        k_tiles=problem.k_tiles(schedule),
        busy=busy,
        step=max(mma, load),
        mma=mma,
        chain=chain,
        ring=chain + tensor.load_queue,
        completion=completion,
        start=chip.cta_start + (chip.cluster_start if schedule.cluster_size > 1 else 0),
        fill=chip.tma_latency + load,
    )


def step_busy(
    problem: Problem, schedule: Schedule, target: Target, swizzled: bool = True
) -> dict[str, float]:
    """Cycles that each resource of a multiprocessor needs for one K tile of one CTA, MMAs first."""
    busy = {
        "tensor core": mma_cycles(problem, schedule, target),
        "L2": _arriving_bytes(problem, schedule) / figures(target).l2_rate,
        "thread copies": copy_cycles(problem, schedule, target),
    }
    if not swizzled:
        rows = (problem.a_tile_bytes(schedule) + problem.b_tile_bytes(schedule)) / ROW_BYTES
        busy["rows of 16 bytes"] = rows / tensor_figures(target).row_rate
    return busy


class Moved(NamedTuple):
    """Microseconds of DRAM for all, and for the first of several waves."""

    us: float
    early_us: float


@functools.lru_cache(maxsize=1024)  # schedules that hand out tiles alike have one
def moved_us(problem: Problem, plan: Schedule, target: Target) -> Moved:
    rate = figures(target).dram_rate
    early = first_wave_bytes(problem, plan, target)
    moved = dram_bytes(problem, plan, target)
    return Moved(moved / rate, early / rate)


def mma_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles of the MMAs of one K tile of a CTA, up to their commit.

    64 rows take as long as 128, but in a pair. An MMA takes no less than its operands to be read.
    """
    m, n, k = schedule.tile
    rows = target.mma_rows(m) or m
    full = rows if schedule.pair else target.mma.m[-1]
    computed = 2 * full * n * (MMA_K_BYTES // 2) / figures(target).mma_rate
    read = MMA_K_BYTES * (rows + schedule.b_rows) / figures(target).shared_rate
    mmas = (m // rows) * k * problem.element_bytes / MMA_K_BYTES
    return mmas * max(computed, read) + tensor_figures(target).mma_batch


def _arriving_bytes(problem: Problem, schedule: Schedule) -> float:
    """Bytes that arrive for a K tile, no more rows than there are, in whole sectors of L2.

    A line of a row that starts inside a sector takes one sector more.
    """
    m, _, k = schedule.tile
    total = 0.0
    for name, rows, extent in (("a", m, problem.m), ("b", schedule.b_rows, problem.n)):
        share = 1 + SECTOR_BYTES / LINE_BYTES if name in problem.unaligned else 1
        total += share * min(rows, extent) * k * problem.element_bytes
    return total


def main_loop(steps: Steps, ring: int, traits: Traits) -> float:
    """Cycles of a CTA's steps behind its first load, if it is alone on its multiprocessor."""
    if ring > 1 and not traits.roles:
        waited = steps.mma + steps.completion
        ahead = (steps.chain - waited) / (ring - 1)
        return steps.k_tiles * max(steps.step, waited, ahead)
    first = min(steps.k_tiles, ring)
    around = steps.ring if ring > 1 else steps.chain
    refilled = (steps.k_tiles - first) * max(steps.step, around / ring)
    return refilled + (first - 1) * steps.step + steps.mma


def residents_of(problem: Problem, schedule: Schedule, target: Target, traits: Traits) -> int:
    """CTAs that share a multiprocessor."""
    if schedule.scheduler != "none":  # as many CTAs as multiprocessors
        return 1
    used = schedule.stages * problem.stage_bytes(schedule) + problem.staging_bytes(schedule)
    return residents_with(used, schedule.tile, target, traits)


def residents_with(used: int, tile: tuple[int, int, int], target: Target, traits: Traits) -> int:
    """CTAs of one tile each that share a multiprocessor: by the bytes of shared memory that each
    has used, by tensor memory and threads."""
    fit = target.multiprocessor_shared_bytes // (used + target.cta_reserved_shared_bytes)
    columns = traits.columns or target.accumulator_columns(*tile[:2])
    columns = target.tmem_columns // target.allocated_columns(columns)
    warps = ROLE_WARPS if traits.roles else SHARED_WARPS
    threads = int(tensor_figures(target).threads) // (warps * WARP_THREADS)
    return max(1, min(fit, columns, threads))


def _waves(
    problem: Problem,
    schedule: Schedule,
    target: Target,
    residents: int,
    parts: tuple[Steps, float, float],
) -> float:
    """Cycles of all tiles where each is a CTA's: full waves, then one of what is left.

    `parts` are a CTA's steps, what they take it alone, and its epilogue. What several CTAs keep
    their multiprocessor busy adds up.
    """
    steps, main, epilogue = parts
    flow = steps.k_tiles * steps.step
    slots, ctas = resident_ctas(schedule, target), problem.ctas(schedule)
    full, left = divmod(ctas, slots * residents)
    turnover = tensor_figures(target).cta_turnover

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
    """Cycles of the tiles of one CTA, whose ring of slots runs on from tile to tile.

    One program for all agents stores a tile before it loads for the next.
    """
    steps, main, epilogue = parts
    rounds = tile_rounds(problem, schedule, target)
    if not traits.roles:
        return steps.start + rounds * (steps.fill + main + epilogue)
    period = steps.k_tiles * max(steps.step, steps.ring / schedule.stages)
    query = (figures(target).clc_query or 0) if schedule.scheduler == "clc" else 0
    return steps.before + rounds * max(period, epilogue, query) + epilogue


def epilogue_cycles(
    problem: Problem, schedule: Schedule, target: Target, traits: Traits = CHOSEN
) -> float:
    """Cycles from the accumulator to global memory; two staging buffers overlap both halves.

    Four warps read it; rows of 16 bytes are half a sector, which takes as long as a whole one.
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
        beside = beside_cycles(problem, schedule, target, 0)
        halves = traits.half_sectors or problem.row_bytes(COLUMNS_READ) < SECTOR_BYTES
        return read + stored * (2 if halves else 1) + beside
    columns, buffers = schedule.staging
    store = stored_bytes / figures(target).tma_store_rate
    staged = read + store
    if buffers > 1:
        staged = max(read, store) + min(read, store) * columns / n
    piece = staged / problem.pieces(schedule)
    return staged + beside_cycles(problem, schedule, target, piece)


def read_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles in which threads read the sums of a tile and compute C from them."""
    m, n, _ = schedule.tile
    read = m * n / tensor_figures(target).read_rate
    if schedule.split_grid > 1:  # the last CTA computes C
        return read
    return read + computed_cycles(problem, schedule, target)
