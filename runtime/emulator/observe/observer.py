"""The interface of what watches a launch."""

from __future__ import annotations

from ..interface import Cta, EngineOp
from ..machine.mbarrier import Mbarrier
from ..ptx.registry import Step


class Observer:
    """Does nothing at every event; must not change what it sees."""

    def wrap(self, pc: int, step: Step) -> Step:
        """What runs instead of the instruction at `pc`; it must call `step` once."""
        return step

    def submitted(self, op: EngineOp) -> None:
        """An asynchronous operation has been issued."""

    def completed(self, op: EngineOp) -> None:
        """An asynchronous operation has run."""

    def signalled(self, cta: Cta, offset: int, barrier: Mbarrier, phase: int) -> None:
        """An mbarrier of `cta` got an arrival or bytes; it was in `phase` before that."""

    def waited(self, offset: int, answered: bool) -> None:
        """A warp has asked the mbarrier at an offset of its CTA; `answered`: its phase is over."""
