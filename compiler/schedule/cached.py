"""A lazily computed attribute that is kept.

Nothing here imports MLIR.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Found = TypeVar("Found")


class cached_attribute(Generic[Found]):
    """`functools.cached_property` without its lock, which would take longer than most values that a
    search computes."""

    def __init__(self, find: Callable[[Any], Found]) -> None:
        self._find, self._name = find, find.__name__
        self.__doc__ = find.__doc__

    def __get__(self, asked: Any, _: type | None = None) -> Found:
        found = asked.__dict__[self._name] = self._find(asked)
        return found
