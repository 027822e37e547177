"""What tiles of as many rows and columns have in common, whatever K they take at a time: how many
there are, what clusters of them share, their epilogues at least.

Nothing here imports MLIR.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...dialects.legality import PARTIAL_BYTES
from ...dialects.target import Target
from .added_costs import stored_alone
from .candidates import PART_MARGIN, widest_in_waves
from .chip_figures import figures, split_figures
from .costs import computed_cycles, least_dram_bytes, scale_cycles
from .estimate import SHARING_MAX, held_slots, parted_arriving, rows_by_threads
from .extents import round_up
from .least_parts import Sums, most_at_once
from .problem import LINE_BYTES, Problem, Schedule
from .rules import PART_K_TILES, accumulator_registers, split_parts
from .schedule import PLAIN
from .staging_rules import stored_by_tma
from .stagings import STAGINGS
from .waves import resident_in_clusters

LARGEST = {
    1: ((1, 1),),
    2: ((1, 2), (2, 1)),
    4: ((1, 4), (2, 2), (4, 1)),
    8: ((1, 8), (2, 4), (4, 2), (8, 1)),
}
"""The largest clusters of up to so many CTAs."""
ONE, IN_TURN = PLAIN, PLAIN.but(scheduler="static")
PING_PONG = IN_TURN.but(ping_pong=True)


class Faces:
    """Those of a problem, and what they have in common."""

    def __init__(self, problem: Problem, target: Target) -> None:
        self.problem, self.target, self.chip = problem, target, figures(target)
        measured = self.chip.parts is not None and self.chip.split is not None
        self.parted = measured and problem.parts_refusal() is None
        self.staged = stored_by_tma(problem, target) is None
        self._us, self._overlap = 1 / (self.chip.clock * 1e3), float(self.chip.dram_share)
        self.widest = widest_in_waves(target)
        self.resident = {
            size: resident_in_clusters(size, target) for size in range(1, SHARING_MAX + 1)
        }
        self.least_resident = min(self.resident.values())
        self.inside = float("a" in problem.unaligned), float("b" in problem.unaligned)
        beyond = problem.lines_beyond
        self.beyond = problem.m * beyond.get("a", 0), problem.n * beyond.get("b", 0)

    def of(self, tile: Schedule, depths: Sequence[int]) -> Face | None:
        """That of tiles of several K, the least first; None where threads can't hold sums."""
        if accumulator_registers(self.problem, tile, self.target):
            return None
        return Face(self, tile, depths)

    def total_us(
        self, work: float, loops: float, ends: float, dram_us: float, early_us: float = 0.0
    ) -> float:
        """`combined_us` for so many cycles of work, of which those of main loops and those around.

        By itself: a search asks thousands of times.
        """
        work_us, loops_us, streaming_us = self._us * work, self._us * loops, self._us * ends
        streaming_us += dram_us
        longest_us = work_us if work_us > streaming_us else streaming_us
        return longest_us + self._overlap * (loops_us if loops_us < dram_us else dram_us) + early_us


