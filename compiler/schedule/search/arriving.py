"""How soon operands are there, in each cluster and with K in parts, of the tiles of a face.

Nothing here imports MLIR.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..estimates.costs import few_columns
from ..estimates.estimate import SERVED_AT_ONCE, SHARING_MAX
from ..estimates.l2_costs import most_answered, parted_arriving
from ..extents import round_up
from ..problem import LINE_BYTES, Schedule
from .common import Common
from .once import once

LARGEST = {
    1: ((1, 1),),
    2: ((1, 2), (2, 1)),
    4: ((1, 4), (2, 2), (4, 1)),
    8: ((1, 8), (2, 4), (4, 2), (8, 1)),
}
"""The largest clusters of up to so many CTAs."""


class Rate(NamedTuple):
    """Cycles until a byte of K of each row is there: so many for each CTA that is at work, and no
    fewer than for one alone."""

    each: float
    alone: float

    def of(self, at_work: float) -> float:
        """With so many CTAs."""
        together = at_work * self.each
        return together if together > self.alone else self.alone


def least_of(rates: list[Rate]) -> Rate:
    """What none of them is below."""
    return rates[0] if len(rates) == 1 else Rate(*map(min, zip(*rates, strict=True)))


def least_shared(a: float, b: float, peers: int) -> float:
    """Of so much of each operand that every CTA needs, the least that one asks for in a cluster of
    up to so many."""
    return a + b if peers == 1 else max(2 * math.sqrt(a * b / peers), (a + b) / peers)


class Wave(NamedTuple):
    """Cycles by which its first loads come later, and microseconds of DRAM for what it asks for
    beyond its part, no more."""

    later: float
    early_us: float


UNKNOWN_WAVE = Wave(0.0, 0.0)


class Arriving:
    """Tiles of as many rows and columns, of which there are `tiles` in all, `of_m` along M.

    `rows` and `columns` are those that there are. Of parts some rows come from DRAM first. `narrow`
    are the cycles of one multiprocessor for a byte of K of rows that fill no line.
    """

    def __init__(self, every: Common, tile: Schedule, narrow: float) -> None:
        problem, (m, n, _) = every.problem, tile.tile
        self.every, self.tile, self._narrow = every, tile, narrow
        self.of_m, self.of_n = problem.tiles(tile)
        self.tiles = problem.batch * self.of_m * self.of_n
        if problem.grouped == "m":
            self.tiles = math.prod(problem.grid(tile))
        self.rows = m if m < problem.m else problem.m
        self.columns = n if n < problem.n else problem.n
        self._waves: dict[tuple[tuple[int, int], int], Wave] = {}
        self._rates: dict[int, list[Rate]] = {}
        self._soonest: dict[int, Rate] = {}

    def tiles_in(self, way: Schedule) -> int:
        """Tiles, no fewer, that there are in whole clusters."""
        problem, (along_m, along_n) = self.every.problem, way.cluster
        if problem.grouped == "m":  # not all of them have the rows of the mean
            return self.tiles
        return problem.batch * round_up(self.of_m, along_m) * round_up(self.of_n, along_n)

    def soonest(self, at_work: float) -> float:
        """Cycles until operands are there for so many CTAs that take K as a whole, no more: in any
        cluster that finds room, or alone, where L2 answers the most requests together."""
        every, whole = self.every, self.rows + self.columns
        least = least_shared(self.rows, self.columns, self._widest())
        asked = min(least, every.alone_asked * whole)
        alone = self._at_least(least)
        together = at_work * asked / every.l2_total_rate
        return together if together > alone else alone

    def soonest_of_parts(self, peers: int) -> Rate:
        """The same of CTAs that take parts, beside up to so many of a cluster with other tiles."""
        if peers not in self._soonest:
            every, whole = self.every, self.rows + self.columns
            least = least_shared(self.rows, self.columns, peers)
            alone = self._at_least(least)
            rows = whole - every.parts_multicast * (whole - least)
            first = self._first_rows / self.tiles
            a, b = every.beyond
            a, b = a / round_up(self.of_m, peers), b / round_up(self.of_n, peers)
            beyond = every.line_cycles * least_shared(a, b, peers)
            zeros = every.zero_cycles * least_shared(*self._outside, peers)
            each = parted_arriving(rows, first, beyond, every.target) + zeros
            self._soonest[peers] = Rate(each, alone)
        return self._soonest[peers]

    def least_of_clusters(self) -> float:
        """Cycles for each tile in the best cluster whose CTAs take K as a whole, no more."""
        every, rate, (line_a, line_b) = self.every, self.every.l2_total_rate, self._beyond
        a, b, line = self.rows / rate, self.columns / rate, every.line_cycles
        zeros_a, zeros_b = (every.zero_cycles * outside for outside in self._outside)
        return min(
            [
                max(a / n + b / m, line * (line_a / n + line_b / m)) + zeros_a / n + zeros_b / m
                for m, n in LARGEST[self._widest()]
            ]
        )

    def whole_rate(self, shape: tuple[int, int]) -> Rate:
        """That of a cluster whose CTAs take K as a whole, and no less in smaller ones."""
        a, b = self.rows / shape[1], self.columns / shape[0]
        answered = self._most_answered() if shape == (1, 1) else 0
        each = max((a + b - answered) / self.every.l2_total_rate, self._lines_beyond(shape))
        return Rate(each + self._zeros(shape), self._alone(a, b))

    def parts_rate(self, shape: tuple[int, int], tiles: int) -> Rate:
        """That of a cluster whose CTAs take parts of so many tiles."""
        a, b, whole = self.rows / shape[1], self.columns / shape[0], self.rows + self.columns
        first = self._first_rows / tiles
        rows = whole - self.every.parts_multicast * (whole - a - b)
        each = parted_arriving(rows, first, self._lines_beyond(shape), self.every.target)
        return Rate(each + self._zeros(shape), self._alone(a, b))

    def _widest(self) -> int:
        """CTAs of the widest clusters that find room for such tiles, no fewer."""
        every, size = self.every, SHARING_MAX if self.every.clusters else 1
        while size > every.widest and self.tiles > every.resident[size]:
            size //= 2
        return size

    def arriving(self, peers: int, split_k: int) -> float:
        """Cycles in clusters that share each tile: no less in any of up to so many CTAs beside
        those that do."""
        at_work, rates = self._at_work(peers, split_k), self.parts_rates(peers)
        return rates[0].of(at_work) if peers == 1 else min([rate.of(at_work) for rate in rates])

    def parts_rates(self, peers: int) -> list[Rate]:
        """Those of the largest clusters of up to so many CTAs that all have tiles."""
        if peers not in self._rates:
            found = [self.parts_rate(shape, self.tiles) for shape in self._shapes(peers)]
            self._rates[peers] = found
        return self._rates[peers]

    def _shapes(self, peers: int) -> set[tuple[int, int]]:
        most_m, most_n = 1 << self.of_m.bit_length() - 1, 1 << self.of_n.bit_length() - 1
        return {(min(along_m, most_m), min(along_n, most_n)) for along_m, along_n in LARGEST[peers]}

    def _at_work(self, peers: int, split_k: int) -> int:
        """The fewest CTAs that are at work in clusters of up to so many beside those that share a
        tile."""
        ctas = self.tiles * split_k
        if self.every.problem.batch == 1:
            return ctas  # or there would be no such parts
        return min(ctas, self.every.least_resident(peers, split_k))

    def first_wave(self, cluster: tuple[int, int], rounds: int) -> Wave:
        """The first of several waves of tiles whose K is whole, in whatever order they come. It
        touches as many rows of tiles times columns of them as it has tiles."""
        asked = cluster, rounds
        if asked not in self._waves:
            self._waves[asked] = self._found_wave(cluster, rounds)
        return self._waves[asked]

    def _found_wave(self, cluster: tuple[int, int], rounds: int) -> Wave:
        every, problem, (along_m, along_n) = self.every, self.every.problem, cluster
        later = early = 0.0
        of_m, of_n = problem.grid(self.tile.but(cluster=cluster))
        tiles = min(every.resident[along_m * along_n], of_m * of_n)
        if every.unaligned:  # as `shared_row_cycles` has it
            columns = min(tiles / of_m, self.of_n) / along_n - SERVED_AT_ONCE
            rows = min(tiles / of_n, self.of_m) / along_m - SERVED_AT_ONCE
            a, b = self.rows * every.inside[0], self.columns * every.inside[1]
            later = every.chip.shared_row * max(0.0, a * columns, b * rows)
        if rounds > 1 and problem.batch == 1:  # as `first_wave_us` has it
            touched = 2 * math.sqrt(tiles / (of_m * of_n) * problem.m * problem.n)
            early = every.first_wave_us * max(0.0, touched - (problem.m + problem.n) / rounds)
        return Wave(later, early)

    def _at_least(self, asked: float) -> float:
        """Cycles at the rate of one multiprocessor, which asks for so many rows itself, no more."""
        every, whole = self.every, self.rows + self.columns
        alone = (whole - every.multicast_share * (whole - asked)) / every.l2_rate
        return alone if alone > self._narrow else self._narrow

    def _alone(self, a: float, b: float) -> float:
        """Cycles at the rate of one multiprocessor, which asks for so many rows of each itself."""
        every, alone = self.every, self._at_least(a + b)
        if every.unaligned:
            inside_a, inside_b = every.inside
            own = every.chip.unaligned_line * (inside_a * a + inside_b * b) / LINE_BYTES
            alone = max(alone, own)
        return alone

    def _most_answered(self) -> float:
        """Rows of each CTA that L2 answers together with those of others, no fewer."""
        tiles, rows = (self.of_m, self.of_n), (self.rows, self.columns)
        return most_answered(tiles, rows, self.tile.group, self.every.chip)

    def _lines_beyond(self, shape: tuple[int, int]) -> float:
        """Cycles of L2 for rows of each CTA of a cluster that go on in a second line."""
        of_a, of_b = self.every.beyond
        if not (of_a or of_b):
            return 0.0
        rows = of_a / (round_up(self.of_m, shape[0]) * shape[1])
        return self.every.line_cycles * (rows + of_b / (round_up(self.of_n, shape[1]) * shape[0]))

    @property
    def _beyond(self) -> tuple[float, float]:
        """Such rows of A and of B of each tile."""
        of_a, of_b = self.every.beyond
        return of_a / self.of_m, of_b / self.of_n

    def _zeros(self, shape: tuple[int, int]) -> float:
        """Cycles of L2 for rows outside of each CTA of a cluster."""
        outside_a, outside_b = self._outside
        if not (outside_a or outside_b):
            return 0.0
        return self.every.zero_cycles * (outside_a / shape[1] + outside_b / shape[0])

    @once
    def _first_rows(self) -> float:
        """Rows that come from DRAM first, as they count there."""
        return self.every.first_rows * few_columns(self.every.problem, self.tile, self.every.target)

    @once
    def _outside(self) -> tuple[float, float]:
        """Rows of A and of B of each CTA that are zeros, no fewer; a single tile has none."""
        (m, n, _), problem, by_tma = self.tile.tile, self.every.problem, self.every.by_tma
        a = m - problem.m / self.of_m if by_tma[0] and self.of_m > 1 else 0.0
        b = n - problem.n / self.of_n if by_tma[1] and self.of_n > 1 else 0.0
        return a, b
