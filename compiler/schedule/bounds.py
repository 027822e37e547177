"""What no schedule of a tile is estimated to beat: the less is settled, the lower the bound.

    face        of tiles of as many rows and columns: the floors of its ways (`faces.py`)
    way         of a tile: K whole, in parts of a cluster or over the grid, with or without a
                cluster for multicast, whose operands arrive as in the best one
    sharing     with that cluster: the best store, the best way from tile to tile
    order       with that way from tile to tile, and what DRAM then moves

The search (`search.py`) refines first what has the lowest bound, so that bounds decide how long it
takes and not what it finds. Of kernels in tensor memory `tensor_bounds.py` has them.

Nothing here imports MLIR.
"""

from __future__ import annotations

import functools
import math

from .candidates import boxes_of
from .costs import dram_bytes, gathered_cycles
from .estimate import (
    TURNS_AHEAD,
    epilogue_cycles,
    first_wave_us,
    l2_cycles,
    own_cycles,
    refilled,
    shared_row_cycles,
    start_cycles,
    work_cycles,
)
from .faces import Face
from .least_parts import fewest_parts, least_of_parts
from .problem import Schedule
from .rules import PART_K_TILES, TILE_RULES, keeps
from .stagings import fitting_stages
from .waves import tile_rounds

PART_CLUSTERS = (1, 2, 4)  # as wide as `PART_CLUSTER`


class TileBounds:
    """The bounds of a tile's ways, its sharings and their orders, in microseconds.

    The ways and sharings have the deepest ring that fits.
    """

    def __init__(self, face: Face, depth: int) -> None:
        problem, target = face.every.problem, face.every.target
        self.problem, self.target, self._face, self._chip = problem, target, face, face.every.chip
        m, n, _ = face.tile.tile
        self.tile = tile = face.tile.but(tile=(m, n, depth))
        self._k_bytes = depth * problem.element_bytes
        self._steps = problem.k_tiles(tile)
        *_, self._second, self._slowest = sorted(own_cycles(problem, tile, target).values())
        self._of_sharings: dict[tuple[tuple[int, int], int, int], tuple[float, int]] = {}

    @functools.cached_property
    def boxes(self) -> dict[bool, str]:
        """The box of the tile of one CTA and of a pair."""
        return boxes_of(self.problem, self.tile.tile, self.target)

    @functools.cached_property
    def is_legal(self) -> bool:
        """Whether the tile keeps the rules that ask for nothing else."""
        return keeps(TILE_RULES, self.problem, self.tile, self.target)

    def taken(self, face_way: Schedule) -> Schedule | None:
        """The tile with K as a way of its face has it, None where the parts are too short."""
        way = face_way.but(tile=self.tile.tile)
        parts = way.split_k * way.split_grid
        if parts > 1 and self.problem.k_tiles(way) < PART_K_TILES:
            return None
        return way.but(stages=fitting_stages(self.problem, way, self.target))

    def of_way(self, way: Schedule) -> float:
        """Of schedules with K as the way has it, alone or in any cluster."""
        if way.split_grid > 1:
            return self._parts_us()
        if way.split_k > 1:
            return self._of_way(way, self._face.peers_of_split(way.split_k))
        return self._of_way(way, 1 if way.cluster_size == 1 else self._face.peers)

    def _of_way(self, way: Schedule, peers: int) -> float:
        step = self._together(self._k_bytes * self._face.arriving(peers, way.split_k))
        return self._of(way, step, self._face.rounds_of_split(way.split_k))

    def of_sharing(self, branch: Schedule) -> float:
        """Of schedules in a cluster."""
        return self._of(branch, *self._steps_and_rounds(branch))

    def of_order(self, order: Schedule) -> float:
        """Of schedules of a sharing that hand out tiles so."""
        problem, target, chip = self.problem, self.target, self._chip
        step, rounds = self._steps_and_rounds(order)
        dram_us = dram_bytes(problem, order, target) / chip.dram_rate
        early_us = chip.first_wave * first_wave_us(problem, order, target)
        return self._of(order, step, rounds, (order,), (dram_us, early_us))

    def _steps_and_rounds(self, branch: Schedule) -> tuple[float, int]:
        """Cycles of a step, and waves: all orders of a sharing have the same."""
        shared = branch.cluster, branch.split_k, branch.split_grid
        if shared not in self._of_sharings:
            step = self._together(l2_cycles(self.problem, branch, self.target))
            self._of_sharings[shared] = step, tile_rounds(self.problem, branch, self.target)
        return self._of_sharings[shared]

    def _together(self, arriving: float) -> float:
        """As `together` has it of all that a step needs."""
        slowest, faster = max(arriving, self._slowest), min(arriving, self._slowest)
        return slowest + self._chip.second_share * max(faster, self._second)

    def _of(
        self,
        branch: Schedule,
        step: float,
        rounds: int,
        orders: tuple[Schedule, ...] = (),
        dram: tuple[float, float] | None = None,
    ) -> float:
        """With steps of so many cycles; in any order, and with the least of DRAM, unless said."""
        problem, target, latency = self.problem, self.target, self._chip.tma_latency
        parts = branch.split_k * branch.split_grid
        steps = -(-self._steps // parts)
        ring = max(1, min(branch.stages, rounds * steps) - self._face.held)
        ring += TURNS_AHEAD if problem.cut else 0
        main = max(steps * step, refilled(steps, ring, step, latency))
        before = start_cycles(branch, target) + latency
        before += shared_row_cycles(problem, branch, target) if dram else 0  # of an order
        if parts > 1:
            epilogue = epilogue_cycles(problem, branch, target)
            gathered = gathered_cycles(problem, branch, target)
            work = rounds * (before + main + epilogue) + gathered
            return self._combined(work, 0, before + epilogue + gathered, dram)
        orders = orders or self._face.orders
        orders = orders[:1] if rounds == 1 else orders
        return min([self._in_order(one, rounds, main, before, dram) for one in orders])

    def _in_order(
        self,
        order: Schedule,
        rounds: int,
        main: float,
        before: float,
        dram: tuple[float, float] | None,
    ) -> float:
        """With main loops of so many cycles, and so many from the start of a CTA to its first."""
        epilogue = self._face.epilogue_of(order)
        work = work_cycles(order, rounds, main, epilogue, before, self.target)
        return self._combined(work, rounds * main, before + epilogue, dram)

    def _parts_us(self) -> float:
        """Of schedules with K in parts over the grid."""
        return min([self._of_parts(size) for size in PART_CLUSTERS])

    def _of_parts(self, size: int) -> float:
        """Those of clusters of so many CTAs."""
        face, chip, us = self._face, self._chip, math.inf
        tiles, at_once = face.room(size)
        fewest = fewest_parts(self._steps, at_once // tiles[1])
        step = self._together(self._k_bytes * face.arriving(size, 1, fewest))
        before = chip.cta_start + chip.tma_latency + (chip.cluster_start if size > 1 else 0)
        once = before + face.sums.written
        for waves, work in least_of_parts(self._steps, step, tiles, at_once, face.sums):
            ends = once + face.sums.gathered
            us = min(us, self._combined(waves * once + work, 0, ends))
        return us

    def _combined(
        self,
        work: float,
        loops: float,
        ends: float,
        dram: tuple[float, float] | None = None,
    ) -> float:
        """For so many cycles of work, of which those of main loops and those around."""
        dram_us, early_us = dram or (self._face.dram_us, 0.0)
        return self._face.every.total_us(work, loops, ends, dram_us, early_us)
