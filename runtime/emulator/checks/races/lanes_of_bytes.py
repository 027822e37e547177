"""Which lane of a warp wrote a byte last."""

from __future__ import annotations

import numpy as np

from .actor import Actor
from .grains import Cells, bytes_of


def lane_of_each(actor: Actor, index: Cells, size: int) -> np.ndarray | int:
    """Of each byte 1 + the lane that accesses it, 0 where that is not known."""
    if actor.lanes is None:
        return 0
    return np.repeat(actor.lanes, len(bytes_of(index, size)) // len(actor.lanes))


def note_lanes(known: np.ndarray, index: Cells, size: int, actor: Actor) -> None:
    """Of each byte which lane writes it, nobody where several do at once: each has written it."""
    at, lanes = bytes_of(index, size), lane_of_each(actor, index, size)
    known[at] = lanes
    several = known[at] != lanes
    if several.any():
        known[at[several]] = 0
