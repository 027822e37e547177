"""How soon operands arrive at the tiles of a shape, in each cluster and with K in parts.

Nothing here imports MLIR.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..estimates.costs import few_columns
from ..estimates.estimate import SERVED_AT_ONCE
from ..estimates.l2_costs import most_answered, parted_arriving
from ..extents import round_up
from ..once import once
from ..problem import LINE_BYTES, Schedule
from .common import Common

LARGEST = {
    1: ((1, 1),),
    2: ((1, 2), (2, 1)),
    4: ((1, 4), (2, 2), (4, 1)),
    8: ((1, 8), (2, 4), (4, 2), (8, 1)),
}
"""The largest cluster shapes of up to that many CTAs."""


class Rate(NamedTuple):
    """Cycles until a byte of K of each row has arrived: `each` for every CTA at work, and at least
    `alone`."""

    each: float
    alone: float

    def of(self, at_work: float) -> float:
        """The cycles if that many CTAs are at work."""
        together = at_work * self.each
        return together if together > self.alone else self.alone


def least_shared(a: float, b: float, peers: int) -> float:
    """The least that one CTA asks for in a cluster of up to `peers` CTAs, if each needs `a` and `b`
    of the operands."""
    if peers == 1:
        return a + b
    square, line = 2 * math.sqrt(a * b / peers), (a + b) / peers
    return square if square > line else line


class Wave(NamedTuple):
    """The cycles by which the first loads of the first wave come later, and the DRAM time for what
    it asks for beyond its share; both are lower bounds."""

    later: float
    early_us: float


UNKNOWN_WAVE = Wave(0.0, 0.0)


class Arriving:
    """The arrival of operands for tiles of one shape, of which there are `tiles` in all and `of_m`
    along M.

    `rows` and `columns` are limited to those of the matrix. With K in parts, some rows come from
    DRAM first. `narrow` is the cycles of one multiprocessor per byte of K for rows that fill no
    line.
    """

    every: Common
    tile: Schedule
    of_m: int
    of_n: int
    tiles: int
    rows: int
    columns: int
    _narrow: float

    @once
    def _waves(self) -> dict[tuple[tuple[int, int], int], Wave]:
        return {}

    @once
    def _rates(self) -> dict[int, list[Rate]]:
        return {}

    def tiles_in(self, way: Schedule) -> int:
        """A lower bound on the number of tiles in whole clusters."""
        problem, (along_m, along_n) = self.every.problem, way.cluster
        if problem.grouped == "m":  # not all of them have the rows of the mean
            return self.tiles
        return problem.batch * round_up(self.of_m, along_m) * round_up(self.of_n, along_n)

    def soonest(self, at_work: float) -> float:
        """A lower bound on the cycles until operands arrive at that many CTAs, each with all of
        K: in any cluster that finds room, or without one, where L2 answers the most requests
        together."""
        every, peers = self.every, self.every.most_shared
        if peers > every.widest:
            peers = self._widest()
        least, least_alone = least_shared(self.rows, self.columns, peers), every.alone_asked
        asked = min(least, least_alone * (self.rows + self.columns))
        alone = self._at_least(least)
        together = at_work * asked / every.l2_total_rate
        return together if together > alone else alone

    def soonest_of_parts(self, peers: int) -> Rate:
        """The same for CTAs with parts of K, in clusters of up to `peers` CTAs with other tiles."""
        every, a, b, beyond = self.every, self.rows, self.columns, 0.0
        asked = whole = a + b
        zeros_a, zeros_b = self._outside
        zeros = zeros_a + zeros_b
        if peers > 1:
            asked = least_shared(a, b, peers)
            zeros = least_shared(zeros_a, zeros_b, peers) if zeros else 0.0
        if every.goes_beyond:
            of_a, of_b = every.beyond
            of_a, of_b = of_a / round_up(self.of_m, peers), of_b / round_up(self.of_n, peers)
            beyond = every.line_cycles * least_shared(of_a, of_b, peers)
        rows = whole - every.parts_multicast * (whole - asked)
        arriving = parted_arriving(rows, self._first_rows / self.tiles, beyond, every.split)
        alone = (whole - every.multicast_share * (whole - asked)) / every.l2_rate
        alone = alone if alone > self._narrow else self._narrow
        return Rate(arriving + every.zero_cycles * zeros, alone)

    def least_of_clusters(self) -> float:
        """A lower bound on the cycles per tile in the best cluster whose CTAs have all of K."""
        every, rate, least = self.every, self.every.l2_total_rate, math.inf
        (line_a, line_b), (outside_a, outside_b) = self._beyond, self._outside
        for m, n in LARGEST[self._widest()]:
            each = (self.rows / n + self.columns / m) / rate
            if every.goes_beyond:
                each = max(each, every.line_cycles * (line_a / n + line_b / m))
            each += every.zero_cycles * (outside_a / n + outside_b / m)
            least = each if each < least else least
        return least

    def whole_rate(self, shape: tuple[int, int]) -> Rate:
        """The rate in a cluster whose CTAs have all of K; it bounds the rate of smaller clusters,
        too."""
        a, b = self.rows / shape[1], self.columns / shape[0]
        answered = self._most_answered() if shape == (1, 1) else 0
        each, beyond = (a + b - answered) / self.every.l2_total_rate, self._lines_beyond(shape)
        each = beyond if beyond > each else each
        return Rate(each + self._zeros(shape), self._alone(a, b))

    def parts_rate(self, shape: tuple[int, int], tiles: int) -> Rate:
        """The rate in a cluster whose CTAs have parts of `tiles` tiles."""
        a, b, every = self.rows / shape[1], self.columns / shape[0], self.every
        rows = (self.rows + self.columns) - every.parts_multicast * (
            (self.rows + self.columns) - a - b
        )
        first, beyond = self._first_rows / tiles, self._lines_beyond(shape)
        each = parted_arriving(rows, first, beyond, every.split)
        return Rate(each + self._zeros(shape), self._alone(a, b))

    def _widest(self) -> int:
        """An upper bound on the CTAs of a cluster that finds room for such tiles."""
        every, size = self.every, self.every.most_shared
        while size > every.widest and self.tiles > every.resident[size]:
            size //= 2
        return size

    def arriving(self, peers: int, split_k: int) -> float:
        """A lower bound on the cycles in clusters that share each tile, with up to `peers` groups
        of such CTAs."""
        at_work, rates = self._at_work(peers, split_k), self.parts_rates(peers)
        least = rates[0].of(at_work)
        for rate in rates[1:]:
            other = rate.of(at_work)
            least = other if other < least else least
        return least

    def parts_rates(self, peers: int) -> list[Rate]:
        """The rates of the largest clusters of up to `peers` CTAs that all have tiles."""
        if peers not in self._rates:
            shapes = LARGEST[peers] if peers == 1 else self._shapes(peers)
            self._rates[peers] = [self.parts_rate(shape, self.tiles) for shape in shapes]
        return self._rates[peers]

    def _shapes(self, peers: int) -> set[tuple[int, int]]:
        most_m, most_n = 1 << self.of_m.bit_length() - 1, 1 << self.of_n.bit_length() - 1
        return {(min(along_m, most_m), min(along_n, most_n)) for along_m, along_n in LARGEST[peers]}

    def _at_work(self, peers: int, split_k: int) -> int:
        """The fewest CTAs that are at work at once in clusters of up to `peers` groups that share a
        tile."""
        ctas = self.tiles * split_k
        if self.every.problem.batch == 1:
            return ctas  # or there would be no such parts
        return min(ctas, self.every.least_resident(peers, split_k))

    def first_wave(self, cluster: tuple[int, int], rounds: int) -> Wave:
        """The first of several waves of tiles with all of K, in whatever order. The rows and
        columns of tiles that it touches multiply to its number of tiles."""
        every = self.every
        early = rounds > 1 and every.problem.batch == 1
        if not (early or every.unaligned):
            return UNKNOWN_WAVE
        asked = cluster, rounds
        if asked not in self._waves:
            self._waves[asked] = self._found_wave(cluster, rounds if early else 1)
        return self._waves[asked]

    def _found_wave(self, cluster: tuple[int, int], rounds: int) -> Wave:
        every, problem, (along_m, along_n) = self.every, self.every.problem, cluster
        later = early = 0.0
        of_m, of_n = self._grid(cluster)
        tiles = min(every.resident[along_m * along_n], of_m * of_n)
        if every.unaligned:  # as `shared_row_cycles` has it
            columns = min(tiles / of_m, self.of_n) / along_n - SERVED_AT_ONCE
            rows = min(tiles / of_n, self.of_m) / along_m - SERVED_AT_ONCE
            a, b = self.rows * every.inside[0], self.columns * every.inside[1]
            later = every.chip.shared_row * max(0.0, a * columns, b * rows)
        if rounds > 1:  # as `first_wave_us` has it
            touched = 2 * math.sqrt(tiles / (of_m * of_n) * problem.m * problem.n)
            early = every.first_wave_us * max(0.0, touched - (problem.m + problem.n) / rounds)
        return Wave(later, early)

    def _grid(self, cluster: tuple[int, int]) -> tuple[int, int]:
        """CTAs along M, of all matrices, and along N, in whole clusters."""
        problem, (along_m, along_n) = self.every.problem, cluster
        if problem.grouped == "m":
            return problem.grid(self.tile.but(cluster=cluster))
        of_m = -(-self.of_m // along_m) * along_m
        return problem.batch * of_m, -(-self.of_n // along_n) * along_n

    def _at_least(self, asked: float) -> float:
        """Cycles at the rate of one multiprocessor that asks for this many rows; a lower bound."""
        every, whole = self.every, self.rows + self.columns
        alone = (whole - every.multicast_share * (whole - asked)) / every.l2_rate
        return alone if alone > self._narrow else self._narrow

    def _alone(self, a: float, b: float) -> float:
        """Cycles at the rate of one multiprocessor that asks for this many rows of each operand."""
        every, alone = self.every, self._at_least(a + b)
        if every.unaligned:
            inside_a, inside_b = every.inside
            own = every.chip.unaligned_line * (inside_a * a + inside_b * b) / LINE_BYTES
            alone = max(alone, own)
        return alone

    def _most_answered(self) -> float:
        """An upper bound on the rows of each CTA that L2 answers together with those of others."""
        tiles, rows = (self.of_m, self.of_n), (self.rows, self.columns)
        return most_answered(tiles, rows, self.tile.group, self.every.chip)

    def _lines_beyond(self, shape: tuple[int, int]) -> float:
        """L2 cycles for the rows of each CTA of a cluster that continue in a second line."""
        every = self.every
        if not every.goes_beyond:
            return 0.0
        (of_a, of_b), (along_m, along_n) = every.beyond, shape
        rows = of_a / (round_up(self.of_m, along_m) * along_n)
        return every.line_cycles * (rows + of_b / (round_up(self.of_n, along_n) * along_m))

    @property
    def _beyond(self) -> tuple[float, float]:
        """The rows of A and of B of each tile that continue in a second line."""
        of_a, of_b = self.every.beyond
        return of_a / self.of_m, of_b / self.of_n

    def _zeros(self, shape: tuple[int, int]) -> float:
        """L2 cycles for the out-of-bounds rows of each CTA of a cluster."""
        outside_a, outside_b = self._outside
        if not (outside_a or outside_b):
            return 0.0
        return self.every.zero_cycles * (outside_a / shape[1] + outside_b / shape[0])

    @once
    def _first_rows(self) -> float:
        """The number of rows that come from DRAM first, as the estimate counts them."""
        every = self.every
        if not every.problem.swapped:
            return every.first_rows
        return every.first_rows * few_columns(every.problem, self.tile, every.target)

    @once
    def _outside(self) -> tuple[float, float]:
        """Lower bounds on the rows of A and of B of each CTA that are out of bounds; a single tile
        has none."""
        (m, n, _), problem, by_tma = self.tile.tile, self.every.problem, self.every.by_tma
        a = m - problem.m / self.of_m if by_tma[0] and self.of_m > 1 else 0.0
        b = n - problem.n / self.of_n if by_tma[1] and self.of_n > 1 else 0.0
        return a, b
