"""How long a schedule would take, in microseconds, from shapes and a few figures of the chip.

    step        one K tile of one CTA: the slowest of tensor core, shared memory, L2 and copies
    main loop   K tiles × step, or more where the ring is too short to hide the latency
    fill        the first TMA round trip        start    what a CTA does before it
    epilogue    tensor memory → global memory

    one tile a CTA   waves × (start + fill + main loop + epilogue)
    persistent       start + fill + tiles a CTA × max(main loop, epilogue) + last epilogue
    total            the larger of that and the bytes that DRAM must move

The figures rank schedules; they are no promise of a time. Kernel launch is left out: it is the same
for all. Every figure says where it comes from, or that it is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects.target import Target
from .schedule_problem import Problem, Schedule


@dataclass(frozen=True)
class Figure:
    """One number about the chip: its value, unit and source; `assumed` when nobody states it."""

    value: float
    unit: str
    source: str
    assumed: bool = False


# The number of multiprocessors is the target's.
FIGURES = {
    "clock": Figure(
        1.85, "GHz", "what 2.25 PFLOP/s of dense bf16 (NVIDIA B200) means at 8192 FLOP a cycle"
    ),
    "mma_rate": Figure(
        8192, "FLOP/cycle", "one multiprocessor, an MMA of 128 rows; takes the clock above", True
    ),
    "shared_rate": Figure(128, "B/cycle", "CUDA programming guide, 32 banks of 4 bytes"),
    "l2_rate": Figure(64, "B/cycle", "from L2 to one multiprocessor", True),
    "copy_rate": Figure(16, "B/cycle", "threads that copy what TMA can't address", True),
    "l2_size": Figure(126e6, "B", "B200, cudaDeviceProp.l2CacheSize"),
    "dram_rate": Figure(8e6, "B/us", "NVIDIA B200, HBM3e"),
    "tma_latency": Figure(1400, "cycles", "a TMA load until its barrier completes", True),
    "cta_start": Figure(2000, "cycles", "barriers, tensor memory, tensor maps", True),
    "cluster_start": Figure(500, "cycles", "cluster barriers at both ends", True),
    "tmem_rate": Figure(512, "B/cycle", "four warps of tcgen05.ld", True),
    "direct_store_rate": Figure(32, "B/cycle", "stores of 16 or 32 bytes a thread", True),
    "tma_store_rate": Figure(64, "B/cycle", "a TMA store from shared memory", True),
    "clc_query": Figure(200, "cycles", "reading a cluster launch control response, a tile", True),
}


@dataclass(frozen=True)
class Estimate:
    """Microseconds of one schedule, and `bound`: what limits a step or the whole.

    `main_loop_us`, `epilogue_us`, `fill_us` and `start_us` are of one tile; `work_us` is all tiles
    on the busiest multiprocessor, `dram_us` the DRAM traffic, `total_us` the larger of the two.
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


def figure(name: str) -> float:
    """The value of one of FIGURES."""
    return FIGURES[name].value


def estimate(problem: Problem, schedule: Schedule, target: Target) -> Estimate:
    """What the schedule is expected to take on the multiprocessors of `target`."""
    busy = step_cycles(problem, schedule)
    bound = max(busy, key=lambda name: busy[name])
    streamed = problem.k_tiles(schedule) * busy[bound]
    refilled = refill_cycles(problem, schedule, busy[bound])
    main = max(streamed, refilled)
    bound = "latency" if refilled > streamed else bound
    epilogue = epilogue_cycles(problem, schedule)
    fill = figure("tma_latency")
    start = figure("cta_start") + (figure("cluster_start") if schedule.cluster_size > 1 else 0)
    rounds = tile_rounds(problem, schedule, target)
    work = _work_cycles(schedule, rounds, main, epilogue, fill + start)
    work_us, dram_us = (
        _microseconds(work),
        dram_bytes(problem, schedule, target) / figure("dram_rate"),
    )
    return Estimate(
        total_us=max(work_us, dram_us),
        work_us=work_us,
        dram_us=dram_us,
        main_loop_us=_microseconds(main),
        epilogue_us=_microseconds(epilogue),
        fill_us=_microseconds(fill),
        start_us=_microseconds(start),
        rounds=rounds,
        bound="DRAM" if dram_us > work_us else bound,
    )


def least_us(problem: Problem, schedule: Schedule, target: Target) -> float:
    """No schedule of this tile and cluster is estimated faster: its steps, and DRAM's least."""
    steps = problem.k_tiles(schedule) * max(step_cycles(problem, schedule).values())
    before = figure("cta_start") + figure("tma_latency")
    work = before + tile_rounds(problem, schedule, target) * steps
    return max(_microseconds(work), _once_bytes(problem) / figure("dram_rate"))


def _work_cycles(
    schedule: Schedule, rounds: int, main: float, epilogue: float, before: float
) -> float:
    if schedule.scheduler == "none":
        return rounds * (before + main + epilogue)
    query = figure("clc_query") if schedule.scheduler == "clc" else 0
    return before + rounds * (max(main, epilogue) + query) + epilogue


