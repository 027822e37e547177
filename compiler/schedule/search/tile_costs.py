"""Costs of a tile shape on Hopper that do not depend on the sizes of the problem.

Nothing here imports MLIR.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....dialects.legality import PARTIAL_BYTES
from ..chips.chip_figures import split_figures
from ..estimates.estimate import own_cycles
from ..estimates.l2_costs import narrow_cycles
from ..problem import Schedule
from ..rules.rules import accumulator_registers
from ..schedule import PLAIN
from .common import Common
from .epilogue_bounds import least_computed_cycles


class TileCosts(NamedTuple):
    """Costs of a tile shape that do not depend on the problem's sizes: cycles to compute an
    epilogue, and per byte of K the cycles of the two slowest resources of a multiprocessor and of
    rows narrower than a line."""

    tile: Schedule
    computed: float
    second: float
    slowest: float
    narrow: float


def tile_costs_of(
    every: Common, rows_and_columns: tuple[int, int], depths: Sequence[int]
) -> TileCosts | None:
    """The costs of a tile shape over several depths of K; None if threads cannot hold the
    accumulators."""
    problem, target, deepest = every.problem, every.target, depths[-1]
    tile = PLAIN.but(tile=(*rows_and_columns, depths[0]), swap=problem.swapped)
    if accumulator_registers(problem, tile, target):
        return None
    deep, k_bytes = tile.but(tile=(*rows_and_columns, deepest)), deepest * problem.element_bytes
    *_, second, slowest = sorted(own_cycles(problem, deep, target).values())
    computed = least_computed_cycles(problem, tile, target)
    # The rows of a K-major operand are the widest in the deepest tile.
    narrow = narrow_cycles(problem, deep, target) / k_bytes if every.transposed else 0.0
    return TileCosts(tile, computed, second / k_bytes, slowest / k_bytes, narrow)


def own_cycles_of(every: Common, tile: Schedule, depth: int) -> dict[str, float]:
    """The cycles of a step of this depth that each resource of a multiprocessor takes."""
    deep = tile.but(tile=(*tile.tile[:2], depth))
    return every.kind.of("own", deep.tile, own_cycles, every.problem, deep, every.target)


def ends_of_split(every: Common, tile: Schedule, computed: float) -> tuple[float, float, float]:
    """Cycles before and after the loops of CTAs that share a tile, whose epilogue is computed in so
    many: constant, per CTA, and divided among them."""
    problem, split, (m, n, _) = every.problem, split_figures(every.target), tile.tile
    exchanged, elements = m * n * PARTIAL_BYTES / split.rate, m * n // problem.products
    stored = elements * (problem.c_bytes / split.store + sum(problem.beside) / split.beside)
    return every.before + split.start + exchanged, float(split.latency), stored + computed
