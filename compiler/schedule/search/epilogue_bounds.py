"""Lower bounds on the epilogue of a tile, whatever K the tile takes and however it is stored.

Nothing here imports MLIR.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ....dialects.target import Target
from ..chips.chip_figures import figures
from ..estimates.costs import code_cycles, computed_cycles, vector_cycles
from ..estimates.epilogue_costs import store_cycles
from ..estimates.two_level_costs import stored_alone
from ..problem import Problem, Schedule
from ..rules.staging_rules import pitches_ahead, staged_store, stored_by_tma
from .stagings import stagings_of


def least_computed_cycles(problem: Problem, tile: Schedule, target: Target) -> float:
    """Least cycles to compute a whole tile over all ways to store it."""
    return stored_alone(problem, tile, target) * _computed_cycles(problem, tile, target)


def _computed_cycles(problem: Problem, tile: Schedule, target: Target) -> float:
    return max(computed_cycles(problem, tile, target), code_cycles(problem, tile, target))


def least_epilogue_cycles(problem: Problem, tile: Schedule, target: Target) -> float:
    """Cycles of the epilogue of a whole tile with the best store; infinite if there is none."""
    cycles = _computed_cycles(problem, tile, target)
    cycles += figures(target).group_walk if problem.grouped == "m" else 0
    alone, least = stored_alone(problem, tile, target), math.inf
    beside = _epilogue_operand_cycles(problem, tile, target)
    for one in _stored(problem, tile, target):
        stored = alone * (cycles + store_cycles(problem, one, target))
        around = 0 if one.staging else vector_cycles(problem, one, target)
        least = min(least, stored + around + beside[one.staging is not None])
    return least


def _stored(problem: Problem, tile: Schedule, target: Target) -> Iterator[Schedule]:
    """The tile with each legal way to store; most are illegal because the pieces would not be
    whole."""
    columns = tile.tile[1] // problem.products
    staged = stored_by_tma(problem, target) is None
    for staging in stagings_of(problem, tile):
        if staging is None or (staged and columns % staging[0] == 0):
            one = tile.but(staging=staging)
            if staged_store(problem, one, target) is None:
                yield one


def _epilogue_operand_cycles(
    problem: Problem, tile: Schedule, target: Target
) -> tuple[float, float]:
    """Cycles for other operands as large as C: of direct stores, and of staged ones with TMA
    prefetching."""
    if not problem.beside:
        return 0, 0
    chip, (m, n, _) = figures(target), tile.tile
    read = m * n // problem.products * sum(problem.beside)
    brought = not problem.grouped and pitches_ahead(problem, target) is None
    direct = read / chip.beside_rate
    return direct, min(direct, read / chip.shared_rate) if brought else direct