def _microseconds(cycles: float) -> float:
    return cycles / (figure("clock") * 1e3)


def tile_rounds(problem: Problem, schedule: Schedule, target: Target) -> int:
    """Tiles that the busiest multiprocessor computes, one CTA at a time (waves)."""
    slots = resident_ctas(schedule, target)
    return -(-problem.ctas(schedule) // slots)


def resident_ctas(schedule: Schedule, target: Target) -> int:
    """CTAs that run at once: one a multiprocessor, in whole clusters."""
    return target.multiprocessors // schedule.cluster_size * schedule.cluster_size


def step_cycles(problem: Problem, schedule: Schedule) -> dict[str, float]:
    """Cycles that each resource needs for one K tile of one CTA."""
    _, _, k = schedule.tile
    loaded = l2_bytes_per_step(problem, schedule)
    copied = copied_bytes_per_step(problem, schedule)
    return {
        "tensor core": tensor_core_cycles(schedule, k),
        "shared memory": shared_read_bytes(problem, schedule) / figure("shared_rate"),
        "L2": loaded / figure("l2_rate"),
        "thread copies": copied / figure("copy_rate"),
    }


def refill_cycles(problem: Problem, schedule: Schedule, step: float) -> float:
    """Cycles of the main loop when a slot's next load starts only after its MMA.

    A full ring of loads is in flight at a time: every ring but the last costs a latency and a step.
    """
    rings = -(-problem.k_tiles(schedule) // schedule.stages)
    last = problem.k_tiles(schedule) - (rings - 1) * schedule.stages
    return (rings - 1) * (figure("tma_latency") + step) + last * step


def tensor_core_cycles(schedule: Schedule, k: int) -> float:
    """Cycles of the MMAs of one CTA's tile; a 64-row MMA takes as long as one of 128 rows."""
    m, n, _ = schedule.tile
    rows = -(-m // 128) * 128
    return 2 * rows * n * k / figure("mma_rate")


def shared_read_bytes(problem: Problem, schedule: Schedule) -> int:
    """Bytes of A and B that one multiprocessor's tensor core reads a step; a pair halves B."""
    return problem.a_tile_bytes(schedule) + problem.b_tile_bytes(schedule)


def l2_bytes_per_step(problem: Problem, schedule: Schedule) -> float:
    """Bytes that one CTA takes from L2 a step: multicast divides A by N-peers, B by M-peers."""
    m, n, k = schedule.tile
    cluster_m, cluster_n = schedule.cluster
    return (m / cluster_n + n / cluster_m) * k * problem.element_bytes


def copied_bytes_per_step(problem: Problem, schedule: Schedule) -> int:
    """Bytes of A and B that threads copy a step, because TMA can't address the operand."""
    a = 0 if problem.by_tma("a") else problem.a_tile_bytes(schedule)
    return a + (0 if problem.by_tma("b") else problem.b_tile_bytes(schedule))


def epilogue_cycles(problem: Problem, schedule: Schedule) -> float:
    """Cycles from tensor memory to global memory; two staging buffers overlap both halves."""
    m, n, _ = schedule.tile
    read = m * n * 4 / figure("tmem_rate")
    stored_bytes = m * n * problem.c_bytes
    if schedule.staging is None:
        return read + stored_bytes / figure("direct_store_rate")
    columns, buffers = schedule.staging
    pack = read + stored_bytes / figure("shared_rate")
    store = stored_bytes / figure("tma_store_rate")
    if buffers == 1:
        return pack + store
    return max(pack, store) + min(pack, store) * columns / n


def dram_bytes(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Bytes that DRAM moves: C once, and A and B once or, where L2 can't hold both, once a wave."""
    once, c = _once_bytes(problem), problem.m * problem.n * problem.c_bytes
    operands = once - c
    if operands <= figure("l2_size"):
        return once
    rows, columns = wave_shape(problem, schedule, target)
    m, n, _ = schedule.tile
    wave = (rows * m + columns * n) * problem.k * problem.element_bytes
    return max(operands, tile_rounds(problem, schedule, target) * wave) + c


def _once_bytes(problem: Problem) -> int:
    operands = (problem.m + problem.n) * problem.k * problem.element_bytes
    return operands + problem.m * problem.n * problem.c_bytes


def wave_shape(problem: Problem, schedule: Schedule, target: Target) -> tuple[int, int]:
    """Rows and columns of tiles that the CTAs of one wave touch, by raster order."""
    grid_m, grid_n = problem.grid(schedule)
    slots = min(resident_ctas(schedule, target), grid_m * grid_n)
    if schedule.order == "n":
        columns = min(grid_n, slots)
        return -(-slots // columns), columns
    rows = min(grid_m, schedule.group if schedule.order == "grouped" else slots)
    return rows, min(grid_n, -(-slots // rows))
