"""The schedule of GEMV kernels: few rows, where lanes share the elements of C.

    lanes   as many as take a row of B by two loads of 16 bytes each, or up to five of a short or
            long one: a CTA asks for whole rows at once, and ends when they have arrived
    columns one per lane; with three rows and more two or four, which share what is loaded of A
    CTA     a column of each product, or as many as make up its least number of threads
    total   start, the latency of a load, what DRAM moves, and a share of the instructions

A tile of a tensor core has 64 rows, of which such a product needs one. The estimate says which of
the two is faster (`is_by_lanes`), unless both were measured (`tuned_pipelines.py`).

Nothing here imports MLIR.
"""

from __future__ import annotations

import functools

from ....dialects.dtypes import DTYPES, FMA
from ....dialects.layout import UNIT_BYTES
from ....dialects.mma_units import WARP
from ....dialects.record import record
from ....dialects.target import WARP_THREADS, Target
from ...spec import MatmulSpec
from ..chips.chip_figures import figures, tensor_figures
from ..estimates.estimate import estimate, microseconds
from ..extents import round_up
from ..problem import Problem
from ..search.choice import choose_schedule

ROWS_MOST, FEW_ROWS = 4, 2
OF_TENSOR_CORES = ("bf16", "f16")
TYPES = (*OF_TENSOR_CORES, "f32")
LOADS, LOADS_MOST = 2, 4  # of a lane in a step and of a column, under way together
WARP_LOADS, SEVERAL_WARP_LOADS = 160, 200  # of a row that a warp takes at once
COLUMNS = 4, 2  # of a lane that has several
SHORT_LOADS, LONG_LOADS = 20, 10  # of all of them in a step, of rows for a warp and of others
SEVERAL_LANES = 128  # of the latter
LANES_MOST, THREADS_LEAST = 512, 128
REACHED = 0.97
"""The rate relative to the DRAM rate of other estimates: an H100 read 8 to 1051 MB at up to 3.2e6
B/us."""
LATENCY = 1500
"""Cycles from a load to the sum in memory, in addition to what DRAM moves: from the same times."""
LOAD_INSTRUCTIONS, NEIGHBOURS = 6, 8
"""Instructions of a lane per load of 16 bytes, and for each of the elements in it: a product per
row, and the conversion of an element of A or of B to f32."""
ISSUED = 128  # lanes of a multiprocessor that issue at once
NOT_HIDDEN = (0.1, 0.1, 0.3, 0.6), 4.0
"""The share of these instructions' time, by rows, that is not hidden behind DRAM traffic, up to
that of so many microseconds: fitted to an H100 with 1 to 235 MB."""
NOT_HIDDEN_BY_AN_H200 = (0.1, 0.5, 0.9, 1.2), 8.0
"""The same for an H200, whose DRAM leaves less time: 73 shapes of 0.4 to 430 MB, compared with
tiles."""


@record
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
    """The schedule by lanes of a product for which `lanes_take` holds."""
    several = spec.m > FEW_ROWS
    return _schedule_of(spec, target, *(_of_several if several else _of_one)(spec, target))


def lane_candidates(spec: MatmulSpec, target: Target) -> list[LaneSchedule]:
    """The schedules to measure, that of `lane_schedule` first: with one column per lane, and with
    several.

    None if lanes cannot compute the product.
    """
    if not lanes_take(spec) or (spec.a_dtype in OF_TENSOR_CORES and target.mma.issuer == WARP):
        return []
    lanes, turns, _ = _of_several(spec, target)
    ways = [_of_one(spec, target), *((lanes, turns, each) for each in COLUMNS)]
    found = [_schedule_of(spec, target, *way) for way in ways]
    return list(dict.fromkeys([lane_schedule(spec, target), *found]))


