"""The best schedule without a list of all: what may hold it is refined first.

    tile  →  its bound  →  ways to take K  →  sharings  →  orders of tiles  →  schedules

Whatever waits has a bound that none of its schedules is estimated to beat (`bounds.py`), and what
has the lowest is refined next. Its rules are asked only then. The first whole schedule that comes
up is the choice: all that still waits is no better.

Nothing here imports MLIR.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from ...dialects.target import Target
from .bounds import Floors, TileBounds
from .candidates import (
    Rank,
    boxes_of,
    leaves,
    orders,
    rank,
    sharings,
    sides,
    tiles,
    ways,
)
from .estimate import estimate
from .problem import Problem, Schedule
from .rules import SHARING_RULES, TILE_RULES, accumulator_registers, keeps
from .stagings import fitting_stages

Refined = Iterator[tuple[Rank, Schedule, Callable[[], "Refined"] | None]]
"""What something is refined to, each with its bound and, if it is no whole schedule, how to refine
that."""


def fastest(problem: Problem, target: Target) -> Schedule | None:
    """The schedule of the least rank among the candidates that keep every rule."""
    numbers = itertools.count()  # of two that rank alike the first; schedules have no order
    waiting = []

    def wait(found: Iterable) -> None:
        for bound, schedule, refine in found:
            heapq.heappush(waiting, (bound, next(numbers), schedule, refine))

    for seen in sides(problem):
        wait(_tiles(seen, target))
    while waiting:
        *_, schedule, refine = heapq.heappop(waiting)
        if refine is None:
            return schedule
        wait(refine())
    return None


def _tiles(problem: Problem, target: Target) -> Refined:
    plain, floors = Schedule((0, 0, 0), swap=problem.swapped), Floors(problem, target)
    for extents in tiles(problem, target):
        tile = plain.but(tile=extents)
        yield (floors.of_tile(extents), ()), tile, partial(_bounded, problem, tile, target)


def _bounded(problem: Problem, tile: Schedule, target: Target) -> Refined:
    if accumulator_registers(problem, tile, target):  # the rule that most of them break
        return
    tile = tile.but(stages=fitting_stages(problem, tile, target))
    bounds = TileBounds(problem, tile, target)
    yield (bounds.of_tile(), ()), tile, partial(_ways, bounds)


def _ways(bounds: TileBounds) -> Refined:
    problem, tile, target = bounds.problem, bounds.tile, bounds.target
    if not keeps(TILE_RULES, problem, tile, target):
        return
    boxes = boxes_of(problem, tile.tile, target)
    for way in ways(problem, tile, target) if boxes else ():
        bound, _ = rank(bounds.of_way(way), way)
        yield (bound, ()), way, partial(_sharings, bounds, way, boxes)


def _sharings(bounds: TileBounds, way: Schedule, boxes: dict[bool, str]) -> Refined:
    for branch in sharings(bounds.problem, way, boxes, bounds.target):
        bound = rank(bounds.of_sharing(branch), branch)
        yield bound, branch, partial(_orders, bounds, branch)


def _orders(bounds: TileBounds, branch: Schedule) -> Refined:
    problem, target = bounds.problem, bounds.target
    if keeps(SHARING_RULES, problem, branch, target):
        for order in orders(problem, branch, target):
            bound = rank(bounds.of_order(order), order)
            yield bound, order, partial(_schedules, bounds, order)


def _schedules(bounds: TileBounds, order: Schedule) -> Refined:
    problem, target = bounds.problem, bounds.target
    for leaf in leaves(problem, order, target):
        yield rank(estimate(problem, leaf, target).total_us, leaf), leaf, None
