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
"""Rows of the weights as far apart, or a multiple of it, hold the same columns in the same slice of
L2 or channel of DRAM for many CTAs at a time."""
WEIGHTS_MOST = 10_240
"""Rows of weights: with 12,288 and more it took 0.98 to 1.02 of the time."""
A_MOST = 1.5
"""Rows of A beside those of weights in a tile: with twice as many it took 1.00 to 1.02."""
TOGETHER, BY = 4, 4
"""CTAs that begin alike, and how many steps further on the next ones do."""


def rotation_of(problem: Problem, schedule: Schedule, target: Target) -> str:
    """The pass with its options, as a pipeline has it; nothing where it is not known to gain.

    An H200 took 0.94 to 1.01 of the time so for 17 to 64 rows of weights with such rows; with other
    rows of weights it took 1.00 to 1.01 (docs/appendix/few-rows.md).
    """
    if problem.dynamic_m or problem.m not in _rows(problem, schedule, target):
        return ""
    return _rotation(schedule)


def rotation_of_rows(problem: Problem, schedule: Schedule, target: Target) -> tuple[str, range]:
    """The pass of a kernel for any M, and for which rows it is known to gain, maybe none."""
    return _rotation(schedule), _rows(problem, schedule, target)


def _rotation(schedule: Schedule) -> str:
    axis = _weights_axis(schedule)
    together = max(TOGETHER, schedule.cluster[axis])
    return f"k-rotation{{along={'mn'[axis]} together={together} by={BY}}}"


def _weights_axis(schedule: Schedule) -> int:
    """Along which of its axes a tile has rows of weights."""
    return 0 if schedule.swap else 1


def _rows(problem: Problem, schedule: Schedule, target: Target) -> range:
    """The numbers of rows of A for which it gains."""
    if target.mma.name != WGMMA.name or not _is_plain(problem) or not _in_one_wave(schedule):
        return ROWS[:0]
    if problem.pitch_bytes("b")[0] % PITCH_BYTES or problem.n > WEIGHTS_MOST:
        return ROWS[:0]
    most = math.floor(A_MOST * schedule.tile[_weights_axis(schedule)])
    return range(ROWS.start, min(ROWS.stop, most + 1))


def _is_plain(problem: Problem) -> bool:
    """Whether it is one product of a known K and 16 bits, both operands with K contiguous."""
    known = not (problem.dynamic_batch or problem.dynamic_k)
    one = problem.products == problem.batch == 1 and not (problem.grouped or problem.quantized)
    by_tma = problem.by_tma("a") and problem.by_tma("b")
    majors = (problem.a_major, problem.b_major) == ("k", "k")
    return known and one and by_tma and majors and problem.element_bytes == 2


def _in_one_wave(schedule: Schedule) -> bool:
    """Whether each CTA has one tile, and all of K."""
    return schedule.scheduler == "none" and schedule.split_k * schedule.split_grid == 1