def _schedule_of(
    spec: MatmulSpec, target: Target, lanes: int, turns: int, each: int
) -> LaneSchedule:
    """The schedule in which `lanes` lanes share the loads of a row and each has `turns` loads under
    way, for `each` columns."""
    item = DTYPES[spec.a_dtype].bytes
    columns = each * max(1, THREADS_LEAST // lanes)
    threads = columns // each * lanes
    columns *= -(-spec.n // (columns * target.grid_y_max))  # of a thread, as many as grids ask for
    tile = (spec.m, spec.products * columns, lanes * turns * UNIT_BYTES // item)
    return LaneSchedule(tile, threads, lanes)


def _loads(spec: MatmulSpec) -> int:
    """The number of loads of a row."""
    return -(-spec.k * DTYPES[spec.a_dtype].bytes // UNIT_BYTES)


def _of_one(spec: MatmulSpec, target: Target) -> tuple[int, int, int]:
    """How many lanes share the loads of a row, and how many loads of each are under way at a time,
    with one column per lane."""
    loads = _loads(spec)
    if loads <= WARP_LOADS:
        return WARP_THREADS, -(-loads // WARP_THREADS), 1
    lanes = round_up(-(-loads // LOADS), WARP_THREADS)
    if lanes > LANES_MOST:
        lanes = min(LANES_MOST, round_up(-(-loads // LOADS_MOST), WARP_THREADS))
    return lanes, min(LOADS_MOST, -(-loads // lanes)), 1


def _of_several(spec: MatmulSpec, target: Target) -> tuple[int, int, int]:
    """The same with several columns per lane, which share what it loads of the rows of A; and their
    number.

    A warp takes a short row at once. For a longer row, lanes leave as little of a step idle as
    possible, and ask for more at once where the threads of all columns would be few.
    """
    loads = _loads(spec)
    most, fewest = (each * spec.products for each in COLUMNS)
    least = target.multiprocessors * THREADS_LEAST
    if loads * spec.products <= SEVERAL_WARP_LOADS:
        turns = -(-loads // WARP_THREADS)
        fit = turns * most <= SHORT_LOADS and spec.n // COLUMNS[0] * WARP_THREADS > least
        return WARP_THREADS, turns, COLUMNS[0 if fit else -1]
    few = spec.n // COLUMNS[-1] * SEVERAL_LANES <= least
    every = range(LOADS, LONG_LOADS // fewest + 1)
    left_out = {turns: -loads % (turns * SEVERAL_LANES) for turns in every}
    turns = min(left_out, key=lambda each: (left_out[each], -each if few else each))
    return SEVERAL_LANES, turns, COLUMNS[-1]


def lanes_take(spec: MatmulSpec) -> bool:
    """Whether lanes may share elements and read them by whole loads: each row of B must begin with
    one."""
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
    """The microseconds of the schedule by lanes, including a launch where the estimate of tiles
    includes one."""
    start_us = microseconds(target, figures(target).cta_start + LATENCY)
    is_h200 = target.chip == "sm_90a" and not target.gpu
    shares, most_us = NOT_HIDDEN_BY_AN_H200 if is_h200 else NOT_HIDDEN
    computed_us = min(most_us, _computed_us(spec, target))
    around_us = start_us + dram_us(spec, target) + shares[spec.m - 1] * computed_us
    return around_us + (tensor_figures(target).launch if target.has_tensor_memory else 0)


def _computed_us(spec: MatmulSpec, target: Target) -> float:
    """The microseconds in which lanes issue their instructions: A is loaded once for the columns of
    a lane."""
    schedule = lane_schedule(spec, target)
    columns = schedule.tile[1] * schedule.lanes / schedule.threads
    loads = max(1, spec.batch) * spec.products * spec.n * spec.k * DTYPES[spec.a_dtype].bytes
    each = LOAD_INSTRUCTIONS + NEIGHBOURS * (1 + spec.m * (1 + 1 / columns))
    issued = loads / UNIT_BYTES * each / (target.multiprocessors * ISSUED)
    return microseconds(target, issued)


def dram_us(spec: MatmulSpec, target: Target) -> float:
    """The microseconds in which DRAM moves everything once."""
    problem = Problem.of(spec, target)
    operands = (problem.m + problem.n) * problem.k * problem.element_bytes
    moved = problem.batch * operands + problem.moved_bytes
    return moved / (REACHED * figures(target).dram_rate)


@functools.lru_cache(4096)
def is_by_lanes(spec: MatmulSpec, target: Target) -> bool:
    """Whether lanes are estimated to be faster than the tiles of a tensor core."""
    if spec.a_dtype not in OF_TENSOR_CORES or not lane_candidates(spec, target):
        return False
    tiles = choose_schedule(spec, target)
    return lanes_us(spec, target) < estimate(Problem.of(spec, target), tiles, target).total_us
