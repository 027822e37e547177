"""Bounds for all tiles of one shape (rows and columns), whatever K they take per step: how many
there are, what clusters of them share, and the least time of their epilogues.

Nothing here imports MLIR.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..estimates.estimate import (
    SHARING_MAX,
    Order,
    epilogue_cycles,
    order_of,
)
from ..extents import round_up
from ..once import once
from ..problem import Schedule
from ..rules.rules import PART_K_TILES
from ..schedule import PLAIN
from .arriving import LARGEST, Arriving, Rate
from .candidates import PART_CLUSTER, PART_MARGIN, PART_WAVES
from .common import IN_TURN, PING_PONG, SOME_CLUSTER, Common
from .least_epilogue import least_computed_cycles, least_epilogue_cycles
from .least_parts import Sums
from .own import Own, ends_of_split, own_cycles_of, own_of
from .stores import LeastStore, least_of_stores

ALONE, PARTED = PLAIN, PLAIN.but(split_grid=2)
IN_CLUSTERS = [PLAIN.but(cluster=shape) for shape in sum(LARGEST.values(), ()) if shape != (1, 1)]
PARTED_IN_CLUSTERS = [PARTED] + [
    way.but(split_grid=2) for way in IN_CLUSTERS if way.cluster_size <= PART_CLUSTER
]
SPLIT = {parts: PLAIN.but(split_k=parts) for parts in range(2, SHARING_MAX + 1)}


class Faces(Common):
    """The tile shapes of a problem."""

    def of(self, tile: tuple[int, int], depths: Sequence[int]) -> Face | None:
        """The shape of tiles with these rows and columns and several depths of K, in ascending
        order; None if threads cannot hold the accumulators."""
        own = self.kind.of("face", (tile, depths), own_of, self, tile, depths)
        return None if own is None else Face(self, own, depths)


class Face(Arriving):
    """One tile shape of a problem.

    `most_split` is the most CTAs of a cluster that may share a tile; with `parted`, K may be split
    over the grid. `held` is the number of ring slots that are released one step late.
    """

    def __init__(self, every: Common, own: Own, depths: Sequence[int]) -> None:
        problem = every.problem
        self.every, self.depths = every, depths
        self.tile, self._computed, self.held, self._faster, self._slower, self._narrow = own
        m, n, _ = self.tile.tile
        self.of_m, self.of_n = of_m, of_n = -(-problem.m // m), -(-problem.n // n)
        self.tiles = tiles = (
            every.tiles_of(self.tile) if every.ragged else every.batch * of_m * of_n
        )
        self.rows, self.columns = (
            m if m < problem.m else problem.m,
            n if n < problem.n else problem.n,
        )
        self.parted = every.parted and tiles <= every.multiprocessors
        if self.parted and problem.dynamic_m:  # as `grid_parts` has it
            self.parted = not problem.counts_tiles(self.tile)
        self.most_split = every.multiprocessors // (of_m * of_n) if every.splits else 1
        self.dram_us = every.once_us if every.fits_l2 else every.least_dram_us(self.tile)
        self._part_bytes, self._most_steps = every.steps_of(depths)
        self._is_close, self._epilogues = False, {}

    @once
    def _in_clusters(self) -> dict[tuple[int, int], tuple[float, int]]:
        return {}

    @once
    def bounds(self) -> list[Any]:
        """The bounds of the tiles of each depth, for a search to fill."""
        return []

    @once
    def orders(self) -> dict[tuple[object, ...], list[tuple[Schedule, Order]]]:
        """The useful orders of tiles of each sharing, for a search to fill."""
        return {}

    @once
    def several(self) -> tuple[Schedule, ...]:
        """The ways in which a CTA goes from tile to tile that differ in time."""
        return (IN_TURN, PING_PONG) if self.every.may_alternate(self.tile) else (IN_TURN,)

    def least_epilogue_of(self, order: Schedule) -> float:
        """Least cycles of the epilogue over all ways to store, or only its computation until
        `looks_closer` was called. Ping-pong consumers store by TMA, and each has code of its
        own."""
        in_turns = order.ping_pong
        if in_turns not in self._epilogues:
            tile = self.tile.but(ping_pong=True) if in_turns else self.tile
            self._epilogues[in_turns] = self._epilogue_of(tile)
        return self._epilogues[in_turns]

    def _epilogue_of(self, tile: Schedule) -> float:
        kind, how = self.every.kind, (self.every.problem, tile, self.every.target)
        asked = *tile.tile[:2], tile.ping_pong
        if self._is_close:
            return kind.of("epilogue", asked, least_epilogue_cycles, *how)
        known = self.every.epilogues.get(asked)
        if known is None:
            return least_computed_cycles(*how) if tile.ping_pong else self._computed
        return known

    def looks_closer(self) -> bool:
        """Takes the ways to store into account; returns whether that changes anything."""
        if self._is_close:
            return False
        before, self._epilogues, self._is_close = self._epilogues, {}, True
        ways = ALONE, *(self.several if True in before else ())
        return before != {way.ping_pong: self.least_epilogue_of(way) for way in ways}

    def own_cycles(self, depth: int) -> dict[str, float]:
        """The cycles of a step of this depth that each resource of a multiprocessor takes."""
        return own_cycles_of(self.every, self.tile, depth)

    def stores_of(self, order: Schedule) -> list[LeastStore]:
        """The least cost of each way to store, whatever K a tile takes."""
        every, tile = self.every, self.tile.but(ping_pong=order.ping_pong)
        how = every.problem, tile, every.target, epilogue_cycles
        return every.kind.of("stores", (tile.tile, tile.ping_pong), least_of_stores, *how)

    @once
    def _orders(self) -> dict[tuple[object, ...], Order]:
        return {}

    def order_of(self, order: Schedule) -> Order:
        """What the schedules of an order have in common, whatever K they take and which agent hands
        out tiles."""
        alone, cluster = order.scheduler == "none", order.cluster
        asked = alone, order.order, cluster, order.split_k, order.split_grid
        if asked not in self._orders:
            self._orders[asked] = order_of(self.every.problem, order, self.every.target)
        return self._orders[asked]

    def floors(self) -> list[tuple[float, Schedule]]:
        """Lower bounds in microseconds with K as a whole, in parts of a cluster and in parts over
        the grid. They are cheaper to find than the bounds of each way."""
        found = [(self.whole_floor_us(), ALONE)]
        if self.most_split > 1:
            found += self._split_floors()
        if self.parted and self._most_steps >= 2 * PART_K_TILES:
            parts_us = self._some_parts_us(self.soonest_of_parts(PART_CLUSTER))
            found.append((PART_MARGIN * parts_us, PARTED))
        return found

    def whole_floor_us(self) -> float:
        """The lower bound with K as a whole."""
        every, tiles = self.every, self.tiles
        rounds = -(-tiles // every.at_once)
        arriving = self.soonest(tiles / rounds)
        return self._whole_us(arriving, every.before, rounds, self.dram_us, self.dram_us)

    def ways(self, some: Schedule) -> list[tuple[float, Schedule]]:
        """The ways under a floor, each with a lower bound in microseconds. K as a whole is taken by
        CTAs alone, or in clusters whose operands arrive as in the best one."""
        if some is ALONE:
            return self._whole_ways()
        if some is PARTED:
            return self.refined(some)
        return [(self._split_us(some.split_k), some)]

    def _whole_ways(self) -> list[tuple[float, Schedule]]:
        every, (arriving, rounds) = self.every, self.in_cluster(ALONE)
        found = [(self._in_cluster_us(ALONE, arriving, rounds), ALONE)]
        if every.clusters and self.of_m * self.of_n > 1:
            dram_us = self.dram_us + self.again_us((SHARING_MAX, SHARING_MAX))  # the least of all
            together = self.tiles / rounds * self.least_of_clusters()
            arriving = max(self.soonest(0), together)
            us = self._whole_us(arriving, every.started[2], rounds, dram_us, dram_us)
            found.append((us, SOME_CLUSTER))
        return found

    def settles(self, way: Schedule) -> bool:
        """Whether a way names its cluster, or stands for any."""
        return way is not SOME_CLUSTER

    def refined(self, way: Schedule) -> list[tuple[float, Schedule]]:
        """The bounds of a way in each cluster, with what L2 then gives to all."""
        if way.split_grid > 1:
            every = filter(self._has_parts, PARTED_IN_CLUSTERS)
            found = [(self._parts_us(one), one) for one in every]
            return [(PART_MARGIN * us, one) for us, one in found]
        taken = [(one, *self.in_cluster(one)) for one in filter(self._finds_room, IN_CLUSTERS)]
        return [
            (self._in_cluster_us(one, arriving, rounds), one) for one, arriving, rounds in taken
        ]

    def _finds_room(self, way: Schedule) -> bool:
        """Whether all CTAs of a way's clusters have tiles and, if the clusters are wide, run at
        once."""
        (along_m, along_n), size = way.cluster, way.cluster_size
        if along_m > self.of_m or along_n > self.of_n:
            return False
        return size <= self.every.widest or self.tiles_in(way) <= self.every.resident[size]

    def _has_parts(self, way: Schedule) -> bool:
        """Whether all CTAs of a way's clusters have tiles, and no more tiles exist than
        multiprocessors, so that others are left for parts."""
        if way.cluster_size > 1 and not (self.every.multicast and self._finds_room(way)):
            return False
        return self.tiles_in(way) <= self.every.target.multiprocessors

    def in_cluster(self, way: Schedule) -> tuple[float, int]:
        """Cycles until a byte of K of each row has arrived in the way's cluster, and the number of
        waves."""
        if way.cluster not in self._in_clusters:
            tiles, at_once = self.tiles_in(way), self.every.resident[way.cluster_size]
            rounds = -(-tiles // at_once)
            arriving = self.whole_rate(way.cluster).of(tiles / rounds)
            self._in_clusters[way.cluster] = arriving, rounds
        return self._in_clusters[way.cluster]

    def _in_cluster_us(self, way: Schedule, arriving: float, rounds: int) -> float:
        """The bound with K as a whole in a known cluster. DRAM moves more where a cluster, or CTAs
        of several tiles, ask again for what others had."""
        (later, early_us), size = self.first_wave(way.cluster, rounds), way.cluster_size
        in_turn_us = self.dram_us + self.again_us(way.cluster)
        once_us, before = in_turn_us if size > 1 else self.dram_us, self.every.started[size] + later
        return self._whole_us(arriving, before, rounds, once_us, in_turn_us) + early_us

    def _whole_us(
        self, arriving: float, before: float, rounds: int, once_us: float, in_turn_us: float
    ) -> float:
        """The bound with K as a whole, with this many waves and cycles before the first step, and
        DRAM at work for CTAs of one tile (`once_us`) or of several (`in_turn_us`)."""
        every, cut = self.every, self.every.cut
        loops = self._part_bytes[1] * self._least_byte(arriving)
        ends = before + self.least_epilogue_of(ALONE)
        work, all_loops = every.uneven * rounds * (loops + ends), rounds * loops
        least_us = every.total_us(work, work if cut else all_loops, ends, once_us)
        for one in self.several if rounds > 1 else ():
            epilogue = self.least_epilogue_of(one)
            work = every.work_of(one, rounds, (loops, epilogue, before))
            own_loops, ends = work if cut else all_loops, before + epilogue
            us = every.total_us(work, own_loops, ends, in_turn_us)
            least_us = us if us < least_us else least_us
        return least_us

    def again_us(self, cluster: tuple[int, int]) -> float:
        """DRAM time for what clusters, or CTAs of several tiles, ask for again; 0 where L2 cannot
        hold the operands and DRAM moves them more than once anyway."""
        again_us, axis = self.every.again
        return again_us if (self.of_m, self.of_n)[axis] > cluster[axis] else 0.0

    def _least_loops(self, arriving: float, parts: int = 1) -> float:
        """Least cycles of the main loop of one of `parts` parts over all depths, if a byte of K of
        each row arrives within `arriving` cycles."""
        return self._part_bytes[parts] * self._least_byte(arriving)

    def _least_byte(self, arriving: float) -> float:
        """Least cycles of the main loop per byte of K of each row."""
        slowest, second = self._slower, self._faster
        if arriving > slowest:
            slowest, second = arriving, slowest
        elif arriving > second:
            second = arriving
        return slowest + self.every.second_share * second

    def _split_us(self, parts: int) -> float:
        """The bound with K in `parts` parts of a cluster, whose other CTAs may share operands."""
        every, (exchanged, each, shared) = self.every, self._split_ends
        arriving = self.arriving(self.peers_of_split(parts), parts)
        ends = exchanged + each * parts + shared / parts
        work = self.rounds_of_split(parts) * (self._least_loops(arriving, parts) + ends)
        return every.total_us(work, 0, ends, self.dram_us)

    def _split_floors(self) -> list[tuple[float, Schedule]]:
        """Bounds for each number of parts of a cluster that have enough steps, with as many other
        CTAs in the cluster as find room. It is one loop because it is half of a search for small
        products."""
        every, tiles, dram_us, found = self.every, self.tiles, self.dram_us, []
        (exchanged, each, shared), part_bytes = self._split_ends, self._part_bytes
        cycle_us, at_once, of_one = every.cycle_us, every.split_at_once, self.of_m * self.of_n
        most = min(SHARING_MAX, self.most_split, (self._most_steps - 1) // (PART_K_TILES - 1))
        slowest, faster, share = self._slower, self._faster, every.second_share
        peers, of_each, alone = 0, 0.0, 0.0
        for parts in range(2, most + 1):
            room, ctas = at_once[parts], tiles * parts
            if of_one * parts > room:
                continue
            if peers != 1:  # the more parts the fewer others
                peers = self.peers_of_split(parts)
                of_each, alone = self.soonest_of_parts(peers)
            arriving = of_each * (ctas if every.batch == 1 else self._at_work(peers, parts))
            arriving = arriving if arriving > alone else alone
            if arriving > slowest:
                byte = arriving + share * slowest
            else:
                byte = slowest + share * (arriving if arriving > faster else faster)
            ends = exchanged + each * parts + shared / parts
            work_us = cycle_us * -(-ctas // room) * (part_bytes[parts] * byte + ends)
            streaming_us = cycle_us * ends + dram_us
            us = work_us if work_us > streaming_us else streaming_us
            found.append((us, SPLIT[parts]))
        return found

    @once
    def _split_ends(self) -> tuple[float, float, float]:
        """Cycles before and after the loops of CTAs that share a tile: constant, per CTA, and
        divided among them."""
        return self.every.kind.of("split", self.tile.tile[:2], ends_of_split, self.every, self.tile)

    def _some_parts_us(self, rate: Rate) -> float:
        """The bound with K in as many parts over the grid as make up waves in some cluster, with
        operands arriving at a rate."""
        every, (written, gathered, of_one), least = self.every, self.sums, math.inf
        loops = self._least_loops(rate.alone)
        for waves, (fewest, most) in zip(PART_WAVES, self._numbers_of_parts(), strict=True):
            if most >= 2:
                parts = min(most, max(fewest, math.sqrt(waves * loops / of_one)))
                work = (waves - 1) * (every.before + written) + waves * loops / parts
                least = min(least, work + (parts - 2) * of_one)
        if least == math.inf:
            return least
        ends = every.before + written + gathered
        together = self._part_bytes[1] * self.tiles * rate.each
        return every.total_us(ends + max(least, together), 0, ends, self.dram_us)

    def _numbers_of_parts(self) -> list[tuple[float, float]]:
        """For each number of waves, the fewest and the most parts over the grid that make it up.
        The fewest are those of clusters with the most tiles, in steps of the deepest tile."""
        every, of_m, of_n = self.every, self.of_m, self.of_n
        steps, at_least = -(-every.problem.k // self.depths[-1]), every.at_once
        if every.multicast:
            of_m = round_up(of_m, min(PART_CLUSTER, 1 << of_m.bit_length() - 1))
            of_n = round_up(of_n, min(PART_CLUSTER, 1 << of_n.bit_length() - 1))
            at_least = every.least_resident(PART_CLUSTER, 1)
        found, tiles = [], every.batch * of_m * of_n
        for waves in PART_WAVES:
            even = min(waves * at_least // tiles, steps // PART_K_TILES)
            fewest = even * steps / (even + steps)  # a part has whole steps
            most = min(waves * every.at_once // self.tiles, self._most_steps // PART_K_TILES)
            found.append((max(2.0, fewest), most))
        return found

    def _parts_us(self, way: Schedule) -> float:
        """The bound with K in parts over the grid that fill waves of clusters, in steps of the best
        depth."""
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
        """Waves of clusters of `parts` CTAs that share a tile each."""
        return -(-self.tiles * parts // self.every.split_at_once[parts])

    @once
    def sums(self) -> Sums:
        """The cost of the partial sums of parts over the grid."""
        every, asked = self.every, (self.tile.tile[:2], self.rows)
        return every.kind.of("sums", asked, Sums.of, every.problem, self.tile, every.target)

    def peers_of_split(self, parts: int) -> int:
        """The most groups of CTAs in a cluster that share operands if `parts` CTAs share each tile:
        tiles then fill whole clusters (`split_parts`)."""
        if not self.every.multicast:
            return 1
        of_m, of_n = self.of_m, self.of_n
        return min(SHARING_MAX // parts, (of_m & -of_m) * (of_n & -of_n))  # powers of two of each
