"""What K in parts over the grid takes at least, whatever cluster settles how many parts there are.

Nothing here imports MLIR.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from ....dialects.target import Target
from ..estimates.costs import computed_cycles, gathered_cycles, part_cycles
from ..problem import Problem, Schedule
from ..rules.rules import PART_K_TILES
from .candidates import PART_GAIN, PART_WAVES


class Sums(NamedTuple):
    """Cycles in which each CTA writes the sums of a part, and the last one of a tile gathers those
    of two parts, and those of one more."""

    written: float
    gathered: float
    of_one: float

    @staticmethod
    def of(problem: Problem, tile: Schedule, target: Target) -> Sums:
        """Those of a tile, whatever K it takes at a time."""
        two = tile.but(split_grid=2)
        gathered = gathered_cycles(problem, two, target)
        of_one = (gathered - computed_cycles(problem, two, target)) / 2
        return Sums(part_cycles(problem, two, target), gathered, of_one)


class Parts(NamedTuple):
    """So many waves of parts, and the cycles that all their main loops and what is gathered take
    together at least."""

    waves: int
    work: float


def least_of_parts(
    steps: int, step: float, tiles: tuple[int, int], at_once: int, sums: Sums
) -> Iterator[Parts]:
    """What parts of so many steps of so many cycles take, for each number of waves that they may
    make up, where so many CTAs run at once. There are as many tiles as two numbers say, or between.

    There are as many parts as run in so many waves, or fewer, or fractions of them, if that makes
    the least of steps and sums together.
    """
    fewest, most = tiles
    least = PART_GAIN * steps
    for waves in PART_WAVES:
        each = _each(steps, waves * at_once // fewest)
        if waves * each >= least:
            continue
        if waves == 1:  # more waves are for where they are still shorter
            least = PART_GAIN * _each(steps, at_once // most)
        whole, parts = waves * steps * step, -(-steps // each)
        work = waves * each * step + (parts - 2) * sums.of_one
        if parts > 2:
            fewer = max(2.0, min(parts - 1, math.sqrt(whole / sums.of_one)))
            work = min(work, whole / fewer + (fewer - 2) * sums.of_one)
        yield Parts(waves, work + sums.gathered)


def _each(steps: int, parts: int) -> int:
    """Steps of each of so many parts, or of fewer that are not too short."""
    return -(-steps // max(1, min(parts, steps // PART_K_TILES)))


def most_at_once(tiles: int, at_once: int) -> float:
    """The most parts of each of so many tiles that run at once on average of their waves."""
    return max([waves * at_once // tiles / waves for waves in PART_WAVES])
