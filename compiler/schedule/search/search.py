"""A best-first branch-and-bound search for the best schedule, without a list of all candidates.

    tile shape  →  floors  →  ways to divide K  →  tiles  →  sharings  →  orders  →  schedules

A tile shape is the rows and columns of a tile, whatever K it takes per step. A way says how K is
divided: as a whole, in parts of a cluster, or in parts over the grid. Each node of the search has a
lower bound on the estimated time of its schedules (`bounds.py`). The node with the lowest bound is
refined next, and only then are its rules checked. The first complete schedule that comes up is the
choice, since everything that still waits is no better. A caller that cannot use it asks for the
next one.

Nothing here imports MLIR.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from heapq import heappop, heappush
from itertools import groupby
from operator import attrgetter, itemgetter, le
from typing import Any, NamedTuple

from ....dialects.target import Target
from ..estimates.estimate import estimate
from ..problem import Problem, Schedule
from ..rules.group_rules import level_schedule
from ..rules.rules import ROOM_RULES, SHARING_RULES, broken_rule, keeps
from ..schedule import PLAIN
from .bounds import TileBounds
from .candidates import (
    Rank,
    margin,
    orders,
    rank,
    sharings,
    sides,
    simplicity_of_order,
    useful_tiles,
)
from .kind_cache import KindCache
from .tensor_bounds import TensorBounds, TensorTileShape, TensorTileShapes
from .tile_shapes import ALONE, TileShape, TileShapes
from .wide_ping_pong import wide_ping_pong_floor_us, wide_ping_pong_schedules

Refined = Iterator[tuple[Rank, Schedule, Callable[[], "Refined"] | None]]
"""The nodes into which a node is refined: the bound and schedule of each, and how to refine it
further, or None if it is a complete schedule."""

Bounds = TensorBounds | TileBounds
ROUNDING = 1 - 1e-9
"""Compensates that a bound is summed in another order than the estimate that it bounds."""


class SharedFloors(NamedTuple):
    """Lower bounds in microseconds of tile shapes that hold for several problems of a kind, the
    lowest first."""

    kind: KindCache
    by_tile: dict[tuple[int, int], float]


Shape = tuple[float, tuple[int, int], tuple[int, ...]]
"""A floor, the rows and columns of its tiles, and every K that they take per step."""
Floors = Mapping[bool, SharedFloors]
"""Those of the problem as it is, and of the one with A and B exchanged."""


def fastest(problem: Problem, target: Target, floors: Floors | None = None) -> Schedule | None:
    """The schedule of least rank among the candidates that keep every rule; None if there is
    none."""
    return next(by_rank(problem, target, floors), None)


def by_rank(problem: Problem, target: Target, floors: Floors | None = None) -> Iterator[Schedule]:
    """The best schedule of each order of tiles that may be useful, in order of rank.

    floors: lower bounds that are known already (`floors_of_rows`).
    """
    numbers = itertools.count()  # of two that rank alike the first; schedules have no order
    waiting = []

    def wait(found: Iterable) -> None:
        for (least_us, simplicity), schedule, refine in found:
            if least_us < math.inf:
                heappush(waiting, (least_us, simplicity, next(numbers), schedule, refine))

    for seen in sides(problem):
        wait(_tile_shapes(seen, target, (floors or {}).get(seen.swapped)))
    wait(_level(problem, target))
    wait(_wide(problem, target))
    while waiting:
        *_, schedule, refine = heappop(waiting)
        if refine is None:
            yield schedule
        else:
            wait(refine())


def bound(least_us: float) -> Rank:
    """The rank before all schedules that take no less time."""
    return ROUNDING * least_us, ()


def _level(problem: Problem, target: Target) -> Refined:
    """The single candidate with tiles of equal height."""
    level = level_schedule(problem)
    if problem.grouped == "m" and broken_rule(problem, level, target) is None:
        yield rank(estimate(problem, level, target).total_us, level), level, None


def _wide(problem: Problem, target: Target) -> Refined:
    """The few candidates with wide ping-pong tiles."""
    for _, schedules in groupby(
        wide_ping_pong_schedules(problem, target), key=attrgetter("tile", "swap")
    ):
        one, *others = schedules
        floor_us = wide_ping_pong_floor_us(problem, one, target)
        yield bound(floor_us), one, partial(_judged, problem, target, (one, *others))


def _judged(problem: Problem, target: Target, schedules: Iterable[Schedule]) -> Refined:
    for one in schedules:
        ranked = rank(estimate(problem, one, target).total_us, one)
        yield ranked, one, partial(_legal, problem, target, ranked, one)


def _legal(problem: Problem, target: Target, ranked: Rank, one: Schedule) -> Refined:
    """The schedule, if it keeps the rules."""
    if broken_rule(problem, one, target) is None:
        yield ranked, one, None


def floors_of_rows(problem: Problem, most_m: int, target: Target) -> Floors:
    """Lower bounds for the problem, and for the same with more rows, up to `most_m`.

    More rows take no less time in any tile shape, but for what `Common` leaves out of a range. None
    are found for groups of rows, whose tiles are expected numbers, nor for rows of A in memory that
    are as long as M, which start with a line of L2 for some M only.
    """
    found: dict[bool, SharedFloors] = {}
    for seen in () if problem.grouped or problem.pitch_unit else sides(problem):
        tile_shapes, least_us = _all_faces(seen, target, most_m), {}
        for tile, depths in useful_tiles(seen, target):
            tile_shape = tile_shapes.of(tile, depths)
            least_us[tile] = min([us for us, _ in tile_shape.floors()]) if tile_shape else math.inf
        ordered = sorted(least_us.items(), key=itemgetter(1))
        found[seen.swapped] = SharedFloors(tile_shapes.kind, dict(ordered))
    return found


def _all_faces(problem: Problem, target: Target, most_m: int = 0) -> TensorTileShapes | TileShapes:
    return (TensorTileShapes if target.has_tensor_memory else TileShapes)(problem, target, most_m)


def _tile_shapes(problem: Problem, target: Target, shared: SharedFloors | None = None) -> Refined:
    tile_shapes = _all_faces(problem, target)
    useful = dict(useful_tiles(problem, target))
    known = shared.by_tile if shared and shared.kind.is_that_of(tile_shapes.kind) else {}
    shapes = ((us, tile, useful[tile]) for tile, us in known.items() if tile in useful)
    yield from _next_shape(tile_shapes, shapes)
    for tile, depths in useful.items():
        if tile not in known:
            yield from _floors(tile_shapes, tile, depths)


def _next_shape(tile_shapes: TensorTileShapes | TileShapes, shapes: Iterator[Shape]) -> Refined:
    """The first of the shapes; the next one waits only when it is looked at."""
    for floor_us, *shape in shapes:
        yield bound(floor_us), PLAIN, partial(_shape, tile_shapes, *shape, shapes)
        return


def _shape(
    tile_shapes: TensorTileShapes | TileShapes,
    tile: tuple[int, int],
    depths: tuple[int, ...],
    shapes: Iterator[Shape],
) -> Refined:
    yield from _next_shape(tile_shapes, shapes)
    yield from _floors(tile_shapes, tile, depths)


def _floors(
    tile_shapes: TensorTileShapes | TileShapes, tile: tuple[int, int], depths: tuple[int, ...]
) -> Refined:
    tile_shape = tile_shapes.of(tile, depths)
    if tile_shape is not None:
        refine: Any = _tiles if isinstance(tile_shape, TensorTileShape) else _ways
        for floor_us, some in tile_shape.floors():
            yield bound(floor_us), some, partial(refine, tile_shape, some)


def _ways(tile_shape: TileShape, some: Schedule) -> Refined:
    if some is ALONE and tile_shape.looks_closer():  # parts have epilogues of their own
        yield bound(tile_shape.whole_floor_us()), some, partial(_ways, tile_shape, some)
        return
    for least_us, way in tile_shape.ways(some):
        yield bound(least_us), way, partial(_tiles, tile_shape, way)


def _tiles(tile_shape: TensorTileShape | TileShape, shape_way: Schedule) -> Refined:
    if not tile_shape.bounds:  # of its ways, whichever is refined first
        tile_shape.bounds.extend([_bounds(tile_shape, depth) for depth in tile_shape.depths])
    for bounds in tile_shape.bounds:
        way = bounds.taken(shape_way)
        if way is not None:
            yield bound(margin(way) * bounds.of_way(way)), way, partial(_sharings, bounds, way)


def _bounds(tile_shape: TensorTileShape | TileShape, depth: int) -> Bounds:
    return (
        TileBounds(tile_shape, depth)
        if isinstance(tile_shape, TileShape)
        else TensorBounds(tile_shape, depth)
    )


def _sharings(bounds: Bounds, way: Schedule) -> Refined:
    problem, target = bounds.problem, bounds.target
    if not bounds.is_legal:
        return
    for branch in sharings(problem, way, bounds.boxes, target):
        if keeps(ROOM_RULES, problem, branch, target):
            least_us = margin(branch) * bounds.of_sharing(branch)
            yield bound(least_us), branch, partial(_orders, bounds, branch)


def _orders(bounds: Bounds, branch: Schedule) -> Refined:
    if not keeps(SHARING_RULES, bounds.problem, branch, bounds.target):
        return
    for order, known in _useful_orders(bounds, branch):
        least_us = margin(order) * bounds.of_order(order, known)
        yield bound(least_us), order, partial(_schedules, bounds, order, known)


def _useful_orders(bounds: Bounds, branch: Schedule) -> Iterator[tuple[Schedule, Any]]:
    """The orders of a sharing, each with what its schedules have in common, without orders that are
    in no respect cheaper than a simpler one. They are the same for every K of the tile."""
    known, asked = bounds.orders, (branch.cluster, branch.pair, branch.split_k, branch.split_grid)
    if asked not in known:
        known[asked] = _found_orders(bounds, branch)
    for order, common in known[asked]:
        yield order.but(tile=branch.tile, stages=branch.stages, box=branch.box), common


def _found_orders(bounds: Bounds, branch: Schedule) -> list[tuple[Schedule, Any]]:
    simpler, found = [], []
    every = orders(bounds.problem, branch, bounds.target)
    for order in sorted(every, key=simplicity_of_order):
        agents, known = bounds.known_of(order)
        if not any(agents == own and all(map(le, costs, known)) for own, costs in simpler):
            simpler.append((agents, known))
            found.append((order, known))
    return found


def _schedules(bounds: Bounds, order: Schedule, known: Any) -> Refined:
    """The best schedule of an order."""
    found = list(bounds.estimated(order, known))
    if found:
        least_us = min([total_us for total_us, _ in found])
        best = [stored.by(order) for total_us, stored in found if total_us == least_us]
        ranked = min([(rank(least_us, leaf), number) for number, leaf in enumerate(best)])
        yield ranked[0], best[ranked[1]], None
