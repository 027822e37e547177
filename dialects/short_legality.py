"""Which MMAs can leave out zeros behind the end of K: a rule of `legality`, apart from it."""

from __future__ import annotations

from .mma_units import WGMMA
from .target import Target


def short_steps(target: Target) -> str | None:
    """The MMAs of the last step along K can be fewer than those of the others."""
    if target.mma.name == WGMMA.name:
        return None
    return f"MMAs must be {WGMMA.name}, got {target.mma.name}"
