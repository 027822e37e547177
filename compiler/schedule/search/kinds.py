"""What a search finds of tiles that does not depend on how large a problem is: the next problem of
the same types, layouts and epilogue has it from the one before.

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


class Kind:
    """That of a problem."""

    def __init__(self, problem: Problem, target: Target) -> None:
        self._known: dict[str, dict[Hashable, Any]] = _known(_told(problem, target))

    def of(self, what: str, asked: Hashable, find: Callable[..., Found], *how: object) -> Found:
        """What `find` says of this, or said before where the same was `asked`."""
        known = self.known(what)
        if asked not in known:
            known[asked] = find(*how)
        return known[asked]

    def known(self, what: str) -> dict[Hashable, Any]:
        """What was said before, by what was asked."""
        return self._known.setdefault(what, {})


def _told(problem: Problem, target: Target) -> tuple[Hashable, ...]:
    """All that is asked of a problem, of its sizes what they tell of memory: whether TMA loads and
    stores rows, else by how much threads copy at once; and few rows of a group."""
    told = problem.__dict__
    stored = stored_by_tma(problem, target) is None, pitches_ahead(problem, target) is None
    copied = [_copied_at_once(problem, name) for name in "ab"]
    odd = problem.n % NEIGHBOURS != 0
    scales = _scales_at_once(problem) if problem.adds_products else ()
    rows = min(problem.m, TILE_ROWS_MOST) if problem.grouped == "m" else 0
    return (target, *stored, *copied, odd, scales, rows, *[told[name] for name in OTHERS])


def _copied_at_once(problem: Problem, operand: str) -> int:
    """Bytes of a row that threads copy at once, 0 where TMA loads it."""
    if problem.by_tma(operand):
        return 0
    return math.gcd(problem.pitch_bytes(operand)[0], problem.tma_alignment_bytes)


def _scales_at_once(problem: Problem) -> tuple[int, int]:
    """The same of scales of rows and of columns."""
    rows, columns = SCALE_BYTES * problem.m, SCALE_BYTES * problem.n
    unit = problem.tma_alignment_bytes
    return math.gcd(rows, unit), math.gcd(columns, unit)


@functools.lru_cache(KINDS_KEPT)
def _known(told: tuple[Hashable, ...]) -> dict[str, dict[Hashable, Any]]:
    return {}


def forget() -> None:
    """As in a process that has chosen nothing yet."""
    _known.cache_clear()
