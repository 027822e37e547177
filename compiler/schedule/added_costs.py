"""What it costs that threads add the products of tiles, beside the MMAs themselves.

One warpgroup does nothing else while it waits for its MMAs and adds. Two or more only in part
multiply while others add: what that leaves of a step is fitted to tiles of 128x128 to 256x128 of
K 2048 to 16384 on an H200, of each kind of scales (docs/block-scales.md).

Nothing here imports MLIR.
"""

from __future__ import annotations

from ...dialects.dtypes import BLOCKWISE
from ...dialects.target import WARPGROUP_THREADS, Target
from .problem import Problem, Schedule

ATOM_ROWS = 64  # of an MMA of a warpgroup

FMA_RATE = 128  # of f32 a cycle (CUDA C++ Programming Guide, arithmetic throughput, 9.0)
PLAIN, ROWS, COLUMNS = "no scales", "scales of rows", "scales of columns"
ALONE = {PLAIN: 1.5, ROWS: 2.2, COLUMNS: 3.0}
"""Instructions of one warpgroup for each element, beside the wait for MMAs of 64 rows: fitted to
64x128 of K 16384, but that for no scales, and the wait, are assumed."""
MMA_WAIT = 100
BESIDE = {PLAIN: (1.6, 2.2), ROWS: (2.15, 2.15), COLUMNS: (4.3, 4.2)}
"""Cycles a step for 128 rows of a column, where a warpgroup has 64 rows, and several times that."""
STRADDLING = 0.75  # the same where columns of a tile are of several blocks of 128


def added_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles of a step beside those of its MMAs."""
    m, n, _ = schedule.tile
    warpgroups = target.mma_warpgroups(m, n) or 1
    kind = COLUMNS if problem.column_scales else ROWS if problem.row_scales else PLAIN
    if warpgroups == 1:
        return ALONE[kind] * m * n / FMA_RATE + MMA_WAIT * -(-m // ATOM_ROWS)
    each = BESIDE[kind][m > ATOM_ROWS * warpgroups]
    if kind == ROWS and n % (BLOCKWISE // 2):
        each += STRADDLING
    return each * m * n / WARPGROUP_THREADS
