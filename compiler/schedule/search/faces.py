"""What tiles of as many rows and columns have in common, whatever K they take at a time: how many
there are, what clusters of them share, their epilogues at least.

Nothing here imports MLIR.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

from ....dialects.legality import PARTIAL_BYTES
from ..chips.chip_figures import split_figures
from ..estimates.costs import asked_again_bytes, computed_cycles
from ..estimates.estimate import (
    SHARING_MAX,
    Order,
    epilogue_cycles,
    held_slots,
    order_of,
    own_cycles,
)
from ..problem import Schedule
from ..rules.rules import PART_K_TILES, accumulator_registers
from ..schedule import PLAIN
from .arriving import LARGEST, UNKNOWN_WAVE, Arriving, Rate, Wave
from .candidates import PART_CLUSTER, PART_MARGIN
from .common import IN_TURN, PING_PONG, SOME_CLUSTER, Common
from .least_epilogue import least_epilogue_cycles
from .least_parts import Sums, most_at_once
from .stores import LeastStore, least_of_stores

ALONE, PARTED = PLAIN, PLAIN.but(split_grid=2)
IN_CLUSTERS = [PLAIN.but(cluster=shape) for shape in sum(LARGEST.values(), ()) if shape != (1, 1)]
PARTED_IN_CLUSTERS = [PARTED] + [
    way.but(split_grid=2) for way in IN_CLUSTERS if way.cluster_size <= PART_CLUSTER
]
SPLIT = {parts: PLAIN.but(split_k=parts) for parts in range(2, SHARING_MAX + 1)}


class Faces(Common):
    """Those of a problem."""

    def of(self, tile: Schedule, depths: Sequence[int]) -> Face | None:
        """That of tiles of several K, the least first; None where threads can't hold sums."""
        own = self.kind.of(("face", tile.tile, depths), _own_of, self, tile, depths)
        return None if own is None else Face(self, tile, depths, own)


class Own(NamedTuple):
    """What tiles have of their own, whatever the sizes of the problem: cycles of the epilogue with
    a way to store that takes no longer than any, slots of a ring that are released a step late, and
    cycles for a byte of K of the two resources of a multiprocessor that it takes the most of."""

    epilogue: float
    held: int
    second: float
    slowest: float


def _own_of(every: Common, tile: Schedule, depths: Sequence[int]) -> Own | None:
    """That of tiles of several K; None where threads can't hold sums."""
    problem, target, deepest = every.problem, every.target, depths[-1]
    if accumulator_registers(problem, tile, target):
        return None
    *_, second, slowest = sorted(_own_cycles(every, tile, deepest).values())
    k_bytes = deepest * problem.element_bytes
    held = held_slots(problem, tile, target)
    return Own(_least_epilogue(every, tile), held, second / k_bytes, slowest / k_bytes)


def _least_epilogue(every: Common, tile: Schedule) -> float:
    asked = "epilogue", tile.tile[:2], tile.ping_pong
    return every.kind.of(asked, least_epilogue_cycles, every.problem, tile, every.target)


def _own_cycles(every: Common, tile: Schedule, depth: int) -> dict[str, float]:
    deep = tile.but(tile=(*tile.tile[:2], depth))
    return every.kind.of(("own", deep.tile), own_cycles, every.problem, deep, every.target)


