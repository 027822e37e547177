"""Tables of the package that users may extend, such as that of passes.

Whoever keeps what follows from an entry forgets it when one is entered anew:

    PASSES["reverse-k"] = ReverseK    →    kernels that were compiled before are compiled again
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Generic, ParamSpec, TypeVar

Value = TypeVar("Value")
Forget = TypeVar("Forget", bound=Callable[[], Any])
Given = ParamSpec("Given")

_forgets: list[Callable[[], Any]] = []
_changes = 0


def when_changed(forget: Forget) -> Forget:
    """Call a function each time that an entry of a table changes; returns it."""
    _forgets.append(forget)
    return forget


def changes() -> int:
    """How often an entry of a table has changed: what is found meanwhile may follow from either."""
    return _changes


def keep(table: dict[Any, Any], key: Any, value: Any, before: int) -> None:
    """Keep what was found after `changes` gave `before`, unless an entry has changed meanwhile:
    `table`, which is cleared then, may have been so before this enters it."""
    table[key] = value
    if _changes != before:
        table.pop(key, None)


class KeptResults(Generic[Given, Value]):
    """A function whose last results are kept, by its arguments, until an entry of a table changes.

    A result that another thread began to find before the change is found by no call after it.
    """

    def __init__(self, find: Callable[Given, Value], most: int) -> None:
        functools.update_wrapper(self, find)

        @functools.lru_cache(most)
        def kept(_: int, *given: Given.args, **named: Given.kwargs) -> Value:
            return find(*given, **named)

        self._kept, self.cache_info = kept, kept.cache_info
        self.cache_clear = when_changed(kept.cache_clear)

    def __call__(self, *given: Given.args, **named: Given.kwargs) -> Value:
        return self._kept(_changes, *given, **named)


def kept_until_changed(
    most: int,
) -> Callable[[Callable[Given, Value]], KeptResults[Given, Value]]:
    """Keep that many results of a function as `KeptResults`."""
    return lambda find: KeptResults(find, most)


class Table(MutableMapping[str, Value], Generic[Value]):
    """A table by names that knows which entries are the package's own."""

    def __init__(
        self, own: Mapping[str, Value], check: Callable[[str, Value], None] | None = None
    ) -> None:
        """check: raises an error for what may not be entered by a name."""
        self._own, self._now, self._check = dict(own), dict(own), check

    def is_own(self, name: str) -> bool:
        """Whether what a name stands for is what the package entered."""
        return name in self._own and self._now.get(name) is self._own[name]

    def entered(self) -> dict[str, Value]:
        """What users entered."""
        return {name: value for name, value in self._now.items() if not self.is_own(name)}

    def __getitem__(self, name: str) -> Value:
        return self._now[name]

    def __setitem__(self, name: str, value: Value) -> None:
        if self._check:
            self._check(name, value)
        self._now[name] = value
        _tell()

    def __delitem__(self, name: str) -> None:
        del self._now[name]
        _tell()

    def __iter__(self) -> Iterator[str]:
        return iter(self._now)

    def __len__(self) -> int:
        return len(self._now)


def _tell() -> None:
    global _changes
    _changes += 1
    for forget in _forgets:
        forget()
