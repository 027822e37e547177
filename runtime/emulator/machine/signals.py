"""Who has ever signalled an mbarrier: what a deadlock report needs to name the guilty."""

from __future__ import annotations

from typing import NamedTuple

from ..interface import EngineOp, Launch, Warp


class Signal(NamedTuple):
    """One source of signals: a warp's instruction, or what an engine does on its behalf.

    agent: the engine, `thread` where the instruction itself signals.
    """

    agent: str
    cta: tuple[int, int, int]
    warp: int
    pc: int


def issuer(launch: Launch) -> Signal | None:
    """The source of what happens now; None outside of both a warp and an operation."""
    warp: Warp | None = launch.current_warp
    if warp is not None:
        return Signal("thread", warp.cta.index, warp.index, warp.split.pc)
    op: EngineOp | None = launch.engines.current
    return op.signal if op is not None else None
