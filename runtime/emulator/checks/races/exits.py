"""What other CTAs do to a CTA's memory must happen while the CTA exists, in every order of events.

A CTA's mbarriers and its shared memory exist from its start to its exit. An arrival or an access of
another CTA after the exit is an error of its own. One that has come before the exit, but is not
ordered before it, might have come later. CUDA C++ Programming Guide, distributed shared memory: all
CTAs must have started, and accesses must be over before a CTA exits.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

import numpy as np

from ...errors import Trap
from ...interface import Cta, EngineOp
from .clock import HAPPENED, OVER, AsWarning, Domain, Event
from .warp_clock import WarpClock

_RELEASING = ", where it arrives with .release"
ARRIVAL, ACCESS = "arrival of {} at an mbarrier here", "access by {} to its shared memory"


def note(
    cta: Cta, what: str, event: Event, line: int, row: int = HAPPENED, commit: Event | None = None
) -> None:
    """Notes that another CTA has done something here, by an instruction of a PTX line. row: the row
    of clocks in which it must be known before the exit; commit: when it was issued, if it is
    tcgen05.commit."""
    component, time = event
    done = cta.state("done from afar", dict)
    if done.get((what, component), (0, 0))[0] <= time:
        done[what, component] = time, line, row, commit


def note_access(cta: Cta, event: Event, line: int) -> None:
    """Notes that a thread of another CTA accesses the shared memory of this one."""
    note(cta, ACCESS, event, line, OVER)


def note_operation(op: EngineOp, owner: Cta | None) -> None:
    """Notes that an operation accesses the shared memory of a CTA, or other memory."""
    meant = op.marks
    if owner is None or meant is None or meant.event is None or meant.issuer is None:
        return
    if meant.issuer is not owner:
        note(owner, ACCESS, meant.event, op.line)


def require_started(
    clock: WarpClock, owner: Cta, warps: Iterable[WarpClock], what: str, needs: str
) -> None:
    """Traps if a warp needs a CTA that may not have been launched yet, because the warp knows of
    nothing that a warp of that CTA has done. what: what it does; needs: what it needs the other CTA
    for."""
    if owner in clock.met:
        return
    happened = clock.row(HAPPENED)
    if not any(happened[warp.own] for warp in warps):
        raise Trap(
            "race",
            f"{what} is not ordered behind the start of cta {owner.index}: all CTAs of the cluster"
            f" must come to a barrier before one {needs}",
        )
    clock.met.add(owner)


def check_exit(
    cta: Cta, domain: Domain, known: Iterable[np.ndarray], as_warning: AsWarning
) -> None:
    """Traps if something of this is not known to any warp of the CTA; known: the rows of their
    clocks.

    as_warning: as in `SharedRules`. The commits of a thread arrive in their order on GPUs:
    DeepGEMM's kernels for pairs wait only for the last one. PTX does not say so.
    """
    clocks = list(known)
    done = cta.state("done from afar", dict)
    seen: dict[int, int] = {}
    missing = []
    for (what, component), (time, line, row, commit) in done.items():
        if max(int(rows[row, component]) for rows in clocks) < time:
            missing.append((what, component, time, line, commit))
        elif commit is not None:
            seen[commit[0]] = max(commit[1], seen.get(commit[0], 0))
    for what, component, time, line, commit in missing:
        happened = max(int(rows[HAPPENED, component]) for rows in clocks) >= time
        orders = "only a relaxed arrival" if happened else "nothing"
        later = commit is not None and seen.get(commit[0], 0) > commit[1]
        with as_warning("unawaited-commit") if later else nullcontext():
            raise Trap(
                "exited-cta",
                f"the CTA exits, and {orders} orders that behind the"
                f" {what.format(domain.name(component))} (ptx:{line}), which may come later; wait"
                f" for it, or come to a cluster barrier behind it{_RELEASING if happened else ''}",
            )
