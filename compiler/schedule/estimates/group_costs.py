"""The cost of ragged groups of rows, and what tiles of equal height save."""

from __future__ import annotations

from dataclasses import replace

from ....dialects.target import Target
from ..chips.chip_figures import figures
from ..problem import Problem, Schedule
from ..waves import wave_shape
from .costs import Estimate

UNEVEN, UNEVEN_ROWS = 1.07, 512
"""Of groups of so many rows on average: an H200 took up to so much longer for tiles of 128x256
than for 128x128 in turns, beside what is estimated of both, of eight shapes, and less for none.
"""
STEP, LEVEL_ROWS = 8, 256  # columns of wgmmas, and rows of groups from which it was measured
LEVEL = 1.05
"""So much longer tiles of equal height take than as many rows of whole ones: from times of an H200
and an H100 of ragged groups of 256 and 512 rows, K 5120 and 7168, beside those of other tiles."""


def uneven_groups(problem: Problem, schedule: Schedule, target: Target) -> float:
    """By how much longer tiles take where rows are grouped: of two consumers that share them, since
    the last one of a group is half empty on average; and of consumers in turns, which have no
    time to spare, where few tiles share a matrix and L2 doesn't hold what CTAs apart ask for."""
    if schedule.ping_pong:
        return 1 + figures(target).group_turns * _drifts(problem, schedule, target)
    rows = problem.m if problem.grouped == "m" and problem.products == 1 else 0
    return UNEVEN if target.issuers_store and rows >= UNEVEN_ROWS else 1


def _drifts(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Whether a band has more tiles than a group, and half of L2 less than a wave's operands."""
    (m, n, _), (rows, columns) = schedule.tile, wave_shape(problem, schedule, target)
    asked = (rows * m + columns * n) * problem.k * problem.element_bytes
    return problem.cut and problem.m < schedule.group * m and asked > figures(target).l2_size / 2


def levelled(problem: Problem, whole: Schedule, found: Estimate) -> Estimate:
    """The estimate of tiles of equal height, from that of as many whole ones.

    A tile has as many rows as a group's tiles have on average, up to a whole MMA's step.
    """
    share = _height(problem, whole.tile[0]) / whole.tile[0]
    work_us = found.work_us * LEVEL * share / (UNEVEN if problem.m >= UNEVEN_ROWS else 1)
    saved = 0 if found.bound == "DRAM" else found.work_us - work_us
    return replace(found, total_us=found.total_us - saved, work_us=work_us)


def _height(problem: Problem, tile: int) -> float:
    """Rows of a tile on average: a group ends anywhere, so that it has half a tile more."""
    if problem.m < LEVEL_ROWS:
        return tile
    return problem.m / (problem.m / tile + 1 / 2) + (STEP - 1) / 2
