"""What tiles of as many rows and columns have in common, whatever K they take at a time: how many
there are, what clusters of them share, their epilogues at least.

Nothing here imports MLIR.
"""

from __future__ import annotations

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
from ..estimates.l2_costs import narrow_cycles
from ..problem import Schedule
from ..rules.rules import PART_K_TILES, accumulator_registers
from ..schedule import PLAIN
from .arriving import LARGEST, UNKNOWN_WAVE, Arriving, Rate, Wave, least_of
from .candidates import PART_CLUSTER, PART_MARGIN
from .common import IN_TURN, PING_PONG, SOME_CLUSTER, Common
from .least_epilogue import least_computed_cycles, least_epilogue_cycles
from .least_parts import Sums, most_at_once
from .once import once
from .stores import LeastStore, least_of_stores

ALONE, PARTED = PLAIN, PLAIN.but(split_grid=2)
IN_CLUSTERS = [PLAIN.but(cluster=shape) for shape in sum(LARGEST.values(), ()) if shape != (1, 1)]
PARTED_IN_CLUSTERS = [PARTED] + [
    way.but(split_grid=2) for way in IN_CLUSTERS if way.cluster_size <= PART_CLUSTER
]
SOME_SPLIT = PLAIN.but(split_k=SHARING_MAX)
SPLIT = {parts: PLAIN.but(split_k=parts) for parts in range(2, SHARING_MAX + 1)}


class Faces(Common):
    """Those of a problem."""

    def of(self, tile: Schedule, depths: Sequence[int]) -> Face | None:
        """That of tiles of several K, the least first; None where threads can't hold sums."""
        own = self.kind.of(("face", tile.tile, depths), _own_of, self, tile, depths)
        return None if own is None else Face(self, tile, depths, own)


class Own(NamedTuple):
    """What tiles have of their own, whatever the sizes of the problem: cycles in which an epilogue
    is computed, slots of a ring that are released a step late, and for a byte of K the cycles of
    the two resources of a multiprocessor that it takes the most of, and of narrow rows."""

    computed: float
    held: int
    second: float
    slowest: float
    narrow: float


def _own_of(every: Common, tile: Schedule, depths: Sequence[int]) -> Own | None:
    """That of tiles of several K; None where threads can't hold sums."""
    problem, target, deepest = every.problem, every.target, depths[-1]
    if accumulator_registers(problem, tile, target):
        return None
    *_, second, slowest = sorted(_own_cycles(every, tile, deepest).values())
    k_bytes = deepest * problem.element_bytes
    held = held_slots(problem, tile, target)
    computed = least_computed_cycles(problem, tile, target)
    narrow = _narrow(every, tile, depths) if every.turned else 0.0
    return Own(computed, held, second / k_bytes, slowest / k_bytes, narrow)


def _narrow(every: Common, tile: Schedule, depths: Sequence[int]) -> float:
    problem, (m, n, _) = every.problem, tile.tile
    deep = [tile.but(tile=(m, n, depth)) for depth in depths]
    found = [narrow_cycles(problem, one, every.target) / one.tile[2] for one in deep]
    return min(found) / problem.element_bytes


def _own_cycles(every: Common, tile: Schedule, depth: int) -> dict[str, float]:
    deep = tile.but(tile=(*tile.tile[:2], depth))
    return every.kind.of(("own", deep.tile), own_cycles, every.problem, deep, every.target)


def _ends_of_split(every: Common, tile: Schedule) -> tuple[float, float, float]:
    problem, split, (m, n, _) = every.problem, split_figures(every.target), tile.tile
    exchanged = m * n * PARTIAL_BYTES / split.rate
    stored = m * n // problem.products * problem.c_bytes / split.store
    computed = computed_cycles(problem, tile, every.target)
    return every.before + split.start + exchanged, float(split.latency), stored + computed


