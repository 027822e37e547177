"""The target for ping-pong kernels with more accumulators per thread than usual."""

from __future__ import annotations

from ...dialects.mma_units import WGMMA, WGMMA_WIDE
from ...dialects.target import Target
from .schedule import Schedule


def target_of_schedule(schedule: Schedule, target: Target) -> Target:
    """The target with the MMA that the schedule's tiling names."""
    wide = schedule.wide and target.mma.name == WGMMA.name
    return target.using(WGMMA_WIDE.name) if wide else target
