"""The ways to store a tile and the ring beside each. Orders in which the same agents hand out as
many tiles share them, so that a search computes them once.

Nothing here imports MLIR.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ....dialects.target import Target
from ..problem import Problem, Schedule
from .candidates import leaves
from .kind_cache import KindCache
from .stagings import STAGES_MAX, least_stores

Cycles = Callable[[Problem, Schedule, Target], float]


class Stored(NamedTuple):
    """A way to store: fields of a schedule, and the cycles from the accumulators to memory."""

    staging: tuple[int, int] | None
    ahead: int
    vectors: str
    stages: int
    cycles: float

    def by(self, order: Schedule) -> Schedule:
        """The schedule that stores in this way and hands out tiles as an order does."""
        staging, ahead, vectors, stages, _ = self
        return order.but(staging=staging, ahead=ahead, vectors=vectors, stages=stages)


class Stores:
    """The ways to store tiles of one size, with the `cycles` that an estimate gives; problems of a
    `kind` share them."""

    def __init__(self, problem: Problem, target: Target, cycles: Cycles, kind: KindCache) -> None:
        self._problem, self._target, self._cycles, self._kind = problem, target, cycles, kind
        self._known: dict[tuple[object, ...], list[Stored]] = {}

    def of(self, order: Schedule, rounds: int) -> list[Stored]:
        """The ways that keep the rules, for CTAs with `rounds` tiles each."""
        alone, of_tile = order.scheduler == "none", self._problem.k_tiles(order)
        steps = min(STAGES_MAX, of_tile if alone else of_tile * rounds)
        lone = alone and order.cluster_size == 1  # whose residual may come in slots of A and B
        asked = alone, lone, steps, order.pair, order.ping_pong, order.split_k, order.split_grid
        if asked in self._known:
            return self._known[asked]
        found = self._known[asked] = (
            self._found(order)
            if order.split_grid > 1  # whose rows that C has tell
            else self._kind.of(
                "leaves", (order.tile, min(STAGES_MAX, of_tile), asked), self._found, order
            )
        )
        return found

    def _found(self, order: Schedule) -> list[Stored]:
        found, cycles = [], {}
        for leaf in leaves(self._problem, order, self._target):
            way = leaf.staging, leaf.ahead, leaf.vectors
            if way not in cycles:
                cycles[way] = self._cycles(self._problem, leaf, self._target)
            found.append(Stored(*way, leaf.stages, cycles[way]))
        return found


class LeastStore(NamedTuple):
    """The least that a way to store needs: bytes of shared memory, and cycles."""

    smem_bytes: int
    cycles: float


def least_of_stores(
    problem: Problem, tile: Schedule, target: Target, cycles: Cycles
) -> list[LeastStore]:
    """The least costs of the ways to store tiles with these rows and columns, whatever K they take,
    without ways that need more memory and more cycles than another."""
    every = sorted(
        LeastStore(problem.staging_bytes(small), cycles(problem, fast, target))
        for small, fast in least_stores(problem, tile, target)
    )
    found: list[LeastStore] = []
    for one in every:
        if not found or one.cycles < found[-1].cycles:
            found.append(one)
    return found


def holds_more(problem: Problem) -> bool:
    """Whether a store may need more memory than its least."""
    return bool(problem.beside or problem.beside_columns)
