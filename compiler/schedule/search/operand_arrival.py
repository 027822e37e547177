"""How soon operands arrive at the tiles of a shape, in each cluster and with K in parts.

Nothing here imports MLIR.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from ..cached import cached_attribute
from ..edge_boxes import FAR
from ..estimates.costs import few_columns
from ..estimates.estimate import SERVED_AT_ONCE
from ..estimates.l2_costs import most_answered, parted_arriving
from ..extents import round_up
from ..problem import Schedule
from .common import LARGEST, Axis, Common


@functools.lru_cache
def largest_within(peers: int, most_m: int, most_n: int) -> tuple[tuple[int, int], ...]:
    """The same with at most `most_m` CTAs along M and `most_n` along N, both powers of two."""
    shapes = {(min(along_m, most_m), min(along_n, most_n)) for along_m, along_n in LARGEST[peers]}
    return tuple(sorted(shapes))


class Rate(NamedTuple):
    """Cycles until a byte of K of each row has arrived: `each` for every CTA at work, and at least
    `alone`."""

    each: float
    alone: float

    def of(self, at_work: float) -> float:
        """The cycles if that many CTAs are at work."""
        together = at_work * self.each
        return together if together > self.alone else self.alone


class Wave(NamedTuple):
    """The cycles by which the first loads of the first wave come later, and the DRAM time for what
    it asks for beyond its share; both are lower bounds."""

    later: float
    early_us: float


UNKNOWN_WAVE = Wave(0.0, 0.0)


class OperandArrival:
    """The arrival of operands for tiles of one shape, of which there are `tiles` in all and `of_m`
    along M.

    `rows` and `columns` are limited to those of the matrix, `whole` is their sum. With K in parts,
    some rows come from DRAM first. `narrow` is the cycles of one multiprocessor per byte of K for
    rows that fill no line.
    """

    every: Common
    tile: Schedule
    along_m: Axis
    along_n: Axis
    of_m: int
    of_n: int
    tiles: int
    rows: int
    columns: int
    whole: int
    _narrow: float

    @cached_attribute
    def _waves(self) -> dict[tuple[tuple[int, int], int], Wave]:
        return {}

    @cached_attribute
    def _rates(self) -> dict[int, list[Rate]]:
        return {}

    def tiles_in(self, way: Schedule) -> int:
        """A lower bound on the number of tiles in whole clusters."""
        problem, (along_m, along_n) = self.every.problem, way.cluster
        if problem.grouped == "m":  # not all of them have the rows of the mean
            return self.tiles
        return problem.batch * round_up(self.of_m, along_m) * round_up(self.of_n, along_n)

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
        rows = self.whole - every.parts_multicast * (self.whole - a - b)
        beyond = self._lines_beyond(shape) if every.goes_beyond else 0.0
        each = parted_arriving(rows, self._first_rows / tiles, beyond, every.split)
        if self.along_m.past or self.along_n.past:
            each += self._zeros_of_parts(shape)
        return Rate(each, self._alone(a, b) if every.unaligned else self._at_least(a + b))

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
        """The rates in the largest clusters of `shapes_of_split`."""
        if peers not in self._rates:
            shapes = self.shapes_of_split(peers)
            self._rates[peers] = [self.parts_rate(shape, self.tiles) for shape in shapes]
        return self._rates[peers]

    def shapes_of_split(self, peers: int) -> tuple[tuple[int, int], ...]:
        """The largest clusters of up to `peers` groups of CTAs that share a tile, all of which have
        tiles (`split_parts`)."""
        return largest_within(peers, self.along_m.even, self.along_n.even)

    def shapes_of_parts(self) -> tuple[tuple[int, int], ...]:
        """The largest clusters of CTAs with parts of K over the grid."""
        return largest_within(self.every.parts_peers, self.along_m.most, self.along_n.most)

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
        every, whole = self.every, self.whole
        alone = (whole - every.multicast_share * (whole - asked)) / every.l2_rate
        return alone if alone > self._narrow else self._narrow

    def _alone(self, a: float, b: float) -> float:
        """Cycles at the rate of one multiprocessor that asks for this many rows of each operand."""
        every, alone = self.every, self._at_least(a + b)
        if every.unaligned:
            inside_a, inside_b = every.inside
            own = every.unaligned_cycles * (inside_a * a + inside_b * b)
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
        rows = of_a / (self.along_m.wholes[along_m] * along_n)
        return every.line_cycles * (rows + of_b / (self.along_n.wholes[along_n] * along_m))

    def _zeros(self, shape: tuple[int, int]) -> float:
        """L2 cycles for the out-of-bounds rows of each CTA of a cluster."""
        outside_a, outside_b = self.along_m.outside, self.along_n.outside
        return self.every.zero_cycles * (outside_a / shape[1] + outside_b / shape[0])

    def _zeros_of_parts(self, shape: tuple[int, int]) -> float:
        """The same in a CTA with a part of K, whose boxes are whole where no tile has many rows out
        of bounds."""
        along_m, along_n = shape
        if self.of_m % along_m or self.of_n % along_n or not self.keeps_boxes:
            return self._zeros(shape)
        past = self.along_m.past / along_n + self.along_n.past / along_m
        return self.every.zero_cycles * past

    @cached_attribute
    def keeps_boxes(self) -> bool:
        """Whether boxes are whole in parts of K, though they may be cut elsewhere (`_hangs` of
        `edge_boxes.py`)."""
        return self.every.cuts_edges and max(self.along_m.hangs, self.along_n.hangs) <= FAR

    @cached_attribute
    def _first_rows(self) -> float:
        """The number of rows that come from DRAM first, as the estimate counts them."""
        every = self.every
        if not every.problem.swapped:
            return every.first_rows
        return every.first_rows * few_columns(every.problem, self.tile, every.target)
