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
from ..estimates.estimate import SHARING_MAX, Order, held_slots, order_of
from ..problem import Schedule
from ..rules.rules import PART_K_TILES
from ..schedule import PLAIN
from .candidates import PART_MARGIN
from .common import ALONE, IN_TURN, LARGEST, PARTED, PING_PONG, Common
from .epilogue_bounds import least_computed_cycles, least_epilogue_cycles
from .floors import Floors
from .stores import LeastStore, least_of_stores
from .tile_costs import TileCosts, own_cycles_of, tile_costs_of

WHOLE_IN_CLUSTERS = [ALONE] + [
    PLAIN.but(cluster=shape) for shape in sum(LARGEST.values(), ()) if shape != (1, 1)
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


class TileShape(Floors):
    """One tile shape of a problem.

    With `parted`, K may be split over the grid.
    """

    def __init__(self, every: Common, own: TileCosts, depths: Sequence[int]) -> None:
        problem = every.problem
        self.every, self.depths = every, depths
        self.tile, self._computed, self._faster, self._slower, self._narrow = own
        m, n, _ = self.tile.tile
        self.along_m, self.along_n = along_m, along_n = every.axis(0, m), every.axis(1, n)
        self.of_m, self.rows, *_ = along_m
        self.of_n, self.columns, *_ = along_n
        of_one, self.whole = self.of_m * self.of_n, self.rows + self.columns
        self.tiles = tiles = every.tiles_of(self.tile) if every.ragged else every.batch * of_one
        self.parted = every.parted and tiles <= every.multiprocessors
        if self.parted and problem.dynamic_m:  # as `grid_parts` has it
            self.parted = not problem.counts_tiles(self.tile)
        self.most_split = every.multiprocessors // of_one if every.splits else 1
        self.dram_us = every.once_us if every.fits_l2 else every.least_dram_us(self.tile)
        self._part_bytes, self._most_steps = every.steps_of(depths)
        self._is_close, self._epilogues, self._asked = False, {}, {}

    @cached_attribute
    def held(self) -> int:
        """The number of ring slots that are released one step late."""
        return held_slots(self.every.problem, self.tile, self.every.target)

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
            found.append((self.split_floor_us(), SOME_SPLIT))
        if self.parted and self._most_steps >= 2 * PART_K_TILES:
            found.append((PART_MARGIN * self.parts_floor_us(), PARTED))
        return found

    def whole_floor_us(self) -> float:
        """The lower bound with K as a whole."""
        in_turns = math.inf
        if self.tiles > self.every.at_once and len(self.several) > 1:
            in_turns = self.least_epilogue_of(PING_PONG)
        return self.floor_of_whole_us(self.least_epilogue_of(ALONE), in_turns)

    def ways(self, some: Schedule) -> list[tuple[float, Schedule]]:
        """What no tile of a way is estimated to beat, in microseconds, and the way without its
        tile: K as a whole or in parts over the grid, in each cluster, or in so many parts of a
        cluster."""
        if some is PARTED:
            return [(PART_MARGIN * us, one) for us, one in self._parts_ways()]
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

    def _split_us(self, parts: int) -> float:
        """The bound with K in `parts` parts of a cluster, whose other CTAs may share operands."""
        every, (exchanged, each, shared) = self.every, self._split_ends
        arriving = self.arriving(self.peers_of_split(parts), parts)
        ends = exchanged + each * parts + shared / parts
        work = self.rounds_of_split(parts) * (self._least_loops(arriving, parts) + ends)
        return every.total_us(work, 0, ends, self.dram_us)

    def _parts_ways(self) -> Iterator[tuple[float, Schedule]]:
        """The bounds with K in parts over the grid that fill waves of clusters, in each cluster all
        of whose CTAs have tiles."""
        every, batch = self.every, self.every.batch
        wholes_m, wholes_n = self.along_m.wholes, self.along_n.wholes
        for size, most, ways in every.part_sizes:
            for way in ways:
                along_m, along_n = way.cluster
                tiles = batch * wholes_m[along_m] * wholes_n[along_n]
                if tiles <= most:  # others are left for parts
                    yield self._parts_us(way, size, int(tiles)), way

    def _parts_us(self, way: Schedule, size: int, tiles: int) -> float:
        """The bound in a cluster of so many CTAs with that many tiles, in steps of the best
        depth."""
        every, (written, gathered, of_one), us = self.every, self.sums, math.inf
        at_once, once, cycle_us = (
            every.resident[size],
            every.started[size] + written,
            every.cycle_us,
        )
        found = every.waves_of_parts(self.depths, tiles, at_once)
        each, alone = self.parts_rate(way.cluster, tiles) if found else (0.0, 0.0)
        for waves, parts, part_bytes in found:
            ctas = parts * tiles
            arriving = each * (ctas if ctas < at_once else at_once)
            byte = self._least_byte(arriving if arriving > alone else alone)
            added = gathered + (parts - 2) * of_one
            work_us = cycle_us * (waves * (once + part_bytes * byte) + added)
            streaming_us = cycle_us * (once + added) + self.dram_us
            longest_us = work_us if work_us > streaming_us else streaming_us
            us = longest_us if longest_us < us else us
        return us

    def rounds_of_split(self, parts: int) -> int:
        """Waves of clusters of `parts` CTAs that share a tile each."""
        return -(-self.tiles * parts // self.every.split_at_once[parts])
