"""What no schedule of a tile is estimated to beat: the less is settled, the lower the bound.

    floor       of a tile: MMAs, operands at the best rate of arrival, and what DRAM moves at least
    tile        what one CTA takes of it, or where all multiprocessors share its sums evenly
    way         K whole, in parts of a cluster or over the grid, with or without a cluster for
                multicast, whose operands arrive as in the best one
    sharing     with that cluster: the best store, the best way from tile to tile
    order       with that way from tile to tile, and what DRAM then moves

The search (`search.py`) refines first what has the lowest bound, so that bounds decide how long it
takes and not what it finds. Of tensor memory a tile and its ways have its floor.
"""

from __future__ import annotations

import math

from ...dialects.target import Target
from .added_costs import stored_alone
from .candidates import PART_MARGIN, PART_WAVES, most_parts
from .chip_figures import figures
from .costs import (
    computed_cycles,
    dram_bytes,
    gathered_cycles,
    least_dram_bytes,
    once_bytes,
    part_cycles,
    scale_cycles,
)
from .estimate import (
    SHARING_MAX,
    combined_us,
    epilogue_cycles,
    first_wave_us,
    l2_cycles,
    least_arriving_cycles,
    microseconds,
    own_cycles,
    refill_cycles,
    rows_by_threads,
    shared_row_cycles,
    start_cycles,
    together,
    work_cycles,
)
from .extents import round_up
from .problem import LINE_BYTES, Problem, Schedule
from .rules import PART_K_TILES
from .stagings import STAGINGS
from .tensor_estimate import least_tensor_us, least_tile_us
from .waves import tile_rounds

ROUNDING = 1 - 1e-9
"""A bound adds up in another order than the estimate that it bounds."""


