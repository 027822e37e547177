"""Who has ever signalled an mbarrier: what a deadlock report needs to name the guilty."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..host.launch import Launch
    from .engine import EngineOp
    from .mbarrier import Mbarrier
    from .warp import Warp


class Signal(NamedTuple):
    """One source of signals: a warp's instruction, or what an engine does on its behalf.

    agent: the engine, `thread` where the instruction itself signals.
    """

    agent: str
    cta: tuple[int, int, int]
    warp: int
    pc: int


def note_signal(launch: Launch, barrier: Mbarrier) -> None:
    """Remember who is signalling `barrier` now: the operation or else the warp that runs."""
    signal = issuer(launch)
    if signal is not None:
        barrier.signals[signal] = barrier.signals.get(signal, 0) + 1
        barrier.last_signal = signal


def issuer(launch: Launch) -> Signal | None:
    """The source of what happens now; None outside of both a warp and an operation."""
    warp: Warp | None = launch.current_warp
    if warp is not None:
        return Signal("thread", warp.cta.index, warp.index, warp.split.pc)
    op: EngineOp | None = launch.engines.current
    return op.signal if op is not None else None