class Face(Arriving):
    """One of them, `crowded` where there are more tiles than run at once.

    `most_split` are the most CTAs of a cluster that share a tile; it may be `parted` over the grid.
    `held` are the slots of a ring that are released a step late.
    """

    def __init__(self, every: Common, tile: Schedule, depths: Sequence[int], own: Own) -> None:
        super().__init__(every, tile)
        multiprocessors = every.target.multiprocessors
        self.depths = depths
        self.crowded = self.tiles > multiprocessors
        self.most_split = 1
        if every.splits:
            self.most_split = min(SHARING_MAX, multiprocessors // (self.of_m * self.of_n))
        self.parted = every.parted and not self.crowded
        self.epilogue, self.held, self._faster, self._slower = own
        self.dram_us = every.least_dram_us(tile)
        self._part_bytes = every.part_bytes(depths)
        self._in_clusters: dict[tuple[int, int], tuple[float, int]] = {}
        self._again_us: dict[tuple[int, int], float] = {}
        self._orders: dict[tuple[object, ...], Order] = {}
        self.orders: dict[tuple[object, ...], list[tuple[Schedule, Order]]] = {}
        self._stores: dict[bool, list[LeastStore]] = {}
        self._sums: Sums | None = None
        self._split_ends: tuple[float, float, float] | None = None
        self._most_steps = -(-every.problem.k // depths[0])

    @functools.cached_property
    def several(self) -> tuple[Schedule, ...]:
        """The ways from tile to tile of a CTA that differ in their time."""
        return (IN_TURN, PING_PONG) if self.every.may_alternate(self.tile) else (IN_TURN,)

    def least_epilogue_of(self, order: Schedule) -> float:
        """Cycles of the epilogue with a way to store that takes no longer than any."""
        return self._least_in_turns if order.ping_pong else self.epilogue

    @functools.cached_property
    def _least_in_turns(self) -> float:
        """Of consumers in turns, each of which has the code of it, and stores by TMA."""
        return _least_epilogue(self.every, self.tile.but(ping_pong=True))

    def own_cycles(self, depth: int) -> dict[str, float]:
        """Cycles of a step with so much of K that each resource of a multiprocessor takes."""
        return _own_cycles(self.every, self.tile, depth)

    def stores_of(self, order: Schedule) -> list[LeastStore]:
        """What ways to store ask for at least, whatever K a tile takes."""
        if order.ping_pong not in self._stores:
            every, tile = self.every, self.tile.but(ping_pong=order.ping_pong)
            how = every.problem, tile, every.target, epilogue_cycles
            asked = "stores", tile.tile, tile.ping_pong
            self._stores[order.ping_pong] = every.kind.of(asked, least_of_stores, *how)
        return self._stores[order.ping_pong]

    def order_of(self, order: Schedule) -> Order:
        """What an order's schedules have in common, whatever K they take and whoever hands out."""
        alone, cluster = order.scheduler == "none", order.cluster
        asked = alone, order.order, cluster, order.split_k, order.split_grid
        if asked not in self._orders:
            self._orders[asked] = order_of(self.every.problem, order, self.every.target)
        return self._orders[asked]

    def floor_us(self) -> float:
        """What no schedule of such tiles is estimated to beat, in microseconds, sooner found than
        the same of their ways."""
        rounds = self.rounds_of_split(1)
        us = self._whole_us(self.soonest(self.tiles / rounds), ALONE, rounds, 0.0)
        for parts in self._splits():
            peers = SHARING_MAX // parts
            arriving = self.soonest_of_parts(peers).of(self._at_work(peers, parts))
            us = min(us, self._split_us(arriving, parts))
        if not self._in_parts:
            return us
        return min(us, PART_MARGIN * self._some_parts_us(self.soonest_of_parts(PART_CLUSTER)))

    def ways(self) -> list[tuple[float, Schedule]]:
        """K as a whole, alone and in clusters, and in parts of a cluster or over the grid: what no
        tile of it is estimated to beat, in microseconds, and the way without its tile.

        In clusters operands arrive as in the best one.
        """
        arriving, rounds = self.in_cluster(ALONE)
        found = [(self._in_cluster_us(ALONE, arriving, rounds), ALONE)]
        if self.every.clusters and self.of_m * self.of_n > 1:
            again_us = self.again_us((SHARING_MAX, SHARING_MAX))  # as none asks for less
            rounds = self.rounds_of_split(1)
            together = self.tiles / rounds * self.least_of_clusters()
            arriving = max(self.soonest(0), together)
            found.append((self._whole_us(arriving, SOME_CLUSTER, rounds, again_us), SOME_CLUSTER))
        for parts in self._splits():
            arriving = self.arriving(self.peers_of_split(parts), parts)
            found.append((self._split_us(arriving, parts), SPLIT[parts]))
        if self._in_parts:
            rates = self.parts_rates(PART_CLUSTER if self.every.multicast else 1)
            least = Rate(*map(min, zip(*rates, strict=True)))
            found.append((PART_MARGIN * self._some_parts_us(least), PARTED))
        return found

    def _splits(self) -> list[int]:
        """How many CTAs of a cluster may share a tile, each with steps enough."""
        tiles, at_once = self.of_m * self.of_n, self.every.split_at_once
        most = min(self.most_split, (self._most_steps - 1) // (PART_K_TILES - 1))
        return [parts for parts in range(2, most + 1) if tiles * parts <= at_once[parts]]

    @property
    def _in_parts(self) -> bool:
        """Whether K may be in parts over the grid."""
        return self.parted and self._most_steps >= 2 * PART_K_TILES

    def settles(self, way: Schedule) -> bool:
        """Whether the clusters of a way are settled, or not told from each other."""
        return way is not SOME_CLUSTER and way is not PARTED

    def refined(self, way: Schedule) -> list[tuple[float, Schedule]]:
        """The same of a way in each cluster, with what L2 then gives to all."""
        if way.split_grid > 1:
            every = filter(self._has_parts, PARTED_IN_CLUSTERS)
            found = [(self._parts_us(one), one) for one in every]
            return [(PART_MARGIN * us, one) for us, one in found]
        taken = [(one, *self.in_cluster(one)) for one in filter(self._finds_room, IN_CLUSTERS)]
        return [
            (self._in_cluster_us(one, arriving, rounds), one) for one, arriving, rounds in taken
        ]

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

    def in_cluster(self, way: Schedule) -> tuple[float, int]:
        """Cycles until a byte of K of each row is there in the way's cluster, and waves."""
        if way.cluster not in self._in_clusters:
            tiles, at_once = self.tiles_in(way), self.every.resident[way.cluster_size]
            rounds = -(-tiles // at_once)
            arriving = self.whole_rate(way.cluster).of(tiles / rounds)
            self._in_clusters[way.cluster] = arriving, rounds
        return self._in_clusters[way.cluster]

    def _in_cluster_us(self, way: Schedule, arriving: float, rounds: int) -> float:
        """With K as a whole in a cluster that is settled."""
        again_us, wave = self.again_us(way.cluster), self.first_wave(way.cluster, rounds)
        return self._whole_us(arriving, way, rounds, again_us, wave)

    def _whole_us(
        self,
        arriving: float,
        way: Schedule,
        rounds: int,
        again_us: float,
        wave: Wave = UNKNOWN_WAVE,
    ) -> float:
        """With K as a whole, alone or in a cluster, in so many waves, and so much asked for again:
        by clusters, and by CTAs of several tiles."""
        every, loops, dram_us = self.every, self._least_loops(arriving), self.dram_us + again_us
        before, once_us = every.started[way.cluster_size] + wave.later, dram_us
        if way.cluster_size == 1:
            once_us = self.dram_us
        ends = before + self.epilogue
        work = every.uneven * rounds * (loops + ends)
        us = every.total_us(work, work if every.cut else rounds * loops, ends, once_us)
        for one in self.several if rounds > 1 else ():
            epilogue = self.least_epilogue_of(one)
            work = every.work_of(one, rounds, (loops, epilogue, before))
            all_loops = work if every.cut else rounds * loops
            us = min(us, every.total_us(work, all_loops, before + epilogue, dram_us))
        return us + wave.early_us

    def again_us(self, cluster: tuple[int, int]) -> float:
        """What DRAM takes for what CTAs of several tiles, or clusters, ask for again; nothing where
        it moves more than once what L2 can't hold."""
        known, every = self._again_us, self.every
        if not every.fits_l2:
            return 0.0
        if cluster not in known:
            in_turn = self.tile.but(cluster=cluster, scheduler=IN_TURN.scheduler)
            again = asked_again_bytes(every.problem, in_turn, every.target)
            known[cluster] = again / every.chip.dram_rate
        return known[cluster]

    def _least_loops(self, arriving: float, parts: int = 1) -> float:
        """Cycles of the steps of one of so many parts, with one of the depths at a time, where a
        byte of K of each row takes so long to arrive."""
        return self._part_bytes[parts] * self._least_byte(arriving)

    def _least_byte(self, arriving: float) -> float:
        """Those for a byte of K of each row."""
        slowest, second = self._slower, self._faster
        if arriving > slowest:
            slowest, second = arriving, slowest
        elif arriving > second:
            second = arriving
        return slowest + self.every.second_share * second

    def _split_us(self, arriving: float, parts: int) -> float:
        """With K in so many parts of a cluster, in which others may share operands."""
        every = self.every
        if self._split_ends is None:
            self._split_ends = self._ends_of_split()
        exchanged, each, shared = self._split_ends
        ends = exchanged + each * parts + shared / parts
        work = self.rounds_of_split(parts) * (self._least_loops(arriving, parts) + ends)
        return every.total_us(work, 0, ends, self.dram_us)

    def _ends_of_split(self) -> tuple[float, float, float]:
        """Cycles before and after the loops of CTAs that share a tile: whatever they are, for each
        of them, and those that they share."""
        every, (m, n, _) = self.every, self.tile.tile
        problem, split = every.problem, split_figures(every.target)
        exchanged = m * n * PARTIAL_BYTES / split.rate
        stored = m * n // problem.products * problem.c_bytes / split.store
        computed = computed_cycles(problem, self.tile, every.target)
        return every.before + split.start + exchanged, float(split.latency), stored + computed

    def _some_parts_us(self, rate: Rate) -> float:
        """With K in as many parts over the grid as take the least, and operands at some rate."""
        every, sums = self.every, self.sums
        most = most_at_once(self.tiles, every.target.multiprocessors)
        most = min(most, self._most_steps / PART_K_TILES)
        if most <= 1:
            return math.inf
        loops = self._least_loops(rate.alone)
        parts = min(most, max(2.0, math.sqrt(loops / sums.of_one)))
        ends = every.before + sums.written + sums.gathered
        together = self._part_bytes[1] * self.tiles * rate.each
        work = max(loops / parts + max(0, parts - 2) * sums.of_one, together)
        return every.total_us(ends + work, 0, ends, self.dram_us)

    def _parts_us(self, way: Schedule) -> float:
        """With K in parts over the grid that fill waves of clusters, in steps of the best depth."""
        every, sums, us = self.every, self.sums, math.inf
        once = every.started[way.cluster_size] + sums.written
        tiles, at_once = self.tiles_in(way), every.resident[way.cluster_size]
        rate = self.parts_rate(way.cluster, tiles)
        for waves, parts, part_bytes in every.waves_of_parts(self.depths, tiles, at_once):
            arriving = rate.of(min(parts * tiles, at_once))
            gathered = sums.gathered + (parts - 2) * sums.of_one
            work = waves * (once + part_bytes * self._least_byte(arriving)) + gathered
            us = min(us, every.total_us(work, 0, once + gathered, self.dram_us))
        return us

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
        of_m, of_n = self.of_m, self.of_n
        while peers > 1 and not any(of_m % m == of_n % n == 0 for m, n in LARGEST[peers]):
            peers //= 2
        return peers
