"""The marks of earlier accesses behind which an access is not ordered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ...truth import all_of, any_of
from .actor import Actor
from .clock import ASYNC_GLOBAL, KNOWN, Domain
from .lane_times import uncovered
from .verdicts import LINE_BITS, LINE_MASK, limit


class Lanes(NamedTuple):
    """1 + the lane of each mark, 0 for none; domains: of all clusters, by number."""

    lanes: np.ndarray
    domains: list[Domain]


Same = Callable[[], np.ndarray]
"""bool[bytes] of an access: which bytes keep their value."""
CLUSTER_SHIFT = 16
COMPONENT_MASK = (1 << CLUSTER_SHIFT) - 1


def conflicts(
    who: np.ndarray, when: np.ndarray, actor: Actor, kind: int, apart: Lanes | None = None
) -> Iterator[np.ndarray]:
    """bool[marks] of each cluster: those that a row of what the agent knows does not cover."""
    if not any_of(who):
        return
    clusters = np.abs(who) >> CLUSTER_SHIFT
    for number in np.unique(clusters[who != 0]).tolist():
        component = np.sign(who) * (np.abs(who) & COMPONENT_MASK)
        here = np.where(clusters == number, component, 0)
        row = actor.knows(kind, number)
        bad = unordered(here, when, actor, row, number)
        if bad is not None and apart is not None:
            bad = uncovered(bad, (here, when), apart.lanes, apart.domains[number], row)
        if bad is not None:
            yield bad


def visible_row(actor: Actor) -> int:
    """The row that says which writes to global memory the agent may read or replace."""
    return ASYNC_GLOBAL if actor.asynchronous else KNOWN


def harmful(bad: np.ndarray | None, same: Same | None) -> int | None:
    """The first of the flagged bytes that changes its value; None if there is none.

    Several threads that write the value that is already there do no harm.
    """
    if bad is None:
        return None
    if same is not None:
        bad = bad & ~same()
    return int(bad.argmax()) if any_of(bad) else None


def flags_of(bad: np.ndarray | None, count: int) -> np.ndarray:
    return np.zeros(count, bool) if bad is None else bad


def unordered(
    who: np.ndarray, when: np.ndarray, actor: Actor, row: np.ndarray, cluster: int | None = None
) -> np.ndarray | None:
    """bool[bytes]: the marks, of the agent's own cluster or another, behind which it is not
    ordered; None if there are none."""
    if actor.reaches is not None:
        number = actor.domain.number if cluster is None else cluster
        marks = who, when & LINE_MASK
        line, copied = actor.when & LINE_MASK, actor.asynchronous
        who = actor.reaches.weakened(marks, number, line, actor.home, copied)
    first = int(who.flat[0])
    if all_of(who == first):
        if first == 0 or (actor.strong and first < 0) or int(when.max()) < limit(row, abs(first)):
            return None
        return when.reshape(-1) >= limit(row, abs(first))
    components = np.abs(who)
    if len(row) <= int(components.max()):
        row = np.pad(row, (0, int(components.max()) + 1 - len(row)))
    bad = when >= (row[components] + 1) << LINE_BITS
    bad &= (who > 0) if actor.strong else (who != 0)
    return bad.reshape(-1) if any_of(bad) else None
