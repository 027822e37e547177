"""The cost of accumulating products of tiles by threads, in addition to the MMAs.

A single warpgroup can only wait for its MMAs or add. Two or more multiply in part while others add:
what that leaves of a step and of a store is fitted to tiles of 128x128 to 256x128 with K 1536 to
16384 on an H200, for each kind of scales (docs/block-scales.md).

If products are in tensor memory, MMAs make one product while threads read and add the previous one.
A step then takes the longer of both, and a meeting of the threads. None of that was measured.

Nothing here imports MLIR.
"""

from __future__ import annotations

import math

from ....dialects.dtypes import BLOCKWISE
from ....dialects.held_registers import ATOM_ROWS, scales_one_by_one
from ....dialects.target import WARPGROUP_THREADS, Target
from ..chips.chip_figures import figures
from ..problem import Problem, Schedule

SUM_BYTES = 4
FMA_RATE = 128  # of f32 a cycle (CUDA C++ Programming Guide, arithmetic throughput, 9.0)
PLAIN, ROWS, COLUMNS = "no scales", "scales of rows", "scales of columns"
ALONE = {PLAIN: 1.5, ROWS: 2.2, COLUMNS: 3.0}
"""Instructions of a single warpgroup per element, in addition to the wait for MMAs of 64 rows:
fitted to 64x128 with K 16384, except that the figure for no scales and the wait are assumed."""
STRADDLING_ALONE = 0.5
"""The same if a tile's columns belong to several blocks: an H100 took so much longer for 64x112
than for 64x128 of 128x7168x16384."""
MMA_WAIT = 100
BESIDE = {PLAIN: (1.2, 2.0), ROWS: (2.0, 1.8), COLUMNS: (4.0, 3.8)}
"""Cycles per step for 128 rows of a column, if a warpgroup has 64 rows, and if it has several times
64."""
APART = 3.25
"""The same for several times 64 rows whose products are multiplied first by scales of rows and then
by scales of columns: fitted to 256x128 and 256x112 in five shapes on an H200."""
STRADDLING = 8  # the same of a tile whose columns are of several blocks, over those that share one
BEHIND, FACTORS_MAX = 0.7, (226, 226, 160)
"""Additional cycles where threads have no registers for the factors of their elements, which they
then multiply after the MMAs, and the number of registers for sums, a product, factors and scales
from which on that happens in warpgroups of 64 rows. An H100 took so much longer for 128x160 than
for 128x128 in six shapes."""
WAITS = (0, 140, 100)  # cycles a step, by warpgroups, in which nobody multiplies
STORED_ALONE = 0.42  # of the cycles of a store: in the others the other warpgroups multiply

STRADDLING_TENSOR = 0.75  # instructions, beside:
INSTRUCTIONS = {PLAIN: 1, ROWS: 1.1, COLUMNS: 2.4}
"""Instructions of threads per element of a product in tensor memory: its sum, and its factor where
columns have scales. Assumed, from the SASS of a step of 128x128."""
MEETING, READING = 60, 120
"""Cycles in which no MMA runs, and in which a read of tensor memory and its barrier are under way;
assumed."""


def added_cycles(problem: Problem, schedule: Schedule, target: Target, mma: float) -> float:
    """Cycles of a step in addition to the `mma` cycles of its MMAs."""
    m, n, _ = schedule.tile
    warpgroups = target.mma_warpgroups(m, n) or 1
    kind = COLUMNS if problem.column_scales else ROWS if problem.row_scales else PLAIN
    if target.adds_from_tensor_memory:
        chip = figures(target)
        assert chip.tmem_rate is not None  # such chips have one
        read = m * n * SUM_BYTES / chip.tmem_rate
        straddles = STRADDLING_TENSOR if kind == ROWS and BLOCKWISE % n else 0
        added = max(read, (INSTRUCTIONS[kind] + straddles) * m * n / FMA_RATE) + READING
        return max(0.0, added - mma) + MEETING
    if warpgroups == 1:
        straddles = STRADDLING_ALONE if kind == ROWS and n % (BLOCKWISE // 2) else 0
        added = (ALONE[kind] + straddles) * m * n / FMA_RATE
        return added + MMA_WAIT * -(-m // ATOM_ROWS)
    each = BESIDE[kind][m > ATOM_ROWS * warpgroups]
    if kind == COLUMNS and scales_one_by_one(m, n, warpgroups):
        each = APART
    if kind == ROWS and n % (BLOCKWISE // 2):
        each += STRADDLING / math.gcd(n, BLOCKWISE)
    if kind == COLUMNS and _factors_behind(m, n, warpgroups):
        each += BEHIND
    return each * m * n / WARPGROUP_THREADS + WAITS[warpgroups - 1]


def _factors_behind(m: int, n: int, warpgroups: int) -> bool:
    """Whether threads that have two rows of a tile have too many elements to hold their factors."""
    held = 3 * n // 2 + n // 4 + 2
    return m == ATOM_ROWS * warpgroups and held > FACTORS_MAX[warpgroups - 1]


def stored_alone(problem: Problem, schedule: Schedule, target: Target) -> float:
    """The share of a store in which no MMA runs, if several warpgroups of a tile add products."""
    if not target.adds_products or target.adds_from_tensor_memory:
        return 1
    m, n, _ = schedule.tile
    return STORED_ALONE if (target.mma_warpgroups(m, n) or 1) > 1 else 1
