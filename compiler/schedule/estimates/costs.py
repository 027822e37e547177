"""Costs of copies, stores and DRAM traffic, for all kernels with asynchronous copies."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ....dialects.epilogue_instructions import FAST_SHARE
from ....dialects.legality import PARTIAL_BYTES
from ....dialects.target import WARPGROUP_THREADS, Target
from ..chips.chip_figures import figures, part_figures
from ..chips.figure_sets import ChipFigures
from ..elementwise import exceeds
from ..problem import Problem
from ..quantized_costs import scale_bytes
from ..schedule import THREADS, Schedule
from ..slot_reuse import reuses_slots
from ..waves import tile_rounds, wave_shape

FEW_COLUMNS = 16  # of exchanged operands, one or two of the narrowest MMAs
COLUMNS_TOGETHER = 32  # that threads store at a time without staging
COPY_BYTES_MIN = 4  # PTX ISA, cp.async
STORING_INSTRUCTIONS = 3  # of an element that is only converted and stored (SASS of sm_90a)
INSTRUCTION_BYTES = 16


@dataclass(frozen=True)
class Estimate:
    """The estimated microseconds of one schedule, and `bound`: what limits a K step or the whole
    kernel.

    `main_loop_us`, `epilogue_us`, `fill_us` and `start_us` are of one tile; `work_us` is all tiles
    on the busiest multiprocessor, `dram_us` the DRAM traffic, and `total_us` what the two make
    together. `residents` CTAs share a multiprocessor. `clock` is in GHz, if the estimate knows it
    under load.
    """

    total_us: float
    work_us: float
    dram_us: float
    main_loop_us: float
    epilogue_us: float
    fill_us: float
    start_us: float
    rounds: int
    bound: str
    residents: int = 1
    clock: float | None = None


def copy_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles in which threads copy what TMA cannot address.

    A copy is as wide as the alignment of the rows allows. At the end of a step the threads wait for
    their copies and hand them over. Rows that are aligned to less than the narrowest copy are
    loaded in aligned units and shifted.
    """
    if problem.by_tma("a") and problem.by_tma("b"):
        return 0.0
    tiles = {"a": problem.a_tile_bytes(schedule), "b": problem.b_tile_bytes(schedule)}
    copies = shifted = 0.0
    for name in (name for name in tiles if not problem.by_tma(name)):
        aligned = math.gcd(problem.pitch_bytes(name)[0], problem.tma_alignment_bytes)
        if aligned < COPY_BYTES_MIN:
            shifted += tiles[name]
        else:
            copies += tiles[name] / aligned
    cycles = copies / figures(target).copy_rate + figures(target).copy_step if copies else 0
    return cycles + shifted / figures(target).shift_rate


def computed_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles in which the threads compute a tile of C from its sums, some of it two elements at a
    time.

    An element of two products is computed from sums that lie in different registers of a thread. A
    thread then has half as many elements side by side whose latencies hide each other.
    """
    (m, n, _), chip = schedule.tile, figures(target)
    elements = m * n // problem.products
    instructions = problem.epilogue_instructions * chip.packed
    cycles = elements * instructions / chip.epilogue_rate
    if not schedule.ping_pong and problem.products == 1:
        cycles *= chip.computed_share
    return cycles + elements * (problem.products - 1) * chip.second_sum


def code_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles in which the threads of a multiprocessor fetch the instructions that compute a tile of
    C, if these and those of other consumers exceed the instruction cache.

    Accumulators in registers have separate code for each. Ping-pong consumers count as if each had
    a copy of the code, as they had when this was measured; no GPU has timed such kernels since they
    share it.
    """
    held = figures(target).code_bytes
    warpgroups = target.mma_warpgroups(*schedule.tile[:2])
    if not held or not warpgroups:
        return 0
    m, n, _ = schedule.tile
    elements = m * n / problem.products / (warpgroups * WARPGROUP_THREADS)
    computed = problem.epilogue_instructions / (FAST_SHARE if problem.c_bytes <= 2 else 1)
    copies = 2 if schedule.ping_pong else 1
    stored = STORING_INSTRUCTIONS * (1 + len(problem.further_bytes))
    code = copies * elements * (stored + computed) * INSTRUCTION_BYTES
    return code / figures(target).code_rate if code > held else 0


