"""What single lanes of a warp have passed on, if not all of its lanes release.

PTX orders threads (ISA §8.9): a release by one lane covers that lane's accesses, and those of the
other lanes up to the time when they last met it. The clock of a warp holds for all its lanes. So
such a release passes on the warp's time of that meeting. The lanes that release get components of
their own, and the marks of the memory tell which lane wrote each byte.
"""

from __future__ import annotations

import numpy as np

from ...interface import Warp
from ...ptx.lanes import FULL, WARP_SIZE, lanes_in, lanes_to_int
from ...truth import any_of
from .clock import Domain
from .verdicts import mark_of

EVERYONE = WARP_SIZE + 1
"""Stands for all lanes of the warp in place of one."""


def releasing(warp: Warp) -> tuple[int, ...] | None:
    """The lanes that execute a warp's instruction; None if they are all that are alive."""
    split, lone = warp.split, warp.split.mask
    if lone is FULL or len(lanes_in(lone)) > 1:
        _, guard, negated = warp.launch.code[split.pc]
        if guard is not None:
            lone = lone & (warp.regs[guard] != negated)
    return lanes_of_mask(warp, lone)


def lanes_of_mask(warp: Warp, mask: np.ndarray) -> tuple[int, ...] | None:
    """The lanes of a mask; None if they are all that are alive."""
    return None if mask is FULL or lanes_to_int(mask) == warp.live else lanes_in(mask)


def _times(table: np.ndarray, row: np.ndarray) -> np.ndarray:
    """int64[34]: by 1 + the lane, the time up to which a row covers its accesses; at 0, for any
    lane."""
    times = np.where(table < len(row), row[np.minimum(table, len(row) - 1)], 0)
    times[0], times[EVERYONE] = times[1:EVERYONE].max(), times[1:EVERYONE].min()
    return times


def uncovered(
    bad: np.ndarray, marks: tuple[np.ndarray | int, np.ndarray], lanes: np.ndarray, domain: Domain,
    row: np.ndarray,
) -> np.ndarray | None:  # fmt: skip
    """The flagged marks (who, when) that no release of their lane covers either; None if there are
    none. lanes: 1 + the lane of each, 0 if it is not known."""
    who, when = np.abs(np.broadcast_to(marks[0], bad.shape)), marks[1]
    for component in np.unique(who[bad]).tolist():
        table = domain.lanes.get(component)
        if table is not None:
            of_it = bad & (who == component)
            limits = mark_of(_times(table, row)[lanes[of_it]] + 1)
            bad[of_it] = when[of_it] >= limits
    return bad if any_of(bad) else None
