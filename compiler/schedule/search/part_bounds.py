"""Lower bounds for K in parts over the grid, whatever cluster determines the number of parts.

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
    """Cycles in which each CTA writes the sums of its part, in which those of two parts of a tile
    are gathered, and those of each further part."""

    written: float
    gathered: float
    of_one: float

    @staticmethod
    def of(problem: Problem, tile: Schedule, target: Target) -> Sums:
        """The costs for a tile, whatever K it takes per step."""
        two = tile.but(split_grid=2)
        gathered = gathered_cycles(problem, two, target)
        of_one = (gathered - computed_cycles(problem, two, target)) / 2
        return Sums(part_cycles(problem, two, target), gathered, of_one)


class Parts(NamedTuple):
    """A number of waves of parts, and the least cycles of all their main loops together with
    gathering."""

    waves: int
    work: float


def least_of_parts(
    steps: int, step: float, tiles: tuple[int, int], at_once: int, sums: Sums
) -> Iterator[Parts]:
    """The least cost of parts of a tile's K steps for each possible number of waves, if `at_once`
    CTAs run at once. There are as many tiles as the two numbers say, or any number between them.

    The number of parts is what fills the waves or fewer, and need not be whole if that gives the
    least sum of steps and gathering.
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
    """The steps of each of that many parts, or of fewer parts that are not too short."""
    return -(-steps // max(1, min(parts, steps // PART_K_TILES)))


def most_at_once(tiles: int, at_once: int) -> float:
    """The most parts per tile that run at once, averaged over the waves."""
    return max([waves * at_once // tiles / waves for waves in PART_WAVES])
