"""Kernels of earlier calls, by what distinguishes the calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from ....dialects.tables import changes, keep, when_changed
from ....runtime.locks import shared_lock
from .function_keys import LIKE_NO_OTHER

KERNELS_KEPT = 1024  # in each table; a kernel's PTX has some hundred kilobytes
Found = TypeVar("Found")


class FoundKernels(dict[Any, Found], Generic[Found]):
    """A kernel, or what goes with one, for each key.

    A full table loses its oldest entry: sizes may be others at each call, and a function that is
    made anew from other numbers has another key. All of it is forgotten where a pass or a chip is
    entered anew, and nothing kept that was found meanwhile.
    """

    def __init__(self) -> None:
        super().__init__()
        self._finding = shared_lock()
        when_changed(self.clear)

    def of(self, key: Any, find: Callable[[], Found], kept: Sequence[Any] = ()) -> Found:
        """What there is for a key, or what `find` gives to the first thread that asks for it.

        kept: what `function_key` has kept for the key: what was found for a function that is like
            no other is not kept.
        """
        found = self.get(key)
        if found is not None:
            return found
        with self._finding:
            found = self.get(key)
            if found is None:
                before = changes()
                found = find()
                self._keep(key, found, kept, before)
        return found

    def _keep(self, key: Any, found: Found, kept: Sequence[Any], before: int) -> None:
        if any(each is LIKE_NO_OTHER for each in kept):
            return
        if len(self) >= KERNELS_KEPT:
            del self[next(iter(self))]
        keep(self, key, found, before)
