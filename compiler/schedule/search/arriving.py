"""How soon operands are there, in each cluster and with K in parts, of the tiles of a face.

Nothing here imports MLIR.
"""

from __future__ import annotations

import functools
import math

from ..chips.chip_figures import split_figures
from ..estimates.costs import few_columns
from ..estimates.l2_costs import most_answered, parted_arriving
from ..extents import round_up
from ..problem import LINE_BYTES, Schedule
from .common import Common

LARGEST = {
    1: ((1, 1),),
    2: ((1, 2), (2, 1)),
    4: ((1, 4), (2, 2), (4, 1)),
    8: ((1, 8), (2, 4), (4, 2), (8, 1)),
}
"""The largest clusters of up to so many CTAs."""


class Arriving:
    """Tiles of as many rows and columns, of which there are `tiles` in all, `of_m` along M.

    `rows` and `columns` are those that there are.
    """

    def __init__(self, every: Common, tile: Schedule) -> None:
        problem = every.problem
        self.every, self.tile = every, tile
        self.of_m, self.of_n = problem.tiles(tile)
        self.tiles = math.prod(problem.grid(tile))
        self.rows, self.columns = min(tile.tile[0], problem.m), min(tile.tile[1], problem.n)
        self._arriving: dict[tuple[int, int], float] = {}

    def tiles_in(self, way: Schedule) -> int:
        """Tiles, no fewer, that there are in whole clusters."""
        problem, (along_m, along_n) = self.every.problem, way.cluster
        if problem.grouped == "m":  # not all of them have the rows of the mean
            return self.tiles
        return problem.batch * round_up(self.of_m, along_m) * round_up(self.of_n, along_n)

    def in_parts(self, way: Schedule, parts: int) -> float:
        """Cycles until a byte of K of each row of a part is there in the way's cluster, with so
        many parts of a tile over the grid or more."""
        tiles, at_once = self.tiles_in(way), self.every.resident[way.cluster_size]
        at_work = min(parts * tiles, at_once)
        return self._arriving_in(way.cluster, at_work, at_work / tiles)

    def arriving(self, peers: int, split_k: int) -> float:
        """The same of clusters that share each tile: no less in any of up to so many CTAs beside
        those that do."""
        asked = peers, split_k
        if asked not in self._arriving:
            at_work = self._at_work(*asked)
            part = at_work / self.tiles
            of_shapes = [self._arriving_in(shape, at_work, part) for shape in self._shapes(peers)]
            self._arriving[asked] = min(of_shapes)
        return self._arriving[asked]

    def _shapes(self, peers: int) -> set[tuple[int, int]]:
        """The largest clusters of up to so many CTAs that all have tiles."""
        most_m, most_n = 1 << self.of_m.bit_length() - 1, 1 << self.of_n.bit_length() - 1
        return {(min(along_m, most_m), min(along_n, most_n)) for along_m, along_n in LARGEST[peers]}

    def _at_work(self, peers: int, split_k: int) -> int:
        """The fewest CTAs that are at work in clusters of up to so many beside those that share a
        tile."""
        every, ctas = self.every, self.tiles * split_k
        if every.problem.batch == 1:
            return ctas  # or there would be no such parts
        return min(ctas, *(every.resident[size * split_k] for size in LARGEST if size <= peers))

    def _arriving_in(self, shape: tuple[int, int], at_work: float, part: float = 0.0) -> float:
        """Those of a cluster, and no less in smaller ones, of so many CTAs, as `l2_cycles` has
        it; `part` is how many of them there are for a tile, 0 where K is whole."""
        every, chip, (along_m, along_n) = self.every, self.every.chip, shape
        a, b, whole = self.rows / along_n, self.columns / along_m, self.rows + self.columns
        alone = (whole - chip.multicast * (whole - a - b)) / every.l2_rate
        if every.problem.unaligned:
            inside_a, inside_b = every.inside
            own = chip.unaligned_line * (inside_a * a + inside_b * b) / LINE_BYTES
            alone = max(alone, own)
        beyond = chip.second_line / LINE_BYTES * at_work * self._beyond(along_m, along_n)
        if part:
            first = part * every.problem.batch * (every.problem.m + every.problem.n)
            first *= few_columns(every.problem, self.tile, every.target)
            saved = split_figures(every.target).multicast * (whole - a - b)
            asked = max(first, at_work * (whole - saved))
            arriving = parted_arriving(asked, first, beyond, every.target)
        else:
            answered = self._most_answered if shape == (1, 1) else 0
            arriving = max(at_work * (a + b - answered) / chip.l2_total_rate, beyond)
        outside_a, outside_b = self._outside
        zeros = at_work * (outside_a / along_n + outside_b / along_m)
        return max(alone, arriving + chip.outside_share / LINE_BYTES * zeros)

    @functools.cached_property
    def _most_answered(self) -> float:
        """Rows of each CTA that L2 answers together with those of others, no fewer."""
        tiles, rows = (self.of_m, self.of_n), (self.rows, self.columns)
        return most_answered(tiles, rows, self.tile, self.every.chip)

    def _beyond(self, along_m: int, along_n: int) -> float:
        """Rows of each CTA of a cluster that go on in a second line."""
        of_a, of_b = self.every.beyond
        if not (of_a or of_b):
            return 0.0
        rows = of_a / (round_up(self.of_m, along_m) * along_n)
        return rows + of_b / (round_up(self.of_n, along_n) * along_m)

    @functools.cached_property
    def _outside(self) -> tuple[float, float]:
        """Rows of A and of B of each CTA that are zeros, no fewer; a single tile has none."""
        (m, n, _), problem, by_tma = self.tile.tile, self.every.problem, self.every.by_tma
        a = (m - problem.m / self.of_m) * by_tma[0] if self.of_m > 1 else 0.0
        b = (n - problem.n / self.of_n) * by_tma[1] if self.of_n > 1 else 0.0
        return a, b