class Floors:
    """What tiles of a problem take at least, found in a tenth of the time of their bounds."""

    def __init__(self, problem: Problem, target: Target) -> None:
        self.problem, self.target, chip = problem, target, figures(target)
        self._us = microseconds(target, 1)
        self._dram_us = once_bytes(problem) / chip.dram_rate
        self._mma = problem.element_bytes / chip.mma_rate
        saved = chip.multicast * (1 - 1 / SHARING_MAX)
        self._arriving = problem.element_bytes * (1 - saved) / chip.l2_rate
        self._least, self._second = float(chip.step_least), float(chip.second_share)
        self._before, self._overlap = chip.cta_start + chip.tma_latency, float(chip.dram_share)
        self._rows = target.mma.m[-1]

    def of_tile(self, tile: tuple[int, int, int]) -> float:
        """Microseconds that no schedule of the tile is estimated to beat."""
        if self.target.has_tensor_memory:
            return ROUNDING * least_tile_us(self.problem, tile, self.target)
        (m, n, k), problem, at_once = tile, self.problem, self.target.multiprocessors
        of_one = -(-problem.m // m) * -(-problem.n // n)
        tiles = problem.batch * of_one
        steps, rounds = -(-problem.k // k), -(-tiles // at_once)
        loops = steps * self._step(m, n, k)
        whole = self._total_us(rounds * loops, 0)
        if rounds > 1 or steps <= PART_K_TILES:
            return whole
        part = max(of_one / at_once, 1 / SHARING_MAX)
        of_cluster = self._total_us(part * loops, 0) if 2 * of_one <= at_once else whole
        return min(whole, of_cluster, self._of_grid_parts(tile, tiles / at_once * loops))

    def _step(self, m: int, n: int, k: int) -> float:
        """The slowest of MMAs, arrival and barriers, and a share of a faster one."""
        computed = round_up(m, self._rows) * n * k * self._mma
        arriving = (min(m, self.problem.m) + min(n, self.problem.n)) * k * self._arriving
        slowest = max(computed, arriving, self._least)
        return slowest + self._second * min(computed, arriving)

    def _of_grid_parts(self, tile: tuple[int, int, int], loops: float) -> float:
        if not figures(self.target).parts:
            return math.inf
        two = Schedule(tile, split_grid=2)
        ends = part_cycles(self.problem, two, self.target)
        ends += gathered_cycles(self.problem, two, self.target)
        return PART_MARGIN * self._total_us(loops, ends)

    def _total_us(self, loops: float, more: float) -> float:
        """With so many cycles of main loops and, around them, so many more than of any tile."""
        loops_us, dram_us = loops * self._us, self._dram_us
        longer, shorter = (loops_us, dram_us) if loops_us > dram_us else (dram_us, loops_us)
        ends_us = (self._before + more) * self._us
        return ROUNDING * (ends_us + longer + self._overlap * shorter)


class TileBounds:
    """The bounds of a tile, its ways and its sharings in microseconds, which have much in common.

    The tile, its ways and its sharings have the deepest ring that fits.
    """

    def __init__(self, problem: Problem, tile: Schedule, target: Target) -> None:
        self.problem, self.tile, self.target = problem, tile, target
        if target.has_tensor_memory:
            self._floor = ROUNDING * least_tile_us(problem, tile.tile, target)
            return
        m, n = problem.tiles(tile)
        self._tiles = problem.batch * m * n
        self._own = own_cycles(problem, tile, target)
        self._dram_us = least_dram_bytes(problem, tile, target) / figures(target).dram_rate
        self._epilogue = least_epilogue_cycles(problem, tile, target)
        self._least_step = self._step(least_arriving_cycles(problem, tile, SHARING_MAX, target))

    def of_tile(self) -> float:
        """Of schedules of the tile, however CTAs share it."""
        if self.target.has_tensor_memory:
            return self._floor
        rounds = -(-self._tiles // self.target.multiprocessors)
        bounds = [self._of(self.tile, self._least_step, rounds)]
        if rounds == 1 and self.problem.k_tiles(self.tile) > PART_K_TILES:
            most = self.tile.but(split_k=most_parts(self.problem, self.tile, self.target))
            bounds += [self._of(most, self._least_step, 1)] if most.split_k > 1 else []
            bounds += [PART_MARGIN * self._of_grid_parts()] if figures(self.target).parts else []
        return min(bounds)

    def of_way(self, way: Schedule) -> float:
        """Of schedules with K as the way has it, alone or in any cluster."""
        if self.target.has_tensor_memory:
            return self._floor
        if way.split_grid > 1:
            return self._of_grid_parts()
        rounds = -(-self._tiles * way.split_k // self.target.multiprocessors)
        whole = way.split_k == 1
        peers = SHARING_MAX // way.split_k if way.cluster_size > 1 or not whole else 1
        arriving = least_arriving_cycles(self.problem, way, peers, self.target)
        return self._of(way, self._step(arriving), rounds)

    def of_sharing(self, branch: Schedule) -> float:
        """Of schedules in a cluster."""
        problem, target = self.problem, self.target
        if target.has_tensor_memory:
            return ROUNDING * least_tensor_us(problem, branch, target)
        step = self._step(l2_cycles(problem, branch, target))
        return self._of(branch, step, tile_rounds(problem, branch, target))

    def of_order(self, order: Schedule) -> float:
        """Of schedules of a sharing that hand out tiles so."""
        problem, target, chip = self.problem, self.target, figures(self.target)
        if target.has_tensor_memory:
            return ROUNDING * least_tensor_us(problem, order, target, ordered=True)
        step = self._step(l2_cycles(problem, order, target))
        rounds = tile_rounds(problem, order, target)
        dram_us = dram_bytes(problem, order, target) / chip.dram_rate
        early_us = chip.first_wave * first_wave_us(problem, order, target)
        return self._of(order, step, rounds, [order], (dram_us, early_us))

    def _step(self, arriving: float) -> float:
        return together(self._own | {"L2": arriving}, self.target)

    def _of(
        self,
        branch: Schedule,
        step: float,
        rounds: int,
        orders: list[Schedule] | None = None,
        dram: tuple[float, float] | None = None,
    ) -> float:
        """With steps of so many cycles; in any order, and with the least of DRAM, unless said."""
        problem, target = self.problem, self.target
        streamed = problem.k_tiles(branch) * step
        main = max(streamed, refill_cycles(problem, branch, step, target))
        before = start_cycles(branch, target) + figures(target).tma_latency
        before += shared_row_cycles(problem, branch, target) if dram else 0  # of an order
        if branch.split_k * branch.split_grid > 1:
            epilogue = epilogue_cycles(problem, branch, target)
            gathered = gathered_cycles(problem, branch, target)
            work = rounds * (before + main + epilogue) + gathered
            return self._combined(work, rounds * main, before + epilogue + gathered, dram)
        epilogue, orders = self._epilogue, orders or _orders(branch, rounds, target)
        work = min(work_cycles(one, rounds, main, epilogue, before, target) for one in orders)
        return self._combined(work, rounds * main, before + epilogue, dram)

    def _of_grid_parts(self) -> float:
        """Of schedules with K in parts over the grid.

        There are as many parts, or fractions of them, as make the least of steps and sums together,
        but no more for each multiprocessor than it has in whole waves.
        """
        problem, target, steps = self.problem, self.target, self.problem.k_tiles(self.tile)
        two, three = (self.tile.but(split_grid=parts) for parts in (2, 3))
        gathered = gathered_cycles(problem, two, target)
        each = gathered_cycles(problem, three, target) - gathered
        at_once = target.multiprocessors
        most = max(waves * at_once // self._tiles / waves for waves in PART_WAVES)
        share = min(most, steps / PART_K_TILES)
        parts = max(2.0, min(share, math.sqrt(steps * self._least_step / each)))
        loops = steps / min(parts, share) * self._least_step
        ends = part_cycles(problem, two, target) + gathered + (parts - 2) * each
        ends += figures(target).cta_start + figures(target).tma_latency
        return self._combined(ends + loops, loops, ends)

    def _combined(
        self,
        work: float,
        loops: float,
        ends: float,
        dram: tuple[float, float] | None = None,
    ) -> float:
        """For so many cycles of work, of which those of main loops and those around."""
        (dram_us, early_us), target = dram or (self._dram_us, 0.0), self.target
        streaming_us = dram_us + microseconds(target, ends)
        work_us, loops_us = microseconds(target, work), microseconds(target, loops)
        return ROUNDING * combined_us(target, work_us, streaming_us, loops_us, dram_us, early_us)


def _orders(branch: Schedule, rounds: int, target: Target) -> list[Schedule]:
    """The ways from tile to tile that differ in the time of the work."""
    if rounds == 1:
        return [branch]
    one = branch.but(scheduler="static")
    alternate = target.mma_warpgroups(*branch.tile[:2]) == 1
    return [branch, one, one.but(ping_pong=True)] if alternate else [branch, one]


def least_epilogue_cycles(problem: Problem, tile: Schedule, target: Target) -> float:
    """Cycles of the epilogue of a whole tile with the best store."""
    (m, n, _), chip = tile.tile, figures(target)
    cycles = computed_cycles(problem, tile, target)
    cycles += chip.group_walk if problem.grouped == "m" else 0
    cycles += m * n // problem.products * sum(problem.beside) / chip.shared_rate
    cycles += _least_store_cycles(problem, tile, target)
    return cycles * stored_alone(problem, tile, target)


def _least_store_cycles(problem: Problem, tile: Schedule, target: Target) -> float:
    """Cycles in which a tile of C is stored by TMA in the widest pieces, or by threads."""
    m, n, chip = tile.tile[0], tile.tile[1] // problem.products, figures(target)
    stored_bytes = m * problem.row_bytes(n)
    if problem.swapped:  # all in one piece
        requests = n * -(-m * problem.c_bytes // LINE_BYTES)
        store = max(stored_bytes / chip.tma_store_rate, requests * chip.store_request)
        return chip.staged_piece + store
    rows = rows_by_threads(problem, m)
    direct = rows / m * stored_bytes / chip.direct_store_rate + scale_cycles(problem, tile, target)
    widths = [staging[0] for staging in STAGINGS if staging and n % staging[0] == 0]
    if problem.quantized or not widths or not problem.by_tma("c"):
        return direct
    widest = max(widths)
    requests = m * n // widest * -(-widest * problem.c_bytes // LINE_BYTES)
    store = max(stored_bytes / chip.tma_store_rate, requests * chip.store_request)
    return min(direct, n // widest * chip.staged_piece + store)
