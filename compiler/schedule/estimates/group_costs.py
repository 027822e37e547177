"""The cost of ragged groups of rows, and what tiles of equal height save."""

from __future__ import annotations

from dataclasses import replace

from ....dialects.target import Target
from ..chips.chip_figures import figures
from ..problem import Problem, Schedule
from ..waves import wave_shape
from .costs import Estimate

UNEVEN, UNEVEN_ROWS = 1.07, 512
"""For groups of that many rows on average, an H200 took up to so much longer with tiles of 128x256
than with ping-pong tiles of 128x128, relative to the estimates of both, in eight shapes; it was
faster in none."""
STEP, LEVEL_ROWS = 8, 256  # columns of wgmmas, and rows of groups from which it was measured
LEVEL = 1.05
"""By how much longer tiles of equal height take than as many rows in ordinary tiles: from times of
an H200 and an H100 for ragged groups of 256 and 512 rows with K 5120 and 7168, relative to other
tiles."""


def uneven_groups(problem: Problem, schedule: Schedule, target: Target) -> float:
    """The factor on the time of tiles if rows are grouped. It applies to two consumers that
    share tiles, since the last tile of a group is half empty on average; and to ping-pong
    consumers, which have no slack, if few tiles share a matrix and L2 does not hold what distant
    CTAs ask for."""
    if schedule.ping_pong:
        return 1 + figures(target).group_turns * _drifts(problem, schedule, target)
    rows = problem.m if problem.grouped == "m" and problem.products == 1 else 0
    return UNEVEN if target.issuers_store and rows >= UNEVEN_ROWS else 1


def _drifts(problem: Problem, schedule: Schedule, target: Target) -> bool:
    """Whether a band has more tiles than a group, and half of L2 is smaller than the operands of a
    wave."""
    (m, n, _), (rows, columns) = schedule.tile, wave_shape(problem, schedule, target)
    asked = (rows * m + columns * n) * problem.k * problem.element_bytes
    return problem.cut and problem.m < schedule.group * m and asked > figures(target).l2_size / 2


def levelled(problem: Problem, whole: Schedule, found: Estimate) -> Estimate:
    """The estimate of tiles of equal height, from that of as many ordinary tiles.

    A tile then has as many rows as a group's tiles have on average, rounded up to a step of the
    MMA.
    """
    share = _height(problem, whole.tile[0]) / whole.tile[0]
    work_us = found.work_us * LEVEL * share / (UNEVEN if problem.m >= UNEVEN_ROWS else 1)
    saved = 0 if found.bound == "DRAM" else found.work_us - work_us
    return replace(found, total_us=found.total_us - saved, work_us=work_us)


def _height(problem: Problem, tile: int) -> float:
    """The average number of rows of a tile: a group may end anywhere, so it has half a tile
    more."""
    if problem.m < LEVEL_ROWS:
        return tile
    return problem.m / (problem.m / tile + 1 / 2) + (STEP - 1) / 2
