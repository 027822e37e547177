"""Whether CTAs of few rows start the K loop at different steps (`k-rotation`).

Nothing here imports MLIR.
"""

from __future__ import annotations

import math

from ...dialects.mma_units import WGMMA
from ...dialects.target import Target
from .problem import Problem, Schedule

ROWS = range(17, 65)
PITCH_BYTES = 8192
"""If the distance between rows of the weights is a multiple of this, many CTAs ask the same L2
slice or DRAM channel for the same columns at the same time."""
WEIGHTS_MOST = 10_240
"""The most rows of weights for which the pass is used: with 12,288 and more it took 0.98 to 1.02 of
the time."""
A_MOST = 1.5
"""The most rows of A, as a multiple of the rows of weights in a tile: with twice as many it took
1.00 to 1.02."""
TOGETHER, BY = 4, 4
"""How many neighbouring CTAs start at the same step, and how many steps later the next ones
start."""


def rotation_of(problem: Problem, schedule: Schedule, target: Target) -> str:
    """The pass with its options, as written in a pipeline; empty where it is not known to gain.

    For 17 to 64 rows and weights with such a pitch, an H200 took 0.94 to 1.01 of the time; with
    other weights it took 1.00 to 1.01 (docs/appendix/few-rows.md).
    """
    if problem.dynamic_m or problem.m not in _rows(problem, schedule, target):
        return ""
    return _rotation(schedule)


def rotation_of_rows(problem: Problem, schedule: Schedule, target: Target) -> tuple[str, range]:
    """The pass for a kernel of any M, and the numbers of rows for which it is known to gain,
    possibly none."""
    return _rotation(schedule), _rows(problem, schedule, target)


def _rotation(schedule: Schedule) -> str:
    axis = _weights_axis(schedule)
    together = max(TOGETHER, schedule.cluster[axis])
    return f"k-rotation{{along={'mn'[axis]} together={together} by={BY}}}"


def _weights_axis(schedule: Schedule) -> int:
    """The axis of a tile along which the rows of the weights lie."""
    return 0 if schedule.swap else 1


def _rows(problem: Problem, schedule: Schedule, target: Target) -> range:
    """The numbers of rows of A for which the pass gains."""
    if target.mma.name != WGMMA.name or not _is_plain(problem) or not _in_one_wave(schedule):
        return ROWS[:0]
    if problem.pitch_bytes("b")[0] % PITCH_BYTES or problem.n > WEIGHTS_MOST:
        return ROWS[:0]
    most = math.floor(A_MOST * schedule.tile[_weights_axis(schedule)])
    return range(ROWS.start, min(ROWS.stop, most + 1))


def _is_plain(problem: Problem) -> bool:
    """Whether the problem is a single product of known K with 16-bit operands that are both
    K-major."""
    known = not (problem.dynamic_batch or problem.dynamic_k)
    one = problem.products == problem.batch == 1 and not (problem.grouped or problem.quantized)
    by_tma = problem.by_tma("a") and problem.by_tma("b")
    majors = (problem.a_major, problem.b_major) == ("k", "k")
    return known and one and by_tma and majors and problem.element_bytes == 2


def _in_one_wave(schedule: Schedule) -> bool:
    """Whether each CTA has one tile and all of K."""
    return schedule.scheduler == "none" and schedule.split_k * schedule.split_grid == 1
