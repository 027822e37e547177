"""The larger and the smaller of two numbers, or of two arrays of numbers, elementwise.

Python's `max` makes one comparison for a whole array, so an estimate of many problems at once
(`any_size/vectorized.py`) would have to split them by the answer. These functions choose for each
element.

Nothing here imports MLIR.
"""

from __future__ import annotations

from typing import Any


class Elementwise:
    """An array with one number per problem."""

    __slots__ = ()

    def larger(self, other: Any) -> Any:
        """The larger of each pair of elements."""
        raise NotImplementedError

    def smaller(self, other: Any) -> Any:
        """The smaller of each pair of elements."""
        raise NotImplementedError

    def exceeds(self, other: Any) -> Any:
        """Whether it is larger than the other, for each."""
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


def exceeds(one: Any, other: Any) -> Any:
    """1 or True where `one > other`, else 0 or False."""
    return one.exceeds(other) if isinstance(one, Elementwise) else one > other
