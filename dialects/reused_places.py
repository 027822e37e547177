"""Where prefetched pieces are stored in free slots of the operand ring. Imports no MLIR.

A CTA with one tile takes a known number of K steps. After the last of them the slots that come
next stay empty once they are, and have room for other things:

    K steps of a ring of 4        0 1 2 3 0 1 2 3 0 1        first slot left: 2
    pieces of two slots                               2 3    while steps 2 and 3 are multiplied
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class ReusedPlace(NamedTuple):
    """Slots of one operand, by its number in the payload: from `first` on, once the `drained` slots
    that come next are empty."""

    tile: int
    first: int
    drained: int


def find_reused_place(
    slot_bytes: Sequence[int], stages: int, steps: int, bytes_: int
) -> ReusedPlace | None:
    """Where so many bytes go after so many steps, so that the fewest slots must be empty; None
    where no operand's slots have as many. `slot_bytes` are those of each operand.

    Each slot must have been read once: zeros that threads write to it at first are there by then.
    """
    found, next_ = [], steps % stages
    if steps < stages:
        return None
    for number, each in enumerate(slot_bytes):
        slots = -(-bytes_ // each)
        skipped = 0 if next_ + slots <= stages else stages - next_
        if skipped + slots <= stages:
            found.append(ReusedPlace(number, (next_ + skipped) % stages, skipped + slots))
    return min(found, key=lambda place: place.drained, default=None)
