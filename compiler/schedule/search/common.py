"""What all tile shapes of a problem have in common (`tile_shapes.py`): figures of the chip, and
floors of the problem.

Nothing here imports MLIR.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ....dialects.target import Target
from ..chips.chip_figures import figures, split_figures
from ..chips.figure_sets import SplitFigures
from ..edge_boxes import may_cut
from ..estimates.costs import least_dram_bytes, once_bytes, reloaded_bytes
from ..estimates.estimate import SHARING_MAX, cluster_cycles, work_cycles
from ..estimates.group_costs import uneven_groups
from ..extents import round_up
from ..problem import LINE_BYTES, Problem, Schedule
from ..rules.operand_rules import tma_row_pitch
from ..rules.rules import alternating_consumers, split_refusal
from ..rules.staging_rules import stored_by_tma
from ..rules.two_level_rules import added_cluster
from ..schedule import PLAIN
from ..waves import resident_in_clusters
from .candidates import PART_CLUSTER, parts_in_waves, widest_in_waves
from .kind_cache import KindCache

ONE, IN_TURN = PLAIN, PLAIN.but(scheduler="static")
PING_PONG = IN_TURN.but(ping_pong=True)
TILES_OF_ONE = IN_TURN.but(tile=(1, 1, 1))
SOME_CLUSTER = PLAIN.but(cluster=(1, 2))
CLUSTER_SIDES = 1, 2, 4, 8
LARGEST = {
    1: ((1, 1),),
    2: ((1, 2), (2, 1)),
    4: ((1, 4), (2, 2), (4, 1)),
    8: ((1, 8), (2, 4), (4, 2), (8, 1)),
}
"""The largest cluster shapes of up to that many CTAs."""
ALONE, PARTED = PLAIN, PLAIN.but(split_grid=2)
PARTED_IN_CLUSTERS = {
    size: [PARTED if size == 1 else PARTED.but(cluster=shape) for shape in shapes]
    for size, shapes in LARGEST.items()
    if size <= PART_CLUSTER
}


class Axis(NamedTuple):
    """The tiles of one extent along M or N, and what L2 is asked for by each of them.

    `rows` of a tile are in the matrix, and at least `outside` are not: TMA fills these with zeros,
    unless boxes may be cut; `past` are not where boxes are whole. Of the last tile, `hangs` is the
    share for which boxes may be cut.
    `beyond` rows continue in a second line of L2. `most` is the largest power of two up to 8 of
    CTAs that all have tiles, `even` the largest that divides the tiles. `wholes` are the tiles in
    whole clusters of 1, 2, 4 and 8 CTAs, infinitely many where these do not all have tiles.
    """

    tiles: int
    rows: int
    outside: float
    beyond: float
    most: int
    even: int
    wholes: dict[int, float]
    past: float
    hangs: float


class SplitRates(NamedTuple):
    """Figures of operands that arrive for parts of K, as plain numbers, which Python multiplies
    faster."""

    first_rate: float
    l2_rate: float
    share: float
    multicast: float

    @staticmethod
    def of(split: SplitFigures) -> SplitRates:
        return SplitRates(*[float(getattr(split, name)) for name in SplitRates._fields])


def _in_whole(tiles: int, size: int) -> float:
    return round_up(tiles, size) if size <= tiles else math.inf


class Common:
    """The values that a search needs of a problem for all its tile shapes.

    With `most_m` the floors hold for all numbers of rows from the problem's up to that: clusters
    are as large as they are with any of them, and no rows are out of bounds along that axis.
    """

    def __init__(self, problem: Problem, target: Target, most_m: int = 0) -> None:
        self.problem, self.target, self.chip = problem, target, figures(target)
        self._rows_axis, self._most_m = int(problem.swapped), most_m
        self.kind = KindCache(problem, target)
        measured = self.chip.parts is not None and self.chip.split is not None
        self.parted = measured and problem.parts_refusal(target) is None
        self.staged = stored_by_tma(problem, target) is None
        self.cycle_us, self._overlap = 1 / (self.chip.clock * 1e3), float(self.chip.dram_share)
        self.widest = widest_in_waves(target)
        self.resident = {
            size: resident_in_clusters(size, target) for size in range(1, SHARING_MAX + 1)
        }
        self.at_once, self.multiprocessors = self.resident[1], target.multiprocessors
        self.batch, self.ragged = problem.batch, problem.grouped == "m"
        self.epilogues = self.kind.known("epilogue")
        self.split_at_once = {
            parts: max([at_once for size, at_once in self.resident.items() if size % parts == 0])
            for parts in self.resident
        }
        self.multicast = tma_row_pitch(problem, SOME_CLUSTER, target) is None
        self.parts_peers = PART_CLUSTER if self.multicast else 1
        self.part_sizes = self._part_sizes()
        self.clusters = self.multicast and added_cluster(problem, SOME_CLUSTER, target) is None
        self.most_shared = SHARING_MAX if self.clusters else 1
        self.fits_l2 = once_bytes(problem) - problem.moved_bytes <= self.chip.l2_size
        self.l2_rate = float(self.chip.l2_rate)
        self.multicast_share = float(self.chip.multicast)
        self.l2_total_rate = float(self.chip.l2_total_rate)
        self.line_cycles = self.chip.second_line / LINE_BYTES
        self.unaligned_cycles = self.chip.unaligned_line / LINE_BYTES
        self.zero_cycles = self.chip.outside_share / LINE_BYTES
        self.cuts_edges = not problem.beside and may_cut(problem, target)
        self.alone_asked = 1 - self.chip.answered_together
        self.split: Any = SplitRates.of(split_figures(target)) if self.chip.split else None
        self.parts_multicast = self.split.multicast if self.split else 0.0
        self.first_rows = problem.batch * (problem.m + problem.n)
        self.unaligned = bool(problem.unaligned)
        self.transposed = "mn" in (problem.a_major, problem.b_major)
        self.k_major = problem.a_major == "k", problem.b_major == "k"
        self.inside = float("a" in problem.unaligned), float("b" in problem.unaligned)
        # Of groups there may be more tiles than their mean rows tell.
        known = problem.grouped != "m"
        self.by_tma = known and problem.by_tma("a"), known and problem.by_tma("b")
        beyond = problem.lines_beyond if known else {}
        self.beyond = problem.m * beyond.get("a", 0), problem.n * beyond.get("b", 0)
        self.goes_beyond = any(self.beyond)
        self.splits = split_refusal(problem, target) is None
        self.second_share = float(self.chip.second_share)
        self.uneven, self.cut = uneven_groups(problem, ONE, target), problem.cut
        row_bytes = problem.k * problem.element_bytes
        self.first_wave_us = self.chip.first_wave * row_bytes / self.chip.dram_rate
        self.reload = self._reload()
        self.once_us = once_bytes(problem) / self.chip.dram_rate
        self.before = float(self.chip.cta_start + self.chip.tma_latency)
        self.started = {n: self.before + cluster_cycles(n, self.chip) for n in self.resident}
        self._axes: dict[tuple[int, int], Axis] = {}
        self._least_resident: dict[tuple[int, int], int] = {}
        self._steps: dict[Sequence[int], tuple[list[int], int]] = {}
        self.split_at_work = self._split_at_work()
        self._waves_of_parts: dict[tuple[Sequence[int], int, int], list[tuple[int, int, int]]] = {}

    def _reload(self) -> tuple[float, int]:
        """The DRAM time for what CTAs of several tiles ask for again, unless a cluster has all
        tiles along an axis, and that axis."""
        if not self.fits_l2:
            return 0.0, 0
        reload = reloaded_bytes(self.problem, TILES_OF_ONE, self.target)
        return reload / self.chip.dram_rate, int(self.problem.m > self.problem.n)

    def _part_sizes(self) -> list[tuple[int, int, list[Schedule]]]:
        """The sizes of the clusters of parts over the grid, with the most tiles that these may have
        and a way for each of their shapes."""
        return [
            (size, self.multiprocessors if size <= self.widest else self.resident[size], ways)
            for size, ways in PARTED_IN_CLUSTERS.items()
            if size <= self.parts_peers
        ]

    def _split_at_work(self) -> float:
        """Of the CTAs that run at once where parts of K are in a cluster, the share that is at work
        at least; in a stack there may be more CTAs than that."""
        if self.batch == 1:
            return 1.0
        shares = [
            self.least_resident(SHARING_MAX // parts, parts) / at_once
            for parts, at_once in self.split_at_once.items()
        ]
        return min(shares)

    def work_of(self, order: Schedule, rounds: int, tile: tuple[float, float, float]) -> float:
        """Cycles of the busiest multiprocessor as in `work_cycles`; a lower bound where rows are
        grouped."""
        work = work_cycles(self.problem, order, rounds, tile, self.target)
        return work if order.ping_pong else self.uneven * work

    def axis(self, number: int, extent: int) -> Axis:
        """The tiles of an extent along M (0) or N (1)."""
        asked = number, extent
        if asked not in self._axes:
            self._axes[asked] = self._axis(number, extent)
        return self._axes[asked]

    def _axis(self, number: int, extent: int) -> Axis:
        size = (self.problem.m, self.problem.n)[number]
        largest = self._most_m if self._most_m and number == self._rows_axis else size
        tiles, most_tiles = -(-size // extent), -(-largest // extent)
        # A single tile has a box of its rows.
        whole = tiles == 1 or largest > size or not self.by_tma[number]
        past = 0.0 if whole else extent - size / tiles
        every_count = range(tiles, min(tiles + SHARING_MAX, most_tiles + 1))
        even = max([count & -count for count in every_count])
        return Axis(
            tiles,
            rows=min(extent, size),
            outside=0.0 if self.cuts_edges else past,
            beyond=self.beyond[number] / tiles,
            most=1 << min(most_tiles.bit_length(), 4) - 1,
            even=min(even, SHARING_MAX),
            wholes={side: _in_whole(tiles, side) for side in CLUSTER_SIDES},
            past=past,
            hangs=tiles - size / extent if size >= extent and self.k_major[number] else 0.0,
        )

    def tiles_of(self, tile: Schedule) -> int:
        """The number of tiles of groups, which may end anywhere."""
        return math.prod(self.problem.grid(tile))

    def may_alternate(self, tile: Schedule) -> bool:
        """Whether two ping-pong consumers may have such tiles."""
        if not self.staged or self.target.mma_warpgroups(*tile.tile[:2]) != 1:
            return False
        in_turns = PING_PONG.but(tile=tile.tile, swap=tile.swap)
        return alternating_consumers(self.problem, in_turns, self.target) is None

    def least_dram_us(self, tile: Schedule) -> float:
        """The least DRAM time of any order of such tiles; `once_us` if L2 holds A and B."""
        return least_dram_bytes(self.problem, tile, self.target) / self.chip.dram_rate

    def least_resident(self, peers: int, split_k: int) -> int:
        """The fewest CTAs that run at once, over clusters in which up to `peers` groups of CTAs
        share operands and `split_k` CTAs share each tile."""
        if (peers, split_k) not in self._least_resident:
            sizes = [size for size in (1, 2, 4, 8) if size <= peers]
            self._least_resident[peers, split_k] = min(
                [self.resident[size * split_k] for size in sizes]
            )
        return self._least_resident[peers, split_k]

    def steps_of(self, depths: Sequence[int]) -> tuple[list[int], int]:
        """For each number of parts of K, the fewest bytes of a row that one part takes, over all
        depths; and the most steps of the whole K."""
        if depths not in self._steps:
            k, size = self.problem.k, self.problem.element_bytes
            part_bytes = [0] + [
                size * min([-(-k // (depth * parts)) * depth for depth in depths])
                for parts in range(1, SHARING_MAX + 1)
            ]
            self._steps[depths] = part_bytes, -(-k // depths[0])
        return self._steps[depths]

    def waves_of_parts(
        self, depths: Sequence[int], tiles: int, at_once: int
    ) -> list[tuple[int, int, int]]:
        """The numbers of parts of K that fill whole waves of `at_once` CTAs: for each the number of
        waves, the parts, and the fewest bytes of a row per part over all depths."""
        known, asked = self._waves_of_parts, (depths, tiles, at_once)
        if asked not in known:
            least: dict[tuple[int, int], int] = {}
            for depth in depths:
                steps = -(-self.problem.k // depth)
                for waves, each in parts_in_waves(steps, tiles, at_once):
                    filled, elements = (waves, -(-steps // each)), each * depth
                    least[filled] = min(least.get(filled, elements), elements)
            size = self.problem.element_bytes
            known[asked] = [(*filled, size * elements) for filled, elements in least.items()]
        return known[asked]

    def total_us(
        self, work: float, loops: float, ends: float, dram_us: float, early_us: float = 0.0
    ) -> float:
        """`combined_us` for cycles of work, of which `loops` are main loops, and cycles before and
        after them.

        Written out here, since a search asks thousands of times.
        """
        cycle_us = self.cycle_us
        work_us, loops_us, streaming_us = cycle_us * work, cycle_us * loops, cycle_us * ends
        streaming_us += dram_us
        longest_us = work_us if work_us > streaming_us else streaming_us
        return longest_us + self._overlap * (loops_us if loops_us < dram_us else dram_us) + early_us
