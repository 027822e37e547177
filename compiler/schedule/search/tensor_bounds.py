"""Lower bounds on the estimated times of schedules with tensor memory; `bounds.py` has those of
other kernels.

    tile shape  rows and columns of a tile: K as a whole, in a CTA or a pair, or in any number of
                parts over the grid, in steps of the deepest tile
    way         of a tile: K divided so, in steps of its own
    sharing     with a cluster and a number of parts: the best store and way from tile to tile
    order       with an order of tiles: what DRAM then moves

Nothing here imports MLIR.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ....dialects.store_legality import staged_pair
from ....dialects.target import Target
from ..cached import cached_attribute
from ..chips.chip_figures import figures, tensor_figures
from ..estimates.costs import least_dram_bytes, part_cycles, vector_cycles
from ..estimates.tensor_estimate import (
    Moved,
    clock_under_load,
    combined_us,
    epilogue_cycles,
    moved_us,
    read_cycles,
    residents_with,
    spans_of,
)
from ..estimates.tensor_steps import CHOSEN, Steps, steps_of
from ..problem import Problem, Schedule
from ..rules.rules import PART_K_TILES, TILE_RULES, accumulator_registers, keeps
from ..rules.staging_rules import stored_by_tma
from ..schedule import PLAIN
from ..waves import resident_ctas
from .candidates import PART_MARGIN, STAGES, boxes_of
from .kind_cache import KindCache
from .part_bounds import Sums, least_of_parts, most_at_once
from .stagings import fitting_stages
from .stores import LeastStore, Stored, Stores, least_of_stores
from .tensor_cycle_bounds import Least

NARROWEST = 16  # columns of a piece, see `STAGINGS`, or a whole tile
WIDEST = (4, 2)  # along each axis, of the clusters of parts


class TensorTileShapes:
    """The tile shapes of a problem."""

    def __init__(self, problem: Problem, target: Target, _: int = 0) -> None:
        self.problem, self.target, self.kind = problem, target, KindCache(problem, target)

    @cached_attribute
    def parted(self) -> bool:
        """Whether K may be split over the grid."""
        return (
            figures(self.target).parts is not None
            and self.problem.parts_refusal(self.target) is None
        )

    def of(self, tile: tuple[int, int], depths: Sequence[int]) -> TensorTileShape | None:
        """The shape of tiles with these rows and columns and several depths of K, in ascending
        order; None if tensor memory cannot hold the accumulators."""
        asked = *tile, depths[0]
        sides = self.kind.of("sides", asked, _sides_of, self.problem, asked, self.target)
        return TensorTileShape(self, sides, depths) if sides else None


def _sides_of(
    problem: Problem, tile: tuple[int, int, int], target: Target
) -> tuple[Schedule, ...] | None:
    """Such tiles of a single CTA and of a pair; None if tensor memory cannot hold the
    accumulators."""
    one = PLAIN.but(tile=tile, swap=problem.swapped)
    if accumulator_registers(problem, one, target):
        return None
    return (one, one.but(cluster=(2, 1), pair=True)) if target.mma.pairs else (one,)


class TensorTileShape:
    """One tile shape of a problem, whatever K its tiles take per step.

    `sides` are such tiles of a single CTA and of a pair.
    """

    def __init__(
        self, every: TensorTileShapes, sides: tuple[Schedule, ...], depths: Sequence[int]
    ) -> None:
        self.problem, self.target, self._every = every.problem, every.target, every
        self.kind = every.kind
        self.sides, self.tile, self.depths = sides, sides[0], depths
        self._moved: dict[tuple[object, ...], Moved] = {}
        self.orders: dict[tuple[object, ...], list[tuple[Schedule, Moved]]] = {}
        self._stores: dict[tuple[bool, bool], list[LeastStore]] = {}
        self.bounds: list[Any] = []  # of the tiles of each depth, for a search to fill

    @cached_attribute
    def sums(self) -> Sums | None:
        """The cost of the partial sums of parts over the grid, if there may be any."""
        return Sums.of(self.problem, self.tile, self.target) if self._every.parted else None

    @cached_attribute
    def _read(self) -> float:
        """Cycles in which the sums of a part are read."""
        part = PLAIN.but(tile=self.tile.tile, split_grid=2)
        return read_cycles(self.problem, part, self.target)

    def stores_of(self, branch: Schedule) -> list[LeastStore]:
        """The least cost of each way to store, whatever K a tile takes."""
        parts, how = branch.split_grid > 1, (self.problem, branch, self.target, epilogue_cycles)
        if (branch.pair, parts) not in self._stores:
            self._stores[branch.pair, parts] = (
                [LeastStore(0, epilogue_cycles(self.problem, branch, self.target))]
                if parts
                else self.kind.of("stores", (branch.tile, branch.pair), least_of_stores, *how)
            )
        return self._stores[branch.pair, parts]

    def moved_us(self, order: Schedule) -> Moved:
        """What DRAM moves for the schedules of an order, whatever K they take and which agent hands
        out tiles."""
        asked = order.scheduler == "none", order.order, order.pair
        if asked not in self._moved:
            self._moved[asked] = moved_us(self.problem, order, self.target)
        return self._moved[asked]

    def floors(self) -> list[tuple[float, Schedule]]:
        """Lower bounds in microseconds with K as a whole, in a CTA and in a pair, and in parts over
        the grid, each with the way."""
        m, n, _ = self.tile.tile
        deepest = [side.but(tile=(m, n, self.depths[-1])) for side in self.sides]
        least = [self._least_us(side, self.depths[0]) for side in deepest]
        found = [(whole_us, side) for (whole_us, _), side in zip(least, self.sides, strict=True)]
        parts_us = min([parts_us for _, parts_us in least])
        parts = [(PART_MARGIN * parts_us, self.tile.but(split_grid=2))]
        return found + (parts if parts_us < math.inf else [])

    def _least_us(self, side: Schedule, least_k: int) -> tuple[float, float]:
        """The bounds of a side in steps of the deepest tile, with K as a whole and in parts:
        shallower steps take no fewer cycles in total. Only the first load may be a short one."""
        problem, target, (m, n, depth) = self.problem, self.target, side.tile
        steps, tiles = steps_of(problem, side, target), problem.ctas(side)
        k_tiles, rounds = problem.k / depth, -(-tiles // resident_ctas(side, target))
        loops, mma = k_tiles * steps.step, k_tiles / steps.k_tiles * steps.mma
        before, asked = steps.start + figures(target).tma_latency, (m, n, side.pair)
        stored = self.kind.of("epilogue", asked, _least_epilogue_cycles, problem, side, target)
        epilogue = steps.completion + stored
        work = rounds * loops - steps.step + steps.mma
        if rounds > 1:
            around = before + epilogue + tensor_figures(target).cta_turnover
            waves = -(-rounds // self._residents(side, least_k))
            apart = (waves - 1) * around + waves * (loops - steps.step + steps.mma)
            work = max(work, min(rounds * max(loops, epilogue), apart))
        looped = work, rounds * loops
        floor_us = _total_us(problem, side, mma, looped, before + epilogue, target)
        if tiles > target.multiprocessors or self.sums is None:
            return floor_us, math.inf
        most = min(most_at_once(tiles, target.multiprocessors), problem.k / least_k / PART_K_TILES)
        if most <= 1:
            return floor_us, math.inf
        ends = before + steps.completion + self._read + self.sums.written + self.sums.gathered
        work = loops / most - steps.step + steps.mma
        return floor_us, _total_us(problem, side, mma, (work, 0), ends, target)

    def _residents(self, side: Schedule, least_k: int) -> int:
        """The most CTAs of one tile each that share a multiprocessor, with the shallowest tile and
        the shortest ring."""
        least, problem = side.but(tile=(*side.tile[:2], least_k)), self.problem
        used = min(STAGES[0], problem.k_tiles(least)) * problem.stage_bytes(least)
        return residents_with(used, side.tile, self.target, CHOSEN)

    def of_parts(self, side: Schedule) -> float:
        """The bound in microseconds with K in parts over the grid, by CTAs or by pairs."""
        problem, target, us = self.problem, self.target, math.inf
        steps, tiles = steps_of(problem, side, target), problem.ctas(side)
        if self.sums is None or tiles > target.multiprocessors:
            return us
        ends = steps.before + steps.completion + self._read + self.sums.written
        last, most = ends + self.sums.gathered, problem.ctas(side.but(cluster=WIDEST))
        counts, at_once = (tiles, max(tiles, most)), target.multiprocessors
        for _, work in least_of_parts(steps.k_tiles, steps.step, counts, at_once, self.sums):
            work += steps.mma - steps.step - self.sums.gathered
            us = min(us, _total_us(problem, side, steps.mma, (work, 0), last, target))
        return us


class TensorBounds:
    """Lower bounds in microseconds for the ways of a tile, their sharings and the orders of these.

    A way with K as a whole has a single sharing: one CTA, or a pair.
    """

    def __init__(self, tile_shape: TensorTileShape, depth: int) -> None:
        self.problem, self.target, self._tile_shape = (
            tile_shape.problem,
            tile_shape.target,
            tile_shape,
        )
        self._chip, (m, n, _) = figures(tile_shape.target), tile_shape.tile.tile
        self._tile = tile_shape.tile.but(tile=(m, n, depth))
        self._of_sharings: dict[tuple[tuple[int, int], bool, int], Least] = {}
        self._stores = Stores(self.problem, self.target, epilogue_cycles, tile_shape.kind)
        self.orders = tile_shape.orders

    @cached_attribute
    def boxes(self) -> dict[bool, str]:
        """The box of the tile for a single CTA and for a pair."""
        return boxes_of(self.problem, self._tile.tile, self.target)

    @cached_attribute
    def is_legal(self) -> bool:
        """Whether the tile keeps the rules that depend on nothing else."""
        return keeps(TILE_RULES, self.problem, self._tile, self.target)

    def taken(self, shape_way: Schedule) -> Schedule | None:
        """The tile with K divided as a way of its shape says; None if the parts are too short."""
        way = shape_way.but(tile=self._tile.tile, swap=self._tile.swap)
        if way.split_grid > 1 and self.problem.k_tiles(way) < PART_K_TILES:
            return None
        return way.but(stages=fitting_stages(self.problem, way, self.target))

    def of_way(self, way: Schedule) -> float:
        """The bound of schedules that divide K in this way, by a CTA or a pair."""
        if way.split_grid > 1:
            sides = [side.but(tile=way.tile) for side in self._tile_shape.sides]
            return min([self._tile_shape.of_parts(side) for side in sides])
        return self.of_sharing(way)

    def of_sharing(self, branch: Schedule) -> float:
        """The bound of schedules in a cluster, with the least DRAM traffic of any order."""
        least = self._least_of(branch)
        dram_us = least_dram_bytes(self.problem, branch, self.target) / self._chip.dram_rate
        return self._total_us(branch, least, least.cycles, dram_us)

    def of_order(self, order: Schedule, known: Moved) -> float:
        """The bound of schedules of a sharing that hand out tiles in this order."""
        least = self._least_of(order)
        cycles = least.waves if order.scheduler == "none" else least.persistent
        return self._total_us(order, least, cycles, known.us, known.early_us)

    def known_of(self, order: Schedule) -> tuple[Any, Moved]:
        """What the schedules of an order have in common, preceded by what makes orders
        incomparable: a tile that is claimed arrives no sooner than one that is known beforehand."""
        return order.scheduler == "none", self._tile_shape.moved_us(order)

    def estimated(self, order: Schedule, known: Moved) -> Iterator[tuple[float, Stored]]:
        """The estimated microseconds of each schedule of an order."""
        problem, target, (steps, rounds) = self.problem, self.target, self._known_of(order)
        for stored in self._stores.of(order, rounds):
            found = spans_of(problem, stored.by(order), target, steps, known, stored.cycles)
            yield found.total_us, stored

    def _known_of(self, order: Schedule) -> tuple[Steps, int]:
        least = self._least_of(order)
        return least.steps, least.rounds

    def _least_of(self, branch: Schedule) -> Least:
        shared = branch.cluster, branch.pair, branch.split_grid
        if shared not in self._of_sharings:
            stores = self._tile_shape.stores_of(branch)
            self._of_sharings[shared] = Least.of(self.problem, branch, self.target, stores)
        return self._of_sharings[shared]

    def _total_us(
        self,
        branch: Schedule,
        least: Least,
        cycles: float,
        dram_us: float,
        early_us: float = 0.0,
    ) -> float:
        """The total time for so many cycles while DRAM is busy for `dram_us`; the first of several
        waves asks for a part of that at once."""
        steps, target = least.steps, self.target
        clock = clock_under_load(self.problem, branch, target, cycles, steps.mma, CHOSEN)
        flow_us = _us(steps.k_tiles * steps.step, clock)
        work_us = _us(cycles, clock) + max(0.0, early_us - flow_us)
        tensor = tensor_figures(target)
        streaming_us = dram_us + _us(tensor.cold_fill + least.ends, self._chip.clock)
        return tensor.launch + combined_us(target, work_us, streaming_us, least.loops, dram_us)


def _total_us(
    problem: Problem,
    side: Schedule,
    mma: float,
    looped: tuple[float, float],
    ends: float,
    target: Target,
) -> float:
    """The total time for so many cycles of work and before and after it, of which K tiles alone
    take `looped`, with `mma` cycles of MMAs per step, and with the least that DRAM moves."""
    (work, loops), tensor, chip = looped, tensor_figures(target), figures(target)
    cycles = tensor.cold_fill + max(0.0, work) + ends
    clock = clock_under_load(problem, side, target, cycles, mma, CHOSEN)
    dram_us = least_dram_bytes(problem, side, target) / chip.dram_rate
    streaming_us = dram_us + _us(tensor.cold_fill + ends, chip.clock)
    return tensor.launch + combined_us(target, _us(cycles, clock), streaming_us, loops, dram_us)


def _least_epilogue_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles of the epilogue with the best store, by threads or by TMA in the narrowest pieces,
    whatever is prefetched."""
    (m, n, _), chip = schedule.tile, figures(target)
    read = read_cycles(problem, schedule, target)
    if schedule.split_grid > 1:
        return read + part_cycles(problem, schedule, target)
    elements = m * n // problem.products
    stored_bytes, epilogue_operand_bytes = (
        problem.row_bytes(elements),
        elements * sum(problem.beside),
    )
    least = math.inf  # threads store no columns of C
    if not problem.swapped:
        least = read + stored_bytes / chip.direct_store_rate
        least += epilogue_operand_bytes / chip.beside_rate if epilogue_operand_bytes else 0
        least += vector_cycles(problem, schedule.but(staging=None), target)
    if stored_by_tma(problem, target) or (schedule.pair and staged_pair(m)):
        return least
    store = stored_bytes / chip.tma_store_rate
    staged = max(read, store) + min(read, store) * min(n, NARROWEST) / n
    return min(least, staged + epilogue_operand_bytes / chip.shared_rate)


def _us(cycles: float, clock: float) -> float:
    return cycles / (clock * 1e3)
