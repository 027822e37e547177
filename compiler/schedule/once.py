"""What an object finds out when it is asked, and keeps.

Nothing here imports MLIR.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Found = TypeVar("Found")


class once(Generic[Found]):
    """`functools.cached_property` without its lock, which takes longer than most of what a search
    finds."""

    def __init__(self, find: Callable[[Any], Found]) -> None:
        self._find, self._name = find, find.__name__
        self.__doc__ = find.__doc__

    def __get__(self, asked: Any, _: type | None = None) -> Found:
        found = asked.__dict__[self._name] = self._find(asked)
        return found
