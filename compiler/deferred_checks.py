"""Checks of what passes left, which run while LLVM does.

    pass, check, pass, check, …, LLVM   →   pass, copy, pass, copy, …, LLVM beside check, check, …

They end before LLVM's back end begins, which ends the process where it meets an instruction that a
chip has not. A copy takes a tenth of the time of what is checked of it. The first check that fails
is what is said, also where a later pass or LLVM has failed before it ran.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..dialects.mlir import ir

Check = Callable[[Any], None]
"""Of a module, or of an op that is one."""


class DeferredChecks:
    """Copies of a module with their checks, in the order in which passes left them."""

    def __init__(self) -> None:
        self._left: deque[tuple[ir.Context, Any, Check]] = deque()

    def add(self, module: ir.Module, check: Check) -> None:
        self._left.append((module.context, module.operation.clone(), check))

    def run(self) -> None:
        """Run those that are left; raises what the first one does that finds something."""
        while self._left:
            context, copy, check = self._left.popleft()
            with context, ir.Location.unknown():
                check(copy)

    @contextmanager
    def before_errors(self) -> Iterator[None]:
        """Inside, none is left out: they run before an error comes out, and at the end."""
        try:
            yield
        except Exception:
            self.run()
            raise
        self.run()