class Face:
    """One of them. There are `tiles` in all, `crowded` where those are more than run at once.

    `peers` are the most CTAs of a cluster for multicast, and `most_split` those that share a tile;
    it may be `parted` over the grid. `orders` are the ways from tile to tile that differ in their
    time, `held` the slots of a ring that are released a step late. `rows` and `columns` are those
    that there are.
    """

    def __init__(self, every: Faces, tile: Schedule, depths: Sequence[int]) -> None:
        problem, target = every.problem, every.target
        self.every, self.tile, self.depths = every, tile, depths
        self.of_m, self.of_n = problem.tiles(tile)
        self.tiles = math.prod(problem.grid(tile))
        self.crowded = self.tiles > target.multiprocessors
        self.peers = every.widest if self.crowded else SHARING_MAX
        self.most_split = min(SHARING_MAX, target.multiprocessors // (self.of_m * self.of_n))
        if self.most_split > 1 and split_parts(problem, tile.but(split_k=2), target):
            self.most_split = 1
        self.parted = every.parted and not self.crowded
        self.rows, self.columns = min(tile.tile[0], problem.m), min(tile.tile[1], problem.n)
        self.epilogue = least_epilogue_cycles(problem, tile, every.staged, target)
        self.dram_us = least_dram_bytes(problem, tile, target) / every.chip.dram_rate
        self.held = held_slots(problem, tile, target)
        alternate = target.mma_warpgroups(*tile.tile[:2]) == 1
        self.orders = (ONE, IN_TURN, PING_PONG) if alternate else (ONE, IN_TURN)
        self._arriving: dict[tuple[int, int, int], float] = {}
        self._shared: dict[int, tuple[float, float, float]] = {}
        self._room: dict[int, tuple[tuple[int, int], int]] = {}
        self._sums: Sums | None = None

    def floor_us(self) -> float:
        """What no tile of it is estimated to beat."""
        every, problem, chip = self.every, self.every.problem, self.every.chip
        before, loops = chip.cta_start + chip.tma_latency, self._least_loops(self.depths[-1])
        rounds = -(-self.tiles // every.target.multiprocessors)
        work = before + rounds * loops + self.epilogue
        if rounds > 1:
            hides = PING_PONG in self.orders  # the shorter one
            again = chip.second_share * min(self.epilogue, loops) if hides else self.epilogue
            work += (rounds - 1) * again
        ends = before + self.epilogue
        floor_us = every.total_us(work, rounds * loops, ends, self.dram_us)
        steps = -(-problem.k // self.depths[0])
        split_us = self._split_us(before, loops, steps)
        return min(floor_us, split_us, self._parts_us(before, loops, steps))

    def _least_loops(self, depth: int) -> float:
        """Cycles of all steps of a tile that takes no more of K at a time."""
        every, chip, (m, n, _) = self.every, self.every.chip, self.tile.tile
        computed = round_up(m, every.target.mma.m[-1]) * n / chip.mma_rate
        rows, inside, _ = self._shared_rows(self.peers)
        arriving = (self.rows + self.columns) * (1 - chip.multicast) + rows * chip.multicast
        arriving = max(arriving / chip.l2_rate, inside * chip.unaligned_line / LINE_BYTES)
        least = chip.step_least / (depth * every.problem.element_bytes)
        cycles = max(computed, arriving, least) + chip.second_share * min(computed, arriving)
        return every.problem.k * every.problem.element_bytes * cycles

    def _split_us(self, before: float, loops: float, steps: int) -> float:
        """With K in as many parts of a cluster as there may be."""
        most = min(self.most_split, (steps - 1) // (PART_K_TILES - 1))
        if most < 2:
            return math.inf
        (m, n, _), split = self.tile.tile, split_figures(self.every.target)
        sums = m * n * PARTIAL_BYTES / split.rate
        return self._in_parts_us(before, self.rounds_of_split(2) * loops / most, sums)

    def _parts_us(self, before: float, loops: float, steps: int) -> float:
        """The same of parts over the grid."""
        if not self.parted:
            return math.inf
        most = most_at_once(self.tiles, self.every.target.multiprocessors)
        most = min(most, steps / PART_K_TILES)
        if most <= 1:
            return math.inf
        sums = self.sums.written + self.sums.gathered
        return PART_MARGIN * self._in_parts_us(before, loops / most, sums)

    def _in_parts_us(self, before: float, loops: float, sums: float) -> float:
        ends = before + sums
        return self.every.total_us(loops + ends, 0, ends, self.dram_us)

    def rounds_of_split(self, parts: int) -> int:
        """Waves of clusters that share a tile each, of so many CTAs or more."""
        return -(-self.tiles * parts // self.every.target.multiprocessors)

    @property
    def sums(self) -> Sums:
        """What sums of parts over the grid take."""
        if self._sums is None:
            self._sums = Sums.of(self.every.problem, self.tile, self.every.target)
        return self._sums

    def room(self, size: int) -> tuple[tuple[int, int], int]:
        """The fewest and the most tiles that there are in whole clusters of so many CTAs, and how
        many CTAs of those run at once."""
        if size not in self._room:
            counts = [
                round_up(self.of_m, along_m) * round_up(self.of_n, along_n)
                for along_m, along_n in LARGEST[size]
            ]
            batch = self.every.problem.batch
            tiles = batch * min(counts), batch * max(counts)
            self._room[size] = tiles, self.every.resident[size]
        return self._room[size]

    def peers_of_split(self, parts: int) -> int:
        """The most CTAs of a cluster beside so many that share each tile: tiles are whole clusters
        then (`split_parts`)."""
        peers = SHARING_MAX // parts
        while not any(self._is_cut_by(*shape) for shape in LARGEST[peers]):
            peers //= 2
        return peers

    def _is_cut_by(self, along_m: int, along_n: int) -> bool:
        return self.of_m % along_m == self.of_n % along_n == 0

    def arriving(self, peers: int, split_k: int = 1, split_grid: int = 1) -> float:
        """Cycles until a byte of K of each row is there: no less in any cluster of up to so many
        CTAs, beside those that split K (`l2_cycles`)."""
        asked = peers, split_k, split_grid
        if asked not in self._arriving:
            self._arriving[asked] = self._least_arriving(*asked)
        return self._arriving[asked]

    def _least_arriving(self, peers: int, split_k: int, split_grid: int) -> float:
        chip, whole = self.every.chip, self.rows + self.columns
        rows, inside, beyond = self._shared_rows(peers)
        cycles = (whole - chip.multicast * (whole - rows)) / chip.l2_rate
        at_work = self.tiles * split_k * split_grid
        if split_k == 1 or self.every.problem.batch > 1:  # else all are at work
            resident = self.every.resident
            at_work = min(at_work, resident[peers] if split_grid > 1 else self.every.least_resident)
        lines = chip.unaligned_line * inside, chip.second_line * at_work * beyond
        cycles = max(cycles, max(lines) / LINE_BYTES)
        if split_k * split_grid == 1:
            alone = (1 - chip.answered_together) * whole
            return max(cycles, at_work * min(alone, rows) / chip.l2_total_rate)
        saved = split_figures(self.every.target).multicast * (whole - rows)
        problem, tiles = self.every.problem, self.tiles
        if split_grid > 1:
            tiles = self.room(peers)[0][1]
        first = at_work / tiles * problem.batch * (problem.m + problem.n)
        asked = max(first, at_work * (whole - saved))
        return max(cycles, parted_arriving(asked, first, self.every.target))

    def _shared_rows(self, peers: int) -> tuple[float, float, float]:
        """Rows that a CTA asks for where a cluster of so many divides them best, those of them that
        start inside sectors, and those of all that go on in a second line, for each CTA."""
        if peers not in self._shared:
            every, shapes, a, b = self.every, LARGEST[peers], self.rows, self.columns
            inside_a, inside_b = every.inside
            self._shared[peers] = (
                min([a / along_n + b / along_m for along_m, along_n in shapes]),
                min(
                    [inside_a * a / along_n + inside_b * b / along_m for along_m, along_n in shapes]
                ),
                min([self._beyond(*shape) for shape in shapes]) if any(every.beyond) else 0,
            )
        return self._shared[peers]

    def _beyond(self, along_m: int, along_n: int) -> float:
        of_a, of_b = self.every.beyond
        rows = of_a / (round_up(self.of_m, along_m) * along_n)
        return rows + of_b / (round_up(self.of_n, along_n) * along_m)


def least_epilogue_cycles(problem: Problem, tile: Schedule, staged: bool, target: Target) -> float:
    """Cycles of the epilogue of a whole tile with the best store, by TMA if C may be `staged`."""
    (m, n, _), chip = tile.tile, figures(target)
    cycles = computed_cycles(problem, tile, target)
    cycles += chip.group_walk if problem.grouped == "m" else 0
    cycles += m * n // problem.products * sum(problem.beside) / chip.shared_rate
    cycles += _least_store_cycles(problem, tile, staged, target)
    return cycles * stored_alone(problem, tile, target)


def _least_store_cycles(problem: Problem, tile: Schedule, staged: bool, target: Target) -> float:
    """Cycles in which a tile of C is stored by TMA in the widest pieces, or by threads, which do
    not store columns of C."""
    m, n, chip = tile.tile[0], tile.tile[1] // problem.products, figures(target)
    stored_bytes = m * problem.row_bytes(n)
    if problem.swapped and not staged:
        return math.inf
    if problem.swapped:  # all in one piece
        requests = n * -(-m * problem.c_bytes // LINE_BYTES)
        store = max(stored_bytes / chip.tma_store_rate, requests * chip.store_request)
        return chip.staged_piece + store
    rows = rows_by_threads(problem, m)
    direct = rows / m * stored_bytes / chip.direct_store_rate + scale_cycles(problem, tile, target)
    widths = [staging[0] for staging in STAGINGS if staging and n % staging[0] == 0]
    if problem.quantized or not widths or not staged:
        return direct
    widest = max(widths)
    requests = m * n // widest * -(-widest * problem.c_bytes // LINE_BYTES)
    store = max(stored_bytes / chip.tma_store_rate, requests * chip.store_request)
    return min(direct, n // widest * chip.staged_piece + store)
