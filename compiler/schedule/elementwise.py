"""The larger and the smaller of two numbers, also of numbers of many problems at once.

`max` compares them once for all, so that an estimate of many problems (`any_size/at_once.py`) must
part those for which the answer differs. These choose for each.

Nothing here imports MLIR.
"""

from __future__ import annotations

from typing import Any


class Elementwise:
    """A number of each of many problems."""

    __slots__ = ()

    def larger(self, other: Any) -> Any:
        """The larger of both, for each."""
        raise NotImplementedError

    def smaller(self, other: Any) -> Any:
        """The smaller of both, for each."""
        raise NotImplementedError


def larger(one: Any, other: Any) -> Any:
    """`max(one, other)`."""
    if isinstance(one, Elementwise):
        return one.larger(other)
    if isinstance(other, Elementwise):
        return other.larger(one)
    return other if other > one else one


def smaller(one: Any, other: Any) -> Any:
    """`min(one, other)`."""
    if isinstance(one, Elementwise):
        return one.smaller(other)
    if isinstance(other, Elementwise):
        return other.smaller(one)
    return other if other < one else one
