"""A cache of what a search finds of tiles independently of the problem's sizes. The next problem
with the same types, layouts and epilogue takes it from there.

Nothing here imports MLIR.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable
from dataclasses import fields
from typing import Any, TypeVar

from ....dialects.target import Target
from ..problem import SCALE_BYTES, Problem
from ..rules.staging_rules import pitches_ahead, stored_by_tma
from ..tile_extents import M_TILES
from ..vectors import NEIGHBOURS

KINDS_KEPT = 64
TILE_ROWS_MOST = max(map(max, M_TILES.values()))
SIZES = {"m", "n", "k", "batch", "leading", "steps", "most_m"}
OTHERS = tuple(each.name for each in fields(Problem) if each.name not in SIZES)
Found = TypeVar("Found")


class KindCache:
    """The cache of all problems of one kind."""

    def __init__(self, problem: Problem, target: Target) -> None:
        self._known: dict[str, dict[Hashable, Any]] = _known(_key_of(problem, target))

    def is_that_of(self, other: KindCache) -> bool:
        """Whether both problems are of one kind."""
        return self._known is other._known

    def of(self, what: str, asked: Hashable, find: Callable[..., Found], *how: object) -> Found:
        """The result of `find`, or the kept one if the same was asked before."""
        known = self.known(what)
        if asked not in known:
            known[asked] = find(*how)
        return known[asked]

    def known(self, what: str) -> dict[Hashable, Any]:
        """The kept results of one question, by what was asked."""
        return self._known.setdefault(what, {})


def _key_of(problem: Problem, target: Target) -> tuple[Hashable, ...]:
    """The key of a kind: all fields but the sizes, and of the sizes what they imply for memory:
    whether TMA loads and stores rows, or how many bytes threads copy at a time; and small numbers
    of rows per group."""
    values = problem.__dict__
    stored = stored_by_tma(problem, target) is None, pitches_ahead(problem, target) is None
    copied = [_copied_at_once(problem, name) for name in "ab"]
    odd = problem.n % NEIGHBOURS != 0
    scales = _scales_at_once(problem) if problem.adds_products else ()
    rows = min(problem.m, TILE_ROWS_MOST) if problem.grouped == "m" else 0
    return (target, *stored, *copied, odd, scales, rows, *[values[name] for name in OTHERS])


def _copied_at_once(problem: Problem, operand: str) -> int:
    """Bytes of a row that threads copy at a time; 0 if TMA loads it."""
    if problem.by_tma(operand):
        return 0
    return math.gcd(problem.pitch_bytes(operand)[0], problem.tma_alignment_bytes)


def _scales_at_once(problem: Problem) -> tuple[int, int]:
    """The same for scales of rows and of columns."""
    rows, columns = SCALE_BYTES * problem.m, SCALE_BYTES * problem.n
    unit = problem.tma_alignment_bytes
    return math.gcd(rows, unit), math.gcd(columns, unit)


@functools.lru_cache(KINDS_KEPT)
def _known(values: tuple[Hashable, ...]) -> dict[str, dict[Hashable, Any]]:
    return {}


def forget() -> None:
    """Clears the cache, as in a process that has not chosen anything yet."""
    _known.cache_clear()
