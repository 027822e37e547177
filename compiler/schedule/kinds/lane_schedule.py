"""The schedule of a product of few rows, whose time is that of reading B: lanes share elements.

    lanes   as many as take a row of B by two loads of 16 bytes each, or four of a long one: a CTA
            asks for whole rows at once, and ends when they have come
    CTA     a column of each product, or as many as make up its least number of threads
    total   start, the latency of a load, and what DRAM moves, or what threads load of A and B

A tile of a tensor core has 64 rows, of which such a product has use for one. Which of the two is
faster the estimate says (`is_by_lanes`). Tables of measured schedules know tiles alone, so they
are not asked.

Nothing here imports MLIR.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ....dialects.dtypes import DTYPES, FMA
from ....dialects.layout import UNIT_BYTES
from ....dialects.mma_units import WARP
from ....dialects.target import WARP_THREADS, Target
from ...spec import MatmulSpec
from ..chips.chip_figures import figures
from ..estimates.estimate import estimate, microseconds
from ..extents import round_up
from ..problem import Problem
from ..search.choice import choose_schedule

ROWS_MOST, FEW_ROWS = 4, 2
OF_TENSOR_CORES = ("bf16", "f16")
TYPES = (*OF_TENSOR_CORES, "f32")
LOADS, LOADS_MOST = 2, 4  # of a lane in a step, under way together
LANES_MOST, THREADS_LEAST = 512, 128
REACHED = 0.95
"""Of the DRAM rate of other estimates: an H100 read 8 to 1051 MB at 3.2e6 B/us for a row or two."""
LOADED = 49
"""Bytes of A and B that threads of a multiprocessor load in a cycle: an H100 with four rows, which
are loaded for each of B's. Lanes then take longer than tiles for 34 and 235 MB, not for 8."""
LATENCY = 1500
"""Cycles from a load to the sum in memory, beside what DRAM moves: of the same times."""


@dataclass(frozen=True)
class LaneSchedule:
    """A tile of M×N×K elements, the threads of a CTA, and how many of them share an element."""

    tile: tuple[int, int, int]
    threads: int
    lanes: int

    def label(self) -> str:
        """In words."""
        tile = "x".join(map(str, self.tile))
        return f"{tile} by fma of {self.threads} threads, {self.lanes} lanes an element"

    def pipeline(self) -> str:
        """The passes with their options, as `--pipeline` takes them."""
        tile = "x".join(map(str, self.tile))
        how = f"mma={FMA} operands=global threads={self.threads} lanes={self.lanes}"
        return f"tiling{{tile={tile} {how}}}"


def lane_schedule(spec: MatmulSpec, target: Target) -> LaneSchedule:
    """The schedule by lanes of a product that they take."""
    item = DTYPES[spec.a_dtype].bytes
    lanes, turns = _lanes(-(-spec.k * item // UNIT_BYTES), spec.m)
    columns = max(1, THREADS_LEAST // lanes)
    threads = columns * lanes
    columns *= -(-spec.n // (columns * target.grid_y_max))  # of a thread, as many as grids ask for
    tile = (spec.m, spec.products * columns, lanes * turns * UNIT_BYTES // item)
    return LaneSchedule(tile, threads, lanes)


def _lanes(loads: int, rows: int) -> tuple[int, int]:
    """How many share the loads of a row, and how many loads of each are under way together."""
    short = loads <= WARP_THREADS * LOADS_MOST
    each = LOADS if rows <= FEW_ROWS and not short else LOADS_MOST
    lanes = round_up(-(-loads // each), WARP_THREADS)
    if lanes > LANES_MOST:
        lanes = min(LANES_MOST, round_up(-(-loads // LOADS_MOST), WARP_THREADS))
    most = LOADS_MOST if rows <= FEW_ROWS else LOADS
    return lanes, min(most, -(-loads // lanes))


def lanes_take(spec: MatmulSpec) -> bool:
    """Whether lanes may share elements, and read them by whole loads: rows of B begin with one."""
    if spec.a_dtype not in TYPES or spec.a_dtype != spec.b_dtype or spec.m > ROWS_MOST:
        return False
    item = DTYPES[spec.a_dtype].bytes
    gaps = [spec.ldb, spec.stride_b, *((spec.lda, spec.stride_a) if spec.m > 1 else ())]
    whole = all(each * item % UNIT_BYTES == 0 for each in (spec.k, *gaps))
    by_rows = spec.b_major == "k" and (spec.a_major == "k" or spec.m == 1)
    several = spec.dynamic_m or spec.dynamic_batch or spec.groups
    others = spec.quantized or spec.neighbours or spec.adds_products
    return whole and by_rows and not (several or others)


def lanes_us(spec: MatmulSpec, target: Target) -> float:
    """Microseconds of the schedule by lanes."""
    chip = figures(target)
    start_us = microseconds(target, chip.cta_start + LATENCY)
    loaded = _loaded_bytes(spec, lane_schedule(spec, target)) / target.multiprocessors
    return start_us + max(dram_us(spec, target), microseconds(target, loaded / LOADED))


def _loaded_bytes(spec: MatmulSpec, schedule: LaneSchedule) -> float:
    """Bytes of A and B that threads load: a row of A for each of the columns that a thread has."""
    columns = schedule.tile[1] // (spec.products * schedule.threads // schedule.lanes)
    of_b = max(1, spec.batch) * spec.products * spec.n * spec.k * DTYPES[spec.a_dtype].bytes
    return of_b * (1 + spec.m / (spec.products * columns))


def dram_us(spec: MatmulSpec, target: Target) -> float:
    """Those in which DRAM moves everything once."""
    problem = Problem.of(spec, target)
    operands = (problem.m + problem.n) * problem.k * problem.element_bytes
    moved = problem.batch * operands + problem.moved_bytes()
    return moved / (REACHED * figures(target).dram_rate)


@functools.lru_cache(4096)
def is_by_lanes(spec: MatmulSpec, target: Target) -> bool:
    """Whether lanes are estimated to be faster than the tiles of a tensor core."""
    of_tensor_cores = spec.a_dtype in OF_TENSOR_CORES and target.mma.issuer != WARP
    if not (of_tensor_cores and lanes_take(spec)):
        return False
    tiles = choose_schedule(spec, target)
    return lanes_us(spec, target) < estimate(Problem.of(spec, target), tiles, target).total_us