class Face(Arriving):
    """One of them, `crowded` where there are more tiles than run at once.

    `most_split` are the most CTAs of a cluster that share a tile; it may be `parted` over the grid.
    `held` are the slots of a ring that are released a step late.
    """

    def __init__(self, every: Common, tile: Schedule, depths: Sequence[int], own: Own) -> None:
        super().__init__(every, tile, own.narrow)
        self.depths, multiprocessors = depths, every.target.multiprocessors
        self.crowded = self.tiles > multiprocessors
        self.most_split = 1
        if every.splits:
            self.most_split = min(SHARING_MAX, multiprocessors // (self.of_m * self.of_n))
        self.parted = every.parted and not self.crowded
        self._computed, self.held, self._faster, self._slower, _ = own
        self._epilogues: dict[bool, float] = {}
        self._is_close = False
        self.dram_us = every.least_dram_us(tile)
        self._part_bytes = every.part_bytes(depths)
        self._in_clusters: dict[tuple[int, int], tuple[float, int]] = {}
        self._again_us: dict[tuple[int, int], float] = {}
        self._orders: dict[tuple[object, ...], Order] = {}
        self.orders: dict[tuple[object, ...], list[tuple[Schedule, Order]]] = {}
        self._stores: dict[bool, list[LeastStore]] = {}
        self._most_steps = -(-every.problem.k // depths[0])

    @once
    def several(self) -> tuple[Schedule, ...]:
        """The ways from tile to tile of a CTA that differ in their time."""
        return (IN_TURN, PING_PONG) if self.every.may_alternate(self.tile) else (IN_TURN,)

    def least_epilogue_of(self, order: Schedule) -> float:
        """Cycles of the epilogue with a way to store that takes no longer than any, or only what is
        computed until somebody `looks_closer`. Consumers in turns store by TMA, and each has code
        of its own."""
        in_turns = order.ping_pong
        if in_turns not in self._epilogues:
            tile = self.tile.but(ping_pong=True) if in_turns else self.tile
            self._epilogues[in_turns] = self._epilogue_of(tile)
        return self._epilogues[in_turns]

    def _epilogue_of(self, tile: Schedule) -> float:
        kind, how = self.every.kind, (self.every.problem, tile, self.every.target)
        asked = "epilogue", tile.tile[:2], tile.ping_pong
        if self._is_close:
            return kind.of(asked, least_epilogue_cycles, *how)
        known = kind.known(asked)
        if known is None:
            return least_computed_cycles(*how) if tile.ping_pong else self._computed
        return known

    def looks_closer(self) -> bool:
        """Looks at the ways to store; whether that was not done for such tiles before."""
        if self._is_close:
            return False
        before, self._epilogues, self._is_close = self._epilogues, {}, True
        ways = ALONE, *(self.several if True in before else ())
        return before != {way.ping_pong: self.least_epilogue_of(way) for way in ways}

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

    def floors(self) -> list[tuple[float, Schedule]]:
        """What no schedule of such tiles is estimated to beat, in microseconds, with K as a whole
        and in parts of a cluster or over the grid: sooner found than the same of each way."""
        found = [(self.whole_floor_us(), ALONE)]
        if splits := self._splits():
            found.append((self._some_split_us(splits[-1]), SOME_SPLIT))
        if self._in_parts:
            parts_us = self._some_parts_us(self.soonest_of_parts(PART_CLUSTER))
            found.append((PART_MARGIN * parts_us, PARTED))
        return found

    def whole_floor_us(self) -> float:
        """That of K as a whole."""
        rounds = self.rounds_of_split(1)
        return self._whole_us(self.soonest(self.tiles / rounds), ALONE, rounds, 0.0)

    def ways(self, some: Schedule) -> list[tuple[float, Schedule]]:
        """What no tile of a way is estimated to beat, in microseconds, and the way without its
        tile. K as a whole is so alone and in clusters, where operands arrive as in the best one."""
        if some is ALONE:
            return self._whole_ways()
        if some is SOME_SPLIT:
            return [(self._split_us(parts), SPLIT[parts]) for parts in self._splits()]
        least = least_of(self.parts_rates(PART_CLUSTER if self.every.multicast else 1))
        return [(PART_MARGIN * self._some_parts_us(least), PARTED)]

    def _whole_ways(self) -> list[tuple[float, Schedule]]:
        arriving, rounds = self.in_cluster(ALONE)
        found = [(self._in_cluster_us(ALONE, arriving, rounds), ALONE)]
        if self.every.clusters and self.of_m * self.of_n > 1:
            again_us = self.again_us((SHARING_MAX, SHARING_MAX))  # as none asks for less
            rounds = self.rounds_of_split(1)
            together = self.tiles / rounds * self.least_of_clusters()
            arriving = max(self.soonest(0), together)
            found.append((self._whole_us(arriving, SOME_CLUSTER, rounds, again_us), SOME_CLUSTER))
        return found

    def _splits(self) -> list[int]:
        """How many CTAs of a cluster may share a tile, each with steps enough."""
        most = min(self.most_split, (self._most_steps - 1) // (PART_K_TILES - 1))
        if most < 2:
            return []
        tiles, at_once = self.of_m * self.of_n, self.every.split_at_once
        return [parts for parts in range(2, most + 1) if tiles * parts <= at_once[parts]]

    @property
    def _in_parts(self) -> bool:
        """Whether K may be in parts over the grid."""
        return self.parted and self._most_steps >= 2 * PART_K_TILES

    def settles(self, way: Schedule) -> bool:
        """Whether the clusters of one of `ways` are settled, or not told from each other."""
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
        size = way.cluster_size
        before, once_us = every.started[size] + wave.later, dram_us if size > 1 else self.dram_us
        ends = before + self.least_epilogue_of(ALONE)
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

    def _split_us(self, parts: int) -> float:
        """With K in so many parts of a cluster, in which others may share operands."""
        every, (exchanged, each, shared) = self.every, self._split_ends
        arriving = self.arriving(self.peers_of_split(parts), parts)
        ends = exchanged + each * parts + shared / parts
        work = self.rounds_of_split(parts) * (self._least_loops(arriving, parts) + ends)
        return every.total_us(work, 0, ends, self.dram_us)

    def _some_split_us(self, most: int) -> float:
        """With K in up to so many parts of a cluster, no more than in as many as take the least."""
        few = min(most, SHARING_MAX // 2)  # that leave room for CTAs with other tiles
        us = self._split_between_us(2, few, self.peers_of_split(2))
        return min(us, self._split_between_us(few + 1, most, 1)) if most > few else us

    def _split_between_us(self, least: int, most: int, peers: int) -> float:
        """With so many parts, beside so many others: each part by itself, or as many as run at once
        one after the other, or what L2 gives to all. Of stacks some parts wait for others, and so
        for less at a time."""
        every, (exchanged, each, shared) = self.every, self._split_ends
        rate = self.soonest_of_parts(peers)
        whole = self._least_loops(rate.alone) + shared
        parts = min(most, max(least, math.sqrt(whole / each) if each else most))
        alone = exchanged + each * parts + whole / parts
        in_turn = self.tiles / every.target.multiprocessors * (whole + least * exchanged)
        ends = exchanged + least * each + shared / most
        lone = every.problem.batch == 1
        together = ends + self._part_bytes[1] * self.tiles * rate.each if lone else 0.0
        return every.total_us(max(alone, in_turn, together), 0, ends, self.dram_us)

    @once
    def _split_ends(self) -> tuple[float, float, float]:
        """Cycles before and after the loops of CTAs that share a tile: whatever they are, for each
        of them, and those that they share."""
        asked = "split", self.tile.tile[:2]
        return self.every.kind.of(asked, _ends_of_split, self.every, self.tile)

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

    @once
    def sums(self) -> Sums:
        """What sums of parts over the grid take."""
        every, asked = self.every, ("sums", self.tile.tile[:2], self.rows)
        return every.kind.of(asked, Sums.of, every.problem, self.tile, every.target)

    def peers_of_split(self, parts: int) -> int:
        """The most CTAs of a cluster beside so many that share each tile: tiles are whole clusters
        then (`split_parts`)."""
        if not self.every.multicast:
            return 1
        of_m, of_n = self.of_m, self.of_n
        return min(SHARING_MAX // parts, (of_m & -of_m) * (of_n & -of_n))  # powers of two of each
