"""The interface of what watches a launch."""

from __future__ import annotations

from ..machine.events import Listener
from ..ptx.registry import Step


class Observer(Listener):
    """Does nothing at every event; must not change what it sees."""

    def wrap(self, pc: int, step: Step) -> Step:
        """What runs instead of the instruction at `pc`; it must call `step` once."""
        return step
