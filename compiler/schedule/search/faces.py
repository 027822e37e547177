"""What tiles of as many rows and columns have in common, whatever K they take at a time: how many
there are, what clusters of them share, their epilogues at least.

Nothing here imports MLIR.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from ....dialects.legality import PARTIAL_BYTES
from ....dialects.target import Target
from ..chips.chip_figures import figures, split_figures
from ..estimates.costs import copy_cycles, few_columns, least_dram_bytes, once_bytes
from ..estimates.estimate import (
    SHARING_MAX,
    Order,
    cluster_cycles,
    epilogue_cycles,
    held_slots,
    order_of,
)
from ..estimates.l2_costs import most_answered, parted_arriving
from ..extents import round_up
from ..problem import LINE_BYTES, Problem, Schedule
from ..rules.operand_rules import tma_row_pitch
from ..rules.rules import PART_K_TILES, accumulator_registers, alternating_consumers, split_refusal
from ..rules.staging_rules import stored_by_tma
from ..schedule import PLAIN
from ..waves import resident_in_clusters
from .candidates import PART_CLUSTER, PART_MARGIN, widest_in_waves
from .least_epilogue import least_epilogue_cycles
from .least_parts import Sums, most_at_once
from .stores import LeastStore, least_of_stores

LARGEST = {
    1: ((1, 1),),
    2: ((1, 2), (2, 1)),
    4: ((1, 4), (2, 2), (4, 1)),
    8: ((1, 8), (2, 4), (4, 2), (8, 1)),
}
"""The largest clusters of up to so many CTAs."""
ALONE, PARTED = PLAIN, PLAIN.but(split_grid=2)
IN_CLUSTERS = [PLAIN.but(cluster=shape) for shape in sum(LARGEST.values(), ()) if shape != (1, 1)]
SOME_CLUSTER = IN_CLUSTERS[0]
PARTED_IN_CLUSTERS = [PARTED] + [
    way.but(split_grid=2) for way in IN_CLUSTERS if way.cluster_size <= PART_CLUSTER
]
SPLIT = {parts: PLAIN.but(split_k=parts) for parts in range(2, SHARING_MAX + 1)}
ONE, IN_TURN = PLAIN, PLAIN.but(scheduler="static")
PING_PONG = IN_TURN.but(ping_pong=True)


class Faces:
    """Those of a problem, and what they have in common."""

    def __init__(self, problem: Problem, target: Target) -> None:
        self.problem, self.target, self.chip = problem, target, figures(target)
        measured = self.chip.parts is not None and self.chip.split is not None
        self.parted = measured and problem.parts_refusal() is None
        self.staged = stored_by_tma(problem, target) is None
        self._us, self._overlap = 1 / (self.chip.clock * 1e3), float(self.chip.dram_share)
        self.widest = widest_in_waves(target)
        self.resident = {
            size: resident_in_clusters(size, target) for size in range(1, SHARING_MAX + 1)
        }
        self.split_at_once = {
            parts: max([at_once for size, at_once in self.resident.items() if size % parts == 0])
            for parts in self.resident
        }
        self.multicast = tma_row_pitch(problem, SOME_CLUSTER, target) is None
        self.fits_l2 = once_bytes(problem) - problem.moved_bytes() <= self.chip.l2_size
        self.l2_rate, self.shared_least = float(self.chip.l2_rate), 1 - self.chip.multicast
        rows = problem.batch * (problem.m + problem.n)
        self.first = rows / split_figures(target).first_rate if self.chip.split else 0
        self.inside = float("a" in problem.unaligned), float("b" in problem.unaligned)
        # Of groups there may be more tiles than their mean rows tell.
        known = problem.grouped != "m"
        self.by_tma = known and problem.by_tma("a"), known and problem.by_tma("b")
        beyond = problem.lines_beyond if known else {}
        self.beyond = problem.m * beyond.get("a", 0), problem.n * beyond.get("b", 0)
        self.splits = split_refusal(problem, target) is None
        self.copies = not (problem.by_tma("a") and problem.by_tma("b"))
        self.mma_rate, self.second_share = float(self.chip.mma_rate), float(self.chip.second_share)
        self.step_least = float(self.chip.step_least)
        self._once_us = once_bytes(problem) / self.chip.dram_rate
        self.before = float(self.chip.cta_start + self.chip.tma_latency)
        self.started = {n: self.before + cluster_cycles(n, self.chip) for n in self.resident}
        self._part_bytes: dict[tuple[Sequence[int], int], int] = {}

    def may_alternate(self, tile: Schedule) -> bool:
        """Whether two consumers may take turns with such tiles."""
        in_turns = PING_PONG.but(tile=tile.tile, swap=tile.swap)
        legal = self.staged and (self.target.mma_warpgroups(*tile.tile[:2]) or 0) == 1
        return legal and alternating_consumers(self.problem, in_turns, self.target) is None

    def least_dram_us(self, tile: Schedule) -> float:
        """That no order of such tiles has DRAM move less."""
        if self.fits_l2:
            return self._once_us
        return least_dram_bytes(self.problem, tile, self.target) / self.chip.dram_rate

    def part_bytes(self, depths: Sequence[int], parts: int) -> int:
        """The fewest bytes of a row that one of so many parts of K takes, in steps of one depth."""
        known, asked = self._part_bytes, (depths, parts)
        if asked not in known:
            k = self.problem.k
            least = min([-(-k // (depth * parts)) * depth for depth in depths])
            known[asked] = least * self.problem.element_bytes
        return known[asked]

    def of(self, tile: Schedule, depths: Sequence[int]) -> Face | None:
        """That of tiles of several K, the least first; None where threads can't hold sums."""
        if accumulator_registers(self.problem, tile, self.target):
            return None
        return Face(self, tile, depths)

    def total_us(
        self, work: float, loops: float, ends: float, dram_us: float, early_us: float = 0.0
    ) -> float:
        """`combined_us` for so many cycles of work, of which those of main loops and those around.

        By itself: a search asks thousands of times.
        """
        work_us, loops_us, streaming_us = self._us * work, self._us * loops, self._us * ends
        streaming_us += dram_us
        longest_us = work_us if work_us > streaming_us else streaming_us
        return longest_us + self._overlap * (loops_us if loops_us < dram_us else dram_us) + early_us


