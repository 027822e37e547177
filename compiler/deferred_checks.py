"""Checks of what passes left, which run while LLVM does.

    pass, check, pass, check, …, LLVM   →   pass, copy, pass, copy, …, LLVM beside check, check, …

LLVM's back end ends the process where it meets an instruction that a chip has not, so most of them
end before it begins. Those of steps between a checked program and its instructions run beside the
back end. A copy takes a tenth of the time of what is checked of it. The first check that fails is
what is said, also where a later pass or LLVM has failed before it ran.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..dialects.mlir import ir

Check = Callable[[Any], None]
"""Of a module, or of an op that is one."""


class _Deferred(NamedTuple):
    """A copy of a module, its check, and whether this may run beside LLVM's back end."""

    context: ir.Context
    copy: Any
    check: Check
    is_late: bool

    def run(self) -> None:
        with self.context, ir.Location.unknown():
            self.check(self.copy)


class DeferredChecks:
    """Copies of a module with their checks, in the order in which passes left them."""

    def __init__(self) -> None:
        self._left: deque[_Deferred] = deque()

    def add(self, module: ir.Module, check: Check, is_late: bool) -> None:
        self._left.append(_Deferred(module.context, module.operation.clone(), check, is_late))

    def run_soon(self) -> None:
        """Run those that must be over before the back end begins, and keep the late ones.

        Raises what one does that finds something. Those in front of it are then left, of which the
        first one that finds something is what is said.
        """
        late: deque[_Deferred] = deque()
        try:
            while self._left:
                deferred = self._left.popleft()
                if deferred.is_late:
                    late.append(deferred)
                else:
                    deferred.run()
        finally:
            self._left = late

    def run(self) -> None:
        """Run those that are left; raises what the first one does that finds something."""
        while self._left:
            self._left.popleft().run()

    @contextmanager
    def before_errors(self) -> Iterator[None]:
        """Inside, none is left out: they run before an error comes out, and at the end."""
        try:
            yield
        except Exception:
            self.run()
            raise
        self.run()
