"""What PTX leaves undefined, and libraries ship because GPUs bear it: an error, or a warning.

SharedRules and TensorOrder judge by themselves what concerns the order of accesses.
"""

from __future__ import annotations

from ..errors import Trap
from ..interface import Launch
from ..machine.events import Listener


class Departures(Listener):
    """strict: each departure is an error."""

    def __init__(self, launch: Launch, *, strict: bool):
        self._launch, self._strict = launch, strict

    def departed(self, error: str, warning: str, message: str) -> None:
        if self._strict:
            raise Trap(error, f"{message}; with check=shipped, or --check shipped, a warning")
        self._launch.warn(warning, message)
