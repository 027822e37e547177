"""Lower bounds on the estimated times of a tile's schedules: the less is settled, the lower the
bound.

    tile shape  rows and columns of a tile: the floors of its ways (`tile_shapes.py`)
    way         of a tile: K as a whole, in parts of a cluster or over the grid, with or without a
                cluster for multicast, whose operands arrive as in the best one
    sharing     with a cluster: the best store, the best way from tile to tile
    order       with an order of tiles: what DRAM then moves

The search (`search.py`) first refines what has the lowest bound. So the bounds decide how long it
takes, and not what it finds. Kernels with tensor memory have theirs in `tensor_bounds.py`.

Nothing here imports MLIR.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..cached import cached_attribute
from ..estimates.costs import gathered_cycles
from ..estimates.epilogue_costs import epilogue_cycles
from ..estimates.estimate import (
    Order,
    Step,
    refilled,
    spans_of,
    start_cycles,
    step_of,
    turns_ahead,
)
from ..estimates.l2_costs import l2_cycles
from ..problem import Schedule
from ..rules.rules import PART_K_TILES, TILE_RULES, keeps
from ..waves import tile_rounds
from .candidates import boxes_of, parts_in_waves
from .common import ONE
from .operand_arrival import UNKNOWN_WAVE
from .stagings import fitting_stages, ring_bytes, stages_beside
from .stores import Stored, Stores
from .tile_shapes import TileShape

Rings = Sequence[tuple[int, float]]
"""The possible depths of the ring beside each way to store, with the cycles of that store."""


class _Cta(NamedTuple):
    """The number of tiles of a CTA, the cycles of a K step, and the cycles before its first
    step."""

    rounds: int
    step: float
    before: float


class TileBounds:
    """Lower bounds in microseconds for the ways of a tile, their sharings and the orders of these.

    Ways and sharings are assumed to have the deepest ring that fits beside each way to store.
    """

    def __init__(self, tile_shape: TileShape, depth: int) -> None:
        problem, target = tile_shape.every.problem, tile_shape.every.target
        self.problem, self.target, self._tile_shape, self._chip = (
            problem,
            target,
            tile_shape,
            tile_shape.every.chip,
        )
        m, n, _ = tile_shape.tile.tile
        self.tile = tile = tile_shape.tile.but(tile=(m, n, depth))
        self._k_bytes = depth * problem.element_bytes
        self._ahead = turns_ahead(problem)
        self._steps, self._stage_bytes = problem.k_tiles(tile), problem.stage_bytes(tile)
        self._room = ring_bytes(problem, target)
        self._stages = stages_beside(0, self._stage_bytes, self._room)
        self._steps_of: dict[tuple[tuple[int, int], int, int, str, bool], Step] = {}
        self._rings: dict[bool, Rings] = {}
        self._stores = Stores(problem, target, epilogue_cycles, tile_shape.every.kind)
        self.orders = tile_shape.orders

    @cached_attribute
    def boxes(self) -> dict[bool, str]:
        """The box of the tile for a single CTA and for a pair."""
        return boxes_of(self.problem, self.tile.tile, self.target)

    @cached_attribute
    def _own(self) -> dict[str, float]:
        """The cycles per step that each resource of the multiprocessor itself takes."""
        return self._tile_shape.own_cycles(self.tile.tile[2])

    @cached_attribute
    def is_legal(self) -> bool:
        """Whether the tile keeps the rules that depend on nothing else."""
        return keeps(TILE_RULES, self.problem, self.tile, self.target)

    def taken(self, shape_way: Schedule) -> Schedule | None:
        """The tile with K divided as a way of its shape says; None if the parts are too short."""
        way = shape_way.but(tile=self.tile.tile, swap=self.tile.swap, stages=self._stages)
        parts = way.split_k * way.split_grid
        if parts == 1:
            return way
        if self.problem.k_tiles(way) < PART_K_TILES:
            return None
        return way.but(stages=fitting_stages(self.problem, way, self.target))

    def of_way(self, way: Schedule) -> float:
        """The bound of schedules that divide K in this way: in the way's cluster, or in any if the
        CTAs of a cluster share tiles."""
        tile_shape, parts = self._tile_shape, way.split_k
        if way.split_grid > 1:
            return self._of_parts(way)
        arriving, rounds = (
            (0.0, tile_shape.rounds_of_split(parts)) if parts > 1 else tile_shape.in_cluster(way)
        )
        if parts > 1:
            arriving = tile_shape.arriving(tile_shape.peers_of_split(parts), parts)
        step = self._together(self._k_bytes * arriving)
        return self._of(way, step, rounds)

    def of_sharing(self, branch: Schedule) -> float:
        """The bound of schedules in a cluster."""
        if self._tells_orders(branch):  # operands may arrive as in the best one
            arriving, rounds = self._tile_shape.in_cluster(branch)
            step = self._together(self._k_bytes * arriving)
        else:
            rounds = tile_rounds(self.problem, branch, self.target)
            step = self._step(branch).cycles
        return self._of(branch, step, rounds)

    def of_order(self, order: Schedule, known: Order) -> float:
        """The bound of schedules of a sharing that hand out tiles in this order."""
        step = self._step(order).cycles
        return self._of(order, step, known.rounds, known)

    def known_of(self, order: Schedule) -> tuple[Any, Order]:
        """What the schedules of an order have in common, preceded by what makes orders
        incomparable: for groups, how even the tiles are; for CTAs without a cluster, how soon
        operands arrive."""
        known, agents = self._tile_shape.order_of(order), (order.scheduler, order.ping_pong)
        incomparable = self.problem.cut or self._tells_orders(order)
        return (*agents, order.order) if incomparable else agents, known

    def estimated(self, order: Schedule, known: Order) -> Iterator[tuple[float, Stored]]:
        """The estimated microseconds of each schedule of an order."""
        problem, target, step = self.problem, self.target, self._step(order)
        for stored in self._stores.of(order, known.rounds):
            leaf = order.but(stages=stored.stages)
            found = spans_of(problem, leaf, target, step, known, stored.cycles)
            yield found.total_us, stored

    def _tells_orders(self, branch: Schedule) -> bool:
        """Whether operands arrive sooner in some orders of tiles than in others, which is so
        without clusters."""
        alone = branch.cluster_size * branch.split_k * branch.split_grid == 1
        return alone and self._chip.answered_apart > 0

    def _step(self, branch: Schedule) -> Step:
        """The K step of a sharing and, without clusters, of an order."""
        order = branch.order if self._tells_orders(branch) else ""
        one_tile = branch.scheduler == "none"
        shared = branch.cluster, branch.split_k, branch.split_grid, order, one_tile
        if shared not in self._steps_of:
            busy = {**self._own, "L2": l2_cycles(self.problem, branch, self.target)}
            self._steps_of[shared] = step_of(busy, self.target)
        return self._steps_of[shared]

    @cached_attribute
    def _two_slowest(self) -> list[float]:
        """The cycles per step of the two slowest resources of the multiprocessor itself, the
        slowest last."""
        return sorted(self._own.values())[-2:]

    def _together(self, arriving: float) -> float:
        """The cycles of a step whose operands arrive within the given cycles, combined as in
        `together`."""
        second, slowest = self._two_slowest
        if arriving > slowest:
            second, slowest = slowest, arriving
        elif arriving > second:
            second = arriving
        return slowest + self._chip.second_share * second

    def _of(self, branch: Schedule, step: float, rounds: int, known: Order | None = None) -> float:
        """The bound for steps of the given cycles: in any order and with the least DRAM traffic,
        unless these are known."""
        parted = branch.split_k * branch.split_grid > 1
        one = known or self._least_known(branch, rounds)
        before = start_cycles(branch, self.target) + one.fill
        if parted:
            return self._of_shared(branch, step, rounds, before, one)
        cta, least_us = _Cta(rounds, step, before), math.inf
        if known:
            return self._in_order(cta, branch, known)
        if rounds == 1 or self.problem.grouped != "m":  # which have no waves (`one_wave`)
            least_us = self._in_order(cta, ONE, one)
        if rounds > 1:
            known = self._least_known(branch, rounds, in_turn=True)
            found = [self._in_order(cta, each, known) for each in self._tile_shape.several]
            least_us = min(least_us, *found)
        return least_us

    def _of_shared(
        self, branch: Schedule, step: float, rounds: int, before: float, known: Order
    ) -> float:
        """The bound for CTAs that share tiles, each with a part of K."""
        problem, target = self.problem, self.target
        epilogue = epilogue_cycles(problem, branch, target)
        gathered = gathered_cycles(problem, branch, target)
        steps = -(-self._steps // (branch.split_k * branch.split_grid))
        main = self._main(steps, step, rounds, branch.stages, ahead=0)
        work = rounds * (before + main + epilogue) + gathered
        return self._combined(work, 0, before + epilogue + gathered, known)

    def _main(self, steps: int, step: float, rounds: int, stages: int, ahead: float) -> float:
        """Cycles of a main loop with this many stages, of which `ahead` more are assumed."""
        most = rounds * steps
        ring = (stages if stages < most else most) - self._tile_shape.held
        ring = (ring if ring > 1 else 1) + ahead
        latency, streamed = self._chip.tma_latency, steps * step
        if ring * step >= latency + step:  # loads are there in time, as they are in most
            return streamed
        return max(streamed, refilled(steps, ring, step, latency))

    def _rings_of(self, order: Schedule) -> Rings:
        """The rings beside the ways to store, without stores that take longer and leave no more
        room; the fewest stages, with the shortest epilogue, come first."""
        if order.ping_pong not in self._rings:
            found = {
                stages_beside(smem_bytes, self._stage_bytes, self._room): cycles
                for smem_bytes, cycles in self._tile_shape.stores_of(order)  # the least bytes first
            }
            self._rings[order.ping_pong] = tuple(found.items())[::-1]
        return self._rings[order.ping_pong]

    def _in_order(self, cta: _Cta, order: Schedule, known: Order) -> float:
        """The bound with the best of the rings; none is deeper than the one that hides all
        latency."""
        least_us, (rounds, step, before) = math.inf, cta
        every, ahead = self._tile_shape.every, self._ahead if order.ping_pong else 0
        streamed = self._steps * step
        for stages, epilogue in self._rings_of(order):
            main = self._main(self._steps, step, rounds, stages, ahead)
            work = every.work_of(order, rounds, (main, epilogue, before))
            loops = work if every.cut else rounds * main
            us = every.total_us(work, loops, before + epilogue, known.dram_us, known.early_us)
            least_us = us if us < least_us else least_us
            if main <= streamed:
                break
        return least_us

    def _of_parts(self, way: Schedule) -> float:
        """The bound with K in parts over the grid."""
        tile_shape, us = self._tile_shape, math.inf
        tiles, at_once = tile_shape.tiles_in(way), tile_shape.every.resident[way.cluster_size]
        known = self._least_known(way, 1)
        once = start_cycles(way, self.target) + self._chip.tma_latency + tile_shape.sums.written
        rate = tile_shape.parts_rate(way.cluster, tiles)
        for waves, each in parts_in_waves(self._steps, tiles, at_once):
            parts = -(-self._steps // each)
            step = self._together(self._k_bytes * rate.of(min(parts * tiles, at_once)))
            gathered = tile_shape.sums.gathered + (parts - 2) * tile_shape.sums.of_one
            main = self._main(each, step, waves, way.stages, ahead=0)
            work = waves * (once + main) + gathered
            us = min(us, self._combined(work, 0, once + gathered, known))
        return us

    def _combined(
        self,
        work: float,
        loops: float,
        ends: float,
        known: Order,
    ) -> float:
        """The combined time for cycles of work, of which `loops` are main loops, and cycles before
        and after them."""
        return self._tile_shape.every.total_us(work, loops, ends, known.dram_us, known.early_us)

    def _least_known(self, branch: Schedule, rounds: int, in_turn: bool = False) -> Order:
        """What no order undercuts, if each CTA has one tile in that many waves, or several tiles in
        turn; clusters ask DRAM for more in every order."""
        dram_us, wave = self._tile_shape.dram_us, UNKNOWN_WAVE
        if in_turn or branch.cluster_size > 1 or branch.scheduler != "none":
            dram_us += self._tile_shape.reload_us(branch.cluster)
        if branch.split_k * branch.split_grid == 1:
            wave = self._tile_shape.first_wave(branch.cluster, rounds)
        return Order(rounds, self._chip.tma_latency + wave.later, dram_us, wave.early_us)
