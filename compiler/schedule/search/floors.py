"""Lower bounds of a tile shape on Hopper, whatever K its tiles take per step: with K as a whole, in
parts of a cluster and in parts over the grid.

A search finds them for every tile shape, and looks closer only at shapes whose floor is low enough
(`tile_shapes.py`). So the sums are written out here, with few calls.

Nothing here imports MLIR.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..cached import cached_attribute
from ..estimates.l2_costs import parted_arriving
from ..rules.rules import PART_K_TILES, SHARING_MAX
from .candidates import PART_GAIN, PART_WAVES
from .common import IN_TURN, PING_PONG
from .operand_arrival import OperandArrival, Rate, largest_within
from .part_bounds import Sums
from .tile_costs import ends_of_split


class Asked(NamedTuple):
    """What L2 is asked for by a CTA: rows, those of them that continue in a second line, and those
    that are out of bounds; and the cycles in which one CTA alone gets a byte of K of each."""

    rows: float
    lines: float
    outside: float
    alone: float


class Floors(OperandArrival):
    """The floors of a tile shape.

    `dram_us` is the least time of DRAM, and `_computed` the least cycles to compute an epilogue.
    Of the resources of a multiprocessor itself, the slowest takes `_slower` cycles for a byte of K
    of each row, and the second slowest `_faster`. `_part_bytes` are the bytes of a row in each
    number of parts, `_most_steps` the steps of the whole, and `most_split` the most CTAs of a
    cluster that may share a tile.
    """

    dram_us: float
    _asked: dict[tuple[tuple[int, int], ...], Asked]
    _computed: float
    _slower: float
    _faster: float
    most_split: int
    _part_bytes: list[int]
    _most_steps: int

    def floor_of_whole_us(self, epilogue: float, in_turns: float) -> float:
        """With K as a whole, and at least so many cycles of each epilogue: of a CTA, and of one of
        two consumers that take turns."""
        every, tiles = self.every, self.tiles
        rounds, before = -(-tiles // every.at_once), every.before
        loops = self._part_bytes[1] * self._least_byte(self._soonest(tiles / rounds))
        work = every.uneven * rounds * (loops + before + epilogue)
        if rounds > 1:
            found = every.work_of(IN_TURN, rounds, (loops, epilogue, before))
            work = found if found < work else work
            if in_turns < math.inf:
                found = every.work_of(PING_PONG, rounds, (loops, in_turns, before))
                work = found if found < work else work
                epilogue = in_turns if in_turns < epilogue else epilogue
        all_loops = work if every.cut else rounds * loops
        return every.total_us(work, all_loops, before + epilogue, self.dram_us)

    def _soonest(self, at_work: float) -> float:
        """The least cycles until a byte of K of each row has arrived at so many CTAs that each have
        all of K: in any cluster that finds room, or without one, where L2 answers the most requests
        together."""
        every, (_, rows, outside_m, beyond_m, most_m, *_) = self.every, self.along_m
        _, columns, outside_n, beyond_n, most_n, *_ = self.along_n
        whole = rows + columns
        each = every.alone_asked * whole / every.l2_total_rate
        lines, zeros = beyond_m + beyond_n, every.zero_cycles * (outside_m + outside_n)
        second = every.line_cycles * lines
        each = (second if second > each else each) + zeros
        if every.clusters and most_m * most_n > 1:
            shapes = largest_within(self._widest(), most_m, most_n)
            asked, lines, outside, alone = self._asked_of(shapes)
            soonest, second = asked / every.l2_total_rate, every.line_cycles * lines
            soonest = (second if second > soonest else soonest) + every.zero_cycles * outside
            each = soonest if soonest < each else each
        else:
            alone = self._alone(rows, columns)
        together = at_work * each
        return together if together > alone else alone

    def _asked_of(self, shapes: tuple[tuple[int, int], ...]) -> Asked:
        """The least that L2 is asked for by a CTA in any of these clusters."""
        if shapes in self._asked:
            return self._asked[shapes]
        every, (_, rows, outside_m, beyond_m, *_) = self.every, self.along_m
        _, columns, outside_n, beyond_n, *_ = self.along_n
        asked = min([rows / along_n + columns / along_m for along_m, along_n in shapes])
        lines, outside = beyond_m + beyond_n, outside_m + outside_n
        if lines:
            found = [beyond_m / along_n + beyond_n / along_m for along_m, along_n in shapes]
            lines = min(found)
        if outside:
            found = [outside_m / along_n + outside_n / along_m for along_m, along_n in shapes]
            outside = min(found)
        alone = self._at_least(asked)
        if every.unaligned:
            a, b = every.inside
            found = [a * rows / along_n + b * columns / along_m for along_m, along_n in shapes]
            alone = max(alone, every.unaligned_cycles * min(found))
        self._asked[shapes] = known = Asked(asked, lines, outside, alone)
        return known

    def split_floor_us(self) -> float:
        """With K in parts of a cluster, in the best number that finds room."""
        every, (exchanged, each, shared), us = self.every, self._split_ends, math.inf
        cycle_us, of_one, own = every.cycle_us, self.of_m * self.of_n, self._least_byte(0.0)
        rates: dict[int, Rate] = {}
        for parts in range(self._most_in_cluster, 1, -1):
            at_once = every.split_at_once[parts]
            ends, part_bytes = exchanged + each * parts + shared / parts, self._part_bytes[parts]
            if of_one * parts > at_once or cycle_us * (part_bytes * own + ends) >= us:
                continue
            peers = self.peers_of_split(parts)
            if peers not in rates:
                rates[peers] = self._rate_of_split(peers)
            ctas = self.tiles * parts
            rounds = -(-ctas // at_once)
            together, arriving = rates[peers]
            together *= every.split_at_work * ctas / rounds
            byte = self._least_byte(together if together > arriving else arriving)
            work_us = cycle_us * rounds * (part_bytes * byte + ends)
            streaming_us = cycle_us * ends + self.dram_us
            longest_us = work_us if work_us > streaming_us else streaming_us
            us = longest_us if longest_us < us else us
        return us

    def _rate_of_split(self, peers: int) -> Rate:
        """A rate that no CTA with a part of K in a cluster exceeds, beside up to so many groups of
        such CTAs."""
        each, alone = self._rate_of_parts(shapes := self.shapes_of_split(peers))
        if self.keeps_boxes:
            past_m, past_n = self.along_m.past, self.along_n.past
            zeros = [past_m / along_n + past_n / along_m for along_m, along_n in shapes]
            each += self.every.zero_cycles * min(zeros)
        return Rate(each, alone)

    def _rate_of_parts(self, shapes: tuple[tuple[int, int], ...]) -> Rate:
        """A rate that no CTA with a part of K exceeds in clusters of any of these shapes."""
        every, (asked, lines, outside, alone) = self.every, self._asked_of(shapes)
        rows, first = self.whole, self._first_rows / self.tiles
        rows -= every.parts_multicast * (self.whole - asked)
        each = parted_arriving(rows, first, every.line_cycles * lines, every.split)
        return Rate(each + every.zero_cycles * outside, alone)

    @cached_attribute
    def _most_in_cluster(self) -> int:
        """The most parts of K in a cluster that have steps enough."""
        if self.most_split == 1:
            return 1
        return min(SHARING_MAX, self.most_split, (self._most_steps - 1) // (PART_K_TILES - 1))

    @cached_attribute
    def _split_ends(self) -> tuple[float, float, float]:
        """Cycles before and after the loops of CTAs that share a tile: constant, per CTA, and
        divided among them."""
        how = self.every, self.tile, self._computed
        return self.every.kind.of("split", self.tile.tile[:2], ends_of_split, *how)

    def parts_floor_us(self) -> float:
        """With K in as many parts over the grid as make up waves, in the best cluster."""
        every, (written, gathered, of_one), tiles = self.every, self.sums, self.tiles
        each, alone = self._rate_of_parts(self.shapes_of_parts())
        most_steps, part_bytes = self._most_steps // PART_K_TILES, self._part_bytes[1]
        by_l2, before, least = part_bytes * tiles * each, every.before + written, math.inf
        own, shared = self._least_byte(alone), self._slower * every.second_share
        for waves in PART_WAVES:
            most = waves * every.at_once // tiles
            most = most if most < most_steps else most_steps
            if waves < PART_GAIN * most:  # or parts are not shorter by enough (`parts_in_waves`)
                loops = waves * part_bytes
                cycles = _least_of_numbers(most, loops * own, of_one)
                of_l2 = by_l2 + _least_of_numbers(most, loops * shared, of_one)
                cycles = waves * before + (of_l2 if of_l2 > cycles else cycles)
                least = cycles if cycles < least else least
        gathered -= 2 * of_one
        return every.total_us(least + gathered, 0, before + gathered, self.dram_us)

    def _least_byte(self, arriving: float) -> float:
        """Least cycles of the main loop per byte of K of each row."""
        slowest, second = self._slower, self._faster
        if arriving > slowest:
            slowest, second = arriving, slowest
        elif arriving > second:
            second = arriving
        return slowest + self.every.second_share * second

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


def _least_of_numbers(most: int, shared: float, of_one: float) -> float:
    """The least cycles of up to `most` parts, which share some and take some each; their number
    need not be whole."""
    if most * most * of_one <= shared:
        return shared / most + most * of_one
    return 2 * math.sqrt(shared * of_one)
