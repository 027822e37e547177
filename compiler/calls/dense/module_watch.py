"""Detects changes of what a module's code reads, by object identity.

    form:  names of attributes  →  what each part has of them      compared by value, 40 µs and more
    watch: dictionaries, lists, tensors that were found on the way  the same objects in them, 3 µs

Where a watch says no, the form says whether it matters, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

ABSENT = object()


class Watch:
    """What was found by `keep`; of a copy, which has objects of its own, nothing holds."""

    def __init__(self, changes_of: Callable[[torch.Tensor], int]) -> None:
        self._changes_of = changes_of
        self.module: torch.nn.Module | None = None
        self.forget()

    def __reduce__(self) -> Any:
        return Watch, (self._changes_of,)

    def forget(self) -> None:
        self.module = None
        self._kinds: list[tuple[Any, type]] = []
        self._empty: list[dict[Any, Any]] = []
        self._keys: list[tuple[dict[Any, Any], list[Any]]] = []
        self._cells: list[tuple[Mapping[Any, Any], Any, Any]] = []
        self._lists: list[tuple[list[Any], list[Any]]] = []
        self._tensors: list[tuple[torch.Tensor, int]] = []
        self._of_classes: list[tuple[type, str, Any]] = []
        self._results: list[tuple[Callable[[], Any], Any]] = []
        self._equal: list[tuple[Callable[[], Any], Any, Callable[[Any, Any], bool]]] = []

    def holds(self, module: torch.nn.Module) -> bool:
        """Whether each object has what it had."""
        if module is not self.module or any(self._empty):
            return False
        for held, keys in self._keys:
            if [*held] != keys:
                return False
        for held, key, value in self._cells:
            if held.get(key, ABSENT) is not value:
                return False
        for one, kind in self._kinds:
            if one.__class__ is not kind:
                return False
        return self._others_hold()

    def _others_hold(self) -> bool:
        for one, items in self._lists:
            if len(one) != len(items) or any(a is not b for a, b in zip(one, items, strict=True)):
                return False
        for tensor, changes in self._tensors:
            if self._changes_of(tensor) != changes:
                return False
        for kind, name, value in self._of_classes:
            if getattr(kind, name, ABSENT) is not value:
                return False
        if any(of() is not value for of, value in self._results):
            return False
        return all(is_same(value, of()) for of, value, is_same in self._equal)

    def watch_kind(self, one: Any) -> None:
        self._kinds.append((one, one.__class__))

    def watch_keys(self, held: dict[Any, Any]) -> None:
        """Watch that a dictionary keeps its keys, whatever their values."""
        if held:
            self._keys.append((held, [*held]))
        else:
            self._empty.append(held)

    def watch(self, held: Mapping[Any, Any], keys: Iterable[Any]) -> None:
        """Watch that a dictionary keeps the same objects, or none, for some of its keys."""
        self._cells += [(held, key, held.get(key, ABSENT)) for key in keys]

    def watch_list(self, one: list[Any]) -> None:
        self._lists.append((one, [*one]))

    def watch_tensor(self, tensor: torch.Tensor) -> None:
        self._tensors.append((tensor, self._changes_of(tensor)))

    def watch_class(self, kind: type, names: Iterable[str]) -> None:
        self._of_classes += [(kind, name, getattr(kind, name, ABSENT)) for name in names]

    def watch_result(self, of: Callable[[], Any]) -> None:
        """Watch that a function without arguments returns the same object."""
        self._results.append((of, of()))

    def watch_equal(self, of: Callable[[], Any], is_same: Callable[[Any, Any], bool]) -> None:
        """Watch that a function without arguments returns what is the same by `is_same`."""
        self._equal.append((of, of(), is_same))
