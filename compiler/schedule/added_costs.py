"""What it costs that threads add the products of tiles, beside the MMAs themselves.

One warpgroup does nothing else while it waits for its MMAs and adds. Two or more only in part
multiply while others add: what that leaves of a step is fitted to tiles of 128x128 to 256x128 of
K 2048 to 16384 on an H200, of each kind of scales (docs/block-scales.md).

Where products are in tensor memory, MMAs make one while threads read and add the one before: a step
is the longer of both, and a meeting. Nothing of that was measured.

Nothing here imports MLIR.
"""

from __future__ import annotations

from ...dialects.dtypes import BLOCKWISE
from ...dialects.held_registers import ATOM_ROWS
from ...dialects.target import WARPGROUP_THREADS, Target
from .chip_figures import figures
from .problem import Problem, Schedule

SUM_BYTES = 4
FMA_RATE = 128  # of f32 a cycle (CUDA C++ Programming Guide, arithmetic throughput, 9.0)
PLAIN, ROWS, COLUMNS = "no scales", "scales of rows", "scales of columns"
ALONE = {PLAIN: 1.5, ROWS: 2.2, COLUMNS: 3.0}
"""Instructions of one warpgroup for each element, beside the wait for MMAs of 64 rows: fitted to
64x128 of K 16384, but that for no scales, and the wait, are assumed."""
MMA_WAIT = 100
BESIDE = {PLAIN: (1.6, 2.2), ROWS: (2.15, 2.15), COLUMNS: (4.3, 4.2)}
"""Cycles a step for 128 rows of a column, where a warpgroup has 64 rows, and several times that."""
STRADDLING = 0.75  # the same where columns of a tile are of several blocks of 128


INSTRUCTIONS = {PLAIN: 1, ROWS: 1.1, COLUMNS: 2.4}
"""Of threads for an element of a product in tensor memory: its sum, and its factor where columns
have scales of their own; assumed, from the SASS of a step of 128x128."""
MEETING, READING = 60, 120
"""Cycles in which no MMA runs, and in which a read of tensor memory and its barrier are under way:
assumed."""


def added_cycles(problem: Problem, schedule: Schedule, target: Target, mma: float) -> float:
    """Cycles of a step beside the `mma` cycles of its MMAs."""
    m, n, _ = schedule.tile
    warpgroups = target.mma_warpgroups(m, n) or 1
    kind = COLUMNS if problem.column_scales else ROWS if problem.row_scales else PLAIN
    if target.adds_from_tensor_memory:
        chip = figures(target)
        assert chip.tmem_rate is not None  # such chips have one
        read = m * n * SUM_BYTES / chip.tmem_rate
        straddles = STRADDLING if kind == ROWS and BLOCKWISE % n else 0
        added = max(read, (INSTRUCTIONS[kind] + straddles) * m * n / FMA_RATE) + READING
        return max(0.0, added - mma) + MEETING
    if warpgroups == 1:
        return ALONE[kind] * m * n / FMA_RATE + MMA_WAIT * -(-m // ATOM_ROWS)
    each = BESIDE[kind][m > ATOM_ROWS * warpgroups]
    if kind == ROWS and n % (BLOCKWISE // 2):
        each += STRADDLING
    return each * m * n / WARPGROUP_THREADS
