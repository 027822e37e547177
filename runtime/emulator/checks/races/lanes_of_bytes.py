"""Which lane of a warp accessed a byte last."""

from __future__ import annotations

import numpy as np

from ...errors import Trap
from ...truth import any_of
from .actor import Actor
from .grains import WORD, Block, Cells, bytes_of


def lane_of_each(actor: Actor, index: Cells, size: int) -> np.ndarray | int:
    """For each byte, 1 + the lane that accesses it, 0 if that is not known."""
    if actor.lanes is None:
        return 0
    return np.repeat(actor.lanes, len(bytes_of(index, size)) // len(actor.lanes))


def lanes_of_units(lanes: np.ndarray | None, cells: Cells, size: int) -> np.ndarray | int:
    """The same for each word that cells consist of, or for each byte if cells are smaller."""
    if lanes is None or isinstance(cells, Block):
        return 0
    units = cells.size * max(1, size // WORD) if size >= WORD else cells.size * size
    return np.repeat(lanes, units // len(lanes))


def require_agreement(
    offsets: np.ndarray, values: np.ndarray, lanes: np.ndarray | None, what: str
) -> None:
    """Traps if lanes of one plain store write different values to one place: nothing orders them,
    and which value stays is undefined. Accesses are aligned to their size, so two of them overlap
    entirely or not at all; a vector may differ in some of its elements."""
    order = np.argsort(offsets, kind="stable")
    met = np.flatnonzero(np.diff(offsets[order]) == 0)
    if not len(met):
        return
    rows = values.reshape(len(offsets), -1)
    one, other = order[met], order[met + 1]
    differ = (rows[one] != rows[other]).any(axis=1)
    if any_of(differ):
        first = int(differ.argmax())
        pair = [int(each[first]) for each in (one, other)]
        names = "two lanes"
        if lanes is not None:
            names = "lanes {} and {}".format(*(int(lanes[each]) - 1 for each in pair))
        raise Trap(
            "race",
            f"{what} by {names} meet at one address with different values, and nothing orders lanes"
            f" of one instruction: which value stays is undefined",
        )


def note_lanes(known: np.ndarray, index: Cells, size: int, actor: Actor) -> None:
    """Notes for each byte which lane writes it; none if several lanes do at the same time, since
    each of them has written it."""
    at, lanes = bytes_of(index, size), lane_of_each(actor, index, size)
    known[at] = lanes
    several = known[at] != lanes
    if any_of(several):
        known[at[several]] = 0
