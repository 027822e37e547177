"""Which MMAs can skip zeros past the end of K; see `legality`."""

from __future__ import annotations

from .mma_units import TCGEN05, WGMMA
from .target import Target


def short_steps(target: Target) -> str | None:
    """The MMAs of the last step along K can be fewer than those of the others."""
    names = [TCGEN05.name, WGMMA.name]
    if target.mma.name in names:
        return None
    return f"MMAs must be {' or '.join(names)}, got {target.mma.name}"
