"""What no schedule of a tile in tensor memory is estimated to beat; `bounds.py` has other kernels.

    face        of tiles of as many rows and columns: K whole, alone or in a pair, or in parts over
                the grid, whose number is free, in steps of the deepest of them
    way         of a tile: K taken so, in steps of its own
    sharing     with that cluster and those parts: the best store and way from tile to tile
    order       with that way from tile to tile, and what DRAM then moves

Nothing here imports MLIR.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ....dialects.legality import RESERVED_BYTES
from ....dialects.store_legality import staged_pair
from ....dialects.target import Target
from ..chips.chip_figures import figures, tensor_figures
from ..estimates.costs import gathered_cycles, least_dram_bytes, part_cycles, vector_cycles
from ..estimates.tensor_estimate import (
    Moved,
    clock_under_load,
    combined_us,
    epilogue_cycles,
    loop_cycles,
    moved_us,
    read_cycles,
    residents_at_most,
    residents_with,
    spans_of,
)
from ..estimates.tensor_steps import CHOSEN, Steps, main_loop, steps_of
from ..once import once
from ..problem import Problem, Schedule
from ..rules.rules import PART_K_TILES, TILE_RULES, accumulator_registers, keeps
from ..rules.staging_rules import stored_by_tma
from ..schedule import PLAIN
from ..waves import tile_rounds
from .candidates import PART_MARGIN, STAGES, boxes_of
from .kinds import Kind
from .least_parts import Sums, least_of_parts, most_at_once
from .stagings import fitting_stages, stages_beside
from .stores import LeastStore, Stored, Stores, holds_more, least_of_stores

NARROWEST = 16  # columns of a piece, see `STAGINGS`, or a whole tile
WIDEST = (4, 2)  # along each axis, of the clusters of parts


class TensorFaces:
    """The faces of a problem."""

    def __init__(self, problem: Problem, target: Target) -> None:
        self.problem, self.target, self.kind = problem, target, Kind(problem, target)

    def of(self, tile: tuple[int, int], depths: Sequence[int]) -> TensorFace | None:
        """That of tiles of so many rows and columns and several K, the least first; None where
        tensor memory can't hold sums."""
        one = PLAIN.but(tile=(*tile, depths[0]), swap=self.problem.swapped)
        if accumulator_registers(self.problem, one, self.target):
            return None
        return TensorFace(self.problem, one, depths, self.target, self.kind)


