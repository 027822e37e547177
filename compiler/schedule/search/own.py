"""What tiles have of their own on Hopper, whatever the sizes of the problem.

Nothing here imports MLIR.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....dialects.legality import PARTIAL_BYTES
from ..chips.chip_figures import split_figures
from ..estimates.estimate import held_slots, own_cycles
from ..estimates.l2_costs import narrow_cycles
from ..problem import Schedule
from ..rules.rules import accumulator_registers
from ..schedule import PLAIN
from .common import Common
from .least_epilogue import least_computed_cycles


class Own(NamedTuple):
    """What tiles have of their own, whatever the sizes of the problem: cycles in which an epilogue
    is computed, slots of a ring that are released a step late, and for a byte of K the cycles of
    the two resources of a multiprocessor that it takes the most of, and of narrow rows."""

    tile: Schedule
    computed: float
    held: int
    second: float
    slowest: float
    narrow: float


def own_of(every: Common, rows_and_columns: tuple[int, int], depths: Sequence[int]) -> Own | None:
    """That of tiles of several K; None where threads can't hold sums."""
    problem, target, deepest = every.problem, every.target, depths[-1]
    tile = PLAIN.but(tile=(*rows_and_columns, depths[0]), swap=problem.swapped)
    if accumulator_registers(problem, tile, target):
        return None
    *_, second, slowest = sorted(own_cycles_of(every, tile, deepest).values())
    k_bytes = deepest * problem.element_bytes
    held = held_slots(problem, tile, target)
    computed = least_computed_cycles(problem, tile, target)
    narrow = _narrow(every, tile, depths) if every.turned else 0.0
    return Own(tile, computed, held, second / k_bytes, slowest / k_bytes, narrow)


def _narrow(every: Common, tile: Schedule, depths: Sequence[int]) -> float:
    problem, (m, n, _) = every.problem, tile.tile
    deep = [tile.but(tile=(m, n, depth)) for depth in depths]
    found = [narrow_cycles(problem, one, every.target) / one.tile[2] for one in deep]
    return min(found) / problem.element_bytes


def own_cycles_of(every: Common, tile: Schedule, depth: int) -> dict[str, float]:
    """Cycles of a step with so much of K that each resource of a multiprocessor takes."""
    deep = tile.but(tile=(*tile.tile[:2], depth))
    return every.kind.of("own", deep.tile, own_cycles, every.problem, deep, every.target)


def ends_of_split(every: Common, tile: Schedule) -> tuple[float, float, float]:
    """Cycles before and after the loops of CTAs that share a tile: whatever they are, for each of
    them, and those that they share."""
    problem, split, (m, n, _) = every.problem, split_figures(every.target), tile.tile
    exchanged, elements = m * n * PARTIAL_BYTES / split.rate, m * n // problem.products
    stored = elements * (problem.c_bytes / split.store + sum(problem.beside) / split.beside)
    computed = least_computed_cycles(problem, tile, every.target)
    return every.before + split.start + exchanged, float(split.latency), stored + computed