def scale_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles in which threads store the scales of a tile of C."""
    if problem.quantized is None:
        return 0
    m, n, _ = schedule.tile
    n //= problem.products
    together = schedule.staging[0] if schedule.staging else n
    stored = scale_bytes(m, n, together, problem.quantized)
    return stored / figures(target).direct_store_rate


def epilogue_operand_cycles(
    problem: Problem, schedule: Schedule, target: Target, piece: float
) -> float:
    """Cycles that other operands as large as C add to the epilogue of a tile.

    Threads read them from global memory, or from pieces in shared memory. Prefetched pieces have
    arrived while the main loop ran, and so have all pieces in slots that A and B left free. Each
    later piece delays the epilogue by as much as its load takes beyond the time of the pieces under
    way, of `piece` cycles each.
    """
    if not problem.beside:
        return 0
    m, n, _ = schedule.tile
    read = m * n // problem.products * sum(problem.beside)
    if not schedule.ahead:
        return read / figures(target).beside_rate
    if reuses_slots(problem, schedule, target):
        return read / figures(target).shared_rate
    slots = schedule.ahead // (2 if schedule.ping_pong else 1)
    late = max(0, problem.pieces(schedule) - slots)
    around = (figures(target).piece_latency + piece) / slots
    return read / figures(target).shared_rate + late * max(0, around - piece)


def vector_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles in which threads that store wait for vectors and scalars, once per piece."""
    reads = problem.beside_columns or problem.beside_rows
    if not reads or schedule.vectors != THREADS:
        return 0
    pieces = problem.pieces(schedule) or -(-schedule.tile[1] // COLUMNS_TOGETHER)
    return pieces * figures(target).vector_latency


def part_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles in which a CTA writes the sums of its part of K, and learns whether it is the last
    one."""
    if schedule.split_grid == 1:
        return 0
    parts = part_figures(target)
    return _sums_bytes(problem, schedule) / parts.write + parts.meet


def gathered_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles in which the last CTA of a tile adds up all parts, computes C and stores it."""
    if schedule.split_grid == 1:
        return 0
    read = schedule.split_grid * _sums_bytes(problem, schedule) / part_figures(target).read
    return read + computed_cycles(problem, schedule, target)


def _sums_bytes(problem: Problem, schedule: Schedule) -> int:
    """Bytes of the sums of a tile's rows that are inside C."""
    m, n, _ = schedule.tile
    return min(m, problem.m) * n * PARTIAL_BYTES


def dram_bytes(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Bytes that DRAM moves: C and operands as large as C once; A and B once, or once per wave if
    L2 cannot hold both.

    Parts of K over the grid run one after the other, each with operands of its own. What CTAs ask
    for at different times counts as more. So does everything if exchanged operands have few
    columns: a CTA then has 64 rows of weights or more, and few CTAs ask for them.
    """
    return few_columns(problem, schedule, target) * _dram_bytes(problem, schedule, target)


def few_columns(problem: Problem, schedule: Schedule, target: Target) -> float:
    """The factor on DRAM time if exchanged operands have few columns."""
    few = problem.swapped and schedule.tile[1] <= FEW_COLUMNS
    return 1 + figures(target).few_columns if few else 1


def _dram_bytes(problem: Problem, schedule: Schedule, target: Target) -> float:
    once, c = once_bytes(problem), problem.moved_bytes
    operands, chip = once - c, figures(target)
    reloaded = reloaded_bytes(problem, schedule, target)
    if _fits_l2(problem, chip):
        return once + reloaded
    schedule = schedule.but(split_grid=1)
    rounds = tile_rounds(problem, schedule, target)
    rows, columns = wave_shape(problem, schedule, target)
    m, n, _ = schedule.tile
    wave = (rows * m + columns * n) * problem.k * problem.element_bytes
    return max(operands, rounds * wave) + c + (reloaded if rounds == 1 else 0)


def _fits_l2(problem: Problem, chip: ChipFigures) -> bool:
    """Whether L2 holds A and B, and on chips where that counts also what is written."""
    written = problem.moved_bytes
    return once_bytes(problem) - written + chip.written * written <= chip.l2_size


def first_wave_bytes(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Bytes of A and B that the first of several waves of tiles asks for."""
    if tile_rounds(problem, schedule, target) == 1 or problem.batch > 1:
        return 0  # of stacks a wave has matrices of its own
    (rows, columns), (m, n, _) = wave_shape(problem, schedule, target), schedule.tile
    touched = min(problem.m, rows * m) + min(problem.n, columns * n)
    return touched * problem.k * problem.element_bytes


def least_dram_bytes(problem: Problem, schedule: Schedule, target: Target) -> float:
    """A lower bound on what DRAM moves in any order of a schedule's tiles and in any clusters: that
    of waves that are squares."""
    once, c = once_bytes(problem), problem.moved_bytes
    if _fits_l2(problem, figures(target)):
        return once
    m, n, _ = schedule.tile
    tiles = problem.batch * math.prod(problem.tiles(schedule))
    at_once = min(tiles, target.multiprocessors)
    waves = 2 * tiles * math.sqrt(m * n / at_once) * problem.k * problem.element_bytes
    return max(once - c, waves) + c


def reloaded_bytes(problem: Problem, schedule: Schedule, target: Target) -> float:
    """The additional bytes that count for the larger operand where L2 is asked for the same data of
    it at different times: by several clusters, or by CTAs that do not start one after the other."""
    a_is_larger, chip = exceeds(problem.m, problem.n), figures(target)
    of_a = problem.m * a_is_larger * _asks_again(problem, schedule, 1)
    of_b = problem.n * (1 - a_is_larger) * _asks_again(problem, schedule, 0)
    return chip.asked_again * problem.batch * (of_a + of_b) * problem.k * problem.element_bytes


def _asks_again(problem: Problem, schedule: Schedule, axis: int) -> int:
    """1 if tiles along M (0) or N (1) ask L2 for the same data at different times, else 0."""
    in_turn = schedule.scheduler == "none" and schedule.order == ("n" if axis else "m")
    if in_turn and schedule.cluster_size == 1:
        return 0
    return exceeds(problem.tiles(schedule)[axis], schedule.cluster[axis])


def once_bytes(problem: Problem) -> int:
    """Bytes of A, B, C and other operands as large as C."""
    operands = (problem.m + problem.n) * problem.k * problem.element_bytes
    return problem.batch * operands + problem.moved_bytes
