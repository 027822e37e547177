"""Values that are computed once and kept with the object that they belong to.

Nothing here imports MLIR.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ...dialects.target import Target

Asked = TypeVar("Asked")
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


def asked_once(find: Callable[[Asked, Target], Found]) -> Callable[[Asked, Target], Found]:
    """Keeps what a function returns for a problem and a target, with the problem object. Equal
    problems are not looked up, since that takes longer than what most callers ask."""
    name = f"_{find.__name__}"

    @functools.wraps(find)
    def kept(problem: Asked, target: Target) -> Found:
        known = problem.__dict__.get(name)
        if known is None or known[0] is not target:
            known = problem.__dict__[name] = target, find(problem, target)
        return known[1]

    return kept
