"""Tensor memory that is given back, or given up, while it may still be taken.

Of a pair of which one CTA gives back what the other may not have taken yet PTX says nothing. On
GPUs of `sm_103a` the launch ends with an error (cutlass#3435), unless the cluster meets between the
two. So this is told of.
"""

from __future__ import annotations

import numpy as np

from ...errors import Trap
from ...interface import Cta, Warp
from .actor import line_of
from .clock import Event

_TAKEN = "tensor memory taken"


def note_taken(cta: Cta, event: Event) -> None:
    """A warp of a CTA has been given tensor memory."""
    cta.state(_TAKEN, list).append(event)


def _unknown(cta: Cta, happened: np.ndarray) -> bool:
    """Whether the CTA has been given memory of which a row of a clock does not know."""
    return any(int(happened[component]) < time for component, time in cta.state(_TAKEN, list))


def check_permit(warp: Warp, happened: np.ndarray) -> None:
    """Trap where a warp gives up its CTA's right to allocate and another one may still use it.

    Nothing may be allocated behind it (PTX ISA section 9.7.16.7.1).
    """
    if _unknown(warp.cta, happened):
        raise Trap(
            "tmem",
            "nothing orders this tcgen05.relinquish_alloc_permit behind a tcgen05.alloc of another"
            " warp, which is illegal after it; let the warp that allocates relinquish",
        )


def check_freed(warp: Warp, peer: Cta, happened: np.ndarray) -> None:
    """Warn where a warp that gives a pair's back does not know that the peer was given it.

    happened: the row of the warp's clock.
    """
    if peer.state(_TAKEN, list) and not _unknown(peer, happened):
        return
    warp.launch.warn(
        "early-dealloc",
        f"ptx:{line_of(warp)}: nothing orders this tcgen05.dealloc behind the tcgen05.alloc of the"
        f" other CTA of the pair, cta {peer.index}: launches have failed of it; let the cluster"
        " meet between the two",
    )
