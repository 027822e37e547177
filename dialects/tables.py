"""Tables of the package that users may extend, such as that of passes.

Whoever keeps what follows from an entry forgets it when one is entered anew:

    PASSES["reverse-k"] = ReverseK    →    kernels that were compiled before are compiled again
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
Forget = TypeVar("Forget", bound=Callable[[], Any])

_forgets: list[Callable[[], Any]] = []


def when_changed(forget: Forget) -> Forget:
    """Call a function each time that an entry of a table changes; returns it."""
    _forgets.append(forget)
    return forget


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
    for forget in _forgets:
        forget()