class TensorFace:
    """What tiles of as many rows and columns have in common, whatever K they take at a time.

    `sides` are such tiles of one CTA and of a pair, `sums` what those of parts over the grid take.
    """

    def __init__(
        self, problem: Problem, tile: Schedule, depths: Sequence[int], target: Target, kind: Kind
    ) -> None:
        self.problem, self.target, self.tile, self.depths = problem, target, tile, depths
        self.kind = kind
        pair = [tile.but(cluster=(2, 1), pair=True)] if target.mma.pairs else []
        self.sides = (tile, *pair)
        parted = figures(target).parts is not None and problem.parts_refusal(target) is None
        self.sums = Sums.of(problem, tile, target) if parted else None
        self._read = read_cycles(problem, PLAIN.but(tile=tile.tile, split_grid=2), target)
        self._moved: dict[tuple[object, ...], Moved] = {}
        self.orders: dict[tuple[object, ...], list[tuple[Schedule, Moved]]] = {}
        self._stores: dict[tuple[bool, bool], list[LeastStore]] = {}
        self.bounds: list[Any] = []  # of the tiles of each depth, for a search to fill

    def stores_of(self, branch: Schedule) -> list[LeastStore]:
        """What ways to store ask for at least, whatever K a tile takes."""
        parts, how = branch.split_grid > 1, (self.problem, branch, self.target, epilogue_cycles)
        if (branch.pair, parts) not in self._stores:
            self._stores[branch.pair, parts] = (
                [LeastStore(0, epilogue_cycles(self.problem, branch, self.target))]
                if parts
                else self.kind.of("stores", (branch.tile, branch.pair), least_of_stores, *how)
            )
        return self._stores[branch.pair, parts]

    def moved_us(self, order: Schedule) -> Moved:
        """What DRAM moves for an order's schedules, whatever K they take and whoever hands out."""
        asked = order.scheduler == "none", order.order, order.pair
        if asked not in self._moved:
            self._moved[asked] = moved_us(self.problem, order, self.target)
        return self._moved[asked]

    def floors(self) -> list[tuple[float, Schedule]]:
        """K as a whole, alone and in a pair, and in parts over the grid: what no tile of it is
        estimated to beat, in microseconds, and the way."""
        m, n, _ = self.tile.tile
        deepest = [side.but(tile=(m, n, self.depths[-1])) for side in self.sides]
        least = [self._least_us(side, self.depths[0]) for side in deepest]
        found = [(whole_us, side) for (whole_us, _), side in zip(least, self.sides, strict=True)]
        parts_us = min([parts_us for _, parts_us in least])
        parts = [(PART_MARGIN * parts_us, self.tile.but(split_grid=2))]
        return found + (parts if parts_us < math.inf else [])

    def _least_us(self, side: Schedule, least_k: int) -> tuple[float, float]:
        """Of a side that takes the most of K at a time, as a whole and in parts: with less at a
        time no fewer cycles pass for all of it. The first load may be a short one."""
        problem, target = self.problem, self.target
        steps, tiles = steps_of(problem, side, target), problem.ctas(side)
        k_tiles, rounds = problem.k / side.tile[2], tile_rounds(problem, side, target)
        loops, mma = k_tiles * steps.step, k_tiles / steps.k_tiles * steps.mma
        before = steps.start + figures(target).tma_latency
        epilogue = steps.completion + _least_epilogue_cycles(problem, side, target)
        work, ends = rounds * loops - steps.step + steps.mma, before + steps.completion
        if rounds > 1:
            around = before + epilogue + tensor_figures(target).cta_turnover
            waves = -(-rounds // self._residents(side, least_k))
            apart = (waves - 1) * around + waves * (loops - steps.step + steps.mma)
            work = max(work, min(rounds * max(loops, epilogue), apart))
        looped = work, rounds * loops
        floor_us = _total_us(problem, side, mma, looped, before + epilogue, target)
        most = min(most_at_once(tiles, target.multiprocessors), problem.k / least_k / PART_K_TILES)
        if self.sums is None or most <= 1 or tiles > target.multiprocessors:
            return floor_us, math.inf
        ends += self._read + self.sums.written + self.sums.gathered
        work = loops / most - steps.step + steps.mma
        return floor_us, _total_us(problem, side, mma, (work, 0), ends, target)

    def _residents(self, side: Schedule, least_k: int) -> int:
        """The most CTAs of one tile each that share a multiprocessor, with the least of K at a time
        and the shortest ring."""
        least = side.but(tile=(*side.tile[:2], least_k))
        stages = min(STAGES[0], self.problem.k_tiles(least))
        used = stages * self.problem.stage_bytes(least)
        return residents_with(used, side.tile, self.target, CHOSEN)

    def of_parts(self, side: Schedule) -> float:
        """With K in parts over the grid, by CTAs of their own or by pairs, in microseconds."""
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
    """The bounds of a tile's ways, its sharings and their orders, in microseconds.

    A way whose K is whole is of one sharing: one CTA, or a pair.
    """

    def __init__(self, face: TensorFace, depth: int) -> None:
        self.problem, self.target, self._face = face.problem, face.target, face
        self._chip, (m, n, _) = figures(face.target), face.tile.tile
        self._tile = face.tile.but(tile=(m, n, depth))
        self._of_sharings: dict[tuple[tuple[int, int], bool, int], Least] = {}
        self._stores = Stores(self.problem, self.target, epilogue_cycles, face.kind)
        self.orders = face.orders

    @once
    def boxes(self) -> dict[bool, str]:
        """The box of the tile of one CTA and of a pair."""
        return boxes_of(self.problem, self._tile.tile, self.target)

    @once
    def is_legal(self) -> bool:
        """Whether the tile keeps the rules that ask for nothing else."""
        return keeps(TILE_RULES, self.problem, self._tile, self.target)

    def taken(self, face_way: Schedule) -> Schedule | None:
        """The tile with K as a way of its face has it, None where the parts are too short."""
        way = face_way.but(tile=self._tile.tile, swap=self._tile.swap)
        if way.split_grid > 1 and self.problem.k_tiles(way) < PART_K_TILES:
            return None
        return way.but(stages=fitting_stages(self.problem, way, self.target))

    def of_way(self, way: Schedule) -> float:
        """Of schedules with K as the way has it: one CTA or a pair, in parts either."""
        if way.split_grid > 1:
            sides = [side.but(tile=way.tile) for side in self._face.sides]
            return min([self._face.of_parts(side) for side in sides])
        return self.of_sharing(way)

    def of_sharing(self, branch: Schedule) -> float:
        """Of schedules in a cluster, with the least that DRAM moves in any order."""
        least = self._least_of(branch)
        dram_us = least_dram_bytes(self.problem, branch, self.target) / self._chip.dram_rate
        return self._total_us(branch, least, least.cycles, dram_us)

    def of_order(self, order: Schedule, known: Moved) -> float:
        """Of schedules of a sharing that hand out tiles so."""
        least = self._least_of(order)
        cycles = least.waves if order.scheduler == "none" else least.persistent
        return self._total_us(order, least, cycles, known.us, known.early_us)

    def known_of(self, order: Schedule) -> tuple[Any, Moved]:
        """What its schedules have in common, after what tells them from those of others: a tile
        that is asked for comes no sooner than one that is known."""
        return order.scheduler == "none", self._face.moved_us(order)

    def estimated(self, order: Schedule, known: Moved) -> Iterator[tuple[float, Stored]]:
        """The microseconds that are estimated of each schedule that hands out tiles so."""
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
            stores = self._face.stores_of(branch)
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
        """For so many cycles, while DRAM moves so much; the first of several waves asks for some of
        that at once."""
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
    """For so many cycles of work between the ends and of K tiles alone (`looped`), of which steps
    have MMAs for `mma` each, and with what DRAM moves at least."""
    (work, loops), tensor, chip = looped, tensor_figures(target), figures(target)
    cycles = tensor.cold_fill + work + ends
    clock = clock_under_load(problem, side, target, cycles, mma, CHOSEN)
    dram_us = least_dram_bytes(problem, side, target) / chip.dram_rate
    streaming_us = dram_us + _us(tensor.cold_fill + ends, chip.clock)
    return tensor.launch + combined_us(target, _us(cycles, clock), streaming_us, loops, dram_us)


class Least(NamedTuple):
    """The fewest cycles of the schedules of a tile and cluster: of epilogues and what is gathered,
    and of all where each CTA has one tile (`waves`), or several (`persistent`).

    They have the deepest ring that fits. Of epilogues the longer of what they compute and what they
    store counts. `loops` are those of K tiles alone.
    """

    steps: Steps
    ends: float
    waves: float
    persistent: float
    loops: float
    rounds: int

    @staticmethod
    def of(
        problem: Problem, branch: Schedule, target: Target, stores: Sequence[LeastStore]
    ) -> Least:
        """With one of these stores."""
        steps, rounds = steps_of(problem, branch, target), tile_rounds(problem, branch, target)
        stage_bytes, persistent = problem.stage_bytes(branch), math.inf
        before, completion, k_tiles = steps.before, steps.completion, steps.k_tiles
        rings: list[_Ring] = []
        for smem_bytes, cycles in stores:
            stages, epilogue = stages_beside(smem_bytes, stage_bytes, target), completion + cycles
            period = max(k_tiles * max(steps.step, steps.ring / stages), epilogue)
            persistent = min(persistent, before + rounds * period + epilogue)
            rings.append(_Ring(stages, smem_bytes, epilogue))
        waves = _least_of_waves(problem, branch, target, (rounds, stage_bytes), steps, rings)
        epilogue = steps.completion + min([store.cycles for store in stores], default=math.inf)
        gathered = gathered_cycles(problem, branch, target)
        around = tensor_figures(target).cold_fill + gathered
        return Least(
            steps,
            ends=steps.before + epilogue + gathered,
            waves=waves + around,
            persistent=persistent + around,
            loops=loop_cycles(problem, branch, steps, target),
            rounds=rounds,
        )

    @property
    def cycles(self) -> float:
        """However tiles are handed out."""
        return min(self.waves, self.persistent) if self.rounds > 1 else self.waves


def _least_epilogue_cycles(problem: Problem, schedule: Schedule, target: Target) -> float:
    """Cycles of the epilogue with the best store, by threads or by TMA in the narrowest pieces,
    whatever comes ahead of it."""
    (m, n, _), chip = schedule.tile, figures(target)
    read = read_cycles(problem, schedule, target)
    if schedule.split_grid > 1:
        return read + part_cycles(problem, schedule, target)
    elements = m * n // problem.products
    stored_bytes, beside_bytes = problem.row_bytes(elements), elements * sum(problem.beside)
    least = math.inf  # threads store no columns of C
    if not problem.swapped:
        least = read + stored_bytes / chip.direct_store_rate
        least += beside_bytes / chip.beside_rate if beside_bytes else 0
        least += vector_cycles(problem, schedule.but(staging=None), target)
    if stored_by_tma(problem, target) or (schedule.pair and staged_pair(m)):
        return least
    store = stored_bytes / chip.tma_store_rate
    staged = max(read, store) + min(read, store) * min(n, NARROWEST) / n
    return min(least, staged + beside_bytes / chip.shared_rate)


class _Ring(NamedTuple):
    """Its most stages, bytes of the store beside it, and cycles of the epilogue with that."""

    stages: int
    store_bytes: int
    epilogue: float


def _least_of_waves(
    problem: Problem,
    schedule: Schedule,
    target: Target,
    sizes: tuple[int, int],
    steps: Steps,
    rings: Sequence[_Ring],
) -> float:
    """The least of a CTA a tile: its resources' time, or that of waves of as many CTAs as fit.
    `sizes` are the tiles of a multiprocessor and the bytes of a stage."""
    (rounds, stage_bytes), more, least = sizes, holds_more(problem), math.inf
    alone, turnover = steps.step - steps.mma, tensor_figures(target).cta_turnover
    flow = rounds * steps.k_tiles * steps.step
    before, most = steps.before, residents_at_most(schedule.tile, target, CHOSEN)
    room, reserved = target.multiprocessor_shared_bytes, target.cta_reserved_shared_bytes
    kept = target.shared_bytes - RESERVED_BYTES - stage_bytes
    mains: dict[int, float] = {}
    for stages, store_bytes, epilogue in rings:
        deepest, waves_least = max(1, min(stages, steps.k_tiles)), math.inf
        for ring in (deepest, *STAGES):
            if ring > deepest:
                continue
            if ring not in mains:
                mains[ring] = main_loop(steps, ring, CHOSEN)
            used = ring * stage_bytes + store_bytes
            if more and ring == deepest:  # what else is held may cut it, with no room for a stage
                used = min(used, kept)
            residents = max(1, min(most, room // (used + reserved)))
            waves = -(-rounds // residents)
            loops = max(waves * mains[ring], 0 if more or residents == 1 else flow - alone)
            cycles = waves * (before + epilogue + turnover) + loops - turnover
            waves_least = cycles if cycles < waves_least else waves_least
        least = min(least, max(before - alone + flow + epilogue, waves_least))
    return least


def _us(cycles: float, clock: float) -> float:
    return cycles / (clock * 1e3)
