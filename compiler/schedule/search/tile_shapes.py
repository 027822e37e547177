"""Bounds for all tiles of one shape (rows and columns), whatever K they take per step: how many
there are, what clusters of them share, and the least time of their epilogues.

Nothing here imports MLIR.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ..cached import cached_attribute
from ..estimates.epilogue_costs import epilogue_cycles
from ..estimates.estimate import SHARING_MAX, Order, order_of
from ..problem import Schedule
from ..rules.rules import PART_K_TILES
from ..schedule import PLAIN
from .candidates import PART_CLUSTER, PART_GAIN, PART_MARGIN, PART_WAVES
from .common import IN_TURN, PING_PONG, Common
from .epilogue_bounds import least_computed_cycles, least_epilogue_cycles
from .operand_arrival import LARGEST, OperandArrival, Rate
from .part_bounds import Sums
from .stores import LeastStore, least_of_stores
from .tile_costs import TileCosts, ends_of_split, own_cycles_of, tile_costs_of

ALONE, PARTED = PLAIN, PLAIN.but(split_grid=2)
WHOLE_IN_CLUSTERS = [ALONE] + [
    PLAIN.but(cluster=shape) for shape in sum(LARGEST.values(), ()) if shape != (1, 1)
]
PARTED_IN_CLUSTERS = [PARTED] + [
    way.but(split_grid=2) for way in WHOLE_IN_CLUSTERS[1:] if way.cluster_size <= PART_CLUSTER
]
SOME_SPLIT = PLAIN.but(split_k=2)
SPLIT = {parts: PLAIN.but(split_k=parts) for parts in range(2, SHARING_MAX + 1)}


class TileShapes(Common):
    """The tile shapes of a problem."""

    def of(self, tile: tuple[int, int], depths: Sequence[int]) -> TileShape | None:
        """The shape of tiles with these rows and columns and several depths of K, in ascending
        order; None if threads cannot hold the accumulators."""
        own = self.kind.of("tile_shape", (tile, depths), tile_costs_of, self, tile, depths)
        return None if own is None else TileShape(self, own, depths)


class TileShape(OperandArrival):
    """One tile shape of a problem.

    `most_split` is the most CTAs of a cluster that may share a tile; with `parted`, K may be split
    over the grid. `held` is the number of ring slots that are released one step late.
    """

    def __init__(self, every: Common, own: TileCosts, depths: Sequence[int]) -> None:
        problem = every.problem
        self.every, self.depths = every, depths
        self.tile, self._computed, self.held, self._faster, self._slower, self._narrow = own
        m, n, _ = self.tile.tile
        self.along_m, self.along_n = along_m, along_n = every.axis(0, m), every.axis(1, n)
        self.of_m, self.rows, *_ = along_m
        self.of_n, self.columns, *_ = along_n
        of_one = self.of_m * self.of_n
        self.tiles = tiles = every.tiles_of(self.tile) if every.ragged else every.batch * of_one
        self.parted = every.parted and tiles <= every.multiprocessors
        if self.parted and problem.dynamic_m:  # as `grid_parts` has it
            self.parted = not problem.counts_tiles(self.tile)
        self.most_split = every.multiprocessors // of_one if every.splits else 1
        self.dram_us = every.once_us if every.fits_l2 else every.least_dram_us(self.tile)
        self._part_bytes, self._most_steps = every.steps_of(depths)
        self._is_close, self._epilogues = False, {}

    @cached_attribute
    def _in_clusters(self) -> dict[tuple[int, int], tuple[float, int]]:
        return {}

    @cached_attribute
    def bounds(self) -> list[Any]:
        """The bounds of the tiles of each depth, for a search to fill."""
        return []

    @cached_attribute
    def orders(self) -> dict[tuple[object, ...], list[tuple[Schedule, Order]]]:
        """The useful orders of tiles of each sharing, for a search to fill."""
        return {}

    @cached_attribute
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

    @cached_attribute
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
        if self._most_in_cluster > 1:
            found.append((self._some_split_us(), SOME_SPLIT))
        if self.parted and self._most_steps >= 2 * PART_K_TILES:
            found.append((PART_MARGIN * self._some_parts_us(), PARTED))
        return found

    def whole_floor_us(self) -> float:
        """The lower bound with K as a whole."""
        every, tiles = self.every, self.tiles
        rounds = -(-tiles // every.at_once)
        arriving = self.soonest_of_whole().of(tiles / rounds)
        return self._whole_us(arriving, every.before, rounds, self.dram_us, self.dram_us)

    def ways(self, some: Schedule) -> list[tuple[float, Schedule]]:
        """What no tile of a way is estimated to beat, in microseconds, and the way without its
        tile: K as a whole or in parts over the grid, in each cluster, or in so many parts of a
        cluster."""
        if some is PARTED:
            every = filter(self._has_parts, PARTED_IN_CLUSTERS)
            return [(PART_MARGIN * self._parts_us(one), one) for one in every]
        if some is SOME_SPLIT:
            return [(self._split_us(one.split_k), one) for one in self._split_ways()]
        shared = self.every.clusters and self.of_m * self.of_n > 1
        ways = filter(self._finds_room, WHOLE_IN_CLUSTERS) if shared else (ALONE,)
        return [(self._in_cluster_us(one), one) for one in ways]

    def _split_ways(self) -> Iterator[Schedule]:
        """Parts of K in a cluster, in each number that finds room."""
        of_one, room = self.of_m * self.of_n, self.every.split_at_once
        for parts in range(2, self._most_in_cluster + 1):
            if of_one * parts <= room[parts]:
                yield SPLIT[parts]

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

    def _in_cluster_us(self, way: Schedule) -> float:
        """With K as a whole, alone or in a cluster; DRAM moves more where that, or CTAs of several
        tiles, ask again for what others had."""
        arriving, rounds = self.in_cluster(way)
        (later, early_us), size = self.first_wave(way.cluster, rounds), way.cluster_size
        in_turn_us = self.dram_us + self.reload_us(way.cluster)
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

    def reload_us(self, cluster: tuple[int, int]) -> float:
        """DRAM time for what clusters, or CTAs of several tiles, ask for again; 0 where L2 cannot
        hold the operands and DRAM moves them more than once anyway."""
        reload_us, axis = self.every.reload
        return reload_us if (self.of_m, self.of_n)[axis] > cluster[axis] else 0.0

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

    @cached_attribute
    def _most_in_cluster(self) -> int:
        """The most parts of K in a cluster that have steps enough."""
        if self.most_split == 1:
            return 1
        return min(SHARING_MAX, self.most_split, (self._most_steps - 1) // (PART_K_TILES - 1))

    def _some_split_us(self) -> float:
        """With K in as many parts of a cluster as are best, and with as many other CTAs in it as
        find room beside two parts."""
        every, (exchanged, each, shared) = self.every, self._split_ends
        shapes = self.shapes_of_split(self.peers_of_split(2))
        rate, most = self.soonest_of_parts(shapes), self._most_in_cluster
        of_tile = Rate(every.split_at_work * self.tiles * rate.each, rate.alone)
        loops = self._part_bytes[1]
        work = exchanged + self._least_of_numbers((2, most), of_tile, loops, (shared, each))
        return every.total_us(work, 0, exchanged + 2 * math.sqrt(shared * each), self.dram_us)

    def _least_of_numbers(
        self,
        numbers: tuple[int, int],
        rate: Rate,
        loops: float,
        ends: tuple[float, float],
    ) -> float:
        """The least cycles with K in any number of parts between two.

        Operands arrive at a rate for each part, and `loops` are cycles of all parts for each of a
        byte. Of `ends` the first are shared by the parts, the second are for each of them. With one
        more part cycles fall by less or rise by more, so the least is looked for from above.
        """
        (fewest, most), (shared, each) = numbers, ends
        longest = shared + loops * self._least_byte(rate.of(most))
        parts, least = math.ceil(math.sqrt(longest / each)) + 1, math.inf
        parts = max(fewest, min(most, parts))
        while parts >= fewest:
            cycles = (shared + loops * self._least_byte(rate.of(parts))) / parts + parts * each
            if cycles >= least:
                break
            least, parts = cycles, parts - 1
        return least

    @cached_attribute
    def _split_ends(self) -> tuple[float, float, float]:
        """Cycles before and after the loops of CTAs that share a tile: constant, per CTA, and
        divided among them."""
        return self.every.kind.of("split", self.tile.tile[:2], ends_of_split, self.every, self.tile)

    def _some_parts_us(self) -> float:
        """With K in as many parts over the grid as make up waves in the best cluster."""
        every, (written, gathered, of_one), least = self.every, self.sums, math.inf
        most_steps, loops = self._most_steps // PART_K_TILES, self._part_bytes[1]
        rate = self.soonest_of_parts(self.shapes_of_parts())
        for waves in PART_WAVES:
            most = min(waves * every.at_once // self.tiles, most_steps)
            if waves < PART_GAIN * most:  # or parts are not shorter by enough (`parts_in_waves`)
                of_tile = Rate(self.tiles * rate.each / waves, rate.alone)
                work = waves * (every.before + written)
                work += self._least_of_numbers((2, most), of_tile, waves * loops, (0.0, of_one))
                least = work if work < least else least
        gathered -= 2 * of_one
        return every.total_us(least + gathered, 0, every.before + written + gathered, self.dram_us)

    def _parts_us(self, way: Schedule) -> float:
        """The bound with K in parts over the grid that fill waves of clusters, in steps of the best
        depth."""
        every, sums, us = self.every, self.sums, math.inf
        tiles, at_once = self.tiles_in(way), every.resident[way.cluster_size]
        found = every.waves_of_parts(self.depths, tiles, at_once)
        if not found:
            return us
        rate = self.parts_rate(way.cluster, tiles)
        once = every.started[way.cluster_size] + sums.written
        for waves, parts, part_bytes in found:
            arriving = rate.of(min(parts * tiles, at_once))
            gathered = sums.gathered + (parts - 2) * sums.of_one
            work = waves * (once + part_bytes * self._least_byte(arriving)) + gathered
            us = min(us, every.total_us(work, 0, once + gathered, self.dram_us))
        return us

    def rounds_of_split(self, parts: int) -> int:
        """Waves of clusters of `parts` CTAs that share a tile each."""
        return -(-self.tiles * parts // self.every.split_at_once[parts])

    @cached_attribute
    def sums(self) -> Sums:
        """The cost of the partial sums of parts over the grid."""
        every, asked = self.every, (self.tile.tile[:2], self.rows)
        return every.kind.of("sums", asked, Sums.of, every.problem, self.tile, every.target)

    def peers_of_split(self, parts: int) -> int:
        """The most groups of CTAs in a cluster that share operands if `parts` CTAs share each tile:
        tiles then fill whole clusters (`split_parts`)."""
        if not self.every.multicast:
            return 1
        return min(SHARING_MAX // parts, self.along_m.even * self.along_n.even)