class Face:
    """One of them. There are `tiles` in all, `crowded` where those are more than run at once.

    `most_split` are the most CTAs of a cluster that share a tile; it may be `parted` over the grid.
    `several` are the ways from tile to tile of a CTA that differ in their time, `held` the slots of
    a ring that are released a step late. `rows` and `columns` are those that there are.
    """

    def __init__(self, every: Faces, tile: Schedule, depths: Sequence[int]) -> None:
        problem, target = every.problem, every.target
        self.every, self.tile, self.depths = every, tile, depths
        self.of_m, self.of_n = problem.tiles(tile)
        self.tiles = math.prod(problem.grid(tile))
        self.crowded = self.tiles > target.multiprocessors
        self.most_split = min(SHARING_MAX, target.multiprocessors // (self.of_m * self.of_n))
        self.most_split = self.most_split if every.splits else 1
        self.parted = every.parted and not self.crowded
        self.rows, self.columns = min(tile.tile[0], problem.m), min(tile.tile[1], problem.n)
        self.epilogue = least_epilogue_cycles(problem, tile, every.staged, target)
        self.dram_us = every.least_dram_us(tile)
        self.held = held_slots(problem, tile, target)
        self.several = (IN_TURN, PING_PONG) if every.may_alternate(tile) else (IN_TURN,)
        self._arriving: dict[tuple[int, int], float] = {}
        self._in_clusters: dict[tuple[int, int], tuple[float, int]] = {}
        self._orders: dict[tuple[object, ...], Order] = {}
        self._stores: dict[bool, list[LeastStore]] = {}
        self._sums: Sums | None = None
        m, n, _ = tile.tile
        k_bytes = depths[-1] * problem.element_bytes
        computed = round_up(m, target.mma.m[-1]) * n / every.mma_rate
        copied = every.copies and copy_cycles(problem, tile.but(tile=(m, n, depths[-1])), target)
        busy = computed, copied / k_bytes, every.step_least / k_bytes
        _, self._faster, self._slower = sorted(busy)

    def least_epilogue_of(self, order: Schedule) -> float:
        """Cycles of the epilogue with a way to store that takes no longer than any."""
        return self._least_in_turns if order.ping_pong else self.epilogue

    @functools.cached_property
    def _least_in_turns(self) -> float:
        """Of consumers in turns, each of which has the code of it, and stores by TMA."""
        every, in_turns = self.every, self.tile.but(ping_pong=True)
        return least_epilogue_cycles(every.problem, in_turns, every.staged, every.target)

    def stores_of(self, order: Schedule) -> list[LeastStore]:
        """What ways to store ask for at least, whatever K a tile takes."""
        if order.ping_pong not in self._stores:
            every, tile = self.every, self.tile.but(ping_pong=order.ping_pong)
            found = least_of_stores(every.problem, tile, every.target, epilogue_cycles)
            self._stores[order.ping_pong] = found
        return self._stores[order.ping_pong]

    def order_of(self, order: Schedule) -> Order:
        """What an order's schedules have in common, whatever K they take and whoever hands out."""
        alone, cluster = order.scheduler == "none", order.cluster
        asked = alone, order.order, cluster, order.split_k, order.split_grid
        if asked not in self._orders:
            self._orders[asked] = order_of(self.every.problem, order, self.every.target)
        return self._orders[asked]

    def ways(self) -> list[tuple[float, Schedule]]:
        """K as a whole, alone and in clusters, and in parts of a cluster or over the grid: what no
        tile of it is estimated to beat, in microseconds, and the way without its tile.

        Operands arrive at the rate of one multiprocessor, or those of parts from DRAM.
        """
        every, steps = self.every, -(-self.every.problem.k // self.depths[0])
        whole = self.rows + self.columns
        alone, shared = whole / every.l2_rate, whole * every.shared_least / every.l2_rate
        rounds = self.rounds_of_split(1)
        found = [(self._whole_us(alone, ALONE, rounds), ALONE)]
        if every.multicast and self.of_m * self.of_n > 1:
            found.append((self._whole_us(shared, SOME_CLUSTER, rounds), SOME_CLUSTER))
        for parts in range(2, min(self.most_split, (steps - 1) // (PART_K_TILES - 1)) + 1):
            if self.of_m * self.of_n * parts <= every.split_at_once[parts]:
                part = self._at_work(SHARING_MAX // parts, parts) / self.tiles
                arriving = max(shared, part * every.first)
                found.append((self._split_us(arriving, parts), SPLIT[parts]))
        if self.parted and steps >= 2 * PART_K_TILES:
            found.append((PART_MARGIN * self._parts_us(shared, PARTED), PARTED))
        return found

    def refined(self, way: Schedule) -> list[tuple[float, Schedule]]:
        """The same of a way, with what L2 gives to all, and in each cluster but of those that share
        tiles."""
        if way.split_grid > 1:
            every = filter(self._has_parts, PARTED_IN_CLUSTERS)
            found = [(self._parts_us(self.in_parts(one, 2), one), one) for one in every]
            return [(PART_MARGIN * us, one) for us, one in found]
        if way.split_k > 1:
            parts = way.split_k
            return [(self._split_us(self.arriving(self.peers_of_split(parts), parts), parts), way)]
        every = [way] if way.cluster_size == 1 else filter(self._finds_room, IN_CLUSTERS)
        taken = [(one, *self.in_cluster(one)) for one in every]
        return [(self._whole_us(arriving, one, rounds), one) for one, arriving, rounds in taken]

    def _finds_room(self, way: Schedule) -> bool:
        """Whether all CTAs of a way's clusters have tiles, and run at once if these are wide."""
        (along_m, along_n), size = way.cluster, way.cluster_size
        if along_m > self.of_m or along_n > self.of_n:
            return False
        return size <= self.every.widest or self.tiles_in(way) <= self.every.resident[size]

    def _has_parts(self, way: Schedule) -> bool:
        """Whether all CTAs of a way's clusters have tiles, and others have parts of them."""
        if way.cluster_size > 1 and not (self.every.multicast and self._finds_room(way)):
            return False
        return self.tiles_in(way) <= self.every.target.multiprocessors

    def tiles_in(self, way: Schedule) -> int:
        """Tiles, no fewer, that there are in whole clusters."""
        problem, (along_m, along_n) = self.every.problem, way.cluster
        if problem.grouped == "m":  # not all of them have the rows of the mean
            return self.tiles
        return problem.batch * round_up(self.of_m, along_m) * round_up(self.of_n, along_n)

    def in_cluster(self, way: Schedule) -> tuple[float, int]:
        """Cycles until a byte of K of each row is there in the way's cluster, and waves."""
        if way.cluster not in self._in_clusters:
            tiles, at_once = self.tiles_in(way), self.every.resident[way.cluster_size]
            rounds = -(-tiles // at_once)
            self._in_clusters[way.cluster] = self._arriving_in(way.cluster, tiles / rounds), rounds
        return self._in_clusters[way.cluster]

    def _whole_us(self, arriving: float, way: Schedule, rounds: int) -> float:
        """With K as a whole, alone or in a cluster, in so many waves."""
        every, loops, epilogue = self.every, self._least_loops(arriving), self.epilogue
        before = every.started[way.cluster_size]
        work = before + loops + epilogue
        if rounds > 1:
            period = loops + epilogue
            if len(self.several) > 1:  # in turns
                shorter = epilogue if epilogue < loops else loops
                period = max(loops, period / 2) + every.second_share * shorter
            work += (rounds - 1) * period
        return every.total_us(work, rounds * loops, before + epilogue, self.dram_us)

    def _least_loops(self, arriving: float, parts: int = 1) -> float:
        """Cycles of the steps of one of so many parts, with one of the depths at a time, where a
        byte of K of each row takes so long to arrive."""
        every, slowest, second = self.every, self._slower, self._faster
        if arriving > slowest:
            slowest, second = arriving, slowest
        elif arriving > second:
            second = arriving
        return every.part_bytes(self.depths, parts) * (slowest + every.second_share * second)

    def _split_us(self, arriving: float, parts: int) -> float:
        """With K in so many parts of a cluster, in which others may share operands."""
        every, (m, n, _) = self.every, self.tile.tile
        split = split_figures(every.target)
        sums = m * n * PARTIAL_BYTES / split.rate + split.latency * parts
        ends = every.before + split.start + sums
        work = self.rounds_of_split(parts) * (self._least_loops(arriving, parts) + ends)
        return every.total_us(work, 0, ends, self.dram_us)

    def _parts_us(self, arriving: float, way: Schedule) -> float:
        """With K in as many parts over the grid as take the least."""
        every, sums = self.every, self.sums
        most = most_at_once(self.tiles_in(way), every.resident[way.cluster_size])
        most = min(most, -(-every.problem.k // self.depths[0]) / PART_K_TILES)
        if most <= 1:
            return math.inf
        loops = self._least_loops(arriving)
        parts = min(most, max(2.0, math.sqrt(loops / sums.of_one)))
        ends = every.started[way.cluster_size] + sums.written + sums.gathered
        work = ends + loops / parts + max(0, parts - 2) * sums.of_one
        return every.total_us(work, 0, ends, self.dram_us)

    def rounds_of_split(self, parts: int) -> int:
        """Waves of clusters that share a tile each, of so many CTAs."""
        return -(-self.tiles * parts // self.every.split_at_once[parts])

    @property
    def sums(self) -> Sums:
        """What sums of parts over the grid take."""
        if self._sums is None:
            self._sums = Sums.of(self.every.problem, self.tile, self.every.target)
        return self._sums

    def peers_of_split(self, parts: int) -> int:
        """The most CTAs of a cluster beside so many that share each tile: tiles are whole clusters
        then (`split_parts`)."""
        peers = SHARING_MAX // parts if self.every.multicast else 1
        while not any(self._is_cut_by(*shape) for shape in LARGEST[peers]):
            peers //= 2
        return peers

    def _is_cut_by(self, along_m: int, along_n: int) -> bool:
        return self.of_m % along_m == self.of_n % along_n == 0

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
