"""Dependent launches that end without having waited for the grids before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

UNAWAITED = "dependent-launch"
WAIT, LAUNCH = "griddepcontrol.wait", "griddepcontrol.launch_dependents"


def unawaited_grids(
    executed: Mapping[str, int], awaited: Sequence[np.ndarray]
) -> tuple[tuple[str, str], ...]:
    """A warning where a grid lets dependents start, has prerequisite grids, and waits for none.

    Its own dependents wait for this grid alone (PTX ISA §9.7.13.13), which may then end first.
    """
    if not len(awaited) or not executed.get(LAUNCH) or executed.get(WAIT):
        return ()
    message = (
        f"no thread executed {WAIT}, and {LAUNCH} lets the next grid start: its own wait is for"
        " this grid, which may end while a prerequisite grid still works; wait in this one, at its"
        " end at the latest"
    )
    return ((UNAWAITED, message),)
