"""Operations on the mbarriers of a CTA, by a thread or on behalf of one."""

from __future__ import annotations

from collections.abc import Callable

from ..interface import Cta, Launch
from .mbarrier import Mbarrier
from .shared_access import barrier_at
from .signals import issuer


def apply(
    target: Cta,
    offset: int,
    operation: Callable[[Mbarrier], int | None],
    passes_on: str = "released",
    scope: str = "cluster",
) -> int | None:
    """Perform ``operation`` on a barrier and wake its CTA if that completed a phase.

    passes_on: what waiters may rely on afterwards: all that is "released", what a fence covers
    ("relaxed"), or "nothing"; scope: which threads a release reaches.
    """
    barrier, events = barrier_at(target, offset), target.launch.events
    _note_signal(target.launch, barrier)
    events.mbarrier_arriving(target, barrier, passes_on, scope)
    phase, token, bytes_ = barrier.phase, barrier.token(), barrier.tx
    result = operation(barrier)
    if (barrier.token(), barrier.tx) != (token, bytes_):
        target.launch.barrier_changes += 1
    events.signalled(target, offset, barrier, phase)
    if barrier.phase != phase:
        target.wake(offset)
    return result


def _note_signal(launch: Launch, barrier: Mbarrier) -> None:
    """Remember who is signalling `barrier` now: the operation or else the warp that runs."""
    signal = issuer(launch)
    if signal is not None:
        barrier.signals[signal] = barrier.signals.get(signal, 0) + 1
        barrier.last_signal = signal
